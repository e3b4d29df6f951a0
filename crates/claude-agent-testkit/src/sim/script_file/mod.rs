//! Script files: what the model does and what goes wrong, as text.
//!
//! ```text
#![doc = include_str!("example.sim")]
//! ```
//!
//! # Layout
//!
//! A script is made of words, numbers, texts in quotes and JSON objects. What belongs to one word
//! stands on its line; only a JSON object may go on over several lines. Otherwise lines and
//! indentation are free: `say "Hello." hold` is the same as two lines. A `#` between words starts a
//! comment.
//!
//! Texts are written as in JSON: `"a \"quoted\" word\n"`. Durations are `200ms` or `2s`, sizes are
//! `10`, `64kb` or `10mb` (a kb is 1024 bytes).
//!
//! # Sections
//!
//! | section | meaning |
//! |---|---|
//! | `version 2.1.325` | what the CLI says for `--version` |
//! | `when "text"` | answers for prompts that hold the text ([`Script::when`]) |
//! | `when attempts "text"` | the same, one answer per request ([`Script::when_attempts`]) |
//! | `since "text"` | the same, also for later prompts that match no rule ([`Script::since`]) |
//! | `otherwise` | answers for all other prompts ([`Script::otherwise`]) |
//! | `faults` | faults, and when they strike ([`Faults`]) |
//!
//! # Answers
//!
//! The answers of a section are separated by `then`: the next one is given when the tools that the
//! one before has called have run. The last one repeats. An answer is made of these:
//!
//! | step | meaning |
//! |---|---|
//! | `say "text"` | a block of text |
//! | `think "text"` | a block of thinking |
//! | `call Bash {"command": "ls"}` | a tool call; without an object the input is `{}` |
//! | `raw "half \ud83d"` | a block of text whose JSON is sent as it stands, unchecked |
//! | `nothing` | no content, for an answer that has none |
//! | `error 529 overloaded_error "text"` | an error in place of content |
//! | `stop-reason max_tokens` | the stop reason |
//! | `usage 10 5` | input and output tokens |
//! | `deltas-of 4` | streamed in pieces of so many characters |
//! | `header x-should-retry "false"` | a header of the response |
//! | `retry-after 1` | seconds, for errors |
//! | `pause-before 200ms` | waits before it answers |
//! | `pause-between 20ms` | waits between the events of a stream |
//! | `hold` | stops after the first delta |
//! | `drop-after 3` | cuts the connection after so many events |
//!
//! # Faults
//!
//! A point, and on its line one fault or several, which strike in this order:
//!
//! | point | meaning |
//! |---|---|
//! | `at start` | before anything else |
//! | `before assistant` | before, or instead of, the first line of this kind that the CLI writes |
//! | `after assistant 2` | after the second line of this kind |
//! | `at signal` | when the process gets its first SIGUSR1 |
//! | `on control_request/interrupt` | when the first line of this kind was read from the host |
//!
//! Kinds are those of [`Point`]: `result`, `system/init`, `control_response`, `*` for any line.
//!
//! | fault | meaning |
//! |---|---|
//! | `exit 3` | ends with this code |
//! | `signal SIGKILL` | is ended by this signal, given by name or number |
//! | `hang` | lives, but does nothing any more |
//! | `ignore-sigterm` | SIGTERM does nothing from now on |
//! | `bytes "half a li"` | writes these bytes; `\xff` stands for a byte that no text holds |
//! | `line "not JSON"` | the same with a line break |
//! | `garbage` | writes a line that is no JSON |
//! | `garbage-utf8` | writes a line that is no UTF-8 |
//! | `long-line 10mb` | writes one JSON line of this size |
//! | `messages 1000` | writes so many assistant messages |
//! | `deltas 1000` | writes so many text deltas |
//! | `stderr 300kb` | writes so much to stderr |
//! | `pause 2s` | waits |
//! | `close-stdout` | closes stdout and lives on |
//! | `close-stdin` | closes stdin and lives on |
//! | `leave-grandchild 5s` | exits while another process holds stdout open for this long |
//! | `stop-reading` | stops reading stdin |
//!
//! Five more change the line before which they stand, so they need `before`:
//!
//! | fault | meaning |
//! |---|---|
//! | `swallow` | the line is not written |
//! | `twice` | the line is written twice |
//! | `behind` | the line is written after the next one |
//! | `wrong-id` | the line is written with another request id |
//! | `wrong-shape` | the line is written with a body that does not fit |

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

/// A script file that shows what can be said; the one above.
pub const EXAMPLE: &str = include_str!("example.sim");

/// What a script file says.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SimScript {
    /// What the model answers.
    pub model: Script,
    /// What goes wrong, and when.
    pub faults: Faults,
    /// What the CLI says for `--version`, if the file says it.
    pub version: Option<String>,
}

/// Reads a script file.
///
/// ```
/// use claude_agent_testkit::sim::script_file;
///
/// let script = script_file::parse("otherwise say \"Hello.\"")?;
/// assert!(script.faults.is_empty());
///
/// let mistake = script_file::parse("otherwise\n  say 42").unwrap_err();
/// assert_eq!((mistake.line(), mistake.column()), (2, 7));
/// assert_eq!(
///     mistake.to_string(),
///     "line 2, column 7: expected a text in quotes, found `42`\n  say 42\n      ^"
/// );
/// # Ok::<(), script_file::ScriptError>(())
/// ```
///
/// # Errors
///
/// Names the first mistake: where it is, what was expected and what stands there.
pub fn parse(text: &str) -> Result<SimScript, ScriptError> {
    let mut script = ScriptBuilder::default();
    let mut cursor = Cursor::new(text);
    while cursor.has_more() {
        let start = cursor.here();
        let section = cursor.choose(SECTIONS, &[], ONE_OF_THE_SECTIONS)?;
        section(&mut script, &mut cursor, start)?;
    }
    Ok(script.script)
}

const ONE_OF_THE_SECTIONS: &str = "`version`, `when`, `since`, `otherwise` or `faults`";

type Section = fn(&mut ScriptBuilder, &mut Cursor<'_>, usize) -> Result<(), ScriptError>;

/// Words that open a section; they end the section before.
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
            return Err(cursor.error_at(start, "one `version` at most"));
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
        let start = cursor.next_at();
        let needle = cursor.text()?;
        if needle.is_empty() {
            return Err(cursor.error_at(start, "a text that is not empty"));
        }
        let replies = answers::parse(cursor)?;
        self.script.model = add(std::mem::take(&mut self.script.model), needle, replies);
        Ok(())
    }

    fn otherwise(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Result<(), ScriptError> {
        if self.has_otherwise {
            return Err(cursor.error_at(start, "one `otherwise` at most"));
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
