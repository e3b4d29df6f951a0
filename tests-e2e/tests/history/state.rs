//! Generates the rest of a transcript: titles, tags and other state, and damage.

use serde_json::{Value, json};

use crate::conversation::{Conversation, Generated, object};
use crate::feature::{Feature, Profile};

impl Conversation<'_> {
    /// Generates a whole transcript.
    pub(crate) fn generate(mut self, profile: Profile) -> Generated {
        if self.random.chance(30) {
            self.state("mode", &[("mode", json!("normal"))]);
        }
        let turns = 1 + self.random.below(7);
        self.turns(turns, profile);
        if self.random.chance(6) {
            self.padding(14, 1500);
        }
        for _ in 0..self.random.below(4) {
            self.named_state(profile);
        }
        if profile == Profile::Damaged {
            self.damage();
        }
        self.finish()
    }

    /// Appends turns, and what may be between them.
    pub(crate) fn turns(&mut self, count: usize, profile: Profile) {
        for _ in 0..count {
            self.prompt(profile);
            for _ in 0..self.random.below(3) {
                self.hidden(profile);
            }
            if self.random.chance(90) {
                self.response(profile);
            }
            if profile != Profile::Plain && self.random.chance(15) {
                self.queued();
            }
            if profile != Profile::Plain && self.random.chance(15) {
                self.progress();
            }
            match self.random.below(12) {
                0 | 1 => self.branch(),
                2 => self.aside(),
                3 => self.compaction(profile),
                4 | 5 => self.named_state(profile),
                _ => {}
            }
            if profile != Profile::Plain && self.random.chance(5) {
                self.repeat();
            }
        }
    }

    pub(crate) fn state(&mut self, kind: &str, members: &[(&str, Value)]) {
        let mut all = vec![("type", json!(kind))];
        all.extend(members.iter().cloned());
        all.push(("sessionId", json!(self.session)));
        self.push(&object(&all));
    }

    fn named_state(&mut self, profile: Profile) {
        let text = self.text();
        if text.trim() != text {
            self.has(Feature::PaddedTitle);
        }
        match self.random.below(if profile == Profile::Plain { 5 } else { 16 }) {
            0 => self.state("custom-title", &[("customTitle", json!(text))]),
            1 => self.state("tag", &[("tag", json!("release"))]),
            2 => self.state("tag", &[("tag", json!(""))]),
            3 => {
                let leaf = self.ids.last().cloned();
                self.state(
                    "last-prompt",
                    &[("lastPrompt", json!(text)), ("leafUuid", json!(leaf))],
                );
            }
            4 => self.state("summary", &[("summary", json!(text))]),
            5 => {
                self.has(Feature::AiTitle);
                self.state("ai-title", &[("aiTitle", json!(text))]);
            }
            6 => {
                self.has(Feature::UnusualTag);
                let session = self.session.clone();
                self.push(
                    &json!({"tag": "reordered", "type": "tag", "sessionId": session}).to_string(),
                );
            }
            7 => {
                self.has(Feature::Relocated);
                let cwd = format!("{}-moved", self.cwd);
                self.state("relocated", &[("relocatedCwd", json!(cwd))]);
            }
            _ => self.fork_state(),
        }
    }

    /// Appends state that a fork copies.
    fn fork_state(&mut self) {
        self.has(Feature::ForkState);
        let uuid = self.ids.last().cloned().unwrap_or_default();
        let choice = self.random.below(8);
        if choice == 4 || choice == 7 {
            self.has(Feature::DataFlow);
        }
        match choice {
            7 => {
                let records = json!([{"tool_name": "Bash", "tool_use_id": uuid}]);
                let members = [("v", json!(1)), ("records", records)];
                for _ in 0..=self.random.below(2) {
                    self.state("data-flow-records", &members);
                }
            }
            0 => self.state(
                "content-replacement",
                &[(
                    "replacements",
                    json!([{"kind": "tool-result", "toolUseId": "t", "replacement": "r"}]),
                )],
            ),
            1 => self.state("atis-latch", &[("atis", json!("on"))]),
            2 => self.state("tools-used", &[("tools", json!(["Bash", "Read"]))]),
            3 => self.state(
                "derived-from",
                &[
                    ("v", json!(1)),
                    (
                        "sessions",
                        json!([{"type": "claude_code_session", "id": uuid, "via": "fork"}]),
                    ),
                ],
            ),
            4 => self.state("data-flow-incomplete", &[("v", json!(1))]),
            5 => self.state(
                "history-suppression",
                &[("cause", json!("setting")), ("ts", json!("2026-03-01T00:00:00.000Z"))],
            ),
            _ => self.state("future-kind", &[("value", json!({"uuid": uuid}))]),
        }
    }

    /// Appends an earlier line again, unchanged or with another branch.
    fn repeat(&mut self) {
        self.has(Feature::Repeated);
        let line = self.random.pick(&self.lines).clone();
        let line = String::from_utf8_lossy(&line)
            .replace("\"gitBranch\":\"main\"", "\"gitBranch\":\"other\"");
        self.push(&line);
    }

    /// Appends more than the 64 KiB that lists read of either end: so many entries with so many words.
    pub(crate) fn padding(&mut self, entries: usize, words: usize) {
        self.has(Feature::Large);
        let text = "padding ".repeat(words);
        for _ in 0..entries {
            self.entry("attachment", &[("attachment", json!({"type": "file", "content": text}))]);
        }
    }

    fn damage(&mut self) {
        for _ in 0..=self.random.below(2) {
            let at = self.random.below(self.lines.len());
            match self.random.below(8) {
                0 => {
                    self.has(Feature::Nul);
                    let line = std::mem::take(&mut self.lines[at]);
                    self.lines[at] = [b"\0\0\0\0".to_vec(), line].concat();
                }
                1 if at + 1 < self.lines.len() => {
                    self.has(Feature::Spliced);
                    let next = self.lines.remove(at + 1);
                    self.lines[at].extend(next);
                }
                2 if at + 1 < self.lines.len() => {
                    self.has(Feature::Spliced);
                    let next = self.lines.remove(at + 1);
                    let keep = self.lines[at].len() / 2;
                    cut(&mut self.lines[at], keep);
                    self.lines[at].extend(next);
                }
                3 => {
                    self.has(Feature::Malformed);
                    let keep = self.lines[at].len() / 3;
                    cut(&mut self.lines[at], keep);
                    self.has(if at + 1 == self.lines.len() {
                        Feature::TornEnd
                    } else {
                        Feature::Malformed
                    });
                }
                4 => {
                    self.has(Feature::Malformed);
                    self.lines.insert(at, b"[1,2] not an entry".to_vec());
                }
                5 => {
                    self.has(Feature::InvalidUtf8);
                    self.lines.insert(at, b"{\"type\":\"mode\",\"mode\":\"\xff\xfe\"}".to_vec());
                }
                6 => {
                    self.has(Feature::TornEnd);
                    self.has(Feature::NoLineBreak);
                    let line = self.random.pick(&self.lines).clone();
                    self.lines.push(line[..line.len() / 2].to_vec());
                }
                _ => {
                    self.lines.insert(at, Vec::new());
                    self.lines[at].extend(b"\r");
                }
            }
        }
        if self.random.chance(15) {
            self.has(Feature::NoLineBreak);
        }
    }
}

/// Cuts a line, not within a character.
fn cut(line: &mut Vec<u8>, mut keep: usize) {
    while keep > 0 && line.get(keep).is_some_and(|byte| byte & 0xc0 == 0x80) {
        keep -= 1;
    }
    line.truncate(keep);
}
