//! From what was seen of a process to an error that says what happened, where, and what to do.
//!
//! The cause of most failures stands on stderr, so that is asked first; the exit code and whether
//! anything was written come after it.

mod clue;
mod login;
mod refusal;
mod spawn;
mod turn_failure;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use claude_wire::id::SessionId;
use claude_wire::session::{Exit, RunFailure};

use self::clue::{Clue, NO_CONVERSATION, NO_MESSAGE};
use crate::cli::CliVersion;
use crate::error::{Error, ErrorKind};
use crate::mask::Mask;

pub(crate) use self::refusal::refusal;
pub(crate) use self::spawn::spawn_failed;
pub(crate) use self::turn_failure::{retry_delay, turn_failure};

/// What is known of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The end of stderr, masked already.
    pub(crate) stderr_tail: Arc<str>,
    /// The end of stdout before the handshake ended, masked already.
    pub(crate) stdout_tail: String,
    /// The last line of stdout that was not a message, its first 4 KiB.
    pub(crate) last_malformed_line: Option<Bytes>,
    pub(crate) session_id: Option<SessionId>,
    /// Why stdout could not be read any more.
    pub(crate) read_error: Option<String>,
    /// Flags that the host gave as extra arguments, without dashes.
    pub(crate) extra_flags: Vec<String>,
    pub(crate) cli_version: Option<CliVersion>,
    pub(crate) cli_path: Option<PathBuf>,
    pub(crate) cwd: Option<PathBuf>,
    /// How the process ended, for operations that were still open.
    pub(crate) exit: Option<Exit>,
    /// What must not be shown, wherever it comes from.
    pub(crate) mask: Mask,
}

/// Why a run or a session failed.
pub(crate) fn failure(failure: &RunFailure, evidence: &Evidence) -> Error {
    if let Some(error) = unknown_option(failure, evidence) {
        return error;
    }
    let clue = clue::of(failure, evidence);
    let mut happened = happened(failure, evidence);
    if let Some(reason) = &evidence.read_error {
        happened = format!("{happened}, and its output could not be read ({reason})");
    }
    let error = told(kind_of(failure, evidence), &happened, clue, evidence);
    error.with(|facts| match failure {
        RunFailure::Process { exit, stopped, .. } => {
            facts.exit = Some(*exit);
            facts.stopped_by_sdk = *stopped;
        }
        RunFailure::NonZeroExitAfterResult(exit) => facts.exit = Some(*exit),
        RunFailure::ExitedDuringInit(exit) => {
            facts.exit = Some(*exit);
        }
        RunFailure::InitializeTimeout(limit) => {
            facts.limit = Some(*limit);
        }
        RunFailure::LineTooLong(size) => facts.size = Some(*size),
        RunFailure::StdinNotRead(bytes) => facts.size = Some(*bytes as u64),
        RunFailure::TooManyMalformedLines(_, last) => {
            facts.line = Some(masked(&last.line, &evidence.mask));
        }
        RunFailure::InitializeRejected(_) | RunFailure::IdleTimeout => facts.exit = evidence.exit,
    })
}

fn kind_of(failure: &RunFailure, evidence: &Evidence) -> ErrorKind {
    let missing =
        [NO_CONVERSATION, NO_MESSAGE].iter().any(|words| evidence.stderr_tail.contains(words));
    match failure {
        RunFailure::ExitedDuringInit(_) | RunFailure::InitializeTimeout(_) if missing => {
            ErrorKind::ConversationNotFound
        }
        RunFailure::ExitedDuringInit(_) => ErrorKind::ExitedDuringInit,
        RunFailure::InitializeTimeout(_) => ErrorKind::InitializeTimeout,
        RunFailure::InitializeRejected(_) => ErrorKind::InitializeRejected,
        RunFailure::IdleTimeout => ErrorKind::IdleTimeout,
        RunFailure::LineTooLong(_) => ErrorKind::LineTooLong,
        RunFailure::TooManyMalformedLines(..) => ErrorKind::TooManyDecodeErrors,
        RunFailure::NonZeroExitAfterResult(_) => ErrorKind::NonZeroExit,
        RunFailure::StdinNotRead(_) => ErrorKind::StdinNotRead,
        RunFailure::Process { .. } => ErrorKind::ProcessFailed,
    }
}

fn happened(failure: &RunFailure, evidence: &Evidence) -> String {
    let cli = evidence.cli();
    match failure {
        RunFailure::Process { stopped: true, .. } => {
            format!("{cli} closed its output without a result, did not end, and was stopped")
        }
        RunFailure::Process { exit, silent, .. } => {
            let said = if *silent { " without having written anything" } else { "" };
            format!("{cli} ended with {exit}{said}")
        }
        RunFailure::NonZeroExitAfterResult(exit) => {
            format!("{cli} ended with {exit} although its last result was not an error")
        }
        RunFailure::ExitedDuringInit(exit) => {
            format!("{cli} ended with {exit} before it answered the handshake")
        }
        RunFailure::InitializeTimeout(limit) => {
            format!("{cli} did not answer the handshake within {limit:?}")
        }
        RunFailure::InitializeRejected(reason) => {
            let reason = evidence.mask.apply_limited(reason, TEXT_BYTES);
            format!("{cli} refused the handshake: {}", shortened(&reason))
        }
        RunFailure::IdleTimeout => {
            format!("{cli} was silent for longer than `Timeouts::idle` allows, and was stopped")
        }
        RunFailure::TooManyMalformedLines(count, last) => {
            format!("{count} lines in a row were no messages; the last: {last}")
        }
        RunFailure::StdinNotRead(bytes) => {
            format!("{cli} does not read stdin: {bytes} bytes of responses wait to be written")
        }
        RunFailure::LineTooLong(size) => {
            format!("{cli} wrote a line of {size} bytes, more than `Limits::max_line_bytes` allows")
        }
    }
}

/// An error with everything that the evidence says about it.
fn told(kind: ErrorKind, happened: &str, clue: Option<Clue>, evidence: &Evidence) -> Error {
    let mut message = happened.to_owned();
    if let Some(clue) = &clue {
        message = format!("{message}: {}", clue.hint);
    }
    message.push_str(&evidence.quoted());
    let mut error = Error::new(kind, evidence.mask.apply(&message));
    if let Some(clue) = clue {
        error = error.with_hint(evidence.mask.apply(&clue.hint)).with_help(clue.help);
    }
    error.with(|facts| {
        facts.stderr_tail = evidence.stderr_if_any();
        facts.stdout_tail = Some(evidence.stdout_tail.clone()).filter(|tail| !tail.is_empty());
        facts.line = evidence.last_malformed_line.as_ref().map(|line| masked(line, &evidence.mask));
        facts.session_id.clone_from(&evidence.session_id);
        facts.detected = evidence.cli_version;
    })
}

/// Returns a line as it came, unless it holds a secret.
fn masked(line: &Bytes, mask: &Mask) -> Bytes {
    let text = String::from_utf8_lossy(line);
    match masked_line(&text, mask) {
        Cow::Borrowed(_) => line.clone(),
        Cow::Owned(masked) => Bytes::from(masked),
    }
}

/// Masks a line of stdout. One of 4 KiB was cut, perhaps inside a secret.
fn masked_line<'a>(line: &'a str, mask: &Mask) -> Cow<'a, str> {
    if line.len() < TEXT_BYTES { mask.apply(line) } else { mask.apply_to_start(line) }
}

/// A CLI that does not know a flag says so and ends, whatever else was waited for.
fn unknown_option(failure: &RunFailure, evidence: &Evidence) -> Option<Error> {
    // Something else may complain in these words to the stderr of a CLI that works.
    match failure {
        RunFailure::Process { silent: true, .. }
        | RunFailure::ExitedDuringInit(_)
        | RunFailure::InitializeTimeout(_)
        | RunFailure::InitializeRejected(_) => {}
        RunFailure::Process { silent: false, .. }
        | RunFailure::NonZeroExitAfterResult(_)
        | RunFailure::IdleTimeout
        | RunFailure::LineTooLong(_)
        | RunFailure::TooManyMalformedLines(..)
        | RunFailure::StdinNotRead(_) => return None,
    }
    let lines = || evidence.stderr_tail.lines();
    let option = lines()
        .find_map(|line| line.trim().strip_prefix("error: unknown option '")?.strip_suffix('\''))?;
    // The CLI repeats the value, which is nobody's business.
    let flag = option.split_once('=').map_or(option, |(flag, _)| flag);
    let output = format!("error: unknown option '{flag}'");
    let advice = lines().map(str::trim).find(|line| line.starts_with("(Did you mean "));
    let output = advice.map_or(output.clone(), |advice| format!("{output} {advice}"));
    let cli = evidence.cli();
    let name = flag.trim_start_matches('-');
    let (flag, output) = (evidence.mask.apply(flag), evidence.mask.apply(&output));
    let error = if evidence.extra_flags.iter().any(|extra| extra.trim_start_matches('-') == name) {
        Error::new(
            ErrorKind::InvalidOptions,
            format!("{cli} does not know the flag {flag}, which stands in `extra_args`: {output}"),
        )
        .with_help("correct or remove it, or update the CLI if a newer one knows it")
    } else {
        Error::new(
            ErrorKind::UnsupportedCliVersion,
            format!("{cli} does not know the flag {flag}: {output}"),
        )
        .with_help(
            "update it with `npm install -g @anthropic-ai/claude-code`, or do without the option",
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
            | RunFailure::IdleTimeout
            | RunFailure::LineTooLong(_)
            | RunFailure::TooManyMalformedLines(..)
            | RunFailure::StdinNotRead(_) => evidence.exit,
        };
    }))
}

impl Evidence {
    /// Names the CLI, so that an error says which one it was, and where it worked.
    fn cli(&self) -> String {
        let path = self.cli_path.as_ref().map(|path| path.display().to_string());
        let version = self.cli_version.map(|version| version.to_string());
        let cwd = self.cwd.as_ref().map(|cwd| format!("in {}", cwd.display()));
        let known: Vec<String> = [path, version, cwd].into_iter().flatten().collect();
        if known.is_empty() {
            return "the CLI".to_owned();
        }
        format!("the CLI ({})", known.join(", "))
    }

    /// Whether nothing was written before the handshake ended.
    fn nothing_on_stdout(&self) -> bool {
        self.stdout_tail.trim().is_empty() && self.last_malformed_line.is_none()
    }

    fn stderr_if_any(&self) -> Option<Arc<str>> {
        Some(self.stderr_tail.clone()).filter(|tail| !tail.is_empty())
    }

    /// The last that was said, for people.
    fn quoted(&self) -> String {
        let mut quoted = String::new();
        let stderr = last_lines(&self.stderr_tail);
        if !stderr.is_empty() {
            quoted = format!("; stderr ends with {stderr:?}");
        }
        if let Some(line) = &self.last_malformed_line {
            let line = String::from_utf8_lossy(line);
            let line = shortened(&masked_line(&line, &self.mask));
            quoted = format!("{quoted}; the last line of stdout that is no message is {line:?}");
        }
        quoted
    }
}

/// The most that is masked and kept of a text that the CLI or a callback sends about a failure:
/// little enough to be masked between two messages.
pub(crate) const TEXT_BYTES: usize = 4 * 1024;

/// The most that a message quotes.
const QUOTED_CHARS: usize = 500;

/// The last three lines that are not blank, and of those the end.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let lines: Vec<&str> = lines.into_iter().rev().map(str::trim_end).collect();
    let joined = lines.join("\n");
    let count = joined.chars().count();
    if count <= QUOTED_CHARS {
        return joined;
    }
    let end: String = joined.chars().skip(count - QUOTED_CHARS).collect();
    format!("…{end}")
}

/// The beginning of a text.
fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
