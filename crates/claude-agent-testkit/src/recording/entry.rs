//! One line of a recording.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

/// Something that was seen, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The time since the start of the process.
    pub at: Duration,
    /// What was seen.
    pub what: What,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A line of the client, without its newline.
    Sent(Bytes),
    /// A line of the CLI's stdout, without its newline.
    Received(Bytes),
    /// A line of the CLI's stderr, without its newline.
    Stderr(Bytes),
    /// What stood after the last newline when the stream ended.
    Unfinished(Channel, Bytes),
    /// The client closed the CLI's stdin.
    InputClosed,
    /// The CLI closed its stdout.
    OutputClosed,
    /// The CLI ended.
    Exited(Exit),
}

/// One of the three streams of a process.
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
    /// Something seen at this time.
    pub fn new(at: Duration, what: What) -> Self {
        Self { at, what }
    }

    /// Appends the line of the file, newline included.
    pub(crate) fn write_to(&self, file: &mut Vec<u8>) {
        let exit_text;
        let (mark, text): (&str, &[u8]) = match &self.what {
            What::Sent(line) if line.as_ref() == b"EOF" => (">=", line),
            What::Sent(line) => (">>", line),
            What::Received(line) => ("<<", line),
            What::Stderr(line) => ("!!", line),
            What::Unfinished(channel, rest) => (channel.unfinished_mark(), rest),
            What::InputClosed => (">>", b"EOF"),
            What::OutputClosed => ("<|", b""),
            What::Exited(exit) => {
                exit_text = exit.to_string();
                ("EXIT", exit_text.as_bytes())
            }
        };
        let (seconds, micros) = (self.at.as_secs(), self.at.subsec_micros());
        write!(file, "{mark} {seconds}.{micros:06}").expect("a Vec takes every byte");
        if !matches!(self.what, What::OutputClosed) {
            file.push(b' ');
            file.extend_from_slice(text);
        }
        file.push(b'\n');
    }
}

impl Channel {
    /// The entry of a whole line of this stream.
    pub(crate) fn line(self, bytes: Bytes) -> What {
        match self {
            Self::Sent => What::Sent(bytes),
            Self::Received => What::Received(bytes),
            Self::Stderr => What::Stderr(bytes),
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

/// The signals that end processes, by the numbers that Linux and macOS share.
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
            // Neither happens only for a stopped process, which nobody here asks about.
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

impl From<Exit> for claude_wire::session::Exit {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
        }
    }
}
