//! Opening the file and its schema.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use claude_session_store::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::SqliteOptions;
use super::errors::{self, Fault};

/// The version of the schema. Every older one is updated by [`migrate`].
const VERSION: i64 = 3;

/// Marks a file as a store of this crate, in the header of the database.
const APPLICATION: i64 = 0x636c_6173;

/// The longest write-ahead log that is kept between checkpoints, in bytes.
const MAX_LOG_BYTES: i64 = 64 << 20;

const VERSION_1: &str = "
    CREATE TABLE session (
        id INTEGER PRIMARY KEY,
        scope TEXT NOT NULL,
        project TEXT NOT NULL,
        session TEXT NOT NULL,
        epoch INTEGER NOT NULL DEFAULT 0,
        last INTEGER NOT NULL DEFAULT 0,
        -- The last sequence number of the main transcript, NULL without one.
        main_last INTEGER,
        modified_ms INTEGER NOT NULL DEFAULT 0,
        summary TEXT,
        summary_through INTEGER,
        UNIQUE (scope, project, session)
    ) STRICT;
    CREATE INDEX session_listed ON session (scope, project, modified_ms, session)
        WHERE main_last IS NOT NULL;
    CREATE TABLE transcript (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        -- Empty for the main transcript.
        subpath TEXT NOT NULL,
        UNIQUE (session, subpath)
    ) STRICT;
    CREATE TABLE entry (
        session INTEGER NOT NULL,
        transcript INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        entry_id TEXT NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (session, sequence),
        UNIQUE (transcript, entry_id)
    ) STRICT;
    CREATE INDEX entry_of_transcript ON entry (transcript, sequence);
";

/// Approvals, since version 2.
const VERSION_2: &str = "
    CREATE TABLE approval_owner (
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        PRIMARY KEY (scope, session)
    ) STRICT;
    CREATE TABLE approval (
        scope TEXT NOT NULL,
        id TEXT NOT NULL,
        session TEXT NOT NULL,
        requested_at_ms INTEGER NOT NULL,
        is_pending INTEGER NOT NULL,
        is_open INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (scope, id)
    ) STRICT;
    CREATE INDEX approval_pending ON approval (scope, requested_at_ms, id) WHERE is_pending;
    CREATE INDEX approval_open ON approval (scope, session, requested_at_ms, id) WHERE is_open;
";

/// Records, since version 3, with the approvals of version 2. A process of an earlier version that has the file open goes
/// on with transcripts, and its requests for approvals fail: two copies could both be used.
const VERSION_3: &str = "
    CREATE TABLE record_owner (
        scope TEXT NOT NULL,
        owner TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        PRIMARY KEY (scope, owner)
    ) STRICT;
    CREATE TABLE record (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        scope TEXT NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        owner TEXT NOT NULL,
        version INTEGER NOT NULL,
        is_open INTEGER NOT NULL,
        due_at_ms INTEGER,
        created_ms INTEGER NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (scope, kind, id)
    ) STRICT;
    CREATE INDEX record_of_owner ON record (scope, owner, kind, sequence);
    CREATE INDEX record_open_of_owner ON record (scope, owner, kind, sequence) WHERE is_open;
    CREATE INDEX record_in_scope ON record (scope, kind, sequence);
    CREATE INDEX record_open_in_scope ON record (scope, kind, sequence) WHERE is_open;
    CREATE INDEX record_open ON record (kind, sequence) WHERE is_open;
    CREATE INDEX record_due ON record (kind, due_at_ms) WHERE is_open;
    INSERT INTO record_owner SELECT scope, session, epoch FROM approval_owner;
    INSERT INTO record (scope, kind, id, owner, version, is_open, created_ms, body)
        SELECT scope, 'approval', id, session, version, is_open, requested_at_ms, body
        FROM approval ORDER BY requested_at_ms, id;
    DROP TABLE approval;
    DROP TABLE approval_owner;
";

/// Opens the file and updates its schema.
pub(super) fn open(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let path = &options.path;
    create(path).map_err(|error| errors::create(path, error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|error| errors::database(path, error))?;
    prepare(&mut connection, options).map_err(|fault| fault.into_error(path))?;
    Ok(connection)
}

/// Creates the file for its owner only, if it does not exist. SQLite gives its other files the same mode.
fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn prepare(connection: &mut Connection, options: &SqliteOptions) -> Result<(), Fault> {
    connection.busy_timeout(options.busy_timeout)?;
    enable_log(connection, options)?;
    // Every commit is synced to disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
    // Deleted conversations are overwritten; `requests::empty_log` removes them from the log too.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    if let Some(max_bytes) = options.max_bytes {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(max_bytes).unwrap_or(i64::MAX) / page.max(1);
        // SQLite supports up to 2^32 - 2 pages.
        let pages = pages.clamp(1, (1 << 32) - 2);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    migrate(connection, &options.path)
}

/// Enables the write-ahead log. SQLite does not wait for other processes that do the same at this time.
fn enable_log(connection: &Connection, options: &SqliteOptions) -> Result<(), Fault> {
    let start = Instant::now();
    loop {
        let query = "PRAGMA journal_mode = WAL";
        match connection.query_row(query, [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => return Err(errors::no_log(&options.path, &mode).into()),
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < options.busy_timeout =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Creates or updates the schema. The lock of the transaction keeps other processes from doing the same. A current
/// schema needs no lock, so that a process that was stopped while it wrote does not keep others from reading.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if (number("application_id")?, number("user_version")?) == (APPLICATION, VERSION) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get(0));
    let (application, version): (i64, i64) = (number("application_id")?, number("user_version")?);
    if version > VERSION && application == APPLICATION {
        return Err(errors::newer(path, version, VERSION).into());
    }
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = (application, version, tables) == (0, 0, 0);
    if !is_new && application != APPLICATION {
        return Err(errors::foreign(path).into());
    }
    for (number, step) in (1..).zip([VERSION_1, VERSION_2, VERSION_3]) {
        if version < number {
            transaction.execute_batch(step)?;
        }
    }
    if version < VERSION {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(())
}
