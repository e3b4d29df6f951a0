//! Errors of S3 as errors of a store.

use std::time::Duration;

use claude_session_store::{SessionKey, StoreError, StoreErrorKind};

/// Returns the error that the server reported, without the rest of its response, which can contain parts of the
/// request.
pub(crate) fn server(target: &str, status: u16, code: &str, message: &str) -> StoreError {
    let (kind, help) = match (code, status) {
        ("NoSuchBucket", _) => (StoreErrorKind::Rejected, "create the bucket"),
        ("RequestTimeTooSkewed", _) => {
            (StoreErrorKind::Unavailable, "set the clock of this host, or that of the server")
        }
        ("XMinioStorageFull" | "QuotaExceeded" | "ServiceQuotaExceeded", _) | (_, 507) => {
            (StoreErrorKind::Full, "free space on the server, or increase the quota")
        }
        ("NotImplemented", _) | (_, 501) => {
            (StoreErrorKind::Rejected, "use a server or a version that supports conditional writes")
        }
        ("PermanentRedirect" | "AuthorizationHeaderMalformed", _) | (_, 300..=399) => (
            StoreErrorKind::Rejected,
            "set the region of the bucket: `region=` in the URL, or `S3Options::region`",
        ),
        (_, 401 | 403) => (
            StoreErrorKind::Rejected,
            "check the credentials, and grant the permissions that the documentation of `S3Store` lists",
        ),
        (_, 408 | 429 | 500..) => {
            (StoreErrorKind::Unavailable, "check the state and the limits of the service")
        }
        _ => (
            StoreErrorKind::Rejected,
            "check that the endpoint is that of an S3-compatible server, and its version",
        ),
    };
    let message = match (code, message) {
        ("", "") => format!("status {status}"),
        ("", message) => format!("{message} (status {status})"),
        (code, "") => format!("{code} (status {status})"),
        (code, message) => format!("{message} ({code}, status {status})"),
    };
    StoreError::new(kind, format!("the S3 server {target} failed: {message}")).with_help(help)
}

/// Returns the error of a connection that cannot be established or was lost.
pub(crate) fn connection(target: &str, cause: &str) -> StoreError {
    let help = if cause.contains("certificate") {
        "check the certificate of the server, and pass its authority to `S3Options::root_certificates` if the \
         system does not trust it"
    } else {
        "check that the endpoint is right and can be reached"
    };
    let message = format!("no connection to the S3 server {target}: {cause}");
    StoreError::new(StoreErrorKind::Unavailable, message).with_help(help)
}

/// Returns the error of a request that took too long.
pub(crate) fn timeout(target: &str, limit: Duration) -> StoreError {
    let message = format!("the S3 server {target} did not respond within {limit:?}");
    StoreError::new(StoreErrorKind::Unavailable, message)
        .with_help("check the server and the network, or increase `S3Options::request_timeout`")
}

/// Returns the error of a session that other hosts write to all the time.
pub(crate) fn contended(target: &str, key: &SessionKey, attempts: u32) -> StoreError {
    let message = format!(
        "gave up after {attempts} conflicting writes to session {} on the S3 server {target}: other hosts are \
         writing to it",
        key.session()
    );
    StoreError::new(StoreErrorKind::Unavailable, message)
        .with_help("resume a session on one host at a time, and try again")
}

/// Returns the error of an object that no version of this crate writes.
pub(crate) fn corrupt(what: &str) -> StoreError {
    let message = format!("the S3 session store contains an invalid {what}");
    StoreError::new(StoreErrorKind::Corrupt, message).with_help(
        "check whether another program has changed the objects, and restore them from a backup",
    )
}

/// Returns the error of a session whose head names an object that does not exist.
pub(crate) fn missing_part() -> StoreError {
    let message = "an object with entries of the session is missing in the S3 session store";
    StoreError::new(StoreErrorKind::Corrupt, message).with_help(
        "check whether a lifecycle rule or \
         another program has deleted it, and restore it from a backup",
    )
}

/// Returns the error of a session in a format that this version does not know.
pub(crate) fn newer(format: u32, supported: u32) -> StoreError {
    let message = format!(
        "a session in the S3 session store has the format {format}, and this version of claude-agent-store \
         supports {supported}"
    );
    StoreError::new(StoreErrorKind::Rejected, message).with_help("update claude-agent-store")
}

/// Returns the error of a server on which two writers would overwrite each other.
pub(crate) fn no_conditions(target: &str, header: &str, cause: &str) -> StoreError {
    let message = format!(
        "the S3 server {target} does not support the condition `{header}` of a write: {cause}"
    );
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("use a server or a version that supports conditional writes")
}

/// Returns the error of a URL. It does not contain any part of it, which could be a secret.
pub(crate) fn invalid_url(what: &str) -> StoreError {
    let message = format!("invalid {what} in the URL of the S3 session store");
    StoreError::new(StoreErrorKind::Rejected, message).with_help("pass \
         `s3://bucket/prefix?region=us-east-1`, with `&endpoint=https://host:port` for a server other \
         than AWS")
}

/// Returns the error of an option.
pub(crate) fn invalid_option(option: &str, cause: &str) -> StoreError {
    let message = format!("invalid {option} of the S3 session store: {cause}");
    StoreError::new(StoreErrorKind::Rejected, message)
}

/// Returns the error of a store without credentials.
pub(crate) fn no_credentials() -> StoreError {
    let message = "the S3 session store has no credentials";
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("call `S3Options::credentials`, or `S3Options::credentials_from_environment`")
}

/// Returns the error of an append that is too large.
pub(crate) fn too_large(bytes: usize, limit: usize) -> StoreError {
    let message = format!("an append of {bytes} bytes exceeds the limit of {limit} for S3");
    StoreError::new(StoreErrorKind::Rejected, message).with_help("split it")
}
