//! A query in an environment full of settings that must not reach the session.

use std::env;

use claude_agent_kit::{Options, query};

use crate::Outcome;

/// Runs a query and prints every message of the CLI.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn run(options: Options) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let collected = query("hello", options).await?.collect().await;
        for message in collected.messages() {
            println!("{}", message.raw_str().unwrap_or_default());
        }
        collected.error.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// Runs an isolated query with this directory, in the working directory of this process. Only the variables of the
/// API are passed on.
pub(crate) fn isolated(directory: &str) -> Outcome {
    let mut options = Options::isolated(directory).cwd(env::current_dir()?);
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] {
        options = options.env(name, env::var(name)?);
    }
    run(options)
}
