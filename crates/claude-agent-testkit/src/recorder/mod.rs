//! Records the traffic between any client and any CLI.
//!
//! [`RecordingWriter`] accepts bytes of the three standard streams, splits them into lines and records
//! each line with its time. [`relay`] copies the bytes between two sets of streams and records them on
//! the way. The program `claude-recorder` does both; a client starts it instead of the CLI.

#[cfg(unix)]
mod program;
mod relay;
mod writer;

#[cfg(unix)]
#[doc(hidden)]
pub use self::program::run_as_program;
pub use self::relay::{CliStreams, ClientStreams, relay};
pub use self::writer::RecordingWriter;
