//! Hooks of the CLI's own settings, as they run.

use crate::json::Number;

system_message! {
    /// A hook began.
    HookStartedMessage = "hook_started" {
        /// This run of it.
        hook_id: Option<String>,
        /// The hook.
        hook_name: Option<String>,
        /// The event.
        hook_event: Option<String>,
    }
}

system_message! {
    /// A hook wrote something.
    HookProgressMessage = "hook_progress" {
        /// This run of it.
        hook_id: Option<String>,
        /// The hook.
        hook_name: Option<String>,
        /// The event.
        hook_event: Option<String>,
        /// Its standard output so far.
        stdout: Option<String>,
        /// Its standard error so far.
        stderr: Option<String>,
        /// Both.
        output: Option<String>,
    }
}

system_message! {
    /// A hook ended.
    HookResponseMessage = "hook_response" {
        /// This run of it.
        hook_id: Option<String>,
        /// The hook.
        hook_name: Option<String>,
        /// The event.
        hook_event: Option<String>,
        /// Its standard output.
        stdout: Option<String>,
        /// Its standard error.
        stderr: Option<String>,
        /// Both.
        output: Option<String>,
        /// Its exit code.
        exit_code: Option<Number>,
        /// `success`, `error` or `cancelled`.
        outcome: Option<String>,
    }
}
