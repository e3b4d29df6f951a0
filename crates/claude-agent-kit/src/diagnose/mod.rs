//! Turns what is known about a process into an error that names the failure, its cause and what to do.
//!
//! Most failures are explained on stderr, which is therefore examined first; then the exit status, and
//! whether anything was written to stdout.

mod command;
mod diagnosis;
mod login;
mod rejection;
mod spawn;
mod turn_failure;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use claude_agent_core::session::RunFailure;
use claude_wire::Exit;
use claude_wire::id::SessionId;

use self::diagnosis::{Diagnosis, NO_CONVERSATION, NO_MESSAGE};
use crate::cli::CliVersion;
use crate::error::{Error, ErrorKind};
use crate::mask::Mask;

pub(crate) use self::command::shown as shown_command;
pub(crate) use self::rejection::{method_of, rejection};
pub(crate) use self::spawn::{spawn_failed, unusable_directory};
pub(crate) use self::turn_failure::{retry_delay, turn_failure};

/// What is known about a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The end of stderr, with secrets masked.
    pub(crate) stderr_tail: Arc<str>,
    /// The end of stdout before the handshake ended, with secrets masked.
    pub(crate) stdout_tail: String,
    /// The last line of stdout that was not a message, its first 4 KiB.
    pub(crate) last_malformed_line: Option<Bytes>,
    pub(crate) session_id: Option<SessionId>,
    /// Why reading stdout failed.
    pub(crate) read_error: Option<String>,
    /// The flags of `extra_args`, without dashes.
    pub(crate) extra_flags: Vec<String>,
    pub(crate) cli_version: Option<CliVersion>,
    pub(crate) cli_path: Option<PathBuf>,
    pub(crate) cwd: Option<PathBuf>,
    /// The command that started the CLI, without payloads; `None` if a transport started it.
    pub(crate) command: Option<String>,
    /// How the process exited, for operations that were in flight.
    pub(crate) exit: Option<Exit>,
    /// The secrets that no text may contain.
    pub(crate) mask: Mask,
}

/// Returns the error of a run or a session that failed.
pub(crate) fn failure(failure: &RunFailure, evidence: &Evidence) -> Error {
    if let Some(error) = unknown_option(failure, evidence) {
        return error;
    }
    let mut summary = summary(failure, evidence);
    if let Some(reason) = &evidence.read_error {
        summary = format!("{summary} (reading stdout failed: {reason})");
    }
    let diagnosis = diagnosis::diagnose(failure, evidence);
    let error = build_error(kind_of(failure, evidence), summary, diagnosis, evidence);
    error.with(|facts| match failure {
        RunFailure::Process { exit, stopped, .. } => {
            facts.exit = Some(*exit);
            facts.stopped_by_sdk = *stopped;
        }
        RunFailure::NonZeroExitAfterResult(exit) | RunFailure::ExitedDuringInit(exit) => {
            facts.exit = Some(*exit);
        }
        RunFailure::InitializeTimeout(limit) => facts.limit = Some(*limit),
        RunFailure::LineTooLong(size) => facts.size = Some(*size),
        RunFailure::StdinNotRead(bytes) => facts.size = Some(*bytes as u64),
        RunFailure::TooManyMalformedLines(_, last) => {
            facts.line = Some(masked(&last.line, &evidence.mask));
        }
        RunFailure::InitializeRejected(_)
        | RunFailure::McpServersNotApplied
        | RunFailure::IdleTimeout
        | RunFailure::Superseded(_)
        | RunFailure::StoreFailed(_) => facts.exit = evidence.exit,
    })
}

fn kind_of(failure: &RunFailure, evidence: &Evidence) -> ErrorKind {
    let missing =
        [NO_CONVERSATION, NO_MESSAGE].iter().any(|words| evidence.stderr_tail.contains(words));
    match failure {
        RunFailure::ExitedDuringInit(_) | RunFailure::InitializeTimeout(_) if missing => {
            ErrorKind::ConversationNotFound
        }
        // Tools of a CLI that works may write the same text to stderr.
        RunFailure::ExitedDuringInit(_) | RunFailure::Process { silent: true, .. }
            if diagnosis::rejects_a_value(evidence) =>
        {
            ErrorKind::InvalidOptions
        }
        RunFailure::ExitedDuringInit(_) => ErrorKind::ExitedDuringInit,
        RunFailure::InitializeTimeout(_) => ErrorKind::InitializeTimeout,
        RunFailure::InitializeRejected(_) | RunFailure::McpServersNotApplied => {
            ErrorKind::InitializeRejected
        }
        RunFailure::IdleTimeout => ErrorKind::IdleTimeout,
        RunFailure::LineTooLong(_) => ErrorKind::LineTooLong,
        RunFailure::TooManyMalformedLines(..) => ErrorKind::TooManyDecodeErrors,
        RunFailure::NonZeroExitAfterResult(_) => ErrorKind::NonZeroExit,
        RunFailure::StdinNotRead(_) => ErrorKind::StdinNotRead,
        RunFailure::Process { .. } => ErrorKind::ProcessFailed,
        RunFailure::Superseded(_) => ErrorKind::Superseded,
        RunFailure::StoreFailed(_) => ErrorKind::StoreFailed,
    }
}

/// Describes what happened, without its cause.
fn summary(failure: &RunFailure, evidence: &Evidence) -> String {
    let cli = evidence.cli();
    match failure {
        RunFailure::Process { stopped: true, .. } => {
            format!("{cli} did not exit after closing stdout and was stopped")
        }
        RunFailure::Process { exit, silent: true, .. } => {
            format!("{cli} {} without writing any output", describe_exit(*exit))
        }
        RunFailure::Process { exit, .. } => format!("{cli} {}", describe_exit(*exit)),
        RunFailure::NonZeroExitAfterResult(exit) => {
            format!("{cli} {} after a successful result", describe_exit(*exit))
        }
        RunFailure::ExitedDuringInit(exit) => {
            format!("{cli} {} before completing the handshake", describe_exit(*exit))
        }
        RunFailure::InitializeTimeout(limit) => {
            format!("{cli} did not complete the handshake within {limit:?}")
        }
        RunFailure::InitializeRejected(reason) => {
            let reason = evidence.mask.apply_limited(reason, TEXT_BYTES);
            format!("{cli} rejected the handshake: {}", shortened(&reason))
        }
        RunFailure::McpServersNotApplied => {
            format!("{cli} did not confirm the MCP servers in the handshake")
        }
        RunFailure::IdleTimeout => {
            format!("{cli} sent nothing for longer than `Timeouts::idle` and was stopped")
        }
        RunFailure::TooManyMalformedLines(count, last) => {
            format!("{cli} wrote {count} lines in a row that are not messages (last: {last})")
        }
        RunFailure::StdinNotRead(bytes) => {
            format!("{cli} does not read stdin ({bytes} bytes of responses could not be written)")
        }
        RunFailure::Superseded(reason) => {
            let reason = evidence.mask.apply_limited(reason, TEXT_BYTES);
            format!("the run was stopped because it no longer owns its session: {reason}")
        }
        RunFailure::StoreFailed(reason) => {
            let reason = evidence.mask.apply_limited(reason, TEXT_BYTES);
            format!("the run was stopped because its store failed: {reason}")
        }
        RunFailure::LineTooLong(size) => {
            format!("{cli} wrote a line of {size} bytes, which exceeds `Limits::max_line_bytes`")
        }
    }
}

/// Describes how a process exited, as the end of a sentence: `exited with status 1`.
pub(crate) fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with status {code}"),
        Exit::Signal(signal) => format!("was terminated by signal {signal}"),
        Exit::Unknown => "exited with an unknown status".to_owned(),
    }
}

/// Builds an error from a summary, its diagnosis and the evidence.
fn build_error(
    kind: ErrorKind,
    summary: String,
    diagnosis: Diagnosis,
    evidence: &Evidence,
) -> Error {
    let Diagnosis { cause, help, is_permanent } = diagnosis;
    let mut message = summary;
    if let Some(cause) = &cause {
        message = format!("{message}: {cause}");
    }
    message.push_str(&evidence.quoted());
    let mut error =
        Error::new(kind, evidence.mask.apply(&message)).with_help(evidence.mask.apply(&help));
    if let Some(cause) = cause {
        error = error.with_hint(evidence.mask.apply(&cause));
    }
    error.with(|facts| {
        facts.stderr_tail = evidence.stderr_if_any();
        facts.stdout_tail = Some(evidence.stdout_tail.clone()).filter(|tail| !tail.is_empty());
        facts.line = evidence.last_malformed_line.as_ref().map(|line| masked(line, &evidence.mask));
        facts.session_id.clone_from(&evidence.session_id);
        facts.detected = evidence.cli_version;
        facts.is_permanent = is_permanent;
    })
}

/// Returns a line, unchanged unless it contains a secret.
fn masked(line: &Bytes, mask: &Mask) -> Bytes {
    let text = String::from_utf8_lossy(line);
    match masked_line(&text, mask) {
        Cow::Borrowed(_) => line.clone(),
        Cow::Owned(masked) => Bytes::from(masked),
    }
}

/// Masks a line of stdout. A line of 4 KiB was truncated, possibly within a secret.
fn masked_line<'a>(line: &'a str, mask: &Mask) -> Cow<'a, str> {
    if line.len() < TEXT_BYTES { mask.apply(line) } else { mask.apply_to_start(line) }
}

/// Returns the error for a flag that the CLI does not support: the CLI reports it on stderr and exits,
/// whatever the SDK was waiting for.
fn unknown_option(failure: &RunFailure, evidence: &Evidence) -> Option<Error> {
    // Another program may write the same text to the stderr of a CLI that works.
    match failure {
        RunFailure::Process { silent: true, .. }
        | RunFailure::ExitedDuringInit(_)
        | RunFailure::InitializeTimeout(_)
        | RunFailure::InitializeRejected(_) => {}
        RunFailure::Process { silent: false, .. }
        | RunFailure::NonZeroExitAfterResult(_)
        | RunFailure::McpServersNotApplied
        | RunFailure::IdleTimeout
        | RunFailure::LineTooLong(_)
        | RunFailure::TooManyMalformedLines(..)
        | RunFailure::StdinNotRead(_)
        | RunFailure::Superseded(_)
        | RunFailure::StoreFailed(_) => return None,
    }
    let lines = || evidence.stderr_tail.lines();
    let option = lines()
        .find_map(|line| line.trim().strip_prefix("error: unknown option '")?.strip_suffix('\''))?;
    // The CLI repeats the value, which may be a secret.
    let flag = option.split_once('=').map_or(option, |(flag, _)| flag);
    let output = format!("error: unknown option '{flag}'");
    let similar = lines().map(str::trim).find(|line| line.starts_with("(Did you mean "));
    let output = similar.map_or(output.clone(), |similar| format!("{output} {similar}"));
    let cli = evidence.cli();
    let name = flag.trim_start_matches('-');
    let (flag, output) = (evidence.mask.apply(flag), evidence.mask.apply(&output));
    let error = if evidence.extra_flags.iter().any(|extra| extra.trim_start_matches('-') == name) {
        Error::new(
            ErrorKind::InvalidOptions,
            format!("{cli} does not support the extra argument `{flag}`: {output}"),
        )
        .with_help("correct or remove the flag, or update the CLI")
    } else {
        Error::new(
            ErrorKind::UnsupportedCliVersion,
            format!("{cli} does not support the flag `{flag}`: {output}"),
        )
        .with_help(
            "update the CLI with `npm install -g @anthropic-ai/claude-code`, or remove the option",
        )
    };
    Some(error.with(|facts| {
        facts.flag = Some(flag.into_owned());
        facts.output = Some(output.into_owned());
        facts.detected = evidence.cli_version;
        facts.stderr_tail = evidence.stderr_if_any();
        facts.exit = match failure {
            RunFailure::Process { exit, .. }
            | RunFailure::NonZeroExitAfterResult(exit)
            | RunFailure::ExitedDuringInit(exit) => Some(*exit),
            RunFailure::InitializeTimeout(_)
            | RunFailure::InitializeRejected(_)
            | RunFailure::McpServersNotApplied
            | RunFailure::IdleTimeout
            | RunFailure::LineTooLong(_)
            | RunFailure::TooManyMalformedLines(..)
            | RunFailure::StdinNotRead(_)
            | RunFailure::Superseded(_)
            | RunFailure::StoreFailed(_) => evidence.exit,
        };
    }))
}

impl Evidence {
    /// Names the CLI with its path, version and working directory.
    fn cli(&self) -> String {
        let mut known = Vec::new();
        if let Some(path) = &self.cli_path {
            known.push(path.display().to_string());
        }
        if let Some(version) = self.cli_version {
            known.push(version.to_string());
        }
        if let Some(cwd) = &self.cwd {
            known.push(format!("in {}", cwd.display()));
        }
        if known.is_empty() {
            return "the CLI".to_owned();
        }
        format!("the CLI ({})", known.join(", "))
    }

    /// Returns whether nothing was written to stdout before the handshake ended.
    fn nothing_on_stdout(&self) -> bool {
        self.stdout_tail.trim().is_empty() && self.last_malformed_line.is_none()
    }

    fn stderr_if_any(&self) -> Option<Arc<str>> {
        Some(self.stderr_tail.clone()).filter(|tail| !tail.is_empty())
    }

    /// Quotes the last lines of stderr and stdout.
    fn quoted(&self) -> String {
        let mut quoted = String::new();
        let stderr = last_lines(&self.stderr_tail);
        if !stderr.is_empty() {
            quoted = format!("; stderr ends with {stderr:?}");
        }
        if let Some(line) = &self.last_malformed_line {
            let line = String::from_utf8_lossy(line);
            let line = shortened(&masked_line(&line, &self.mask));
            quoted = format!("{quoted}; last non-protocol line on stdout: {line:?}");
        }
        quoted
    }
}

/// The maximum length of a text that the CLI or a callback sends about a failure: small enough to be
/// masked between two messages.
pub(crate) const TEXT_BYTES: usize = 4 * 1024;

/// The maximum number of characters that a message quotes.
const QUOTED_CHARS: usize = 500;

/// Returns the end of the last three lines that are not blank.
fn last_lines(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines().rev().filter(|line| !line.trim().is_empty()) {
        lines.push(line.trim_end().to_owned());
        if lines.len() == 3 {
            break;
        }
    }
    lines.reverse();
    let joined = lines.join("\n");
    let count = joined.chars().count();
    if count <= QUOTED_CHARS {
        return joined;
    }
    let end: String = joined.chars().skip(count - QUOTED_CHARS).collect();
    format!("…{end}")
}

/// Returns the start of a text.
fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
