//! What must happen next: the session machine, piece by piece. No I/O and no clock; time is an
//! event like any other.

mod run_end;

pub use run_end::{Ending, Exit, RunEnd, RunEndLimits, RunEvent, RunStep, RunWarning};
