//! Testing without a model: a simulated CLI, fault injection, recordings. Requires the feature `testing`.
//!
//! [`Options::simulated`](crate::Options::simulated) replaces the CLI by a simulated one in this process, without
//! network access, API key or cost:
//!
//! ```
//! use claude_agent_kit::testing::{Reply, Script};
//! use claude_agent_kit::{Options, query};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> claude_agent_kit::Result<()> {
//! let script = Script::new().when("How many", [Reply::text("Two.")]);
//! let options = Options::new().simulated(script);
//! let answer = query("How many files are there?", options).await?.collect().await;
//! assert_eq!(answer.into_result()?.text(), "Two.");
//! # Ok(())
//! # }
//! ```
//!
//! | call | effect |
//! |---|---|
//! | [`Options::simulated`](crate::Options::simulated) | uses a simulated CLI that follows a [`Script`], or a [`Sim`] with faults |
//! | [`Options::recorded_to`](crate::Options::recorded_to) | records every run, with any CLI |
//! | [`Options::replayed`](crate::Options::replayed) | replays a recording instead of starting a CLI |
//!
//! The types are those of `claude-agent-testkit`, which also contains programs for other clients. See the
//! [guide](crate::guide::testing) for a tutorial.

mod demo;
mod recorded;
mod replayed;
mod simulated;

#[cfg(feature = "mock-api")]
pub use claude_agent_testkit::mock_api::MockApi;
pub use claude_agent_testkit::mock_api::{ApiRequest, Headers, Reply, Script};
pub use claude_agent_testkit::player::Mismatch;
pub use claude_agent_testkit::recording::Recording;
pub use claude_agent_testkit::sim::script_file::{self, SimScript};
pub use claude_agent_testkit::sim::{Fault, Faults, Model, Point, Sim};

pub use demo::{demo_options, demo_options_for};
pub(crate) use recorded::ExitTap;
pub use recorded::Recorder;
pub use replayed::Replay;

/// The capacity of a stream between the host and an in-memory CLI, the same as that of a Linux pipe.
const PIPE: usize = 64 * 1024;
