//! What is asked of every SDK.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::feature::{Feature, Profile};
use crate::folder::{Folder, Session};
use crate::random::Random;

/// A call of one function.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Job {
    pub(crate) call: &'static str,
    pub(crate) config: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<PathBuf>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worktrees: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) programmatic: Option<bool>,
    /// A title or a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up_to: Option<String>,
    /// Forks what the job so many before this one created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) again: Option<usize>,
}

impl Job {
    fn new(call: &'static str) -> Self {
        Self { call, ..Self::default() }
    }

    fn of(call: &'static str, session: &str) -> Self {
        Self { call, session: session.to_owned(), ..Self::default() }
    }

    fn page(mut self, limit: usize, offset: usize) -> Self {
        (self.limit, self.offset) = (Some(limit), Some(offset));
        self
    }

    fn within(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Whether the Python SDK has what the job asks for.
    pub(crate) fn is_for_python(&self) -> bool {
        let is_archive = matches!(self.call, "archive" | "unarchive");
        self.system.is_none() && self.programmatic.is_none() && !is_archive
    }
}

const TITLES: &[&str] = &["Release notes", "  trimmed  ", "line\nbreak \u{1f600} \"quoted\"", " "];
const TAGS: &[&str] = &["v1", "  padded ", "zero\u{200b}width", "\u{fb01}ne", "\u{200b}"];

/// Returns the calls that read a folder, and then those that change it.
pub(crate) fn of(folder: &mut Folder, seed: u64) -> Vec<Job> {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut jobs =
        vec![Job::new("list"), Job::new("list").page(1 + random.below(3), random.below(3))];
    jobs.push(Job { programmatic: Some(false), ..Job::new("list") });
    for project in &folder.projects {
        jobs.push(Job::new("list").within(project));
        jobs.push(Job { worktrees: Some(false), ..Job::new("list").within(project) });
    }
    for session in folder.sessions.iter().filter(|session| session.copies.is_empty()) {
        let id = &session.id;
        jobs.push(Job::of("info", id));
        let project = random.pick(&folder.projects).clone();
        jobs.push(Job::of("info", id).within(&project));
        jobs.push(Job::of("messages", id).within(&session.project));
        jobs.push(Job { system: Some(true), ..Job::of("messages", id) });
        jobs.push(Job::of("messages", id).page(random.below(6), random.below(6)));
        jobs.push(Job::of("subagents", id));
        for agent in &session.agents {
            let job = Job { agent: Some(agent.clone()), ..Job::of("subagent_messages", id) };
            jobs.push(job.clone());
            jobs.push(job.page(1 + random.below(4), random.below(4)));
        }
    }
    for session in folder.sessions.iter_mut().filter(|session| session.copies.is_empty()) {
        let id = &session.id;
        let ids = &session.transcript.ids;
        jobs.push(Job::of("fork", id));
        // Comparing megabytes line by line takes long.
        let is_huge = session.transcript.bytes.len() > 1 << 20;
        if !is_huge {
            jobs.push(Job { again: Some(1), ..Job::of("fork", id) });
        }
        for _ in 0..if is_huge { 0 } else { 2 } {
            let up_to = Some(random.pick(ids).clone());
            jobs.push(Job { up_to, text: Some("Copy".to_owned()), ..Job::of("fork", id) });
        }
        let title = (*random.pick(TITLES)).to_owned();
        let features = &mut session.transcript.features;
        jobs.push(Job { text: Some(title.clone()), ..Job::of("rename", id) });
        let tags = if folder.profile == Profile::Plain { &TAGS[..2] } else { TAGS };
        let tag = random.chance(80).then(|| (*random.pick(tags)).to_owned());
        if [Some(&title), tag.as_ref()].iter().flatten().any(|text| !text.is_ascii()) {
            features.insert(Feature::NonAscii);
        }
        if tag.as_deref().is_some_and(|tag| tag.contains('\u{fb01}')) {
            features.insert(Feature::CompatibilityTag);
        }
        jobs.push(Job { text: tag, ..Job::of("tag", id) });
        jobs.push(Job::of("info", id));
    }
    jobs.push(Job::of("info", &random.uuid()));
    jobs.push(Job::of("messages", "not-an-id"));
    jobs.push(Job { text: Some("x".to_owned()), ..Job::of("rename", &random.uuid()) });
    archives_and_deletions(folder, &mut random, &mut jobs);
    for session in folder.sessions.iter().filter(|session| !session.copies.is_empty()) {
        copied(session, &mut random, &mut jobs);
    }
    jobs
}

/// Archives some sessions and deletes others.
fn archives_and_deletions(folder: &Folder, random: &mut Random, jobs: &mut Vec<Job>) {
    for session in folder.sessions.iter().filter(|session| session.copies.is_empty()) {
        let id = &session.id;
        let job = |call| Job::of(call, id).within(&session.project);
        match random.below(8) {
            0 => jobs.extend([Job::of("archive", id), Job::of("info", id)]),
            1 => jobs.extend([job("archive"), job("unarchive"), job("info")]),
            2 => jobs.extend([Job::of("unarchive", id), Job::of("info", id)]),
            3 => jobs.extend([job("delete"), job("info"), job("messages"), job("delete")]),
            4 => jobs.extend([Job::of("delete", id), Job::of("subagents", id)]),
            // Another project, which does not have it unless it is a worktree.
            5 => {
                let project: &PathBuf = random.pick(&folder.projects);
                jobs.push(Job::of("delete", id).within(project));
            }
            _ => {}
        }
    }
    jobs.extend(["archive", "unarchive", "delete"].map(|call| Job::of(call, &random.uuid())));
    jobs.push(Job::of("delete", "not-an-id"));
}

/// Reads and changes copies of a session. Without a directory the TypeScript SDK takes the first one
/// that the file system returns, so that nothing can be compared.
fn copied(session: &Session, random: &mut Random, jobs: &mut Vec<Job>) {
    let id = &session.id;
    let projects = [&session.project, &session.copies[0]];
    for project in projects {
        jobs.push(Job::of("info", id).within(project));
        jobs.push(Job::of("messages", id).within(project));
        jobs.push(Job::of("fork", id).within(project));
    }
    let first = projects[random.below(2)];
    jobs.push(Job { text: Some("Copied".to_owned()), ..Job::of("rename", id).within(first) });
    jobs.push(Job { text: Some("copied".to_owned()), ..Job::of("tag", id).within(first) });
    jobs.extend(projects.map(|project| Job::of("info", id).within(project)));
    jobs.push(Job::of("archive", id));
    if random.chance(50) {
        jobs.push(Job::of("unarchive", id).within(first));
    }
    if random.chance(50) {
        jobs.push(Job::of("delete", id).within(first));
    }
    jobs.extend(projects.map(|project| Job::of("info", id).within(project)));
}
