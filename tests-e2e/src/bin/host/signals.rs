//! Hosts that cannot observe the exit of a process, or are not permitted to end it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::{Options, OsUser, Session, Timeouts, VersionCheck, query};
use tests_e2e::harness::Harness;

use crate::Outcome;

/// Runs a query, a session whose stdin is closed and one that is stopped, and prints how each ends.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn exits(sim: &str) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let harness = Harness::scripted("otherwise say \"Hello.\"", sim).await?;
        let options = harness.options().version_check(VersionCheck::Skip);
        let collected = query("hello", &options).await?.collect().await;
        let warnings: Vec<_> = collected.warnings().map(ToString::to_string).collect();
        println!("query: {:?} {warnings:?}", collected.error);

        let session = Session::start(&options).await?;
        let turn = session.send("hello").await?;
        session.end_input().await?;
        turn.finish().await?;
        let mut events = session.events();
        let mut last = None;
        while let Some(event) = events.next().await {
            last = Some(event);
        }
        println!("end_input: {last:?}");

        let session = Session::start(&options).await?;
        println!("stop: {:?}", session.stop().await);
        Ok(())
    })
}

/// Starts a CLI as another user, stops it, and prints how it ended and all warnings.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn stops_another_user(program: &str) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let log = warnings.clone();
        let options = Options::new()
            .cli_path(program)
            .cwd(Path::new(program).parent().ok_or("no directory")?)
            .environment(EnvironmentPolicy::Clean)
            .env("PATH", "/usr/bin:/bin")
            .version_check(VersionCheck::Skip)
            .timeouts(Timeouts::new().exit_grace(Duration::from_millis(100)))
            .user(OsUser::ids(65_534, 65_534))
            .on_warning(move |warning| {
                if let Ok(mut log) = log.lock() {
                    log.push(format!("{:?}: {warning}", warning.code()));
                }
            });
        let session = Session::open(&options).await?;
        println!("{}", session.pid().ok_or("no process")?);
        println!("{:?}", session.stop().await);
        for warning in warnings.lock().map_err(|_| "a warning panicked")?.iter() {
            println!("{warning}");
        }
        Ok(())
    })
}
