//! The CLI of an example: the simulated one, inside this process, so that it runs with nothing but
//! Rust; with `--cli <path>` the real one.

#[path = "../../crates/claude-agent-kit/src/guide/simulated.rs"]
mod simulated;

use std::env;

use claude_agent_kit::Options;
use claude_agent_testkit::mock_api::Script;

/// Options for the CLI that the command line names, or for a simulated one that follows `script`.
pub(crate) fn options(script: impl Fn() -> Script + Send + Sync + 'static) -> Options {
    let mut arguments = env::args().skip_while(|argument| argument != "--cli");
    match arguments.nth(1) {
        // `claude` is looked for where it is usually installed.
        Some(name) if name == "claude" => Options::new(),
        Some(path) => Options::new().cli_path(path),
        None => simulated::options(script),
    }
}

/// Whether a real CLI was asked for.
#[allow(dead_code, reason = "not every example wants to know")]
pub(crate) fn is_real() -> bool {
    env::args().any(|argument| argument == "--cli")
}
