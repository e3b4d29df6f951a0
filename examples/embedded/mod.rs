//! The CLI of an example: the simulated one, inside this process, so that it runs with nothing but
//! Rust; with `--cli <path>` the real one.

use std::env;
use std::future::ready;
use std::sync::Arc;

use claude_agent_kit::Options;
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory, Launch};
use claude_agent_testkit::mock_api::Script;
use claude_agent_testkit::sim::Sim;

/// Options for the CLI that the command line names, or for a simulated one that follows `script`.
pub(crate) fn options(script: impl Fn() -> Script + Send + Sync + 'static) -> Options {
    let mut arguments = env::args().skip_while(|argument| argument != "--cli");
    match arguments.nth(1) {
        // `claude` is looked for where it is usually installed.
        Some(name) if name == "claude" => Options::new(),
        Some(path) => Options::new().cli_path(path),
        None => Options::new().transport(InMemory::new(move |launch| {
            ready(Ok(connect(Sim::new().script(script()), &launch)))
        })),
    }
}

/// Whether a real CLI was asked for.
#[allow(dead_code, reason = "not every example wants to know")]
pub(crate) fn is_real() -> bool {
    env::args().any(|argument| argument == "--cli")
}

fn connect(sim: Sim, launch: &Launch) -> Connection {
    let variables = launch.variables().iter();
    let mut sim = sim
        .args(launch.arguments())
        .envs(variables.map(|(name, value)| (name.as_str(), value.expose())));
    if let Some(directory) = launch.directory() {
        sim = sim.cwd(directory);
    }
    let (input, output, errors, handle) = sim.start().into_parts();
    let handle = Arc::new(handle);
    let (waited_for, terminated, killed) = (handle.clone(), handle.clone(), handle);
    let child = ChildFuture::new(async move { waited_for.wait().await.into() })
        .on_terminate(move || terminated.terminate())
        .on_kill(move || killed.kill());
    Connection::new(input, output, child).errors(errors)
}
