//! Replays a recorded session.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use claude_agent_kit::transport::{ChildFuture, Connection, Exit, InMemory, Launch};
use claude_agent_kit::{Options, query};
use claude_agent_testkit::player::{Mismatch, Player};
use claude_agent_testkit::recording::Recording;
use tokio::sync::Notify;

type Found = Arc<Mutex<Option<Mismatch>>>;

fn connect(recording: Recording, launch: &Launch, found: Found) -> Connection {
    let mut cli = Player::new(recording).strict().arguments(launch.arguments()).start();
    let stdin = cli.stdin.take().unwrap();
    let stdout = cli.stdout.take().unwrap();
    let stderr = cli.stderr.take().unwrap();
    let (ending, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let killed = ending.clone();
    let terminated = ending.clone();
    let told = ended.clone();
    let exit = async move {
        let exit = tokio::select! {
            exit = cli.wait() => exit,
            () = ending.notified() => {
                cli.kill();
                cli.wait().await
            }
        };
        told.notify_one();
        match exit {
            Ok(exit) => exit.into(),
            Err(mismatch) => {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(mismatch);
                Exit::Code(1)
            }
        }
    };
    let child = ChildFuture::new(exit)
        .on_terminate(move || terminated.notify_one())
        .on_kill(move || killed.notify_one());
    Connection::new(stdin, stdout, child).errors(stderr)
}

fn replayed(recording: Recording) -> (Options, Found) {
    let found = Found::default();
    let written = found.clone();
    let transport = InMemory::new(move |launch| {
        ready(Ok(connect(recording.clone(), &launch, written.clone())))
    });
    (Options::new().transport(transport), found)
}

#[tokio::test]
async fn the_recorded_session_ends_as_it_did() {
    let file = std::fs::read("tests/session.wire").unwrap();
    let (options, found) = replayed(Recording::parse(&file).unwrap());
    let answer = query("How many?", options).await.unwrap().collect().await;
    assert!(answer.error.is_none());
    assert_eq!(answer.text(), "Two.");
    assert!(found.lock().unwrap().is_none());
}
