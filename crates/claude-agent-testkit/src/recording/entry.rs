//! One line of a recording.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

/// A recorded event and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The time since the start of the process.
    pub at: Duration,
    /// The event.
    pub kind: EntryKind,
}

/// The event that an [`Entry`] records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A line that the client sent, without its newline.
    Sent(Bytes),
    /// A line of the CLI's stdout, without its newline.
    Received(Bytes),
    /// A line of the CLI's stderr, without its newline.
    Stderr(Bytes),
    /// The bytes after the last newline when the stream ended.
    Unfinished(Channel, Bytes),
    /// The client closed the CLI's stdin.
    StdinClosed,
    /// The CLI closed its stdout.
    StdoutClosed,
    /// The CLI exited.
    Exited(Exit),
}

/// One of the three standard streams of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a process has these three streams")]
pub enum Channel {
    /// From the client to the CLI's stdin.
    Sent,
    /// From the CLI's stdout to the client.
    Received,
    /// The CLI's stderr.
    Stderr,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Entry {
    /// Creates an entry.
    pub fn new(at: Duration, kind: EntryKind) -> Self {
        Self { at, kind }
    }

    /// Appends the entry as a line of the file, including the newline.
    pub(crate) fn write_to(&self, file: &mut Vec<u8>) {
        let exit_text;
        let (mark, text): (&str, &[u8]) = match &self.kind {
            EntryKind::Sent(line) if line.as_ref() == b"EOF" => (">=", line),
            EntryKind::Sent(line) => (">>", line),
            EntryKind::Received(line) => ("<<", line),
            EntryKind::Stderr(line) => ("!!", line),
            EntryKind::Unfinished(channel, rest) => (channel.unfinished_mark(), rest),
            EntryKind::StdinClosed => (">>", b"EOF"),
            EntryKind::StdoutClosed => ("<|", b""),
            EntryKind::Exited(exit) => {
                exit_text = exit.to_string();
                ("EXIT", exit_text.as_bytes())
            }
        };
        let (seconds, micros) = (self.at.as_secs(), self.at.subsec_micros());
        write!(file, "{mark} {seconds}.{micros:06}").expect("writing to a Vec cannot fail");
        if !matches!(self.kind, EntryKind::StdoutClosed) {
            file.push(b' ');
            file.extend_from_slice(text);
        }
        file.push(b'\n');
    }
}

impl Channel {
    /// Returns the entry for a complete line of this stream.
    pub(crate) fn line(self, bytes: Bytes) -> EntryKind {
        match self {
            Self::Sent => EntryKind::Sent(bytes),
            Self::Received => EntryKind::Received(bytes),
            Self::Stderr => EntryKind::Stderr(bytes),
        }
    }

    fn unfinished_mark(self) -> &'static str {
        match self {
            Self::Sent => ">~",
            Self::Received => "<~",
            Self::Stderr => "!~",
        }
    }
}

/// Signals that end a process and have the same number on Linux and macOS.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(number) => match SIGNALS.iter().find(|(known, _)| *known == number) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "SIG{number}"),
            },
        }
    }
}

impl FromStr for Exit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(code) = text.parse() {
            return Ok(Self::Code(code));
        }
        if let Some((number, _)) = SIGNALS.iter().find(|(_, name)| *name == text) {
            return Ok(Self::Signal(*number));
        }
        let number = text.strip_prefix("SIG").and_then(|number| number.parse().ok());
        number
            .map(Self::Signal)
            .ok_or_else(|| format!("`{text}` is neither an exit code nor a signal"))
    }
}

#[cfg(unix)]
impl From<std::process::ExitStatus> for Exit {
    fn from(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            // Only a stopped process has neither, and `wait` is never called with `WUNTRACED`.
            (None, None) => Self::Code(-1),
        }
    }
}

#[cfg(not(unix))]
impl From<std::process::ExitStatus> for Exit {
    fn from(status: std::process::ExitStatus) -> Self {
        Self::Code(status.code().unwrap_or(-1))
    }
}

impl From<Exit> for claude_wire::Exit {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
        }
    }
}
