//! Generates transcripts with a seed: the same bytes each time.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use claude_wire::transcript::project_folder_name;

/// The size of a tool result.
const RESULT_BYTES: usize = 2048;

const WORDS: [&str; 16] = [
    "the",
    "test",
    "of",
    "module",
    "returns",
    "an",
    "error",
    "when",
    "file",
    "is",
    "not",
    "found",
    "in",
    "this",
    "directory",
    "build",
];

/// A transcript that is generated.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TranscriptPlan {
    /// Selects the contents and the ID of the session.
    pub seed: u64,
    /// The size in bytes. The transcript is longer by less than a turn.
    pub bytes: u64,
    /// The size of one long prompt in the middle; zero for none.
    pub long_line: usize,
}

impl TranscriptPlan {
    /// Plans a transcript without a long line.
    pub fn new(seed: u64, bytes: u64) -> Self {
        Self { seed, bytes, long_line: 0 }
    }

    /// Adds a prompt of this size in bytes.
    #[must_use]
    pub fn long_line(mut self, bytes: usize) -> Self {
        self.long_line = bytes;
        self
    }
}

/// What a generated transcript contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generated {
    /// The ID of the session.
    pub session: String,
    /// The number of lines.
    pub lines: usize,
    /// The number of messages.
    pub messages: usize,
}

/// Writes transcripts of these plans into the project folder of a working directory, the first with the oldest
/// modification time, and returns what they contain.
///
/// # Errors
///
/// Returns an error when a file cannot be written.
pub fn project(
    config: &Path,
    directory: &Path,
    plans: impl IntoIterator<Item = TranscriptPlan>,
) -> io::Result<Vec<Generated>> {
    let cwd = fs::canonicalize(directory)?.to_string_lossy().into_owned();
    let folder = config.join("projects").join(project_folder_name(&cwd));
    fs::create_dir_all(&folder)?;
    let mut modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let mut generated = Vec::new();
    for plan in plans {
        let session = Random(plan.seed).uuid();
        let file = File::create(folder.join(format!("{session}.jsonl")))?;
        let mut output = BufWriter::with_capacity(1 << 20, file);
        generated.push(transcript(&plan, &cwd, &mut output)?);
        modified += Duration::from_secs(1);
        output.into_inner()?.set_modified(modified)?;
    }
    Ok(generated)
}

/// Writes a transcript.
///
/// # Errors
///
/// Returns an error when the output cannot be written.
pub fn transcript(
    plan: &TranscriptPlan,
    cwd: &str,
    output: &mut impl Write,
) -> io::Result<Generated> {
    let mut random = Random(plan.seed);
    let session = random.uuid();
    let mut turns = Turns { session, cwd, random, parent: None, time: 0, lines: 0, messages: 0 };
    let mut written = 0;
    let mut long_line = plan.long_line;
    let mut text = String::new();
    while written < plan.bytes {
        let is_middle = written >= plan.bytes.saturating_sub(long_line as u64) / 2;
        let prompt = if is_middle { std::mem::take(&mut long_line) } else { 0 };
        text.clear();
        turns.turn(prompt, &mut text);
        output.write_all(text.as_bytes())?;
        written += text.len() as u64;
    }
    output.flush()?;
    Ok(Generated { session: turns.session, lines: turns.lines, messages: turns.messages })
}

/// The state of a conversation that is being generated.
struct Turns<'a> {
    session: String,
    cwd: &'a str,
    random: Random,
    parent: Option<String>,
    time: u64,
    lines: usize,
    messages: usize,
}

impl Turns<'_> {
    /// Adds a prompt, thinking, text, two parallel calls with their results, an answer, and a checkpoint.
    fn turn(&mut self, prompt_bytes: usize, out: &mut String) {
        let prompt = self.random.text(prompt_bytes.max(240));
        let content = format!(r#""message":{{"role":"user","content":"{prompt}"}}"#);
        self.entry("user", &content, r#","permissionMode":"default","promptSource":"sdk""#, out);
        let response = format!("msg_{}", self.random.hex(24));
        let thinking = self.random.text(600);
        let signature = self.random.hex(200);
        self.block(
            &response,
            &format!(r#"{{"type":"thinking","thinking":"{thinking}","signature":"{signature}"}}"#),
            out,
        );
        let text = self.random.text(400);
        self.block(&response, &format!(r#"{{"type":"text","text":"{text}"}}"#), out);
        let mut calls = Vec::new();
        for _ in 0..2 {
            let id = format!("toolu_{}", self.random.hex(24));
            let input = format!(r#"{{"command":"cat {}"}}"#, self.random.text(60));
            let call =
                format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{input}}}"#);
            self.block(&response, &call, out);
            calls.push((id, self.parent.clone()));
        }
        for (id, call) in calls {
            let result = self.random.text(RESULT_BYTES);
            let block =
                format!(r#"{{"tool_use_id":"{id}","type":"tool_result","content":"{result}"}}"#);
            let content = format!(r#""message":{{"role":"user","content":[{block}]}}"#);
            let source = call.clone().unwrap_or_default();
            let more = format!(
                r#","toolUseResult":{{"stdout":"{result}","stderr":"","interrupted":false}},"sourceToolAssistantUUID":"{source}""#
            );
            // The result of a parallel call follows its own call.
            self.parent = call;
            self.entry("user", &content, &more, out);
        }
        let response = format!("msg_{}", self.random.hex(24));
        let answer = self.random.text(800);
        self.block(&response, &format!(r#"{{"type":"text","text":"{answer}"}}"#), out);
        // An escape must not be cut.
        let prompt = prompt[..200].trim_end_matches('\\');
        let leaf = self.parent.as_deref().unwrap_or_default();
        let session = &self.session;
        self.lines += 1;
        write_line(
            out,
            format_args!(
                r#"{{"type":"last-prompt","lastPrompt":"{prompt}…","leafUuid":"{leaf}","sessionId":"{session}"}}"#
            ),
        );
    }

    fn block(&mut self, response: &str, block: &str, out: &mut String) {
        let content = format!(
            r#""message":{{"id":"{response}","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{block}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":1203,"cache_creation_input_tokens":512,"cache_read_input_tokens":18231,"output_tokens":97,"service_tier":"standard"}}}}"#
        );
        let request = format!(r#","requestId":"req_{}""#, self.random.hex(24));
        self.entry("assistant", &content, &request, out);
    }

    /// Adds an entry behind the current one.
    fn entry(&mut self, kind: &str, content: &str, more: &str, out: &mut String) {
        let uuid = self.random.uuid();
        let parent = match &self.parent {
            Some(parent) => format!("\"{parent}\""),
            None => "null".to_owned(),
        };
        self.time += 40;
        let (seconds, millis) = (self.time / 1000, self.time % 1000);
        let (day, rest) = (1 + seconds / 86_400 % 28, seconds % 86_400);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let (cwd, session) = (self.cwd, &self.session);
        write_line(
            out,
            format_args!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}",{content},"uuid":"{uuid}","timestamp":"2026-09-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z","userType":"external","entrypoint":"sdk-ts","cwd":"{cwd}","sessionId":"{session}","version":"2.1.325","gitBranch":"main"{more}}}"#
            ),
        );
        self.parent = Some(uuid);
        self.lines += 1;
        self.messages += 1;
    }
}

fn write_line(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _infallible = writeln!(out, "{line}");
}

/// A `SplitMix64` generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            let _infallible = write!(text, "{:016x}", self.next());
        }
        text.truncate(digits);
        text
    }

    fn uuid(&mut self) -> String {
        let hex = self.hex(32);
        let (one, two, three, four) = (&hex[..8], &hex[8..12], &hex[13..16], &hex[17..20]);
        format!("{one}-{two}-4{three}-8{four}-{}", &hex[20..])
    }

    /// Words of this length in total.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 256);
        while text.len() < bytes {
            let mut word = self.next();
            for _ in 0..16 {
                text.push_str(WORDS[(word & 15) as usize]);
                // Some escapes, as in programs and their output.
                text.push_str(if word.trailing_zeros() >= 7 { "\\n" } else { " " });
                word >>= 4;
            }
        }
        text.truncate(bytes);
        if text.ends_with('\\') {
            text.replace_range(bytes - 1.., ".");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use claude_wire::transcript::{Index, MessageFilter};

    use super::{TranscriptPlan, transcript};

    fn generate(plan: &TranscriptPlan) -> (Vec<u8>, super::Generated) {
        let mut bytes = Vec::new();
        let generated = transcript(plan, "/srv/project", &mut bytes).expect("memory is writable");
        (bytes, generated)
    }

    #[test]
    fn generated_transcripts_are_complete_and_repeatable() {
        let plan = TranscriptPlan::new(7, 200_000).long_line(50_000);
        let (bytes, generated) = generate(&plan);
        assert_eq!(generate(&plan), (bytes.clone(), generated.clone()));
        assert_ne!(generate(&TranscriptPlan { seed: 8, ..plan }).0, bytes);
        assert!((200_000..230_000).contains(&bytes.len()), "{}", bytes.len());
        let mut index = Index::new();
        index.feed(&bytes);
        index.finish();
        let tree = index.tree();
        assert_eq!(index.len(), generated.lines);
        assert_eq!(tree.messages(MessageFilter::default()).len(), generated.messages);
        assert_eq!(tree.issues(), []);
    }

    #[test]
    fn every_line_is_json() {
        let (bytes, generated) = generate(&TranscriptPlan::new(1, 40_000));
        let text = String::from_utf8(bytes).expect("transcripts are UTF-8");
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON");
        }
        assert_eq!(text.lines().count(), generated.lines);
    }
}
