//! Generates transcripts: prompts, responses with tools, branches, compactions, queued prompts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::feature::{Feature, Profile};
use crate::random::Random;

/// A generated transcript.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) features: BTreeSet<Feature>,
    /// The IDs of its entries, and of its queued prompts.
    pub(crate) ids: Vec<String>,
}

/// A transcript in the making.
pub(crate) struct Conversation<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) session: String,
    pub(crate) cwd: String,
    pub(crate) lines: Vec<Vec<u8>>,
    pub(crate) features: BTreeSet<Feature>,
    pub(crate) ids: Vec<String>,
    /// The entry that the next one follows.
    tip: Option<String>,
    /// The IDs on the way to the tip.
    path: Vec<String>,
    /// Entries that no compaction keeps.
    progress: BTreeSet<String>,
    millis: u64,
    entrypoint: &'static str,
    agent: Option<String>,
}

const TEXTS: &[&str] = &[
    "Fix the build",
    "  Explain\nthe parser  ",
    "Write tests for é and 日本",
    "List the files",
    "Why does it fail?",
];

impl<'a> Conversation<'a> {
    pub(crate) fn new(random: &'a mut Random, session: &str, cwd: &str) -> Self {
        let entrypoint = *random.pick(&["cli", "sdk-cli", "sdk-ts", "sdk-rust", "claude-vscode"]);
        let millis = u64::try_from(random.below(86_400_000)).unwrap();
        Self {
            random,
            session: session.to_owned(),
            cwd: cwd.to_owned(),
            lines: Vec::new(),
            features: (entrypoint == "sdk-rust").then_some(Feature::RustSdk).into_iter().collect(),
            ids: Vec::new(),
            tip: None,
            path: Vec::new(),
            progress: BTreeSet::new(),
            millis,
            entrypoint,
            agent: None,
        }
    }

    /// Makes it the transcript of a subagent.
    pub(crate) fn for_agent(mut self, agent: &str) -> Self {
        self.agent = Some(agent.to_owned());
        self
    }

    pub(crate) fn finish(self) -> Generated {
        let mut bytes = self.lines.join(&b'\n');
        if !self.features.contains(&Feature::NoLineBreak) && !bytes.is_empty() {
            bytes.push(b'\n');
        }
        Generated { bytes, features: self.features, ids: self.ids }
    }

    pub(crate) fn has(&mut self, feature: Feature) {
        self.features.insert(feature);
    }

    pub(crate) fn push(&mut self, line: &str) {
        self.lines.push(line.as_bytes().to_vec());
    }

    pub(crate) fn timestamp(&mut self) -> String {
        self.millis += u64::try_from(self.random.below(90_000)).unwrap();
        let (seconds, millis) = (self.millis / 1000, self.millis % 1000);
        let (day, hour) = (1 + seconds / 86_400 % 28, seconds / 3600 % 24);
        let (minute, second) = (seconds / 60 % 60, seconds % 60);
        format!("2026-03-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }

    /// Appends an entry behind the tip, which it becomes, and returns its ID.
    pub(crate) fn entry(&mut self, kind: &str, members: &[(&str, Value)]) -> String {
        let uuid = self.random.uuid();
        let tip = self.tip.clone();
        self.entry_at(tip.as_deref(), &uuid, kind, members);
        self.tip = Some(uuid.clone());
        self.path.push(uuid.clone());
        if members.iter().any(|(name, _)| *name == "isMeta") {
            self.has(Feature::MetaEnd);
        } else if matches!(kind, "user" | "assistant") {
            self.features.remove(&Feature::MetaEnd);
        }
        uuid
    }

    /// Appends an entry anywhere; the tip stays.
    pub(crate) fn entry_at(
        &mut self,
        parent: Option<&str>,
        uuid: &str,
        kind: &str,
        members: &[(&str, Value)],
    ) {
        let timestamp = self.timestamp();
        let given = |name: &str| members.iter().any(|(member, _)| *member == name);
        let mut all = vec![("parentUuid", json!(parent))];
        if !given("isSidechain") {
            all.push(("isSidechain", json!(self.agent.is_some())));
        }
        if let Some(agent) = &self.agent {
            all.push(("agentId", json!(agent)));
        }
        all.extend(members.iter().cloned());
        all.push(("type", json!(kind)));
        all.push(("uuid", json!(uuid)));
        if !given("timestamp") {
            all.push(("timestamp", json!(timestamp)));
        }
        all.push(("userType", json!("external")));
        all.push(("entrypoint", json!(self.entrypoint)));
        all.push(("cwd", json!(self.cwd)));
        all.push(("sessionId", json!(self.session)));
        all.push(("version", json!("2.1.325")));
        let branch = *self.random.pick(&["main", "main", "fix/issue"]);
        all.push(("gitBranch", json!(branch)));
        self.push(&object(&all));
        self.ids.push(uuid.to_owned());
    }

    /// Moves the tip to an earlier entry, as a rewind does.
    pub(crate) fn branch(&mut self) {
        self.has(Feature::Branch);
        if !self.path.is_empty() {
            let at = self.random.below(self.path.len());
            self.path.truncate(at + 1);
            self.tip = self.path.last().cloned();
        }
    }

    pub(crate) fn text(&mut self) -> String {
        let text = (*self.random.pick(TEXTS)).to_owned();
        match self.random.below(12) {
            0 => text.repeat(20),
            _ => text,
        }
    }

    pub(crate) fn prompt(&mut self, profile: Profile) -> String {
        let text = self.text();
        let content = match self.random.below(if profile == Profile::Plain { 6 } else { 12 }) {
            0 => json!([{"type": "text", "text": text}]),
            1 => json!([{"type": "text", "text": "  "}, {"type": "text", "text": text}]),
            2..=5 => json!(text),
            _ => self.unusual_prompt(&text),
        };
        let mut members = vec![("message", json!({"role": "user", "content": content}))];
        if self.random.chance(30) {
            members.insert(0, ("promptId", json!(self.random.uuid())));
            members.push(("turnAttributionKey", json!("k")));
            self.has(Feature::ForkFields);
        }
        self.entry("user", &members)
    }

    fn unusual_prompt(&mut self, text: &str) -> Value {
        let feature = match self.random.below(8) {
            0 => Feature::WideText,
            1 => Feature::Separators,
            2 => Feature::NestedKey,
            _ => Feature::UnusualPrompt,
        };
        self.has(feature);
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
        match feature {
            Feature::WideText => json!("\u{1f600}".repeat(60 + self.random.below(90)) + text),
            Feature::Separators => json!(format!("{text}\u{2028}and\u{85}more")),
            Feature::NestedKey => {
                json!([{"type": "text", "text": text, "customTitle": "nested", "lastPrompt": "nested"}])
            }
            _ => match self.random.below(7) {
                0 => json!("<command-name>/review</command-name> <command-args>x</command-args>"),
                1 => json!(format!("<bash-input>{text}</bash-input>")),
                2 => json!("<system-reminder>remember</system-reminder>"),
                3 => json!("[Request interrupted by user]"),
                4 => json!([image]),
                5 => json!([image, {"type": "text", "text": text}]),
                _ => json!(format!(
                    "<pasted_content id=\"1\">pasted</pasted_content id=\"1\"> {text}"
                )),
            },
        }
    }

    /// Appends a response, one line per block, and the results of its calls.
    pub(crate) fn response(&mut self, profile: Profile) {
        let id = format!("msg_{}", &self.random.uuid()[..8]);
        let block = |this: &mut Self, block: Value, stop: Value| {
            let message = json!({"id": id, "role": "assistant", "model": "m", "content": [block], "stop_reason": stop, "usage": {"input_tokens": 3}});
            let mut members = vec![("message", message), ("requestId", json!("req_1"))];
            // Of a session that is a fork itself.
            match id.as_bytes()[4] {
                b'0'..=b'3' => members.push(("requestSessionId", json!("an-earlier-session"))),
                b'4'..=b'7' => members.push(("forkedFrom", json!({"sessionId": "an-origin"}))),
                _ => {}
            }
            this.entry("assistant", &members)
        };
        if self.random.chance(30) {
            block(
                self,
                json!({"type": "thinking", "thinking": "Hm.", "signature": "s"}),
                Value::Null,
            );
        }
        let text = self.text();
        block(self, json!({"type": "text", "text": text}), Value::Null);
        let mut calls = Vec::new();
        for _ in 0..[0, 0, 1, 2, 3][self.random.below(5)] {
            let tool = format!("toolu_{}", &self.random.uuid()[..8]);
            let input = json!({"command": "ls", "description": "list"});
            let call = json!({"type": "tool_use", "id": tool, "name": "Bash", "input": input});
            calls.push((block(self, call, json!("tool_use")), tool));
        }
        self.results(calls, profile);
    }

    /// Appends the results of parallel calls: each behind its own call, and the conversation
    /// continues behind the last one.
    fn results(&mut self, mut calls: Vec<(String, String)>, profile: Profile) {
        if self.random.chance(30) {
            self.random.shuffle(&mut calls);
        }
        if profile != Profile::Plain && self.random.chance(10) {
            calls.pop();
        }
        for (call, tool) in calls {
            let result = json!({"type": "tool_result", "tool_use_id": tool, "content": "a\nb"});
            let mut members = vec![
                ("message", json!({"role": "user", "content": [result]})),
                ("toolUseResult", json!({"stdout": "a\nb"})),
            ];
            if self.random.chance(50) {
                members.push(("sourceToolAssistantUUID", json!(call)));
            }
            let parent = match self.random.below(10) {
                0 if profile != Profile::Plain => self.tip.clone(),
                _ => Some(call),
            };
            let uuid = self.random.uuid();
            self.entry_at(parent.as_deref(), &uuid, "user", &members);
            self.tip = Some(uuid.clone());
            self.path.push(uuid);
        }
    }

    /// Appends an entry that is a link of the conversation but mostly not shown.
    pub(crate) fn hidden(&mut self, profile: Profile) {
        let text = |text: &str| ("message", json!({"role": "user", "content": text}));
        match self.random.below(if profile == Profile::Plain { 4 } else { 7 }) {
            0 => {
                let attachment = json!({"type": "date", "date": "today"});
                self.entry("attachment", &[("attachment", attachment)]);
            }
            1 => {
                self.has(Feature::SubagentLinks);
                let subtype = ("subtype", json!("informational"));
                self.entry("system", &[subtype, ("content", json!("note"))]);
            }
            2 => {
                self.entry("user", &[text("injected"), ("isMeta", json!(true))]);
            }
            3 => {
                self.progress();
            }
            4 => {
                self.has(Feature::Team);
                let team = ("teamName", json!("red"));
                self.entry("user", &[text("team"), team, ("agentName", json!("a"))]);
            }
            5 => {
                self.has(Feature::ShownMeta);
                let kind = *self.random.pick(&["channel", "peer", "task"]);
                let origin = ("origin", json!({"kind": kind}));
                self.entry("user", &[text("from outside"), ("isMeta", json!(true)), origin]);
            }
            _ => self.local_command(),
        }
    }

    /// Appends an entry of progress, as older versions of the CLI did.
    pub(crate) fn progress(&mut self) {
        self.has(Feature::SubagentLinks);
        self.has(Feature::Progress);
        let uuid = self.entry("progress", &[("data", json!({"step": 1}))]);
        self.progress.insert(uuid);
    }

    /// Appends the record of a command that the CLI ran itself, such as `/cost`.
    fn local_command(&mut self) {
        self.has(Feature::UnusualPrompt);
        let user = |text: &str| ("message", json!({"role": "user", "content": text}));
        let caveat = "<local-command-caveat>Caveat: not for the model</local-command-caveat>";
        self.entry("user", &[user(caveat), ("isMeta", json!(true))]);
        self.entry(
            "user",
            &[user("<command-name>/cost</command-name>\n<command-message>cost</command-message>")],
        );
        self.entry("user", &[user("<local-command-stdout>1 USD</local-command-stdout>")]);
    }

    /// Appends an entry beside the conversation: of a subagent, or with a parent that is missing.
    pub(crate) fn aside(&mut self) {
        self.has(Feature::Aside);
        let (uuid, parent) = (self.random.uuid(), self.tip.clone());
        let message = ("message", json!({"role": "user", "content": "aside"}));
        self.entry_at(parent.as_deref(), &uuid, "user", &[message, ("isSidechain", json!(true))]);
    }

    /// Appends a prompt that joined the running turn.
    pub(crate) fn queued(&mut self) {
        self.has(Feature::Queued);
        let (source, delivery) = (self.random.uuid(), self.random.uuid());
        self.ids.push(source.clone());
        let session = self.session.clone();
        // The CLI writes no such entries into the transcripts of subagents.
        if self.agent.is_none() && self.random.chance(60) {
            let state = [
                ("type", json!("queue-operation")),
                ("operation", json!("remove")),
                ("timestamp", json!(self.timestamp())),
                ("sessionId", json!(session)),
                ("reason", json!("absorbed_mid_turn")),
                ("commandUuid", json!(source)),
                ("deliveryId", json!(delivery)),
            ];
            self.push(&object(&state));
        }
        let text = self.text();
        let attachment = json!({"type": "queued_command", "prompt": text, "source_uuid": source, "delivery_id": delivery, "commandMode": "prompt"});
        self.entry("attachment", &[("attachment", attachment)]);
    }

    /// Appends a compaction: the boundary, the summary, and which messages were kept.
    pub(crate) fn compaction(&mut self, profile: Profile) {
        self.has(Feature::SubagentLinks);
        self.has(Feature::Compaction);
        let (boundary, summary) = (self.random.uuid(), self.random.uuid());
        let last = self.path.last().cloned();
        // Older versions of the CLI kept entries of progress too.
        let with_progress = profile != Profile::Plain && self.random.chance(50);
        let is_kept = |uuid: &&String| with_progress || !self.progress.contains(*uuid);
        let messages: Vec<String> = self.path.iter().filter(is_kept).cloned().collect();
        let most = if with_progress { 8 } else { 3 };
        let kept = messages.len().min(1 + self.random.below(most));
        let kept: Vec<String> = messages[messages.len() - kept..].to_vec();
        let mut metadata = json!({"trigger": "manual", "preTokens": 9000});
        let mode =
            if profile == Profile::Plain || kept.is_empty() { 0 } else { self.random.below(4) };
        if mode > 0 {
            self.has(Feature::Preserved);
        }
        if mode == 1 || mode == 3 {
            metadata["preservedMessages"] =
                json!({"anchorUuid": summary, "uuids": kept, "allUuids": kept});
        }
        if mode == 2 || mode == 3 {
            metadata["preservedSegment"] =
                json!({"headUuid": kept.first(), "anchorUuid": summary, "tailUuid": kept.last()});
        }
        let members = [
            ("logicalParentUuid", json!(last)),
            ("subtype", json!("compact_boundary")),
            ("content", json!("Conversation compacted")),
            ("level", json!("info")),
            ("compactMetadata", metadata),
        ];
        self.entry_at(None, &boundary, "system", &members);
        let members = [
            ("message", json!({"role": "user", "content": "This session is being continued."})),
            ("isVisibleInTranscriptOnly", json!(true)),
            ("isCompactSummary", json!(true)),
        ];
        self.entry_at(Some(&boundary), &summary, "user", &members);
        self.tip = Some(summary.clone());
        self.path = vec![boundary, summary];
    }
}

/// Returns a JSON object with its members in this order.
pub(crate) fn object(members: &[(&str, Value)]) -> String {
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    format!("{{{}}}", members.join(","))
}
