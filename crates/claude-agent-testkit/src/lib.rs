//! Test doubles for the CLI and the Messages API.
//!
//! Users of `claude-agent-kit` access this crate through the feature `testing`
//! (`claude_agent_kit::testing`), which connects it to `Options`.
//!
//! | module | purpose | program |
//! |---|---|---|
//! | [`sim`] | simulates the CLI in memory or as a process, with optional faults | `claude-sim` |
//! | [`mock_api`] | scripts the answers of the model ([`Script`](mock_api::Script)); with the feature `mock-api`, serves them as a Messages API on loopback, so that the real CLI runs without network access, an API key or cost | `claude-mock-api` |
//! | [`recorder`] | records the traffic between any client and any CLI | `claude-recorder` |
//! | [`recording`] | parses and writes recordings | |
//! | [`player`] | replays a recording instead of the CLI | `claude-player` |

// Marks items with the feature that they need on docs.rs, which builds with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod mock_api;
pub mod player;
pub mod recorder;
pub mod recording;
pub mod sim;
