// How a simulated CLI is reached: no network, no key. Included by the examples of the guide, by the
// example programs and by the end-to-end tests.

use std::future::ready;
use std::sync::Arc;

use claude_agent_kit::Options;
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory, Launch};
use claude_agent_testkit::mock_api::Script;
use claude_agent_testkit::sim::Sim;

/// Options for a simulated CLI whose model follows the script.
#[allow(dead_code, reason = "not everybody who includes this needs only a script")]
pub(crate) fn options(script: impl Fn() -> Script + Send + Sync + 'static) -> Options {
    reaching(Options::new(), move || Sim::new().script(script()))
}

/// The options, with a simulated CLI made by `sim` for each run.
pub(crate) fn reaching(options: Options, sim: impl Fn() -> Sim + Send + Sync + 'static) -> Options {
    options.transport(InMemory::new(move |launch| ready(Ok(connect(sim(), &launch)))))
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
