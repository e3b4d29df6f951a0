//! The signal that the kernel sends to a child when its parent dies, for children that `std` starts.
//! With `spawn` the only unsafe code here.

#![expect(unsafe_code, reason = "running something between fork and exec is unsafe by nature")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// Has the kernel send SIGTERM to the child when the thread that starts it ends.
///
/// SIGTERM and not SIGKILL, so that the CLI can end its tools.
pub(super) fn arm(command: &mut Command) {
    let parent: Pid = getpid();
    let arm = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The parent may have died before that; then nobody will send the signal.
        if getppid() != Some(parent) {
            return Err(std::io::Error::other("the host is gone"));
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called. `arm` makes two
    // system calls (prctl, getppid), allocates nothing on the way that succeeds, and takes no lock.
    // The error is only made when the host has died, where nothing is left to be broken.
    unsafe { command.pre_exec(arm) };
}
