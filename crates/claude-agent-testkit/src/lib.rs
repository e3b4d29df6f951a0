//! The other end of the wire, for tests.
//!
//! - [`mock_api`]: a scripted Messages API on loopback, so that the real CLI runs with no network,
//!   no key and no money.
//! - [`recording`]: the file format in which a conversation between a client and a CLI is kept.
//! - [`sim`]: a simulated CLI, in memory and as a program, that speaks the whole protocol and can
//!   misbehave in every way.
//! - [`recorder`]: stands between any client and any CLI and writes both directions down.
//! - [`player`]: replays such a recording as a CLI.

pub mod mock_api;
pub mod player;
pub mod recorder;
pub mod recording;
pub mod sim;
