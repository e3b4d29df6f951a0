//! One query on a machine full of what must not reach a session.

use std::env;

use claude_agent_kit::{Options, query};

use crate::Outcome;

/// Says everything that the CLI says.
#[expect(clippy::print_stdout, reason = "that is its answer")]
pub(crate) fn run(options: Options) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let collected = query("hello", options).await?.collect().await;
        for message in collected.messages() {
            println!("{}", message.raw_str().unwrap_or_default());
        }
        collected.error.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// Isolated in this directory, at work in that of this process. Only the way to the model is let in.
pub(crate) fn isolated(directory: &str) -> Outcome {
    let mut options = Options::isolated(directory).cwd(env::current_dir()?);
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] {
        options = options.env(name, env::var(name)?);
    }
    run(options)
}
