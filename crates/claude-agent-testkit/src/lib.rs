//! The other end of the wire, for tests.
//!
//! Users of `claude-agent-kit` reach all of this through its feature `testing`
//! (`claude_agent_kit::testing`), which connects it to `Options`.
//!
//! | module | what it does | program |
//! |---|---|---|
//! | [`sim`] | simulates the CLI, in memory or as a process, with faults at any point | `claude-sim` |
//! | [`mock_api`] | says what a model answers ([`Script`](mock_api::Script)); with the feature `mock-api`, serves that as a Messages API on loopback, so that the real CLI runs with no network, no key and no money | `claude-mock-api` |
//! | [`recorder`] | records both directions between any client and any CLI | `claude-recorder` |
//! | [`recording`] | reads and writes the file format of such recordings | |
//! | [`player`] | replays a recording as a CLI | `claude-player` |

// Marks items with the feature that they need on docs.rs, which builds with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod mock_api;
pub mod player;
pub mod recorder;
pub mod recording;
pub mod sim;
