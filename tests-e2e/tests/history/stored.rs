//! The history in a store gives the results of the one on disk, and the real CLI resumes what is copied.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claude_agent_kit::history::{
    ForkOptions, History, ListFilter, MessageFilter, MessageStream, SessionInfo,
};
use claude_agent_kit::store::{
    List, MemoryStore, ProjectKey, SessionRow, SessionStore, StoreOptions,
};
use claude_agent_kit::{Conversation, Options, Session};
use claude_agent_store::SqliteStore;
use claude_wire::id::SessionId;
use claude_wire::transcript::project_folder_name;
use tests_e2e::harness::Harness;
use tests_e2e::transcripts;

use crate::feature::{Feature, Profile};
use crate::folder::Folder;
use crate::support::{hello, in_time, real, run};

/// How many folders are generated.
const FOLDERS: u64 = 40;

/// A message in a form that can be compared.
type Shown = (Option<String>, String, Vec<u8>);

async fn shown(messages: MessageStream) -> Vec<Shown> {
    let mut messages = messages.with_raw();
    let mut found = Vec::new();
    while let Some(message) = messages.next().await {
        let message = message.unwrap();
        let parents = format!(
            "{:?} {:?} {:?}",
            message.role, message.parent_tool_use_id, message.parent_agent_id
        );
        let uuid = message.uuid().map(Cow::into_owned);
        found.push((uuid, parents, message.entry.raw().unwrap().to_vec()));
    }
    found
}

async fn compare_session(disk: &History, stored: &History, id: &SessionId) {
    for filter in [MessageFilter::default(), MessageFilter::default().include_system(true)] {
        let expected = shown(disk.messages(id, filter).await.unwrap()).await;
        assert_eq!(shown(stored.messages(id, filter).await.unwrap()).await, expected);
        let last = stored.last_messages(id, 3, filter).await.unwrap();
        let uuids = last.iter().map(|message| message.uuid().map(Cow::into_owned));
        let expected = expected[expected.len().saturating_sub(3)..].iter();
        assert!(uuids.eq(expected.map(|(uuid, _, _)| uuid.clone())));
    }
    let (agents, found) = (disk.subagents(id).await.unwrap(), stored.subagents(id).await.unwrap());
    let without_path = |mut agent: claude_agent_kit::history::SubagentInfo| {
        agent.path = None;
        agent
    };
    assert_eq!(
        found.iter().cloned().map(without_path).collect::<Vec<_>>(),
        agents.iter().cloned().map(without_path).collect::<Vec<_>>()
    );
    for agent in agents {
        let messages = async |history: &History| {
            shown(history.subagent_messages(id, &agent.agent_id).await.unwrap()).await
        };
        assert_eq!(messages(stored).await, messages(disk).await);
    }
}

/// Compares what lists show, except for what is not part of an entry.
fn compare_info(disk: Option<SessionInfo>, stored: Option<SessionInfo>) {
    let normalized = |info: Option<SessionInfo>| {
        info.map(|mut info| {
            (info.file_size, info.path, info.archived) = (None, None, None);
            info.last_modified = std::time::SystemTime::UNIX_EPOCH;
            info
        })
    };
    assert_eq!(normalized(stored), normalized(disk));
}

/// Copies all sessions of a folder into a store, and compares.
async fn compare(folder: &Folder, config: &Path, store: Arc<dyn SessionStore>, infos: &mut usize) {
    let options = StoreOptions::new("tenant", store);
    for session in &folder.sessions {
        let disk = History::at(config).for_directory(&session.project);
        let stored = History::in_store(&options).for_directory(&session.project);
        let id = SessionId::from(session.id.as_str());
        disk.copy_to(&id, &stored).await.unwrap();
        let again = disk.copy_to(&id, &stored).await.unwrap();
        assert_eq!(again.copied, 0, "{} {id}", folder.name);
        compare_session(&disk, &stored, &id).await;
        let features = folder.features_of(&session.id);
        // Not part of an entry, and lines that are searched as text on disk.
        let differs = [Feature::Sidecar].iter().any(|feature| features.contains(feature));
        if !differs && folder.profile != Profile::Damaged {
            compare_info(disk.info(&id).await.unwrap(), stored.info(&id).await.unwrap());
            *infos += 1;
        }
        let up_to = ForkOptions::new().title("Copy");
        let fork = async |history: &History| {
            let fork = history.fork(&id, up_to.clone()).await.ok()?;
            let messages = history.messages(&fork, MessageFilter::default()).await.unwrap();
            Some(messages.len())
        };
        assert_eq!(fork(&stored).await, fork(&disk).await, "{} {id}", folder.name);
    }
}

fn compare_all(folders: impl Iterator<Item = (Folder, PathBuf)>) {
    run(async {
        let mut infos = 0;
        for (number, (folder, config)) in folders.enumerate() {
            let store: Arc<dyn SessionStore> = if number % 4 == 0 {
                Arc::new(SqliteStore::open(config.join("sessions.db")).await.unwrap())
            } else {
                Arc::new(MemoryStore::new())
            };
            compare(&folder, &config, store, &mut infos).await;
        }
        assert!(infos > 10);
    });
}

#[test]
fn generated_folders_read_from_a_store_as_from_disk() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    compare_all((0..FOLDERS).map(|seed| {
        let profiles = [Profile::Plain, Profile::Full, Profile::Full, Profile::Damaged];
        let profile = profiles[usize::try_from(seed / 4 % 4).unwrap()];
        let config = root.join(format!("config-{seed}"));
        let configs = std::slice::from_ref(&config);
        (Folder::generate(seed, profile, &root.join("work"), configs), config)
    }));
}

#[test]
fn recorded_transcripts_read_from_a_store_as_from_disk() {
    let root = tempfile::tempdir().unwrap();
    compare_all(transcripts::SCENARIOS.iter().map(|scenario| {
        let config = root.path().join(scenario.name);
        (Folder::recorded(scenario.name, std::slice::from_ref(&config)), config)
    }));
}

async fn turn(session: &Session, prompt: &str) {
    in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
}

async fn one_turn(options: Options, prompt: &str) -> SessionId {
    let session = in_time(Session::start(options)).await.unwrap();
    turn(&session, prompt).await;
    let id = session.session_id().unwrap();
    session.stop().await.unwrap();
    id
}

#[test]
fn cli_resumes_a_session_that_was_copied_out_of_a_store() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let disk = History::at(harness.sandbox().config());
        let id = one_turn(harness.options(), "the first prompt").await;
        let options = StoreOptions::new("tenant", MemoryStore::new()).project("moved");
        let stored = History::in_store(&options);
        let copy = disk.copy_to(&id, &stored).await.unwrap();
        assert_eq!(copy.damaged, 0);
        // Another machine: another config directory, and another working directory.
        let (config, work) = (harness.root().join("config-2"), harness.root().join("work-2"));
        std::fs::create_dir(&work).unwrap();
        let target = History::at(&config).for_directory(&work);
        stored.copy_to(&id, &target).await.unwrap();
        let options = harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
        let options = options.cwd(&work).conversation(Conversation::resume(id.clone()));
        assert_eq!(one_turn(options, "the second prompt").await, id);
        let prompts = harness.api().requests().last().unwrap().prompts();
        let has = |text: &str| prompts.iter().any(|prompt| prompt.contains(text));
        assert!(has("the first prompt") && has("the second prompt"), "{prompts:?}");
        // The rest is copied back, and only the rest.
        let back = target.copy_to(&id, &stored).await.unwrap();
        assert!(back.copied > 0 && back.present >= copy.copied, "{back:?} {copy:?}");
        let messages = stored.messages(&id, MessageFilter::default()).await.unwrap();
        assert_eq!(messages.len(), 4);
    });
}

async fn row(store: &MemoryStore, work: &Path) -> SessionRow {
    let work = work.canonicalize().unwrap();
    let project = ProjectKey::new("tenant", &project_folder_name(work.to_str().unwrap())).unwrap();
    store.list(&project, List::new()).await.unwrap().sessions.remove(0)
}

#[test]
fn mirrored_sessions_are_listed_from_summaries() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let store = MemoryStore::new();
        let stored = StoreOptions::new("tenant", store.clone());
        let work = harness.root().join("work-2");
        std::fs::create_dir(&work).unwrap();
        let options = harness.options().cwd(&work).store(stored.clone());
        let history = History::in_store(&stored).for_directory(&work);
        let session = in_time(Session::start(options)).await.unwrap();
        turn(&session, "the first prompt").await;
        let id = session.session_id().unwrap();
        let before = row(&store, &work).await;
        assert!(before.summary.is_some_and(|summary| summary.through >= before.last));
        // The mirror does not know of it, and notices.
        history.rename(&id, "From another host").await.unwrap();
        turn(&session, "the second prompt").await;
        turn(&session, "the third prompt").await;
        session.stop().await.unwrap();
        let after = row(&store, &work).await;
        assert!(after.summary.is_some_and(|summary| summary.through >= after.last));
        let page = history.list(ListFilter::new()).await.unwrap();
        assert_eq!(page.sessions[0].first_prompt.as_deref(), Some("the first prompt"));
        assert_eq!(page.sessions[0].custom_title.as_deref(), Some("From another host"));
    });
}
