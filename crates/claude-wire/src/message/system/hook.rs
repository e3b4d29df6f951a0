//! Hooks of the CLI's own settings, as they run.

use crate::json::Number;

system_message! {
    /// A hook started.
    HookStartedMessage = "hook_started" {
        /// The ID of the hook run.
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
        /// The ID of the hook run.
        hook_id: Option<String>,
        /// The hook.
        hook_name: Option<String>,
        /// The event.
        hook_event: Option<String>,
        /// The stdout of the hook so far.
        stdout: Option<String>,
        /// The stderr of the hook so far.
        stderr: Option<String>,
        /// Stdout and stderr combined.
        output: Option<String>,
    }
}

system_message! {
    /// A hook ended.
    HookResponseMessage = "hook_response" {
        /// The ID of the hook run.
        hook_id: Option<String>,
        /// The hook.
        hook_name: Option<String>,
        /// The event.
        hook_event: Option<String>,
        /// The stdout of the hook.
        stdout: Option<String>,
        /// The stderr of the hook.
        stderr: Option<String>,
        /// Stdout and stderr combined.
        output: Option<String>,
        /// Its exit code.
        exit_code: Option<Number>,
        /// `success`, `error` or `cancelled`.
        outcome: Option<String>,
    }
}
