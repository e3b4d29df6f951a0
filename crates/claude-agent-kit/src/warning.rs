//! What the host should know but need not act on.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use claude_wire::control::PermissionMode;
use claude_wire::session::{Exit, RunWarning};
use serde::{Serialize, Serializer};

use crate::diagnose::TEXT_BYTES;
use crate::json_object::JsonObject;
use crate::mask::Mask;

/// Something that went on although it was not as it should be.
///
/// The text is for people; the code and the facts are for programs.
///
/// Serialises as one JSON object without the line, at most 4 KiB of text; facts without a value are
/// left out: `{"type":"warning","code":"oversized_line","text":…,"size":…,"exit":…,"options":[…]}`.
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
            const ALL: &[Self] = &[$( Self::$code ),+];

            /// Returns the name of the code in snake case, such as `oversized_line`. Warnings serialise
            /// with it; it does not change.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$code => $name, )+
                }
            }
        }
    };
}

warning_codes! {
    /// A line of the CLI is no message.
    Malformed = "malformed",
    /// A line was longer than `Limits::max_line_bytes` and is lost.
    OversizedLine = "oversized_line",
    /// The output ended in the middle of a line.
    IncompleteLastLine = "incomplete_last_line",
    /// The process ended with a failure although its last result was none.
    NonZeroExitAfterResult = "non_zero_exit_after_result",
    /// Another process held stdout open after the CLI had ended.
    StdoutHeldOpen = "stdout_held_open",
    /// The process had to be stopped after its result.
    StoppedAfterResult = "stopped_after_result",
    /// The process ended without a result.
    ExitWithoutResult = "exit_without_result",
    /// The process ended without having written anything.
    EmptyOutput = "empty_output",
    /// The exit of the CLI could not be waited for; the CLI may still be running.
    ExitUnknown = "exit_unknown",
    /// An option was not obeyed because another one beats it.
    OptionIgnored = "option_ignored",
    /// The CLI did not say its version.
    UnknownCliVersion = "unknown_cli_version",
    /// The CLI could not be asked for its version.
    VersionDetection = "version_detection",
    /// Options keep the permission callback from ever being asked.
    PermissionCallbackShadowed = "permission_callback_shadowed",
    /// A callback failed, and the fail rule answered.
    CallbackFailed = "callback_failed",
    /// A callback took too long, and the fail rule answered.
    CallbackTimedOut = "callback_timed_out",
    /// Too many callbacks ran; one was refused.
    CallbackRefused = "callback_refused",
    /// A callback blocked its thread.
    CallbackBlocked = "callback_blocked",
    /// A raw hook answered with fields that do not fit its event; they were left out.
    HookFieldIgnored = "hook_field_ignored",
    /// The CLI asked something that nobody here answers.
    UnansweredRequest = "unanswered_request",
    /// The CLI sent a message, a subtype or a content block that this version does not know. It is
    /// passed on as it came, and told of once.
    UnknownMessage = "unknown_message",
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
        Self { inner: Arc::new(Inner { code, message: message.into(), facts: Facts::default() }) }
    }

    /// Adds facts.
    pub(crate) fn with(mut self, fill: impl FnOnce(&mut Facts)) -> Self {
        // Warnings are put together before anybody else has them.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            fill(&mut inner.facts);
        }
        self
    }

    /// Masks secrets in the text, of which the first 4 KiB are kept.
    pub(crate) fn masked(mut self, mask: &Mask) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.message = mask.apply_limited(&inner.message, TEXT_BYTES).into_owned();
        }
        self
    }

    /// The bytes of its text and its line, which it holds for as long as it is kept.
    pub(crate) fn held_bytes(&self) -> usize {
        self.inner.message.len() + self.line().map_or(0, Bytes::len)
    }

    /// What kind of warning it is.
    pub fn code(&self) -> WarningCode {
        self.inner.code
    }

    /// The line that it is about.
    pub fn line(&self) -> Option<&Bytes> {
        self.inner.facts.line.as_ref()
    }

    /// The size that was too large, in bytes.
    pub fn size(&self) -> Option<u64> {
        self.inner.facts.size
    }

    /// How the process ended.
    pub fn exit(&self) -> Option<Exit> {
        self.inner.facts.exit
    }

    /// The options that it is about.
    pub fn options(&self) -> &[&'static str] {
        &self.inner.facts.options
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "warning")?;
        object.field("code", &self.inner.code)?;
        object.field("text", &self.inner.message)?;
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
    /// Makes a warning of what the machine noticed.
    pub(crate) fn of(notice: RunWarning) -> Self {
        match notice {
            RunWarning::Malformed(malformed) => {
                Self::new(WarningCode::Malformed, malformed.to_string())
                    .with(|facts| facts.line = Some(malformed.line))
            }
            RunWarning::OversizedLine { size, kind } => {
                let kind = kind.map(|kind| format!(" of type `{kind}`")).unwrap_or_default();
                let message = format!(
                    "a line{kind} of {size} bytes is lost: `Limits::max_line_bytes` does not allow more"
                );
                Self::new(WarningCode::OversizedLine, message).with(|facts| facts.size = Some(size))
            }
            RunWarning::IncompleteLastLine(line) => {
                let message =
                    format!("the output ended after {} bytes of an unfinished line", line.len());
                Self::new(WarningCode::IncompleteLastLine, message)
                    .with(|facts| facts.line = Some(line))
            }
            RunWarning::NonZeroExitAfterResult(exit) => {
                let message =
                    format!("the CLI ended with {exit} although its last result was no error");
                Self::new(WarningCode::NonZeroExitAfterResult, message)
                    .with(|facts| facts.exit = Some(exit))
            }
            RunWarning::StdoutHeldOpen => Self::new(WarningCode::StdoutHeldOpen, STDOUT_HELD_OPEN),
            RunWarning::StoppedAfterResult => {
                let message = "the CLI did not end after its result, and was stopped";
                Self::new(WarningCode::StoppedAfterResult, message)
            }
            RunWarning::ExitWithoutResult => {
                let message = "the CLI ended as if all were well, but without a result";
                Self::new(WarningCode::ExitWithoutResult, message)
            }
            RunWarning::EmptyOutput => Self::new(WarningCode::EmptyOutput, EMPTY_OUTPUT),
            RunWarning::CallbackFailed { request, reason, denied } => {
                let rule = rule(denied);
                let message = format!("the callback for {request} failed: {reason}; {rule}");
                Self::new(WarningCode::CallbackFailed, message)
            }
            RunWarning::CallbackTimedOut { request, timeout, denied } => {
                let rule = rule(denied);
                let message =
                    format!("the callback for {request} took longer than {timeout:?}; {rule}");
                Self::new(WarningCode::CallbackTimedOut, message)
            }
            RunWarning::CallbackOverload { request } => {
                let message = format!("too many callbacks run and wait; {request} was refused");
                Self::new(WarningCode::CallbackRefused, message)
            }
            RunWarning::UnsupportedRequest { request, response } => {
                let message =
                    format!("nobody here answers {request}; the CLI was told: {response}");
                Self::new(WarningCode::UnansweredRequest, message)
            }
            RunWarning::ModeBypassesCallback(mode) => shadowed_by(&mode),
        }
    }
}

const STDOUT_HELD_OPEN: &str = "the CLI has ended, but another process holds its output open; it was \
                                read until nothing more came";

const EMPTY_OUTPUT: &str = "the CLI ended as if all were well, but wrote nothing; see that it is the \
                            program `claude`";

fn shadowed_by(mode: &PermissionMode) -> Warning {
    let message = format!(
        "the CLI starts in permission mode `{mode}`, in which it decides by itself whether a tool \
         runs: `can_use_tool` may never be called; set `permission_mode` to be asked"
    );
    Warning::new(WarningCode::PermissionCallbackShadowed, message)
        .with(|facts| facts.options = vec!["permission_mode", "can_use_tool"])
}

/// What the fail rule answered.
fn rule(refused: bool) -> &'static str {
    if refused { "what it was asked about was refused" } else { "the CLI was told to go on" }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use claude_wire::Message;
    use claude_wire::control::PermissionMode;

    use super::*;

    #[test]
    fn secrets_are_hidden_in_the_words_of_a_warning() {
        let mask = Mask::new(["hush-hush".to_owned()]);
        let failed = RunWarning::CallbackFailed {
            request: "PreToolUse".to_owned(),
            reason: "no login with hush-hush".to_owned(),
            denied: false,
        };
        let warning = Warning::of(failed).masked(&mask);
        assert!(warning.to_string().contains("no login with ***"), "{warning}");
        assert!(!format!("{warning:?}").contains("hush"), "{warning:?}");
    }

    #[test]
    fn each_notice_has_its_code_and_its_words() {
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
                ["4 bytes", "unfinished"],
            ),
            (
                RunWarning::CallbackFailed {
                    request: request(),
                    reason: "oh".to_owned(),
                    denied: true,
                },
                WarningCode::CallbackFailed,
                ["`hook_0` failed: oh", "was refused"],
            ),
            (
                RunWarning::CallbackFailed {
                    request: request(),
                    reason: "oh".to_owned(),
                    denied: false,
                },
                WarningCode::CallbackFailed,
                ["oh", "told to go on"],
            ),
            (
                RunWarning::CallbackTimedOut { request: request(), timeout, denied: true },
                WarningCode::CallbackTimedOut,
                ["60s", "was refused"],
            ),
            (
                RunWarning::CallbackOverload { request: request() },
                WarningCode::CallbackRefused,
                ["`hook_0`", "refused"],
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
            (RunWarning::EmptyOutput, WarningCode::EmptyOutput, ["nothing", "`claude`"]),
        ] {
            let warning = Warning::of(notice);
            assert_eq!(warning.code(), code);
            let text = warning.to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }

    #[test]
    fn the_name_of_every_code_is_its_own_in_snake_case() {
        let mut names: Vec<&str> = WarningCode::ALL.iter().map(|code| code.as_str()).collect();
        for code in WarningCode::ALL {
            assert_eq!(code.as_str().replace('_', ""), format!("{code:?}").to_lowercase());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WarningCode::ALL.len());
    }

    #[test]
    fn a_warning_serialises_without_its_line() {
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
    fn the_facts_of_a_notice_can_be_asked_for() {
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
    fn what_a_line_says_is_not_in_the_text() {
        let line = Bytes::from_static(b"with a secret in it");
        let malformed = Message::decode(line.clone()).unwrap_err();
        for notice in [RunWarning::Malformed(malformed), RunWarning::IncompleteLastLine(line)] {
            let warning = Warning::of(notice);
            assert!(!format!("{warning} {warning:?}").contains("secret"), "{warning:?}");
        }
    }
}
