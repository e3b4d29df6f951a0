//! Checks everything that a run needs.
//!
//! `--cli <path>` checks a real CLI (`--cli claude` the installed one). `--config <file>` also checks a
//! config file and the environment, and prints the source of each value. The exit code is non-zero if
//! a check failed.

use std::process::ExitCode;
use std::time::Duration;

use claude_agent_kit::testing::{Script, demo_options};
use claude_agent_kit::{Options, doctor};

#[tokio::main]
async fn main() -> ExitCode {
    let folder = std::env::temp_dir();
    let options = demo_options(Script::new()).cwd(folder);
    let mut examination = doctor(options.clone()).handshake(Duration::from_secs(30));
    if let Some(file) = std::env::args().skip_while(|argument| argument != "--config").nth(1) {
        let layers = Options::layered().environment().file(file);
        // The report contains the errors.
        if let Ok(options) = layers.clone().under(&options) {
            print!("{}", options.explain());
        }
        examination = examination.layers(layers);
    }
    let report = examination.await;
    print!("{report}");
    if report.is_healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
