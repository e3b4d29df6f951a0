//! A host application as a separate process, for what cannot be observed inside a test: its resource usage after
//! thousands of queries, and the processes that are left when it is killed.

mod approvals;
mod drops;
mod isolation;
mod leaks;
mod memory;
mod signals;
mod soak;
mod stores;

use std::error::Error;
use std::process::ExitCode;

use claude_agent_kit::{Cli, Options, query};
#[cfg(unix)]
use tests_e2e::faults::{self, Fault, State};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::ResourceUsage;

type Outcome = Result<(), Box<dyn Error>>;

#[expect(clippy::print_stderr, reason = "the test reads stderr")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["turn"] => turn(),
        ["find", arguments @ ..] => find(arguments),
        ["long-line", sim, size] => long_line(sim, size),
        ["open"] => isolation::run(Options::new()),
        ["isolated", directory] => isolation::isolated(directory),
        ["drops", sim, runtime] => drops::run(sim, runtime),
        #[cfg(unix)]
        ["fault", sim, state, fault] => one_fault(sim, state, fault),
        #[cfg(unix)]
        ["hold", sim, state] => hold(sim, state),
        ["exits", sim] => signals::exits(sim),
        ["stops-another-user", program] => signals::stops_another_user(program),
        ["queries", count] => leaks::queries(count),
        ["queries", count, sim] => leaks::queries_as_processes(count, sim),
        ["sessions", count] => leaks::sessions(count),
        ["sessions", count, sim] => leaks::sessions_as_processes(count, sim),
        ["memory", case] => memory::run(case),
        ["store-turn", task] => stores::turn(task),
        ["store-lost", task] => stores::lost(task),
        ["approval-run", task] => approvals::run(task),
        #[cfg(target_os = "linux")]
        ["store-appends", task] => stores::appends(task),
        #[cfg(target_os = "linux")]
        ["record-writes", task] => stores::record_writes(task),
        ["soak", seconds, sim] => soak::run(seconds, sim),
        other => Err(format!("unknown command: {other:?}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one cell of the fault matrix and prints its outcome.
#[cfg(unix)]
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
fn one_fault(sim: &str, state: &str, fault: &str) -> Outcome {
    let state = State::named(state).ok_or("unknown state")?;
    let fault = Fault::named(fault).ok_or("unknown fault")?;
    let (line, text) = faults::run_here(state, fault, sim)?;
    println!("{line}\n{text}");
    Ok(())
}

/// Holds a session in a state until this process is killed.
#[cfg(unix)]
fn hold(sim: &str, state: &str) -> Outcome {
    let state = State::named(state).ok_or("unknown state")?;
    Ok(faults::hold(state, sim)?)
}

/// Runs one query that is configured by environment variables.
fn turn() -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let options = Options::new().allowed_tools(["Bash"]);
        let collected = query("run it", options).await?.collect().await;
        collected.error.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// Finds the CLI with these options, on a current-thread runtime, and prints its path and version.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
fn find(arguments: &[&str]) -> Outcome {
    let mut options = Options::new();
    for pair in arguments.chunks(2) {
        options = match pair {
            ["cli_path", path] => options.cli_path(*path),
            #[cfg(unix)]
            ["user", name] => options.user(*name),
            other => return Err(format!("unknown option: {other:?}").into()),
        };
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cli = runtime.block_on(Cli::find(options))?;
    println!("{} {}", cli.path().display(), cli.version());
    Ok(())
}

/// Runs a query with a line of this size, and prints how much memory it used.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
fn long_line(sim: &str, size: &str) -> Outcome {
    let script = format!("otherwise say \"Hello.\"\nfaults before assistant long-line {size}");
    tokio::runtime::Runtime::new()?.block_on(async {
        let harness = Harness::scripted(&script, sim).await?;
        let before = ResourceUsage::now();
        let mut stream = query("hello", harness.options()).await?;
        let mut summary = "ended".to_owned();
        let mut longest = 0;
        while let Some(item) = stream.next().await {
            match item {
                Ok(item) => {
                    let length = item.message().map_or(0, |message| message.raw().len());
                    longest = longest.max(length);
                }
                Err(error) => summary = format!("{:?} {:?}", error.kind(), error.size()),
            }
        }
        let grown = ResourceUsage::now().peak_memory.saturating_sub(before.memory);
        println!("{summary}; longest {longest}; grown {grown} KiB");
        Ok(())
    })
}
