//! The copy of a session under new ids.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::error::TranscriptError;
use super::fork_plan::ForkPlan;
use super::index::Boundary;
use super::key::Key;
use super::row::{self, EntryRef};
use super::tree::Tree;
use crate::error::without_values;
use crate::json::{Extra, Json};
use crate::message::Malformed;
use crate::repair;
use crate::schema::{self, Encode};
use crate::sort::sort_positions;

/// Who and what a fork is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForkIds {
    /// The session that is forked.
    pub source_session: String,
    /// The session that is created.
    pub new_session: String,
    /// The current time in ISO 8601, for the last entry and the title.
    pub now: String,
}

impl ForkIds {
    /// Names the session that is forked, the one that is created, and the current time.
    pub fn new(
        source_session: impl Into<String>,
        new_session: impl Into<String>,
        now: impl Into<String>,
    ) -> Self {
        Self {
            source_session: source_session.into(),
            new_session: new_session.into(),
            now: now.into(),
        }
    }
}

/// Copies a session entry by entry.
///
/// Call [`carry`](Self::carry) with the bytes of each of [`ForkPlan::state_entries`], write
/// [`header`](Self::header), then [`entry`](Self::entry) for each of [`ForkPlan::entries`], then
/// [`trailer`](Self::trailer).
#[derive(Debug)]
pub struct Fork<'p> {
    plan: &'p ForkPlan<'p>,
    ids: ForkIds,
    /// The new id of each entry, sorted by the old one.
    new_uuids: Vec<(Key, [u8; 16])>,
    /// Of the content replacements and of the title.
    state_uuids: [[u8; 16]; 2],
    last: Option<u32>,
    /// For each progress entry the nearest one above that is copied, by row. Empty if there is none.
    above: Vec<u32>,
    state: CarriedState,
    /// The sessions that the entries were forked from, each with its first entry.
    origins: BTreeMap<String, usize>,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// What the state entries of the source say.
#[derive(Debug, Default)]
struct CarriedState {
    is_suppressed: bool,
    replacements: Vec<Json>,
    atis: Option<Json>,
    tools: Option<Vec<Json>>,
    data_flow: Option<Vec<Json>>,
    is_data_flow_incomplete: bool,
    /// The first entry about data flows.
    data_flow_start: Option<usize>,
    /// The last entry with all records at once.
    data_flow_snapshot: Option<usize>,
    derived_from: Option<Vec<Json>>,
    relocated: Option<Json>,
}

/// Fields that a fork does not copy.
const DROPPED: [&str; 9] = [
    "teamName",
    "agentName",
    "sessionKind",
    "slug",
    "sourceToolAssistantUUID",
    "summarizedTurnPromptUuids",
    "droppedPromptUuids",
    "turnAttributionKey",
    "requestSessionId",
];

impl<'p> Fork<'p> {
    /// Starts a fork. `new_uuid` returns a new random UUID with each call: one for each entry that
    /// the plan has, and two more.
    pub fn new(
        plan: &'p ForkPlan<'p>,
        ids: ForkIds,
        mut new_uuid: impl FnMut() -> [u8; 16],
    ) -> Self {
        let keys = plan.rows.iter().map(|at| plan.tree.row(*at).id);
        let mut new_uuids: Vec<(Key, [u8; 16])> = keys.map(|key| (key, [0; 16])).collect();
        new_uuids.sort_unstable();
        new_uuids.dedup();
        for (_, uuid) in &mut new_uuids {
            *uuid = new_uuid();
        }
        let state_uuids = [new_uuid(), new_uuid()];
        let is_copied = |at: &&u32| !plan.tree.row(**at).is(row::PROGRESS);
        let last = plan.rows.iter().rev().find(is_copied).copied();
        let above = above_progress(&plan.tree);
        let state = CarriedState::default();
        Self { plan, ids, new_uuids, state_uuids, last, above, state, origins: BTreeMap::new() }
    }

    /// Takes over the content of a state entry. Entries of other sessions are ignored.
    pub fn carry(&mut self, entry: EntryRef, bytes: &[u8]) {
        let Ok(fields) = fields(bytes) else { return };
        let text = |name: &str| fields.get(name).and_then(Json::as_str);
        let list = |name: &str| fields.get(name)?.decode::<Vec<Json>>().ok();
        let kind = text("type").unwrap_or_default();
        let state = &mut self.state;
        if kind == "history-suppression" {
            state.is_suppressed = true;
        }
        if text("sessionId").as_deref() != Some(&self.ids.source_session) {
            return;
        }
        match &*kind {
            "content-replacement" => {
                let replacements = list("replacements").unwrap_or_default();
                state.replacements.extend(replacements.into_iter().filter(Json::is_object));
            }
            "atis-latch" => state.atis = fields.get("atis").cloned().filter(Json::is_string),
            "tools-used" => {
                let is_name = |tool: &Json| tool.as_str().is_some_and(|name| !name.is_empty());
                let tools = list("tools").map(|tools| tools.into_iter().filter(is_name).collect());
                state.tools = tools.or_else(|| state.tools.take());
            }
            "data-flow-records" if fields.get("agentId").is_none() => {
                state.data_flow_start.get_or_insert(entry.index());
                let is_snapshot = fields.get("snapshot").and_then(Json::as_bool) == Some(true);
                let records = state.data_flow.get_or_insert_default();
                match list("records") {
                    Some(new) if is_snapshot => *records = new,
                    Some(new) => records.extend(new),
                    None => state.is_data_flow_incomplete = true,
                }
                if is_snapshot {
                    state.data_flow_snapshot = Some(entry.index());
                }
            }
            "data-flow-incomplete" if fields.get("agentId").is_none() => {
                state.data_flow_start.get_or_insert(entry.index());
                state.data_flow.get_or_insert_default();
                state.is_data_flow_incomplete = true;
            }
            "derived-from" => state.derived_from = list("sessions").or(state.derived_from.take()),
            "relocated" => {
                let is_path = |cwd: &Json| cwd.as_str().is_some_and(|cwd| !cwd.is_empty());
                let cwd = fields.get("relocatedCwd").cloned().filter(is_path);
                state.relocated = cwd.or_else(|| state.relocated.take());
            }
            _ => {}
        }
    }

    /// Returns the lines in front of the entries; often none.
    pub fn header(&self) -> Vec<u8> {
        if !self.state.is_suppressed {
            return Vec::new();
        }
        let fields = [
            ("type", json!("history-suppression")),
            ("sessionId", json!(self.ids.new_session)),
            ("cause", json!("fork_inherit")),
            ("ts", json!(self.ids.now)),
        ];
        line(&fields.into_iter().map(|(name, value)| (name, Json::from(value))).collect::<Vec<_>>())
    }

    /// Returns the copy of an entry with its line break: new ids everywhere, and `forkedFrom`.
    ///
    /// # Errors
    /// Returns [`Malformed`] when `bytes` are not the entry's.
    pub fn entry(&mut self, entry: EntryRef, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let source = fields(bytes)?;
        self.note_fields(entry, &source);
        let mut copy = Extra::default();
        // Of several types the first one counts, of all else the last one.
        for (name, value) in once(&source, "type") {
            if !DROPPED.contains(&name) {
                copy.push(name.to_owned(), value.clone());
            }
        }
        let old = source.get("uuid").cloned().unwrap_or_default();
        copy.set("uuid", &*self.new_uuid(entry.row.id).unwrap_or_default());
        copy.set("parentUuid", self.parent(entry).map_or(Json::null(), |id| Json::from(&*id)));
        if let Some(logical) = source.get("logicalParentUuid").filter(|value| !value.is_null()) {
            copy.set("logicalParentUuid", self.mapped(logical).unwrap_or_default());
        }
        copy.set("sessionId", &*self.ids.new_session);
        copy.set("isSidechain", json!(false));
        if self.last == Some(entry.index) {
            copy.set("timestamp", &*self.ids.now);
        }
        self.map_contents(entry, &source, &mut copy);
        if let Some(session) = request_session(&source) {
            copy.set("requestSessionId", session);
        }
        let mut from = Extra::default();
        from.set("sessionId", &*self.ids.source_session);
        from.set("messageUuid", old);
        copy.set("forkedFrom", &from);
        let mut text = Json::from(&copy).text().as_bytes().to_vec();
        text.push(b'\n');
        Ok(text)
    }

    /// Returns whether [`note`](Self::note) has to see the entries that are not copied.
    pub fn needs_all_entries(&self) -> bool {
        self.state.data_flow.is_some() || self.state.derived_from.is_some()
    }

    /// Takes over what an entry that is not copied says about the session.
    pub fn note(&mut self, entry: EntryRef, bytes: &[u8]) {
        if let Ok(source) = fields(bytes) {
            self.note_fields(entry, &source);
        }
    }

    fn note_fields(&mut self, entry: EntryRef, source: &Extra) {
        // An entry that was written while data flows were not recorded may have added some.
        let is_after = self.state.data_flow_start.is_some_and(|start| start < entry.index());
        let is_recorded = source.get("dataFlowOn").and_then(Json::as_bool) == Some(true);
        self.state.is_data_flow_incomplete |= is_after && !is_recorded && !entry.is_sidechain();
        let from = object(source.get("forkedFrom")).unwrap_or_default();
        let origin = from.get("sessionId").and_then(Json::as_str).filter(|id| !id.is_empty());
        if let Some(origin) = origin {
            let first = self.origins.entry(origin.into_owned()).or_insert(entry.index());
            *first = entry.index().min(*first);
        }
    }

    /// Returns the lines behind the entries, after all of them were copied: the state that is carried over, and the
    /// title.
    ///
    /// # Errors
    /// Returns [`TranscriptError::EmptyTitle`] when the title is blank. Without a title of its
    /// own, a fork has that of [`Ends::fork_title`](super::Ends::fork_title).
    pub fn trailer(&self, title: &str) -> Result<Vec<u8>, TranscriptError> {
        let title = title.trim();
        if title.is_empty() {
            return Err(TranscriptError::EmptyTitle);
        }
        let state = &self.state;
        let mut lines = Vec::new();
        let mut write = |kind: &str, fields: Vec<(&str, Json)>| {
            let mut all =
                vec![("type", Json::from(kind)), ("sessionId", Json::from(&*self.ids.new_session))];
            all.extend(fields);
            lines.extend(line(&all));
        };
        let stamp = |uuid: [u8; 16]| {
            [("uuid", Json::from(&*format_uuid(uuid))), ("timestamp", Json::from(&*self.ids.now))]
        };
        if !state.replacements.is_empty() {
            let mut fields = vec![("replacements", list(&state.replacements))];
            fields.extend(stamp(self.state_uuids[0]));
            write("content-replacement", fields);
        }
        if let Some(atis) = &state.atis {
            write("atis-latch", vec![("atis", atis.clone())]);
        }
        if let Some(tools) = &state.tools {
            write("tools-used", vec![("tools", list(tools))]);
        }
        if let Some(records) = &state.data_flow {
            let version = ("v", Json::from(json!(1)));
            let snapshot = ("snapshot", Json::from(json!(true)));
            if state.is_data_flow_incomplete || self.has_compaction_without_snapshot() {
                write("data-flow-incomplete", vec![version.clone()]);
            }
            write("data-flow-records", vec![version, ("records", list(records)), snapshot]);
        }
        if state.data_flow.is_some() || state.derived_from.is_some() {
            let sessions = self.derived_from();
            write("derived-from", vec![("v", Json::from(json!(1))), ("sessions", sessions)]);
        }
        if let Some(cwd) = &state.relocated {
            write("relocated", vec![("relocatedCwd", cwd.clone())]);
        }
        let mut fields = vec![("customTitle", Json::from(title))];
        fields.extend(stamp(self.state_uuids[1]));
        write("custom-title", fields);
        Ok(lines)
    }

    /// Whether a compaction may have removed data flows since all of them were recorded.
    fn has_compaction_without_snapshot(&self) -> bool {
        let is_compaction = |entry: &EntryRef| entry.is_compact_boundary() && !entry.is_sidechain();
        let last = self.plan.tree.index.entries().rfind(is_compaction);
        last.is_some_and(|last| Some(last.index()) > self.state.data_flow_snapshot)
    }

    /// The sessions that the source and its entries come from, and the source.
    fn derived_from(&self) -> Json {
        let mut sessions = self.state.derived_from.clone().unwrap_or_default();
        let id = |session: &Json| Some(session.get("id")?.as_str()?.into_owned());
        let mut known: BTreeSet<String> = sessions.iter().filter_map(id).collect();
        let mut origins: Vec<(&String, &usize)> = self.origins.iter().collect();
        origins.sort_by_key(|(_, first)| **first);
        let origins = origins.into_iter().map(|(id, _)| id);
        for id in origins.chain([&self.ids.source_session]) {
            if known.insert(id.clone()) {
                let session = json!({"type": "claude_code_session", "id": id, "via": "fork"});
                sessions.push(Json::from(session));
            }
        }
        list(&sessions)
    }

    /// The new id of the nearest entry above that is copied.
    fn parent(&self, entry: EntryRef) -> Option<String> {
        let tree = &self.plan.tree;
        let mut parent = tree.find(tree.index.parent_key(&entry.row)?)?;
        if tree.row(parent).is(row::PROGRESS) {
            parent = self.above.get(parent as usize).copied().filter(|above| *above != NONE)?;
        }
        self.new_uuid(tree.row(parent).id)
    }

    fn new_uuid(&self, key: Key) -> Option<String> {
        let found = self.new_uuids.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(format_uuid(self.new_uuids[found].1))
    }

    /// The new id for a value that is an old one.
    fn mapped(&self, value: &Json) -> Option<Json> {
        self.new_uuid(Key::of(&value.as_str()?)).map(|id| Json::from(&*id))
    }

    /// Maps the ids inside of an entry.
    fn map_contents(&self, entry: EntryRef, source: &Extra, copy: &mut Extra) {
        let text = |name: &str| source.get(name).and_then(Json::as_str);
        if text("type").as_deref() == Some("system") {
            if text("subtype").as_deref() == Some("model_refusal_fallback") {
                copy.set("neutralizedByFork", json!(true));
            }
            if let Some(metadata) = object(source.get("compactMetadata")) {
                copy.set("compactMetadata", &self.compact_metadata(entry, &metadata));
            }
        }
        if let Some(mut fold) = object(source.get("fold"))
            && let Some(mut command) = object(fold.get("command"))
            && let Some(id) = command.get("source_uuid").and_then(|id| self.mapped(id))
        {
            command.set("source_uuid", id);
            fold.set("command", &command);
            copy.set("fold", &fold);
        }
        let Some(mut attachment) = object(source.get("attachment")) else { return };
        if let Some(id) = attachment.get("source_uuid").and_then(|id| self.mapped(id)) {
            attachment.set("source_uuid", id);
        }
        let announcements = attachment.get("nameOnlyAnnouncements");
        if let Some(ids) = announcements.and_then(|ids| ids.decode::<Vec<Json>>().ok()) {
            let ids: Vec<Json> = ids.iter().filter_map(|id| self.mapped(id)).collect();
            attachment.set("nameOnlyAnnouncements", list(&ids));
        }
        copy.set("attachment", &attachment);
    }

    fn compact_metadata(&self, entry: EntryRef, metadata: &Extra) -> Extra {
        // A fork that ends at the summary has none of the entries that were preserved behind it.
        let boundary = self.plan.tree.boundary(entry.index);
        let anchor = boundary.and_then(Boundary::anchor);
        let is_cut = anchor.is_some() && anchor == self.plan.up_to;
        let mut copy = Extra::default();
        for (name, value) in once(metadata, "") {
            let is_preserved = ["preservedMessages", "preservedSegment"].contains(&name);
            if name == "runningTurnSends" || is_cut && (is_preserved || name == "postTokens") {
                continue;
            }
            let copied = match object(Some(value)).filter(|_| is_preserved) {
                Some(preserved) => Json::from(&self.preserved(&preserved)),
                None => value.clone(),
            };
            copy.push(name.to_owned(), copied);
        }
        copy
    }

    fn preserved(&self, preserved: &Extra) -> Extra {
        const IDS: [&str; 5] = ["anchorUuid", "headUuid", "tailUuid", "uuids", "allUuids"];
        let map = |value: &Json| self.mapped(value).unwrap_or_else(|| value.clone());
        let mut copy = Extra::default();
        for (name, value) in once(preserved, "") {
            let mapped = match value.decode::<Vec<Json>>() {
                _ if !IDS.contains(&name) => value.clone(),
                Ok(ids) => list(&ids.iter().map(map).collect::<Vec<_>>()),
                Err(_) => map(value),
            };
            copy.push(name.to_owned(), mapped);
        }
        copy
    }
}

/// The session that sent the API request of an assistant entry. A fork of a fork keeps the first one.
fn request_session(source: &Extra) -> Option<Json> {
    if source.get("type").and_then(Json::as_str).as_deref() != Some("assistant") {
        return None;
    }
    let forked_from = object(source.get("forkedFrom"));
    let candidates = [
        source.get("requestSessionId"),
        forked_from.as_ref().and_then(|from| from.get("sessionId")),
        source.get("sessionId"),
    ];
    candidates.into_iter().flatten().find(|id| id.is_string()).cloned()
}

/// The nearest entry above each progress entry that is none itself, by row.
fn above_progress(tree: &Tree<'_>) -> Vec<u32> {
    const UNKNOWN: u32 = NONE - 1;
    let is_progress = |node: u32| tree.row(node).is(row::PROGRESS);
    if !tree.nodes().any(is_progress) {
        return Vec::new();
    }
    let mut above = vec![UNKNOWN; tree.index.rows.len()];
    let mut path = Vec::new();
    for node in tree.nodes().filter(|node| is_progress(*node)) {
        let mut next = Some(node);
        let found = loop {
            match next {
                None => break NONE,
                Some(node) if !is_progress(node) => break node,
                Some(node) if above[node as usize] != UNKNOWN => break above[node as usize],
                Some(node) => {
                    // Until its end is known: progress entries may be a cycle.
                    above[node as usize] = NONE;
                    path.push(node);
                    let parent = tree.index.parent_key(tree.row(node));
                    next = parent.and_then(|parent| tree.find(parent));
                }
            }
        };
        for node in path.drain(..) {
            above[node as usize] = found;
        }
    }
    above
}

/// The fields of an object, each once: at its first place with its last value, of one with its first.
fn once<'e>(fields: &'e Extra, with_first: &str) -> Vec<(&'e str, &'e Json)> {
    let fields: Vec<(&str, &Json)> = fields.iter().collect();
    let name = |at: u32| fields[at as usize].0;
    // A line has fewer bytes than that.
    let mut order: Vec<u32> = (0..u32::try_from(fields.len()).unwrap_or(u32::MAX)).collect();
    sort_positions(&mut order, &|one, other| name(one).cmp(name(other)));
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(order.len());
    for group in order.chunk_by(|one, other| name(*one) == name(*other)) {
        let (first, last) = (group[0], group[group.len() - 1]);
        places.push((first, if name(first) == with_first { first } else { last }));
    }
    places.sort_unstable();
    places.into_iter().map(|(at, value)| (name(at), fields[value as usize].1)).collect()
}

fn fields(bytes: &[u8]) -> Result<Extra, Malformed> {
    schema::from_text(&repair::valid(bytes))
        .map_err(|error| Malformed::new(bytes.to_vec().into(), without_values(&error)))
}

fn object(value: Option<&Json>) -> Option<Extra> {
    value?.decode().ok()
}

fn list(values: &Vec<Json>) -> Json {
    Json::from_view(values.view())
}

fn line(fields: &[(&str, Json)]) -> Vec<u8> {
    let mut all = Extra::default();
    for (name, value) in fields {
        all.set(*name, value.clone());
    }
    let mut text = Json::from(&all).text().as_bytes().to_vec();
    text.push(b'\n');
    text
}

fn format_uuid(bytes: [u8; 16]) -> String {
    use std::fmt::Write as _;

    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
