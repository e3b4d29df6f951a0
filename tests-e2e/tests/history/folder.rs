//! Generates config directories: projects with sessions, their files beside them, and subagents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use claude_wire::transcript::project_folder_name;
use serde_json::{Value, json};
use tests_e2e::transcripts;

use crate::conversation::{Conversation, Generated, object};
use crate::feature::{Feature, Profile};
use crate::random::Random;

/// A generated config directory. Every subject has its own copy of it.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) projects: Vec<PathBuf>,
    pub(crate) sessions: Vec<Session>,
    /// What the folder as a whole has.
    pub(crate) features: BTreeSet<Feature>,
}

/// A session of a generated config directory.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) project: PathBuf,
    pub(crate) transcript: Generated,
    pub(crate) agents: Vec<String>,
    /// Other projects with a transcript of this ID.
    pub(crate) copies: Vec<PathBuf>,
}

/// Returns what a recorded transcript has that an official SDK may treat differently.
fn recorded_features(
    text: &str,
    id: &str,
    files: &BTreeMap<PathBuf, Vec<u8>>,
) -> BTreeSet<Feature> {
    let parts = [
        (r#""entrypoint":"sdk-rust""#, Feature::RustSdk),
        (r#""type":"atis-latch""#, Feature::ForkState),
        (r#""turnAttributionKey":"#, Feature::ForkFields),
        (r#""subtype":"compact_boundary""#, Feature::Compaction),
        (r#""preservedMessages":"#, Feature::Preserved),
        (r#""type":"queued_command""#, Feature::Queued),
        ("<command-name>", Feature::UnusualPrompt),
    ];
    let found = parts.iter().filter(|(part, _)| text.contains(part)).map(|(_, feature)| *feature);
    let mut features: BTreeSet<Feature> = found.collect();
    if files.contains_key(&Path::new(id).join("custom-title.json")) {
        features.insert(Feature::Sidecar);
    }
    features
}

impl Session {
    fn recorded(id: String, bytes: &[u8], files: &BTreeMap<PathBuf, Vec<u8>>) -> Self {
        let entries = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let ids = entries.filter_map(|line| {
            let entry: Value = serde_json::from_slice(line).unwrap();
            entry["uuid"].as_str().map(str::to_owned)
        });
        let agents = files.keys().filter_map(|path| {
            let name = path.strip_prefix(&id).ok()?.file_name()?.to_str()?;
            Some(name.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned())
        });
        let ids = ids.collect();
        Self {
            agents: agents.collect(),
            copies: Vec::new(),
            transcript: Generated {
                bytes: bytes.to_owned(),
                features: recorded_features(&String::from_utf8_lossy(bytes), &id, files),
                ids,
            },
            project: transcripts::PROJECT.into(),
            id,
        }
    }
}

impl Folder {
    /// Generates a folder from a seed, and writes it to each of these config directories. Working
    /// directories are created below `work`.
    pub(crate) fn generate(seed: u64, profile: Profile, work: &Path, configs: &[PathBuf]) -> Self {
        let mut random = Random::new(seed);
        let mut writer = Writer { configs, minute: 0 };
        let mut folder = Self {
            name: format!("{profile:?} {seed}"),
            profile,
            projects: Vec::new(),
            sessions: Vec::new(),
            features: BTreeSet::new(),
        };
        for at in 0..=random.below(2) {
            let name = ["plain", "with space", "d.o_t", "emoji\u{1f600}"][random.below(4)];
            let name = if profile == Profile::Plain { "plain" } else { name };
            let project = work.join(format!("{seed}")).join(format!("{name}{at}"));
            fs::create_dir_all(&project).unwrap();
            if name.contains('\u{1f600}') {
                folder.features.insert(Feature::WidePath);
            }
            folder.projects.push(project.clone());
            for _ in 0..=random.below(2) {
                let session = folder.session(&mut random, &project, &mut writer);
                folder.sessions.push(session);
            }
        }
        folder.add_extras(seed, work, &mut writer);
        folder
    }

    /// Returns the folder of a scenario whose transcripts are recorded, and writes it to each of
    /// these config directories.
    pub(crate) fn recorded(scenario: &str, configs: &[PathBuf]) -> Self {
        let files = transcripts::files(&transcripts::directory().join(scenario)).unwrap();
        let place = Path::new("projects").join(project_folder_name(transcripts::PROJECT));
        let mut folder = Self {
            name: scenario.to_owned(),
            profile: Profile::Plain,
            projects: vec![transcripts::PROJECT.into()],
            sessions: Vec::new(),
            features: BTreeSet::new(),
        };
        let mut writer = Writer { configs, minute: 0 };
        for (path, bytes) in &files {
            writer.minute += 1;
            writer.write(&place.join(path), bytes);
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.parent() == Some(Path::new("")) {
                folder.sessions.push(Session::recorded(stem, bytes, &files));
            }
        }
        folder
    }

    /// Writes a session and the files beside it.
    pub(crate) fn session(
        &mut self,
        random: &mut Random,
        project: &Path,
        writer: &mut Writer<'_>,
    ) -> Session {
        let id = random.uuid();
        let cwd = project.to_str().unwrap();
        let place = Path::new("projects").join(project_folder_name(cwd));
        let is_sidechain = self.profile != Profile::Plain && random.chance(5);
        let mut conversation = Conversation::new(random, &id, cwd);
        if is_sidechain {
            conversation = conversation.for_agent("a0");
        }
        let mut transcript = conversation.generate(self.profile);
        self.continue_in_earlier(random, &id, project, &mut transcript);
        // Only the transcripts of subagents matter for it.
        transcript.features.remove(&Feature::SubagentLinks);
        let is_full = self.profile != Profile::Plain;
        if is_full && random.chance(15) {
            transcript.features.insert(Feature::Sidecar);
            let title = json!({"customTitle": "Beside\u{7} the transcript"}).to_string();
            writer.write(&place.join(&id).join("custom-title.json"), title.as_bytes());
        }
        if is_full && random.chance(15) {
            let at = *random.pick(&["2026-03-01T00:00:00.000Z", "2026-09-01T00:00:00.000Z"]);
            let archived = json!({"archived": random.chance(80), "at": at, "by": "sdk"});
            writer.write(&place.join(&id).join("archived.json"), archived.to_string().as_bytes());
        }
        let mut agents = Vec::new();
        for _ in 0..[0, 0, 1, 2][random.below(4)] {
            let (agent, features) = self.agent(random, &place.join(&id), &id, cwd, writer);
            agents.push(agent);
            transcript.features.extend(features);
        }
        // Last, so that the time is that of the transcript.
        if is_full && random.chance(10) {
            self.features.insert(Feature::SameTime);
        } else {
            writer.minute += 1 + random.below(5) as u64;
        }
        writer.write(&place.join(format!("{id}.jsonl")), &transcript.bytes);
        Session { id, project: project.to_owned(), transcript, agents, copies: Vec::new() }
    }

    /// Ends some transcripts with the ID of an earlier session of the project that continues them.
    fn continue_in_earlier(
        &self,
        random: &mut Random,
        id: &str,
        project: &Path,
        transcript: &mut Generated,
    ) {
        let earlier = self.sessions.iter().rev().find(|session| session.project == project);
        let Some(earlier) = earlier.filter(|_| self.profile == Profile::Full) else { return };
        if random.chance(15) {
            transcript.features.insert(Feature::Continued);
            let entry = [
                ("type", json!("continued-in")),
                ("continuedInSessionId", json!(earlier.id)),
                ("sessionId", json!(id)),
            ];
            transcript.bytes.extend(format!("{}\n", object(&entry)).into_bytes());
        }
    }

    fn agent(
        &self,
        random: &mut Random,
        session_dir: &Path,
        id: &str,
        cwd: &str,
        writer: &mut Writer<'_>,
    ) -> (String, BTreeSet<Feature>) {
        let agent = format!("a{}", &random.uuid()[..8]);
        let mut place = session_dir.join("subagents");
        if random.chance(20) {
            place = place.join("workflows/run-1");
        }
        let profile = if self.profile == Profile::Damaged { Profile::Full } else { self.profile };
        let transcript = Conversation::new(random, id, cwd).for_agent(&agent).generate(profile);
        writer.write(&place.join(format!("agent-{agent}.jsonl")), &transcript.bytes);
        let mut features = transcript.features;
        let matters = [Feature::SubagentLinks, Feature::Queued, Feature::Preserved];
        features.retain(|feature| matters.contains(feature));
        if random.chance(70) {
            let mut tool = "toolu_01";
            if random.chance(10) {
                features.insert(Feature::SubagentParents);
                tool = "tool/../01";
            }
            let meta =
                json!({"agentType": "general-purpose", "toolUseId": tool, "parentAgentId": "a0"});
            writer.write(
                &place.join(format!("agent-{agent}.meta.json")),
                meta.to_string().as_bytes(),
            );
        }
        (agent, features)
    }

    /// Returns the features of a session, or of the whole folder if it is not one of its own.
    pub(crate) fn features_of(&self, session: &str) -> BTreeSet<Feature> {
        let of = |session: &Session| session.transcript.features.clone();
        let found = self.sessions.iter().find(|other| other.id == session);
        let mut features = match found {
            Some(found) => of(found),
            None => self.sessions.iter().flat_map(of).collect(),
        };
        features.extend(&self.features);
        features
    }
}

/// Writes every file into all copies of the folder.
pub(crate) struct Writer<'a> {
    configs: &'a [PathBuf],
    pub(crate) minute: u64,
}

impl Writer<'_> {
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) {
        let modified =
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000 + self.minute * 60);
        for config in self.configs {
            let path = config.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        }
    }
}
