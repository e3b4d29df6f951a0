//! What a child does before it becomes the other program, where `std` starts it: default signals and
//! the signal that the kernel sends when the host dies. With `spawn` the only unsafe code here.

#![expect(unsafe_code, reason = "running something between fork and exec is unsafe by nature")]

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::spawn::{close_unless_inherited, default_signals};

/// Gives the child default signals, has it close the descriptors `not_held`, and has the kernel send
/// it SIGTERM when the thread that starts it ends (`die_with_parent`).
///
/// SIGTERM and not SIGKILL, so that the CLI can end its tools.
pub(super) fn prepare(command: &mut Command, die_with_parent: bool, not_held: &[RawFd]) {
    let parent: Pid = getpid();
    let not_held = not_held.to_vec();
    let prepare = move || {
        // SAFETY: this is the child; the host has a table of signals and one of descriptors of its own.
        unsafe {
            default_signals();
            close_unless_inherited(&not_held);
        }
        if die_with_parent {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            // The host may have died before that; then nobody will send the signal.
            if getppid() != Some(parent) {
                return Err(std::io::Error::other("the host is gone"));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called. `prepare` makes
    // system calls (sigaction, fcntl, close, prctl, getppid), allocates nothing on the way that
    // succeeds, and takes no lock. The error is only made when the host has died, where nothing is
    // left to be broken.
    unsafe { command.pre_exec(prepare) };
}
