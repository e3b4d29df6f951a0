//! Prepares a child that `std` starts: default signals and the parent-death signal. Together with
//! `spawn`, this is the only unsafe code of the crate.

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
        // SAFETY: this runs in the child, which has its own tables of signals and descriptors.
        unsafe {
            default_signals();
            close_unless_inherited(&not_held);
        }
        if die_with_parent {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            // If the host died before the request, the signal is never sent.
            if getppid() != Some(parent) {
                return Err(std::io::Error::other("the host process has exited"));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called. `prepare` makes
    // system calls (sigaction, fcntl, close, prctl, getppid), allocates nothing on success,
    // and takes no lock. The error is only created after the host has died, when nothing can be
    // corrupted.
    unsafe { command.pre_exec(prepare) };
}
