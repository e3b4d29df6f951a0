//! The interface of subjects that use session stores.
//!
//! Such a subject is started as `<subject> <operation> <store> <config> <directory> <session> <count>`, performs the
//! operation with a store of that kind, and prints one line of JSON: `{"count": 50, "wall": 0.1, "cpu": 0.1,
//! "peak": 12.5}`, with seconds, and the peak memory of the process in MiB; or `{"failed": "why"}`. For turns, `wall` is
//! with the store and `cpu` without it, and `requests` is the number of HTTP requests per turn to an S3 server; for a
//! resume, `peak` is what it takes more than a start without a conversation. The CLI is at `BENCH_CLI`, a server at `BENCH_STORE_URL`; `BENCH_STORE_NAME` is the part of the store to use.

use std::env;
use std::path::PathBuf;

use crate::Outcome;
use crate::history::cpu_seconds;
pub use crate::history::peak_mib;

/// The task of a subject.
#[derive(Debug, Clone)]
pub struct StoreTask {
    /// `append`, `append32`: `count` appends of one entry by one or by 32 writers. `import`: copies the session from
    /// disk into the store. `read`: reads all messages of the session from the store. `resume`: starts a session that
    /// continues the session. `fill`: copies all sessions of the directory into the store. `list`: lists them from the
    /// store. `turn`: the median of `count` turns of a session with the store and of one without, which take turns.
    pub operation: String,
    /// `memory`, `sqlite`, `postgres` or `s3`.
    pub store: String,
    /// The URL of a server.
    pub url: String,
    /// The file, the schema or the prefix in the store, which other tasks may have filled.
    pub name: String,
    /// The config directory.
    pub config: PathBuf,
    /// The working directory.
    pub directory: PathBuf,
    /// The session.
    pub session: String,
    /// The number of appends or turns.
    pub count: usize,
    /// The CLI.
    pub cli: PathBuf,
}

/// What was measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// The number of entries, messages, sessions or turns.
    pub count: usize,
    /// Seconds.
    pub wall: f64,
    /// Of turns, the seconds without a store.
    pub without: Option<f64>,
    /// Of turns, the requests to an S3 server per turn.
    pub requests: f64,
    /// The peak memory before what is measured, in MiB, if that does not count.
    pub baseline: f64,
}

/// Performs the task that is given by the arguments, prints its figures, and exits.
pub fn run_store_subject(perform: impl FnOnce(&StoreTask) -> Outcome<Figures>) {
    let measured = task().and_then(|task| {
        let before = cpu_seconds();
        let Figures { count, wall, without, requests, baseline } = perform(&task)?;
        let (cpu, peak) =
            (without.unwrap_or_else(|| cpu_seconds() - before), peak_mib()? - baseline);
        Ok(serde_json::json!({
            "count": count, "wall": wall, "cpu": cpu, "peak": peak, "requests": requests
        }))
    });
    println!(
        "{}",
        measured.unwrap_or_else(|error| serde_json::json!({ "failed": error.to_string() }))
    );
    std::process::exit(0);
}

fn task() -> Outcome<StoreTask> {
    let mut arguments = env::args().skip(1);
    let mut next = || {
        arguments.next().ok_or("usage: <operation> <store> <config> <directory> <session> <count>")
    };
    Ok(StoreTask {
        operation: next()?,
        store: next()?,
        url: env::var("BENCH_STORE_URL").unwrap_or_default(),
        name: env::var("BENCH_STORE_NAME").unwrap_or_default(),
        config: next()?.into(),
        directory: next()?.into(),
        session: next()?,
        count: next()?.parse()?,
        cli: env::var_os("BENCH_CLI").unwrap_or_default().into(),
    })
}
