//! The interface of subjects that use session stores.
//!
//! Such a subject is started as `<subject> <operation> <store> <config> <directory> <session> <count>`, performs the
//! operation with a store of that kind, and prints one line of JSON: `{"count": 50, "wall": 0.1, "cpu": 0.1,
//! "peak": 12.5}`, with seconds, and the peak memory of the process in MiB; or `{"failed": "why"}`. For turns, `wall` is
//! with the store and `cpu` without it. The CLI of a turn is at `BENCH_CLI`.

use std::env;
use std::path::PathBuf;

use crate::Outcome;
use crate::history::{cpu_seconds, peak_mib};

/// The task of a subject.
#[derive(Debug, Clone)]
pub struct StoreTask {
    /// `append`, `append32`: `count` appends of one entry by one or by 32 writers. `import`: copies the session from
    /// disk into the store. `read`: reads all messages of the session from the store. `turn`: the median of `count`
    /// turns of a session with the store and of one without, which take turns.
    pub operation: String,
    /// `memory` or `sqlite`.
    pub store: String,
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

/// The count and the seconds of a task; of turns also the seconds without a store.
pub type Figures = (usize, f64, Option<f64>);

/// Performs the task that is given by the arguments, prints its figures, and exits.
pub fn run_store_subject(perform: impl FnOnce(&StoreTask) -> Outcome<Figures>) {
    let measured = task().and_then(|task| {
        let before = cpu_seconds();
        let (count, wall, without) = perform(&task)?;
        let (cpu, peak) = (without.unwrap_or_else(|| cpu_seconds() - before), peak_mib()?);
        Ok(serde_json::json!({ "count": count, "wall": wall, "cpu": cpu, "peak": peak }))
    });
    println!("{}", measured.unwrap_or_else(|error| serde_json::json!({ "failed": error.to_string() })));
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
        config: next()?.into(),
        directory: next()?.into(),
        session: next()?,
        count: next()?.parse()?,
        cli: env::var_os("BENCH_CLI").unwrap_or_default().into(),
    })
}
