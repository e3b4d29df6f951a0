//! The warning type.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use claude_agent_core::session::{FailureResponse, RunWarning};
use claude_wire::Exit;
use claude_wire::control::PermissionMode;
use serde::{Serialize, Serializer};

use crate::diagnose::{TEXT_BYTES, describe_exit};
use crate::mask::Mask;
use crate::panics::CALLBACK_PANICKED;
use claude_session_store::json_object::JsonObject;
use claude_wire::visible::visible_message;

/// Something unexpected happened, and the run continued.
///
/// The code and the facts are part of the API; the text is not, and may change in every release.
///
/// Serializes as one JSON object without the line, with at most 4 KiB of text; facts without a value are
/// omitted: `{"type":"warning","code":"oversized_line","text":…,"size":…,"exit":…,"options":[…]}`.
#[derive(Clone)]
pub struct Warning {
    inner: Arc<Inner>,
}

struct Inner {
    code: WarningCode,
    message: String,
    facts: Facts,
}

#[derive(Clone, Default)]
pub(crate) struct Facts {
    pub(crate) line: Option<Bytes>,
    pub(crate) size: Option<u64>,
    pub(crate) exit: Option<Exit>,
    pub(crate) options: Vec<&'static str>,
}

/// Declares the codes, each with its name.
macro_rules! warning_codes {
    ($( $(#[$meta:meta])* $code:ident = $name:literal, )+) => {
        /// The kinds of warnings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum WarningCode {
            $( $(#[$meta])* $code, )+
        }

        impl WarningCode {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$( Self::$code ),+];

            /// Returns the name of the code in snake case, such as `oversized_line`. Warnings serialize
            /// with it; the name does not change.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$code => $name, )+
                }
            }
        }
    };
}

warning_codes! {
    /// A line on stdout is not a message.
    Malformed = "malformed",
    /// A line was longer than `Limits::max_line_bytes` and was discarded.
    OversizedLine = "oversized_line",
    /// Stdout ended in the middle of a line.
    IncompleteLastLine = "incomplete_last_line",
    /// The process failed after a successful result.
    NonZeroExitAfterResult = "non_zero_exit_after_result",
    /// Another process held stdout open after the CLI had exited.
    StdoutHeldOpen = "stdout_held_open",
    /// The process did not exit after its result and was stopped.
    StoppedAfterResult = "stopped_after_result",
    /// The process exited successfully without a result.
    ExitWithoutResult = "exit_without_result",
    /// The process exited successfully without writing any output.
    EmptyOutput = "empty_output",
    /// The exit status of the CLI is unknown; the CLI may still be running.
    ExitUnknown = "exit_unknown",
    /// An option is ignored, usually because another one takes precedence.
    OptionIgnored = "option_ignored",
    /// The output of `--version` contains no version.
    UnknownCliVersion = "unknown_cli_version",
    /// `--version` failed or timed out.
    VersionDetection = "version_detection",
    /// Other options prevent the permission callback from being called.
    PermissionCallbackShadowed = "permission_callback_shadowed",
    /// A callback failed; the request was denied or the CLI continued, depending on its failure rule.
    CallbackFailed = "callback_failed",
    /// A callback timed out; the request was denied or the CLI continued, depending on its failure rule.
    CallbackTimedOut = "callback_timed_out",
    /// Too many callbacks were in flight; a request was denied.
    CallbackRefused = "callback_refused",
    /// A callback blocked its thread.
    CallbackBlocked = "callback_blocked",
    /// The response of a raw hook contained fields that its event does not support; they were not sent.
    HookFieldIgnored = "hook_field_ignored",
    /// The CLI sent a request for which no handler is registered.
    UnansweredRequest = "unanswered_request",
    /// The CLI sent a message, a subtype or a content block that this version of the SDK does not know. It
    /// is passed on unchanged, and reported once.
    UnknownMessage = "unknown_message",
    /// The session store failed. The transcript of the run is not complete there, and results say that they
    /// are not stored, until it is caught up from the local transcript.
    StoreDegraded = "store_degraded",
    /// The session store has the whole transcript again.
    StoreRecovered = "store_recovered",
    /// Data of the run that is not part of a transcript is not stored.
    NotStored = "not_stored",
    /// This machine has entries of the resumed conversation that are not in the session store, because
    /// another host continued the conversation without them.
    OrphanedBranch = "orphaned_branch",
    /// The approval of a tool call could not be requested or read. Calls that need approval are denied meanwhile.
    ApprovalFailed = "approval_failed",
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for WarningCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Warning {
    pub(crate) fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self::with_message(code, message.into())
    }

    /// Not inlined: a warning is created in many places.
    #[inline(never)]
    fn with_message(code: WarningCode, message: String) -> Self {
        Self { inner: Arc::new(Inner { code, message, facts: Facts::default() }) }
    }

    /// Adds facts.
    pub(crate) fn with(mut self, fill: impl FnOnce(&mut Facts)) -> Self {
        // A warning is complete before it is shared.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            fill(&mut inner.facts);
        }
        self
    }

    /// Masks secrets in the text and keeps its first 4 KiB.
    pub(crate) fn masked(mut self, mask: &Mask) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.message = mask.apply_limited(&inner.message, TEXT_BYTES).into_owned();
        }
        self
    }

    /// Returns the size of the text and of the line, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.inner.message.len() + self.line().map_or(0, Bytes::len)
    }

    /// Returns the code of the warning.
    pub fn code(&self) -> WarningCode {
        self.inner.code
    }

    /// Returns the line that the warning concerns.
    pub fn line(&self) -> Option<&Bytes> {
        self.inner.facts.line.as_ref()
    }

    /// Returns the size that exceeded a limit, in bytes.
    pub fn size(&self) -> Option<u64> {
        self.inner.facts.size
    }

    /// Returns how the process exited.
    pub fn exit(&self) -> Option<Exit> {
        self.inner.facts.exit
    }

    /// Returns the options that the warning concerns.
    pub fn options(&self) -> &[&'static str] {
        &self.inner.facts.options
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        visible_message(&self.inner.message).fmt(f)
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "warning")?;
        object.field("code", &self.inner.code)?;
        object.field("text", &self.to_string())?;
        object.optional("size", self.inner.facts.size.as_ref())?;
        object.optional("exit", self.inner.facts.exit.as_ref())?;
        object.list("options", &self.inner.facts.options)?;
        object.end()
    }
}

impl fmt::Debug for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warning")
            .field("code", &self.inner.code)
            .field("message", &self.inner.message)
            .finish_non_exhaustive()
    }
}

impl Warning {
    /// Creates the warning for one of the session machine.
    pub(crate) fn of(warning: RunWarning) -> Self {
        match warning {
            RunWarning::Malformed(malformed) => {
                // The line is not quoted: it may be a part of a message, and warnings are traced.
                let message = format!(
                    "ignored a line of {} bytes on stdout that is not a message: {}; help: see `Warning::line`, and \
                     check whether a wrapper or a shell profile writes to the CLI's stdout",
                    malformed.line.len(),
                    malformed.reason
                );
                Self::new(WarningCode::Malformed, message)
                    .with(|facts| facts.line = Some(malformed.line))
            }
            RunWarning::OversizedLine { size, kind } => {
                let kind = kind.map(|kind| format!(" of type `{kind}`")).unwrap_or_default();
                let message = format!(
                    "a line{kind} with {size} bytes was discarded: it exceeds `Limits::max_line_bytes`; \
                     help: increase the limit"
                );
                Self::new(WarningCode::OversizedLine, message).with(|facts| facts.size = Some(size))
            }
            RunWarning::IncompleteLastLine(line) => {
                let message = format!(
                    "stdout ended within a line: its {} bytes were discarded; help: check whether \
                     the CLI was killed",
                    line.len()
                );
                Self::new(WarningCode::IncompleteLastLine, message)
                    .with(|facts| facts.line = Some(line))
            }
            RunWarning::NonZeroExitAfterResult(exit) => {
                let message = format!(
                    "the CLI {} after a successful result, which is kept; help: check stderr, or set \
                     `strict_exit_status` to make this an error",
                    describe_exit(exit)
                );
                Self::new(WarningCode::NonZeroExitAfterResult, message)
                    .with(|facts| facts.exit = Some(exit))
            }
            RunWarning::StdoutHeldOpen => Self::new(WarningCode::StdoutHeldOpen, STDOUT_HELD_OPEN),
            RunWarning::StoppedAfterResult => {
                let message = "the CLI was still running after its result, and was stopped; the result is kept; \
                               help: check whether a tool left a process running, or increase \
                               `Timeouts::exit_grace` or, for background agents, `Timeouts::background_ceiling`";
                Self::new(WarningCode::StoppedAfterResult, message)
            }
            RunWarning::ExitWithoutResult => {
                let message =
                    "the CLI exited successfully without sending a result; help: check stderr";
                Self::new(WarningCode::ExitWithoutResult, message)
            }
            RunWarning::EmptyOutput => Self::new(WarningCode::EmptyOutput, EMPTY_OUTPUT),
            RunWarning::CallbackFailed { .. }
            | RunWarning::CallbackTimedOut { .. }
            | RunWarning::CallbackOverload { .. }
            | RunWarning::UnsupportedRequest { .. } => of_callback(warning),
            RunWarning::ModeBypassesCallback(mode) => shadowed_by(&mode),
            RunWarning::MirrorDegraded(_)
            | RunWarning::MirrorRecovered
            | RunWarning::UnknownTranscript(_) => of_store(warning),
        }
    }
}

/// Creates the warning about the mirror of the transcripts.
fn of_store(warning: RunWarning) -> Warning {
    let (code, message) = match warning {
        RunWarning::MirrorDegraded(reason) => (
            WarningCode::StoreDegraded,
            format!(
                "the session store is not available: {reason}; the run continues without it (results have \
                 `stored: Some(false)`), and tries it again every 30 seconds if the failure is temporary; help: \
                 check the store"
            ),
        ),
        RunWarning::MirrorRecovered => (
            WarningCode::StoreRecovered,
            "the session store works again, and has the whole transcript".to_owned(),
        ),
        RunWarning::UnknownTranscript(path) => (
            WarningCode::NotStored,
            format!(
                "the CLI reported entries of {path:?}, which is not a transcript below `projects`; they are \
                 not stored; help: check whether the version of the CLI is supported"
            ),
        ),
        other => return Warning::of(other),
    };
    Warning::new(code, message)
}

/// Creates the warning for a request of the CLI that no callback handled.
fn of_callback(warning: RunWarning) -> Warning {
    let (code, message) = match warning {
        RunWarning::CallbackFailed { request, reason, response } => (
            WarningCode::CallbackFailed,
            format!(
                "the callback failed ({request}): {reason}; {}{}",
                outcome(response),
                help(&reason)
            ),
        ),
        RunWarning::CallbackTimedOut { request, timeout, response } => (
            WarningCode::CallbackTimedOut,
            format!(
                "the callback did not return within {timeout:?} ({request}); {}; help: increase the \
                 timeout",
                outcome(response)
            ),
        ),
        RunWarning::CallbackOverload { request } => (
            WarningCode::CallbackRefused,
            format!(
                "too many callbacks in flight ({request}); the request was denied; help: increase \
                 `Limits::running_callbacks`"
            ),
        ),
        RunWarning::UnsupportedRequest { request, response } => (
            WarningCode::UnansweredRequest,
            format!("no handler is registered for `{request}`; replied to the CLI: {response}"),
        ),
        other => return Warning::of(other),
    };
    Warning::new(code, message)
}

/// Returns what to do about a failure of a callback.
fn help(reason: &str) -> &'static str {
    if reason == CALLBACK_PANICKED {
        "; help: the panic message is in the stderr of this process"
    } else {
        ""
    }
}

const STDOUT_HELD_OPEN: &str = "the CLI exited, but another process holds its stdout open; stdout was \
                                read until no more data arrived; help: redirect the stdout of \
                                processes that tools and hooks leave running";

const EMPTY_OUTPUT: &str = "the CLI exited with status 0 without writing any output; help: check that \
                            the program is `claude`";

fn shadowed_by(mode: &PermissionMode) -> Warning {
    let message = format!(
        "the CLI starts in permission mode `{mode}`, in which it decides about tools itself: \
         `can_use_tool` may never be called; help: set `permission_mode`"
    );
    Warning::new(WarningCode::PermissionCallbackShadowed, message)
        .with(|facts| facts.options = vec!["permission_mode", "can_use_tool"])
}

/// Describes the outcome of a request whose callback failed.
fn outcome(response: FailureResponse) -> &'static str {
    match response {
        FailureResponse::Continue => "the CLI continued without it",
        FailureResponse::Deny => "the request was denied",
        FailureResponse::Error => "the request was answered with an error",
        FailureResponse::Acknowledge => "the message was ignored",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use claude_wire::Message;
    use claude_wire::control::PermissionMode;

    use super::*;

    #[test]
    fn secrets_are_masked_in_the_text() {
        let mask = Mask::new(["hush-hush".to_owned()]);
        let failed = RunWarning::CallbackFailed {
            request: "PreToolUse".to_owned(),
            reason: "no login with hush-hush".to_owned(),
            response: FailureResponse::Continue,
        };
        let warning = Warning::of(failed).masked(&mask);
        assert!(warning.to_string().contains("no login with ***"), "{warning}");
        assert!(!format!("{warning:?}").contains("hush"), "{warning:?}");
    }

    #[test]
    fn invisible_characters_in_a_warning_are_escaped() {
        let unknown = RunWarning::UnknownTranscript("/c/\u{202e}\u{9b}31m.jsonl".to_owned());
        let warning = Warning::of(unknown);
        assert!(warning.to_string().contains("/c/\\u{202e}\\u{9b}31m.jsonl"), "{warning}");
        let text = serde_json::to_value(&warning).unwrap()["text"].clone();
        assert_eq!(text, warning.to_string());
    }

    #[test]
    fn a_failed_callback_has_its_reason_and_its_outcome() {
        for (response, outcome) in [
            (FailureResponse::Deny, "was denied"),
            (FailureResponse::Continue, "continued without it"),
            (FailureResponse::Error, "with an error"),
            (FailureResponse::Acknowledge, "was ignored"),
        ] {
            let (request, reason) = ("the hook `hook_0`".to_owned(), "oh".to_owned());
            let warning = Warning::of(RunWarning::CallbackFailed { request, reason, response });
            assert_eq!(warning.code(), WarningCode::CallbackFailed);
            let text = warning.to_string();
            assert!(text.contains("(the hook `hook_0`): oh") && text.contains(outcome), "{text}");
        }
    }

    #[test]
    fn each_notice_has_its_code_and_text() {
        let malformed = Message::decode(Bytes::from_static(b"hello")).unwrap_err();
        let request = || "the hook `hook_0`".to_owned();
        let timeout = Duration::from_secs(60);
        for (notice, code, parts) in [
            (
                RunWarning::Malformed(malformed),
                WarningCode::Malformed,
                ["5 bytes", "not a message"],
            ),
            (
                RunWarning::OversizedLine { size: 99, kind: Some("assistant".to_owned()) },
                WarningCode::OversizedLine,
                ["99", "`assistant`"],
            ),
            (
                RunWarning::IncompleteLastLine(Bytes::from_static(b"{\"ty")),
                WarningCode::IncompleteLastLine,
                ["4 bytes", "within a line"],
            ),
            (
                RunWarning::CallbackTimedOut {
                    request: request(),
                    timeout,
                    response: FailureResponse::Deny,
                },
                WarningCode::CallbackTimedOut,
                ["60s", "was denied"],
            ),
            (
                RunWarning::CallbackOverload { request: request() },
                WarningCode::CallbackRefused,
                ["`hook_0`", "denied"],
            ),
            (
                RunWarning::ModeBypassesCallback(PermissionMode::Auto),
                WarningCode::PermissionCallbackShadowed,
                ["`auto`", "`permission_mode`"],
            ),
            (
                RunWarning::UnsupportedRequest { request: request(), response: "none".to_owned() },
                WarningCode::UnansweredRequest,
                ["`hook_0`", "none"],
            ),
            (RunWarning::EmptyOutput, WarningCode::EmptyOutput, ["without writing", "`claude`"]),
        ] {
            let warning = Warning::of(notice);
            assert_eq!(warning.code(), code);
            let text = warning.to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }

    #[test]
    fn every_code_has_a_unique_name_in_snake_case() {
        let mut names: Vec<&str> = WarningCode::ALL.iter().map(|code| code.as_str()).collect();
        for code in WarningCode::ALL {
            assert_eq!(code.as_str().replace('_', ""), format!("{code:?}").to_lowercase());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WarningCode::ALL.len());
    }

    #[test]
    fn a_warning_serializes_without_its_line() {
        let warning = Warning::of(RunWarning::NonZeroExitAfterResult(Exit::Signal(9)))
            .with(|facts| facts.options = vec!["max_turns"]);
        let text = warning.to_string();
        assert_eq!(
            serde_json::to_value(&warning).unwrap(),
            serde_json::json!({
                "type": "warning", "code": "non_zero_exit_after_result", "text": text,
                "exit": {"signal": 9}, "options": ["max_turns"],
            })
        );
        let line = Warning::of(RunWarning::IncompleteLastLine(Bytes::from_static(b"secret")));
        assert!(!serde_json::to_string(&line).unwrap().contains("secret"));
    }

    #[test]
    fn each_warning_of_a_run_has_its_code() {
        for (warning, code) in [
            (
                RunWarning::NonZeroExitAfterResult(Exit::Code(7)),
                WarningCode::NonZeroExitAfterResult,
            ),
            (RunWarning::StdoutHeldOpen, WarningCode::StdoutHeldOpen),
            (RunWarning::StoppedAfterResult, WarningCode::StoppedAfterResult),
            (RunWarning::ExitWithoutResult, WarningCode::ExitWithoutResult),
            (RunWarning::EmptyOutput, WarningCode::EmptyOutput),
        ] {
            let warning = Warning::of(warning);
            assert_eq!(warning.code(), code, "{warning}");
        }
    }

    #[test]
    fn a_warning_carries_its_facts() {
        let exit = Exit::Signal(9);
        let warning = Warning::of(RunWarning::NonZeroExitAfterResult(exit));
        assert_eq!(warning.exit(), Some(exit));
        assert!(warning.to_string().contains("signal 9"), "{warning}");
        let warning = Warning::of(RunWarning::OversizedLine { size: 99, kind: None });
        assert_eq!(warning.size(), Some(99));
        let line = Bytes::from_static(b"half a line");
        let warning = Warning::of(RunWarning::IncompleteLastLine(line.clone()));
        assert_eq!(warning.line(), Some(&line));
        let malformed = Message::decode(Bytes::from_static(b"[]")).unwrap_err();
        assert_eq!(Warning::of(RunWarning::Malformed(malformed)).line().unwrap(), "[]");
    }

    #[test]
    fn the_text_does_not_contain_the_line() {
        let line = Bytes::from_static(b"with a secret in it");
        let malformed = Message::decode(line.clone()).unwrap_err();
        for notice in [RunWarning::Malformed(malformed), RunWarning::IncompleteLastLine(line)] {
            let warning = Warning::of(notice);
            assert!(!format!("{warning} {warning:?}").contains("secret"), "{warning:?}");
        }
    }
}
