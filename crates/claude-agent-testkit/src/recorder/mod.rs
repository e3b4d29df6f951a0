//! Stands between any client and any CLI and writes both directions down.
//!
//! [`Tape`] takes bytes of the three streams of a process, cuts them into lines and notes their
//! times. [`relay`] moves the bytes between two sets of streams and feeds a tape on the way. The
//! binary `claude-recorder` is both, as a program that any client can start in place of the CLI.

#[cfg(unix)]
mod program;
mod relay;
mod tape;

#[cfg(unix)]
#[doc(hidden)]
pub use self::program::run_as_program;
pub use self::relay::{CliStreams, ClientStreams, relay};
pub use self::tape::Tape;
