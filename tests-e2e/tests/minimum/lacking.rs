//! What the newest has and this one has not.

use std::process::Command;
use crate::{minimum, on_minimum};
use crate::play::{start, turn};
use crate::support::hello;

#[test]
fn probe() {
    on_minimum(hello(), async |stage| {
        let session = start(stage.options()).await;
        let outcome = turn(&session, "hello").await;
        println!("named {} shared {:?} {:?}", outcome.named, outcome.shared_with, outcome.result);
        println!("info {:?}", session.server_info());
        println!("{:?}", session.interrupt().await);
        println!("{:?}", session.mcp_status().await);
        println!("{:?}", session.get_context_usage().await);
        session.stop().await.unwrap();
    });
}
