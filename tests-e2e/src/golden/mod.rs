//! Golden traces: hashes of what is written to the CLI and delivered to the host, stored in `tests-e2e/golden`.
//! `cargo xtask golden` compares them.
//!
//! A change that should not affect behavior leaves the hashes unchanged. A change that should updates them, and its
//! commit message names the traces and the reason.

mod normalize;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use claude_agent_kit::{Item, Result};

pub(crate) use normalize::Normalizer;

/// What the host wrote and received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Golden {
    /// Arguments, environment variables and lines that were passed to the CLI.
    pub written: Vec<String>,
    /// The items that readers received: messages, warning codes, error kinds.
    pub delivered: Vec<String>,
}

impl Golden {
    /// Creates a trace from these lines and the items of each reader, with IDs and dates that are the same in every run.
    pub fn ordered(written: Vec<String>, readers: Vec<(&str, Vec<String>)>) -> Self {
        let normal = |lines: Vec<String>| -> Vec<String> {
            let mut names = Normalizer::default();
            lines.into_iter().map(|line| names.normalize(&line)).collect()
        };
        let readers = readers.into_iter().map(|(who, items)| (who.to_owned(), normal(items)));
        let mut readers: Vec<(String, Vec<String>)> = readers.collect();
        // The order in which readers are dropped is not deterministic.
        readers.sort();
        let delivered = readers.into_iter().flat_map(|(who, items)| [who].into_iter().chain(items));
        Self { written: normal(written), delivered: delivered.collect() }
    }

    /// Creates a trace of real processes, in which the order of lines may vary: sorted, without IDs, dates, durations,
    /// deltas and the texts in `own`, which are specific to one run.
    pub fn unordered(written: Vec<String>, delivered: Vec<String>, own: &[String]) -> Self {
        let normal = |lines: Vec<String>| -> Vec<String> {
            let normalize = |line: String| {
                let line = own.iter().fold(line, |line, own| line.replace(own, "OWN"));
                // Numbers the IDs of each part separately, so that their order does not matter.
                let mut words = Vec::new();
                for part in line.split('"') {
                    words.push(Normalizer::default().normalize(part));
                }
                without_durations(&words.join("\""))
            };
            let is_piece = |line: &String| line.contains(r#""type":"stream_event""#);
            let lines = lines.into_iter().filter(|line| !is_piece(line));
            let mut lines: Vec<String> = lines.map(normalize).collect();
            lines.sort();
            lines
        };
        Self { written: normal(written), delivered: normal(delivered) }
    }

    /// Returns the hashes of this trace.
    pub fn hashes(&self) -> Hashes {
        Hashes { written: Some(hash(&self.written)), delivered: Some(hash(&self.delivered)) }
    }
}

/// Returns an item as a line of a trace. Contains no texts of warnings and errors, which may change.
pub fn text(item: &Result<Item>) -> String {
    match item {
        Ok(Item::Message(message)) => String::from_utf8_lossy(message.raw()).into_owned(),
        Ok(Item::PermissionRequest(request)) => {
            format!("permission {}", String::from_utf8_lossy(&request.raw))
        }
        Ok(Item::Warning(warning)) => format!("warning {:?}", warning.code()),
        Err(error) => format!("error {:?}", error.kind()),
    }
}

/// Replaces the numbers of fields such as `duration_ms`.
fn without_durations(line: &str) -> String {
    let mut parts = line.split("_ms\":");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("_ms\":N");
        out.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    out
}

/// The hashes of a trace; `None` where runs differ by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hashes {
    /// The hash of what was written.
    pub written: Option<u32>,
    /// The hash of what was delivered.
    pub delivered: Option<u32>,
}

impl Hashes {
    /// Keeps the hashes that both have in common.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        let same = |a: Option<u32>, b| a.filter(|_| a == b);
        Self {
            written: same(self.written, other.written),
            delivered: same(self.delivered, other.delivered),
        }
    }
}

/// The hashes of many traces, by name.
pub type List = BTreeMap<String, Hashes>;

/// Formats a list as the stored text.
pub fn format(list: &List) -> String {
    let shown =
        |hash: Option<u32>| hash.map_or_else(|| "-".to_owned(), |hash| format!("{hash:08x}"));
    let mut text = String::new();
    for (name, hashes) in list {
        let _ = writeln!(text, "{name} {} {}", shown(hashes.written), shown(hashes.delivered));
    }
    text
}

/// Parses a stored list.
pub fn parse(text: &str) -> List {
    let hash = |word: Option<&str>| word.and_then(|word| u32::from_str_radix(word, 16).ok());
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?.to_owned();
            Some((name, Hashes { written: hash(words.next()), delivered: hash(words.next()) }))
        })
        .collect()
}

/// Returns a line for each trace that differs from the stored one.
pub fn differences(kept: &List, now: &List) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, hashes) in now {
        match kept.get(name) {
            None => differences.push(format!("{name}: new")),
            Some(before) => {
                let differs = |a: Option<u32>, b: Option<u32>| a.is_some() && b.is_some() && a != b;
                let parts = [
                    ("written", differs(before.written, hashes.written)),
                    ("delivered", differs(before.delivered, hashes.delivered)),
                ];
                let parts: Vec<&str> =
                    parts.iter().filter(|(_, differs)| *differs).map(|(part, _)| *part).collect();
                if !parts.is_empty() {
                    differences.push(format!("{name}: {}", parts.join(", ")));
                }
            }
        }
    }
    let gone = kept.keys().filter(|name| !now.contains_key(*name));
    differences.extend(gone.map(|name| format!("{name}: gone")));
    differences
}

/// FNV-1a, folded: the same with every compiler and on every machine.
fn hash(lines: &[String]) -> u32 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    #[expect(clippy::cast_possible_truncation, reason = "the halves are folded")]
    let folded = (hash >> 32) as u32 ^ hash as u32;
    folded
}
