//! Script files: the answers of the model and the faults, as text.
//!
//! ```text
#![doc = include_str!("example.sim")]
//! ```
//!
//! # Layout
//!
//! A script consists of words, numbers, quoted strings and JSON objects. The arguments of a word must be
//! on its line; only a JSON object may span several lines. Apart from that, line breaks and indentation
//! are not significant: `say "Hello." hold` is the same as two lines. A `#` between words starts a
//! comment.
//!
//! Strings are written as in JSON: `"a \"quoted\" word\n"`. Durations are `200ms` or `2s`, sizes are
//! `10`, `64kb` or `10mb` (1 kb is 1024 bytes).
//!
//! # Sections
//!
//! | section | meaning |
//! |---|---|
//! | `version 2.1.326` | the version of the CLI ([`Sim::version`](super::Sim::version)) |
//! | `when "text"` | answers for prompts that contain the text ([`Script::when`]) |
//! | `when attempts "text"` | the same, one answer per request ([`Script::when_attempts`]) |
//! | `since "text"` | the same, also for later prompts that match no rule ([`Script::since`]) |
//! | `otherwise` | answers for all other prompts ([`Script::otherwise`]) |
//! | `faults` | faults and the points at which they occur ([`Faults`]) |
//!
//! # Answers
//!
//! The answers of a section are separated by `then`: the next answer is given after the tools that the
//! previous one called have run. The last answer repeats. An answer consists of these steps:
//!
//! | step | meaning |
//! |---|---|
//! | `say "text"` | a text block |
//! | `think "text"` | a thinking block |
//! | `call Bash {"command": "ls"}` | a tool call; without an object the input is `{}` |
//! | `raw "half \ud83d"` | a text block whose JSON is sent verbatim, without validation |
//! | `nothing` | no content |
//! | `error 529 overloaded_error "text"` | an error instead of content |
//! | `stop-reason max_tokens` | the stop reason |
//! | `usage 10 5` | input and output tokens |
//! | `deltas-of 4` | the number of characters of each streamed delta |
//! | `header x-should-retry "false"` | a header of the response |
//! | `retry-after 1` | the header `retry-after`, in seconds |
//! | `pause-before 200ms` | waits before the response |
//! | `pause-between 20ms` | waits between the events of a stream |
//! | `hold` | stops after the first delta |
//! | `drop-after 3` | closes the connection after this number of events |
//!
//! # Faults
//!
//! A line consists of a point and one or more faults, which occur in this order:
//!
//! | point | meaning |
//! |---|---|
//! | `at start` | at startup |
//! | `before assistant` | before, or instead of, the first line of this kind that the CLI writes |
//! | `after assistant 2` | after the second line of this kind |
//! | `at signal` | when the process receives its first SIGUSR1 |
//! | `on control_request/interrupt` | when the CLI has read the first line of this kind from the host |
//!
//! Kinds are those of [`Point`]: `result`, `system/init`, `control_response`, `*` for any line.
//!
//! | fault | meaning |
//! |---|---|
//! | `exit 3` | exits with this code |
//! | `signal SIGKILL` | ends with this signal, given by name or number |
//! | `hang` | hangs without exiting |
//! | `ignore-sigterm` | ignores SIGTERM from now on |
//! | `bytes "half a li"` | writes these bytes; `\xff` is an arbitrary byte |
//! | `line "not JSON"` | the same with a newline |
//! | `garbage` | writes a line that is not JSON |
//! | `garbage-utf8` | writes a line that is not UTF-8 |
//! | `long-line 10mb` | writes one JSON line of this size |
//! | `messages 1000` | writes this number of assistant messages |
//! | `deltas 1000` | writes this number of text deltas |
//! | `stderr 300kb` | writes this many bytes to stderr |
//! | `pause 2s` | waits |
//! | `close-stdout` | closes stdout and keeps running |
//! | `close-stdin` | closes stdin and keeps running |
//! | `leave-grandchild 5s` | exits while another process keeps stdout open for this long |
//! | `stop-reading` | stops reading stdin |
//!
//! Five more faults modify the line at their point, so they require `before`:
//!
//! | fault | meaning |
//! |---|---|
//! | `swallow` | the line is not written |
//! | `twice` | the line is written twice |
//! | `behind` | the line is written after the next one |
//! | `wrong-id` | the line is written with another request id |
//! | `wrong-shape` | the line is written with a payload of the wrong type |

mod answers;
mod cursor;
mod error;
mod faults;
mod spelling;
mod values;

use self::cursor::{Cursor, Table};
pub use self::error::ScriptError;
use self::values::ReadValue as _;
use crate::mock_api::{Reply, Script};

use super::fault::Faults;
#[cfg(doc)]
use super::fault::Point;

/// The example script file shown above.
pub const EXAMPLE: &str = include_str!("example.sim");

/// A parsed script file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SimScript {
    /// The answers of the model.
    pub model: Script,
    /// The faults of the CLI.
    pub faults: Faults,
    /// The version of the CLI, if the file sets it.
    pub version: Option<String>,
}

/// Parses a script file.
///
/// ```
/// use claude_agent_testkit::sim::script_file;
///
/// let script = script_file::parse("otherwise say \"Hello.\"")?;
/// assert!(script.faults.is_empty());
///
/// let error = script_file::parse("otherwise\n  say 42").unwrap_err();
/// assert_eq!((error.line(), error.column()), (2, 7));
/// assert_eq!(
///     error.to_string(),
///     "line 2, column 7: expected a quoted string, found `42`\n  say 42\n      ^"
/// );
/// # Ok::<(), script_file::ScriptError>(())
/// ```
///
/// # Errors
///
/// Returns the first syntax error: its position, what was expected and what was found.
pub fn parse(text: &str) -> Result<SimScript, ScriptError> {
    let mut script = ScriptBuilder::default();
    let mut cursor = Cursor::new(text);
    while cursor.has_more() {
        let start = cursor.position();
        let section = cursor.choose(SECTIONS, &[], ONE_OF_THE_SECTIONS)?;
        section(&mut script, &mut cursor, start)?;
    }
    Ok(script.script)
}

const ONE_OF_THE_SECTIONS: &str = "`version`, `when`, `since`, `otherwise` or `faults`";

type Section = fn(&mut ScriptBuilder, &mut Cursor<'_>, usize) -> Result<(), ScriptError>;

/// The words that start a section and end the previous one.
const SECTIONS: Table<Section> = &[
    ("version", ScriptBuilder::version),
    ("when", ScriptBuilder::when),
    ("since", ScriptBuilder::since),
    ("otherwise", ScriptBuilder::otherwise),
    ("faults", ScriptBuilder::faults),
];

#[derive(Default)]
struct ScriptBuilder {
    script: SimScript,
    has_otherwise: bool,
}

impl ScriptBuilder {
    fn version(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Result<(), ScriptError> {
        if self.script.version.is_some() {
            return Err(cursor.error_at(start, "at most one `version`"));
        }
        self.script.version = Some(cursor.version()?);
        Ok(())
    }

    fn when(&mut self, cursor: &mut Cursor<'_>, _: usize) -> Result<(), ScriptError> {
        let attempts = cursor.take_word("attempts");
        self.rule(cursor, if attempts { Script::when_attempts } else { Script::when })
    }

    fn since(&mut self, cursor: &mut Cursor<'_>, _: usize) -> Result<(), ScriptError> {
        self.rule(cursor, Script::since)
    }

    fn rule(
        &mut self,
        cursor: &mut Cursor<'_>,
        add: fn(Script, String, Vec<Reply>) -> Script,
    ) -> Result<(), ScriptError> {
        let start = cursor.next_position();
        let needle = cursor.text()?;
        if needle.is_empty() {
            return Err(cursor.error_at(start, "a non-empty string"));
        }
        let replies = answers::parse(cursor)?;
        self.script.model = add(std::mem::take(&mut self.script.model), needle, replies);
        Ok(())
    }

    fn otherwise(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Result<(), ScriptError> {
        if self.has_otherwise {
            return Err(cursor.error_at(start, "at most one `otherwise`"));
        }
        self.has_otherwise = true;
        let replies = answers::parse(cursor)?;
        self.script.model = std::mem::take(&mut self.script.model).otherwise(replies);
        Ok(())
    }

    fn faults(&mut self, cursor: &mut Cursor<'_>, _: usize) -> Result<(), ScriptError> {
        let faults = std::mem::take(&mut self.script.faults);
        self.script.faults = faults::parse(faults, cursor)?;
        Ok(())
    }
}
