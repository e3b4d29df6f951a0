// Included by the examples of the guide, so that they run on the simulated CLI: no network, no key.

use std::future::ready;
use std::sync::Arc;

use claude_agent_kit::Options;
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory, Launch};
use claude_agent_testkit::mock_api::Script;
use claude_agent_testkit::sim::Sim;

/// Options for a simulated CLI whose model follows the script.
pub fn options(script: impl Fn() -> Script + Send + Sync + 'static) -> Options {
    Options::new().transport(InMemory::new(move |launch| {
        ready(Ok(connect(Sim::new().script(script()), &launch)))
    }))
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
