//! Errors of PostgreSQL as errors of a store.

use std::error::Error as _;
use std::time::Duration;

use claude_session_store::{StoreError, StoreErrorKind};
use tokio_postgres::error::SqlState;

/// Returns the error of a request that failed.
pub(super) fn failure(target: &str, error: tokio_postgres::Error) -> StoreError {
    if let Some(error) = error.as_db_error() {
        // Neither as the cause nor with its details, which can contain values of the request.
        return server(target, error.code(), error.message());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    connection(target, &text).caused_by(error)
}

/// Returns whether an error of the server means that its connection, and probably every other one, is useless:
/// the server shuts down, or is no longer the primary.
pub(super) fn ends_connections(code: &SqlState) -> bool {
    matches!(code.code(), "57P01" | "57P02" | "57P03" | "57P05" | "25006")
        || code.code().starts_with("08")
}

/// Returns the error that the server reported.
pub(crate) fn server(target: &str, code: &SqlState, message: &str) -> StoreError {
    let code = code.code();
    let class = code.get(..2).unwrap_or_default();
    let (kind, help) = match (code, class) {
        ("53100", _) => (StoreErrorKind::Full, "free disk space on the server"),
        ("40001" | "40P01" | "55P03" | "57014", _) => (
            StoreErrorKind::Unavailable,
            "check for transactions that keep the session locked, and for low timeouts of the \
             server",
        ),
        ("53300", _) => (
            StoreErrorKind::Unavailable,
            "lower `PostgresOptions::max_connections`, or use a connection pooler",
        ),
        ("25006", _) => (
            StoreErrorKind::Unavailable,
            "connect to the primary: `target_session_attrs=read-write`",
        ),
        ("42501", _) => (
            StoreErrorKind::Rejected,
            "grant the privileges that the documentation of `PostgresStore` lists",
        ),
        ("42P01" | "42P02" | "42703" | "42883" | "3F000" | "XX001" | "XX002", _) | (_, "23") => (
            StoreErrorKind::Corrupt,
            "another program or a migration may have changed the schema: compare it with the schema of a new \
             store before you restore a backup, which loses later entries",
        ),
        ("42P07" | "42723", _) => (
            StoreErrorKind::Rejected,
            "the schema belongs to another program: use a separate one, \
             `PostgresOptions::schema`",
        ),
        (_, "28" | "3D") => {
            (StoreErrorKind::Rejected, "check the user, the password and the name of the database")
        }
        (_, "0A" | "22" | "42" | "54") => {
            (StoreErrorKind::Rejected, "check the version and the settings of the server")
        }
        _ => (StoreErrorKind::Unavailable, "check the log of the server"),
    };
    let message = format!("the PostgreSQL server {target} failed: {message} ({code})");
    StoreError::new(kind, message).with_help(help)
}

/// Returns the error of a connection that cannot be established or was lost.
pub(crate) fn connection(target: &str, cause: &str) -> StoreError {
    // tokio-postgres does not tell its kinds of errors apart in any other way.
    let is_rejected =
        ["invalid configuration", "authentication error"].iter().any(|it| cause.starts_with(it));
    let (kind, help) = if is_rejected {
        (StoreErrorKind::Rejected, "check the connection string and the password")
    } else if cause.contains("TLS") {
        (
            StoreErrorKind::Unavailable,
            "check the certificate of the server, and pass its authority to \
             `PostgresOptions::root_certificates` if the system does not trust it",
        )
    } else {
        (StoreErrorKind::Unavailable, "check that the server is running and can be reached")
    };
    let message = format!("no connection to the PostgreSQL server {target}: {cause}");
    StoreError::new(kind, message).with_help(help)
}

/// Returns the error of a request that took too long.
pub(crate) fn timeout(target: &str, limit: Duration) -> StoreError {
    let message = format!("the PostgreSQL server {target} did not respond within {limit:?}");
    StoreError::new(StoreErrorKind::Unavailable, message).with_help(
        "check the server and the network, or increase `PostgresOptions::request_timeout`",
    )
}

/// Returns the error of a value in the database that no version of this crate writes.
pub(crate) fn corrupt(what: &str) -> StoreError {
    let message = format!("the PostgreSQL session store contains an invalid {what}");
    StoreError::new(StoreErrorKind::Corrupt, message).with_help(
        "check whether another program has changed the schema, and restore it from a backup",
    )
}

/// Returns the error of a schema that this version does not know.
pub(crate) fn newer(schema: &str, version: i32, supported: i32) -> StoreError {
    let message = format!(
        "the PostgreSQL schema \"{schema}\" has version {version}, and this version of \
         claude-agent-store supports up to {supported}"
    );
    StoreError::new(StoreErrorKind::Rejected, message).with_help("update claude-agent-store")
}

/// Returns the error of a database with an encoding that cannot contain all of Unicode.
pub(crate) fn encoding(encoding: &str) -> StoreError {
    let message = format!("the encoding of the PostgreSQL database is {encoding:?}");
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("create the database with `ENCODING 'UTF8'`")
}

/// Returns the error of a connection string. It does not contain any part of it, which could be the password.
pub(crate) fn invalid_connection_string() -> StoreError {
    let message = "invalid PostgreSQL connection string";
    StoreError::new(StoreErrorKind::Rejected, message).with_help("pass \
         `postgres://user:password@host:5432/database`, with special characters in percent-encoding")
}

/// Returns the error of the name of a schema.
pub(crate) fn invalid_schema(name: &str) -> StoreError {
    let shown: String = name.chars().take(64).collect();
    let message = format!("invalid name of a PostgreSQL schema: {shown:?}");
    StoreError::new(StoreErrorKind::Rejected, message).with_help(
        "use 1 to 63 lower-case ASCII letters, digits and underscores, not a digit first",
    )
}

/// Returns the error of a certificate or key in the options.
pub(crate) fn invalid_certificate(what: &str, cause: &str) -> StoreError {
    let message = format!("invalid TLS {what} of the PostgreSQL session store: {cause}");
    StoreError::new(StoreErrorKind::Rejected, message)
}

/// Returns the error of an append that exceeds the longest message of PostgreSQL.
pub(crate) fn too_large(what: &str, bytes: usize, limit: usize) -> StoreError {
    let message = format!("{what} of {bytes} bytes exceeds the limit of {limit} for PostgreSQL");
    StoreError::new(StoreErrorKind::Rejected, message).with_help("split it")
}
