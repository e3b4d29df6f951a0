//! Keeps `docs/messages-store.md` current: the list of all texts of errors, rendered by the functions that
//! create them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use claude_session_store::record::{RecordKey, RecordKind};
use claude_session_store::{Sequence, SessionId, SessionKey, StoreError};

use crate::{encryption, postgres, s3, sqlite};

const INTRODUCTION: &str = "\
# Messages of claude-agent-store

Every text of an error of this crate, with example values; [messages.md](messages.md) lists those of
`claude-agent-kit`. The unit test `messages::the_list_of_messages_is_current` renders the texts and compares them
with this file; `UPDATE_EXPECT=1 cargo test -p claude-agent-store --all-features --lib messages` rewrites it.
";

fn section(text: &mut String, title: &str, errors: &[StoreError]) {
    write!(text, "\n## {title}\n").unwrap();
    for error in errors {
        writeln!(text, "- `{}`: {error}", error.kind()).unwrap();
    }
}

/// Returns an error of the database with this result code.
fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}

fn postgres_errors() -> Vec<StoreError> {
    use postgres::errors;
    use tokio_postgres::error::SqlState;

    let target = "\"db.example.com:5432/agents\"";
    let reports = [
        (SqlState::DISK_FULL, "could not extend file"),
        (SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"),
        (SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already"),
        (SqlState::READ_ONLY_SQL_TRANSACTION, "cannot execute in a read-only transaction"),
        (SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command"),
        (SqlState::INSUFFICIENT_PRIVILEGE, "permission denied for table entry"),
        (SqlState::UNDEFINED_TABLE, "relation does not exist"),
        (SqlState::DUPLICATE_TABLE, "relation \"session\" already exists"),
        (SqlState::INVALID_PASSWORD, "password authentication failed for user \"agent\""),
        (SqlState::FEATURE_NOT_SUPPORTED, "not supported"),
    ];
    let mut list: Vec<StoreError> =
        reports.iter().map(|(code, message)| errors::server(target, code, message)).collect();
    list.extend([
        errors::connection(target, "error connecting to server: Connection refused (os error 111)"),
        errors::connection(target, "invalid configuration: password missing"),
        errors::connection(target, "error performing TLS handshake: invalid peer certificate"),
        errors::timeout(target, Duration::from_secs(10)),
        errors::corrupt("subpath"),
        errors::newer("claude_agent_store", 2, 1),
        errors::encoding("LATIN1"),
        errors::invalid_connection_string(),
        errors::invalid_schema("my-schema"),
        errors::invalid_certificate("root certificate", "no certificate in PEM"),
        errors::too_large("an append", 600_000_000, 500_000_000),
    ]);
    list
}

fn s3_errors() -> Vec<StoreError> {
    use s3::errors;

    let target = "\"s3.example.com/agents/sessions\"";
    let id = "00000000-0000-4000-8000-000000000001";
    let key = SessionKey::new("tenant", "project", id).unwrap();
    let reports = [
        (404, "NoSuchBucket", "The specified bucket does not exist"),
        (403, "RequestTimeTooSkewed", "The difference between the times is too large"),
        (507, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold"),
        (501, "NotImplemented", "A header is not implemented"),
        (301, "PermanentRedirect", "The bucket must be addressed using another endpoint"),
        (403, "AccessDenied", "Access Denied"),
        (503, "SlowDown", "Please reduce your request rate"),
        (400, "", ""),
        (405, "", "not an S3 response"),
        (418, "Teapot", ""),
    ];
    let mut list: Vec<StoreError> = reports
        .iter()
        .map(|(status, code, message)| errors::server(target, *status, code, message))
        .collect();
    list.extend([
        errors::connection(target, "tcp connect error: Connection refused (os error 111)"),
        errors::connection(target, "invalid peer certificate: UnknownIssuer"),
        errors::timeout(target, Duration::from_secs(10)),
        errors::contended(target, &key, 40),
        errors::corrupt("head object"),
        errors::missing_part(),
        errors::newer(2, 1),
        errors::no_conditions(target, "If-Match", "an object with another `ETag` was overwritten"),
        errors::invalid_url("bucket"),
        errors::invalid_option("root certificate", "no certificate in PEM"),
        errors::no_credentials(),
        errors::too_large(600_000_000, 500_000_000),
    ]);
    list
}

fn rendered() -> String {
    let mut text = INTRODUCTION.to_owned();
    {
        use rusqlite::ffi;
        use sqlite::errors;

        let path = Path::new("/srv/sessions.db");
        let codes = [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_TOOBIG,
            ffi::SQLITE_ERROR,
            ffi::SQLITE_IOERR,
        ];
        let mut list: Vec<StoreError> =
            codes.iter().map(|code| errors::database(path, failure(*code))).collect();
        list.extend([
            errors::corrupt("subpath"),
            errors::create(path, io::Error::from(io::ErrorKind::PermissionDenied)),
            errors::foreign(path),
            errors::newer(path, 2, 1),
            errors::no_log(path, "delete"),
            errors::no_thread(io::Error::from(io::ErrorKind::OutOfMemory)),
            errors::gone(),
        ]);
        section(&mut text, "SQLite", &list);
    }
    section(&mut text, "PostgreSQL", &postgres_errors());
    section(&mut text, "S3", &s3_errors());
    {
        use encryption::errors;

        let session = SessionId::from("00000000-0000-4000-8000-000000000001");
        let what = format!("an entry of session {session}");
        let key = RecordKey::new("tenant", RecordKind::Approval, session.as_str()).unwrap();
        let list = [
            errors::invalid_key_id(""),
            errors::duplicate_key("2026-11"),
            errors::unknown_key(&what, "2026-11"),
            errors::newer_format(&what, 3),
            errors::corrupt(&what),
            errors::misplaced(&session, Sequence::new(17)),
            errors::no_random_numbers("operation not supported"),
            errors::too_long(300_000_000_000),
            errors::unrequested(&key),
        ];
        section(&mut text, "Encryption", &list);
    }
    text
}

#[test]
fn the_list_of_messages_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/messages-store.md");
    let rendered = rendered();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, &rendered).unwrap();
        return;
    }
    assert!(
        fs::read_to_string(path).unwrap_or_default() == rendered,
        "docs/messages-store.md is stale; help: run `UPDATE_EXPECT=1 cargo test -p claude-agent-store \
         --all-features --lib messages`"
    );
}

#[test]
fn the_list_contains_the_error_of_every_function() {
    let own = include_str!("messages.rs");
    let mut count = 0;
    for source in [
        include_str!("sqlite/errors.rs"),
        include_str!("postgres/errors.rs"),
        include_str!("s3/errors.rs"),
        include_str!("encryption/errors.rs"),
    ] {
        for rest in source.split("\npub(crate) fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(own.contains(&format!("errors::{name}(")), "`{name}` is not listed");
            count += 1;
        }
    }
    assert_eq!(count, 39);
}

#[test]
fn errors_are_created_only_by_the_listed_functions() {
    for source in [
        include_str!("sql.rs"),
        include_str!("records.rs"),
        include_str!("sqlite/records.rs"),
        include_str!("sqlite/mod.rs"),
        include_str!("sqlite/jobs.rs"),
        include_str!("sqlite/requests.rs"),
        include_str!("sqlite/schema.rs"),
        include_str!("postgres/records.rs"),
        include_str!("postgres/listener.rs"),
        include_str!("postgres/mod.rs"),
        include_str!("postgres/options.rs"),
        include_str!("postgres/pool.rs"),
        include_str!("postgres/requests.rs"),
        include_str!("postgres/schema.rs"),
        include_str!("postgres/tls.rs"),
        include_str!("s3/append.rs"),
        include_str!("s3/block.rs"),
        include_str!("s3/compact.rs"),
        include_str!("s3/delete.rs"),
        include_str!("s3/head.rs"),
        include_str!("s3/http.rs"),
        include_str!("s3/list.rs"),
        include_str!("s3/load.rs"),
        include_str!("s3/mod.rs"),
        include_str!("s3/objects.rs"),
        include_str!("s3/options.rs"),
        include_str!("s3/probe.rs"),
        include_str!("s3/session.rs"),
        include_str!("encryption/records.rs"),
        include_str!("encryption/mod.rs"),
        include_str!("encryption/chain.rs"),
        include_str!("encryption/order.rs"),
        include_str!("encryption/cipher.rs"),
        include_str!("encryption/keyring.rs"),
    ] {
        assert!(!source.contains("StoreError::new("));
    }
}

/// Texts follow the conventions of the project: lower case, no full stop, at most one `; help: `.
#[test]
fn messages_follow_the_conventions() {
    for line in rendered().lines().filter_map(|line| line.strip_prefix("- ")) {
        let (_, message) = line.split_once(": ").unwrap();
        assert!(!message.starts_with(char::is_uppercase) && !message.ends_with('.'), "{line}");
        assert!(message.matches("; help: ").count() <= 1, "{line}");
    }
}
