//! What lists of sessions show, from the first and last bytes of a transcript.
//!
//! A transcript can have gigabytes, so a list reads [`WINDOW`] bytes of either end and no more.
//! The CLI writes titles and tags again whenever the end has moved that far. The bytes may begin
//! and end within a line or a character.

use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;

use super::key::is_uuid;
use super::prompt::FirstPrompt;
use super::time::parse_timestamp;
use crate::repair;
use crate::schema::Reader;
use crate::sort::sort_by;

/// How many bytes of either end are read for a list of sessions.
pub const WINDOW: usize = 65_536;

/// The first and the last [`WINDOW`] bytes of a transcript. For a shorter transcript both are the
/// whole of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ends<'a> {
    /// The first bytes.
    pub head: &'a [u8],
    /// The last bytes.
    pub tail: &'a [u8],
}

/// What a list of sessions shows of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The title, or else the last prompt, a summary, or the first prompt. Never empty.
    pub summary: String,
    /// The title that a user gave, or else the one that the model gave.
    pub custom_title: Option<String>,
    /// The first prompt, cut to 200 characters.
    pub first_prompt: Option<String>,
    /// The Git branch of the newest entry.
    pub git_branch: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The tag.
    pub tag: Option<String>,
    /// When the session began, in milliseconds since the Unix epoch.
    pub created_at: Option<i64>,
}

/// How sessions name the SDK that started them.
const SDK_ENTRYPOINTS: [&str; 4] = ["sdk-cli", "sdk-ts", "sdk-py", crate::launch::ENTRYPOINT];

impl<'a> Ends<'a> {
    /// Takes the ends of a transcript. The caller reads at most [`WINDOW`] bytes for each.
    pub fn new(head: &'a [u8], tail: &'a [u8]) -> Self {
        Self { head, tail }
    }

    /// Takes the ends of a transcript that is in memory.
    pub fn of(transcript: &'a [u8]) -> Self {
        let head = &transcript[..transcript.len().min(WINDOW)];
        Self { head, tail: &transcript[transcript.len().saturating_sub(WINDOW)..] }
    }

    /// Returns what a list shows of the session; `None` if the transcript is a subagent's or has
    /// nothing to show.
    ///
    /// `sidecar_title` is the title in the session's `custom-title.json`. It is only used if
    /// [`needs_sidecar_title`](Self::needs_sidecar_title).
    pub fn info(&self, sidecar_title: Option<&str>) -> Option<SessionInfo> {
        if self.is_sidechain() {
            return None;
        }
        let kinds = Kinds::of(self.tail);
        let custom_title = self.title(kinds, sidecar_title);
        let first_prompt = non_empty(Some(first_prompt(self.head)));
        let title = custom_title.clone();
        let summary = title
            .or_else(|| non_empty(last_parsed(self.tail, "lastPrompt", None)))
            .or_else(|| non_empty(last_parsed(self.tail, "summary", None)))
            .or_else(|| first_prompt.clone())
            .or_else(|| attachment_prompt(self.head).map(str::to_owned))?;
        Some(SessionInfo {
            summary,
            custom_title,
            first_prompt,
            git_branch: non_empty(last_raw(self.tail, "gitBranch"))
                .or_else(|| non_empty(first_raw(self.head, "gitBranch"))),
            cwd: non_empty(self.relocated_cwd()).or_else(|| non_empty(first_raw(self.head, "cwd"))),
            tag: non_empty(last_state(self.tail, kinds, TAG, "tag")),
            created_at: first_raw(self.head, "timestamp").and_then(|text| parse_timestamp(&text)),
        })
    }

    /// Returns whether the first line belongs to a subagent.
    pub fn is_sidechain(&self) -> bool {
        let end = memchr::memchr(b'\n', self.head).unwrap_or(self.head.len());
        let line = &self.head[..end];
        contains(line, br#""isSidechain":true"#) || contains(line, br#""isSidechain": true"#)
    }

    /// Returns the title that a user or the model gave.
    pub fn custom_title(&self, sidecar_title: Option<&str>) -> Option<String> {
        self.title(Kinds::of(self.tail), sidecar_title)
    }

    fn title(&self, tail_kinds: Kinds, sidecar_title: Option<&str>) -> Option<String> {
        let in_tail = |kind, field| non_empty(last_state(self.tail, tail_kinds, kind, field));
        if let Some(title) = in_tail(CUSTOM_TITLE, "customTitle") {
            return Some(title);
        }
        let head_kinds = Kinds::of(self.head);
        let in_head = |kind, field| non_empty(last_state(self.head, head_kinds, kind, field));
        non_empty(sidecar_title.map(str::to_owned))
            .or_else(|| in_head(CUSTOM_TITLE, "customTitle"))
            .or_else(|| in_tail(AI_TITLE, "aiTitle"))
            .or_else(|| in_head(AI_TITLE, "aiTitle"))
    }

    /// Returns whether the title may be in the session's `custom-title.json`: the end of the
    /// transcript has none.
    pub fn needs_sidecar_title(&self) -> bool {
        let kinds = Kinds::of(self.tail);
        last_state(self.tail, kinds, CUSTOM_TITLE, "customTitle").is_none()
    }

    /// Returns the title of a fork of the session.
    pub fn fork_title(&self, sidecar_title: Option<&str>) -> String {
        let title = self
            .custom_title(sidecar_title)
            .or_else(|| non_empty(Some(first_prompt(self.head))))
            .unwrap_or_else(|| "Forked session".to_owned());
        format!("{title} (fork)")
    }

    /// Returns the working directory that the transcript records, read from whole lines only.
    pub fn recorded_cwd(&self) -> Option<String> {
        let parsed = || {
            lines_with(self.head, b"\"cwd\":")
                .find_map(|line| parsed_field(line, "cwd", None).ok().flatten())
        };
        self.relocated_cwd().or_else(parsed)
    }

    fn relocated_cwd(&self) -> Option<String> {
        last_parsed(self.tail, "relocatedCwd", Some("relocated"))
    }

    /// Returns the session in which this one continues, if no prompt or finished response came
    /// after the entry that marks it.
    pub fn continued_in(&self) -> Option<String> {
        if !contains(self.tail, br#""type":"continued-in""#) {
            return None;
        }
        for line in self.tail.rsplit(|byte| *byte == b'\n') {
            let Some(entry) = value(line) else { continue };
            match entry["type"].as_str() {
                Some("continued-in") => {
                    if let Some(session) = entry["continuedInSessionId"].as_str() {
                        return is_uuid(session).then(|| session.to_owned());
                    }
                }
                Some("assistant")
                    if entry["isApiErrorMessage"] != true
                        && entry["message"]["stop_reason"].is_string() =>
                {
                    return None;
                }
                Some("user") if FirstPrompt::default().of(&entry).is_some() => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns whether a program started the session, through an SDK or as a daemon.
    pub fn is_programmatic(&self) -> bool {
        let entrypoint =
            first_raw(self.head, "entrypoint").or_else(|| last_raw(self.tail, "entrypoint"));
        if entrypoint.is_some_and(|name| SDK_ENTRYPOINTS.contains(&&*name)) {
            return true;
        }
        let chain_line = lines_with(self.head, br#""parentUuid":"#).next().unwrap_or(self.head);
        first_raw(chain_line, "sessionKind")
            .is_some_and(|kind| ["daemon", "daemon-worker"].contains(&&*kind))
    }

    /// Returns whether there is a prompt that is newer than `millis` since the Unix epoch. Such a
    /// prompt ends the archiving of a session.
    pub fn has_prompt_after(&self, millis: i64) -> bool {
        has_prompt_after(self.tail, millis) || has_prompt_after(self.head, millis)
    }
}

fn value(line: &[u8]) -> Option<Value> {
    serde_json::from_str(std::str::from_utf8(line).ok()?).ok()
}

fn has_prompt_after(text: &[u8], millis: i64) -> bool {
    lines_with(text, br#""type":"user""#).any(|line| {
        let Some(entry) = value(line) else { return false };
        let origin = &entry["origin"]["kind"];
        let is_human = origin.is_null() || origin == "human";
        entry["timestamp"].as_str().and_then(parse_timestamp).is_some_and(|at| at > millis)
            && entry["isSidechain"] != true
            && is_human
            && FirstPrompt::default().of(&entry).is_some()
    })
}

/// Returns whether bytes of a transcript have an entry of a conversation.
pub fn has_chain_entry(bytes: &[u8]) -> bool {
    contains(bytes, br#""parentUuid":"#)
}

fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    memmem::find(text, needle).is_some()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr(b'\n', text);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// The lines with this text, each once.
fn lines_with<'a>(text: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut end = 0;
    memmem::find_iter(text, needle).filter_map(move |at| {
        if at < end {
            return None;
        }
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
        end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |after| at + after);
        Some(&text[start..end])
    })
}

/// The whole lines at the very end, where the newest values mostly are, and then all of the text.
fn from_the_end(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    const NEAR: usize = 4096;
    let near = text.len().checked_sub(NEAR).map(|start| &text[start..]);
    let lines = near.and_then(|near| Some(&near[memchr::memchr(b'\n', near)? + 1..]));
    lines.into_iter().chain([text])
}

/// The last value of a field of whole lines, of one type if `kind` is given.
fn last_parsed(text: &[u8], field: &str, kind: Option<&str>) -> Option<String> {
    let needle = format!("\"{field}\":");
    from_the_end(text).find_map(|text| {
        let lines: Vec<&[u8]> = lines_with(text, needle.as_bytes()).collect();
        lines.into_iter().rev().find_map(|line| parsed_field(line, field, kind).ok().flatten())
    })
}

const CUSTOM_TITLE: &str = "custom-title";
const AI_TITLE: &str = "ai-title";
const TAG: &str = "tag";

/// Which state entries a text may have, found in one pass: a list looks for several in each
/// transcript, and most have none.
#[derive(Clone, Copy)]
struct Kinds([bool; 3]);

impl Kinds {
    const NAMES: [&str; 3] = [CUSTOM_TITLE, AI_TITLE, TAG];

    fn of(text: &[u8]) -> Self {
        let mut found = [false; 3];
        for at in memmem::find_iter(text, b"\"type\":") {
            let rest = &text[at + b"\"type\":".len()..];
            let Some(value) = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"\"") else {
                continue;
            };
            for (found, name) in found.iter_mut().zip(Self::NAMES) {
                let end = value.strip_prefix(name.as_bytes());
                *found |= end.is_some_and(|end| end.starts_with(b"\""));
            }
        }
        Self(found)
    }

    fn has(self, kind: &str) -> bool {
        Self::NAMES.iter().zip(self.0).any(|(name, found)| found && *name == kind)
    }
}

/// The last value of a state entry. One that is glued to a torn line is found too.
fn last_state(text: &[u8], kinds: Kinds, kind: &str, field: &str) -> Option<String> {
    if !kinds.has(kind) {
        return None;
    }
    // Rarer than the name of the field: `tag` is also a word in tool results.
    let needles = [format!("\"type\":\"{kind}\""), format!("\"type\": \"{kind}\"")];
    let mut lines: Vec<&[u8]> = Vec::new();
    for needle in &needles {
        lines.extend(lines_with(text, needle.as_bytes()));
    }
    sort_by(&mut lines, &|one, other| one.as_ptr().cmp(&other.as_ptr()));
    let start = format!("{{{}", needles[0]);
    lines.into_iter().rev().find_map(|line| {
        if let Ok(found) = parsed_field(line, field, Some(kind)) {
            return found;
        }
        let at = memmem::rfind(line, start.as_bytes()).filter(|at| *at > 0)?;
        let is_nested = b":,[".contains(&line[at - 1]);
        parsed_field(&line[at..], field, Some(kind)).ok().flatten().filter(|_| !is_nested)
    })
}

/// The string in a field of a line, if the line is an object of this type.
fn parsed_field(
    line: &[u8],
    field: &str,
    kind: Option<&str>,
) -> Result<Option<String>, serde_json::Error> {
    let line = repair::valid(line);
    let mut reader = Reader::new(&line);
    let mut entries = reader.object("a map")?;
    // Of several fields of one name the last one counts.
    let (mut found, mut found_kind) = (None, None);
    while let Some(name) = entries.next_key()? {
        let value = entries.reader.raw()?;
        if name == field {
            found = Some(value);
        }
        if name == "type" {
            found_kind = Some(value);
        }
    }
    reader.end()?;
    let string =
        |value: Option<&RawValue>| -> Option<String> { serde_json::from_str(value?.get()).ok() };
    let is_kind = kind.is_none_or(|kind| string(found_kind).as_deref() == Some(kind));
    Ok(string(found).filter(|_| is_kind))
}

/// The first value of a field at any depth, also in a line that is cut.
fn first_raw(text: &[u8], field: &str) -> Option<String> {
    raw_starts(field).iter().find_map(|start| {
        let at = memmem::find(text, start.as_bytes())?;
        raw_string(&text[at + start.len()..])
    })
}

/// The last value of a field at any depth, also in a line that is cut.
fn last_raw(text: &[u8], field: &str) -> Option<String> {
    let starts = raw_starts(field);
    from_the_end(text).find_map(|text| {
        let mut last = None;
        for start in &starts {
            let found: Vec<usize> = memmem::find_iter(text, start.as_bytes()).collect();
            for at in found.into_iter().rev() {
                if let Some(value) = raw_string(&text[at + start.len()..]) {
                    last = last.max(Some((at, value)));
                    break;
                }
            }
        }
        last.map(|(_, value)| value)
    })
}

fn raw_starts(field: &str) -> [String; 2] {
    [format!("\"{field}\":\""), format!("\"{field}\": \"")]
}

/// The string whose contents `text` begins with, up to its closing quote.
fn raw_string(text: &[u8]) -> Option<String> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            break;
        }
        at += 2;
    }
    let raw = String::from_utf8_lossy(&text[..at]);
    if !raw.contains('\\') {
        return Some(raw.into_owned());
    }
    let quoted = format!("\"{raw}\"");
    let parsed = serde_json::from_str(&repair::valid(quoted.as_bytes()));
    Some(parsed.unwrap_or_else(|_| raw.into_owned()))
}

/// The first prompt, or the name of the first slash command.
fn first_prompt(head: &[u8]) -> String {
    let mut search = FirstPrompt::default();
    for line in prompt_lines(head) {
        if contains(line, br#""isCompactSummary":true"#)
            || contains(line, br#""isCompactSummary": true"#)
        {
            continue;
        }
        if let Ok(entry) = serde_json::from_str(&repair::valid(line))
            && let Some(prompt) = search.of(&entry)
        {
            return prompt;
        }
    }
    search.command
}

fn prompt_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Compact JSON is what the CLI writes; other writers may put a blank after the colon.
    let is_user =
        |line: &[u8]| contains(line, br#""type":"user""#) || contains(line, br#""type": "user""#);
    lines(head).filter(move |line| {
        is_user(line)
            && !contains(line, br#""tool_result""#)
            && !contains(line, br#""isMeta":true"#)
            && !contains(line, br#""isMeta": true"#)
    })
}

/// What a prompt without text is called.
fn attachment_prompt(head: &[u8]) -> Option<&'static str> {
    prompt_lines(head).find_map(|line| {
        let has = |kind: &str| {
            contains(line, format!("\"type\":\"{kind}\"").as_bytes())
                || contains(line, format!("\"type\": \"{kind}\"").as_bytes())
        };
        if has("image") {
            Some("Image")
        } else if has("document") {
            Some("Document")
        } else {
            None
        }
    })
}
