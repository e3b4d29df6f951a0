//! A simulated CLI that dies before its result.

use std::future::ready;
use std::sync::Arc;

use claude_agent_kit::transport::{ChildFuture, Connection, InMemory, Launch};
use claude_agent_kit::{ErrorKind, Options, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Faults, Sim, Trouble};

fn connect(sim: Sim, launch: &Launch) -> Connection {
    let variables = launch.variables().iter();
    let mut sim = sim
        .args(launch.arguments())
        .envs(variables.map(|(name, value)| (name.as_str(), value.expose())));
    if let Some(directory) = launch.directory() {
        sim = sim.cwd(directory);
    }
    let (stdin, stdout, stderr, cli) = sim.start().into_parts();
    let cli = Arc::new(cli);
    let (terminated, killed) = (cli.clone(), cli.clone());
    let child = ChildFuture::new(async move { cli.wait().await.into() })
        .on_terminate(move || terminated.terminate())
        .on_kill(move || killed.kill());
    Connection::new(stdin, stdout, child).errors(stderr)
}

fn simulated(sim: impl Fn() -> Sim + Send + Sync + 'static) -> Options {
    Options::new().transport(InMemory::new(move |launch| ready(Ok(connect(sim(), &launch)))))
}

#[tokio::test]
async fn a_crash_is_reported() {
    let options = simulated(|| {
        Sim::new()
            .script(Script::new().otherwise([Reply::text("Two.")]))
            .faults(Faults::new().before("result", Trouble::Exit(3)))
    });
    let answer = query("How many?", options).await.unwrap().collect().await;
    assert_eq!(answer.error.unwrap().kind(), ErrorKind::ProcessFailed);
}
