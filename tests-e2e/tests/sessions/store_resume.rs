//! Resuming conversations from a session store.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claude_agent_kit::history::{History, ListFilter};
use claude_agent_kit::id::SessionId;
use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::store::{
    Append, EntryId, Load, MemoryStore, NewEntry, RecoveryOutcome, SessionKey, SessionStore,
    StoreErrorKind, StoreOptions, recover,
};
use claude_agent_kit::{
    Conversation, ErrorKind, Item, Options, Session, Warning, WarningCode, query,
};
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::prove::killed_hosts::{self, SQLITE, sqlite_url};

use crate::helpers::{Notes, on_both};
use crate::store_mirror::FaultyStore;
use crate::support::{HOST, in_time, real, run};

const UNKNOWN: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

pub(crate) fn script() -> Script {
    Script::new().otherwise([Reply::text("Hello.")])
}

/// A machine: a config directory and a working directory.
pub(crate) struct Machine<'a> {
    harness: &'a Harness,
    name: &'static str,
    warnings: Notes<Warning>,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(harness: &'a Harness, name: &'static str) -> Self {
        let machine = Self { harness, name, warnings: Notes::new() };
        fs::create_dir_all(machine.config()).unwrap();
        fs::create_dir_all(machine.cwd()).unwrap();
        machine
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.harness.root().join(self.name).join("config")
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.harness.root().join(self.name).join("work")
    }

    pub(crate) fn options(&self, store: &Arc<impl SessionStore>) -> Options {
        let notes = self.warnings.clone();
        self.harness
            .options()
            .cwd(self.cwd())
            .env("CLAUDE_CONFIG_DIR", self.config().to_string_lossy())
            .on_warning(move |warning| notes.add(warning.clone()))
            .store(StoreOptions::new("tenant", store.clone()).project("app"))
    }

    /// Runs one turn, and returns the ID of the session.
    pub(crate) async fn ask(
        &self,
        prompt: &str,
        store: &Arc<impl SessionStore>,
        conversation: Conversation,
    ) -> (SessionId, Option<bool>) {
        let options = self.options(store).conversation(conversation);
        let session = in_time(Session::start(options)).await.unwrap();
        let outcome = in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
        let id = session.session_id().unwrap();
        in_time(session.stop()).await.unwrap();
        (id, outcome.stored)
    }

    /// Returns the project folders of resumed conversations.
    pub(crate) fn private_folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.config().join("projects")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.to_string_lossy().contains("claude-agent-kit-")).collect()
    }

    pub(crate) fn codes(&self) -> Vec<WarningCode> {
        self.warnings.all().iter().map(Warning::code).collect()
    }
}

/// Returns the prompts that the model saw last, in order.
pub(crate) fn prompts(harness: &Harness) -> Vec<String> {
    let requests = harness.api().requests();
    let is_turn = |prompt: &String| ["one", "two", "three", "four"].contains(&prompt.as_str());
    let mut turns = requests.iter().rev().map(ApiRequest::prompts);
    let found = turns.find(|prompts| prompts.iter().any(is_turn)).unwrap_or_default();
    found.into_iter().filter(is_turn).collect()
}

pub(crate) async fn entries(store: &dyn SessionStore, id: &SessionId) -> Vec<(EntryId, String)> {
    let key = SessionKey::new("tenant", "app", id.as_str()).unwrap();
    let page = store.load(&key, Load::all().limit(100_000)).await.unwrap();
    page.entries.iter().map(|entry| (entry.id.clone(), entry.text.to_string())).collect()
}

/// Checks that no entry is stored twice.
async fn check_unique(store: &dyn SessionStore, id: &SessionId) {
    let entries = entries(store, id).await;
    let ids: BTreeSet<&EntryId> = entries.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), entries.len());
    let texts: BTreeSet<&str> = entries
        .iter()
        .filter(|(_, text)| text.contains("\"uuid\""))
        .map(|(_, text)| text.as_str())
        .collect();
    let with_uuid = entries.iter().filter(|(_, text)| text.contains("\"uuid\"")).count();
    assert_eq!(texts.len(), with_uuid);
}

#[test]
fn a_conversation_moves_between_machines() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, stored) = a.ask("one", &store, Conversation::new()).await;
        assert_eq!(stored, Some(true));
        for (machine, prompt, seen) in
            [(&b, "two", &["one", "two"][..]), (&a, "three", &["one", "two", "three"][..])]
        {
            let (same, stored) =
                machine.ask(prompt, &store, Conversation::resume(id.clone())).await;
            assert_eq!((same, stored), (id.clone(), Some(true)));
            assert_eq!(prompts(&harness), seen);
            assert_eq!(machine.private_folders(), [] as [PathBuf; 0]);
        }
        let (same, _) = b.ask("four", &store, Conversation::latest()).await;
        assert_eq!(same, id);
        assert_eq!(prompts(&harness), ["one", "two", "three", "four"]);
        assert_eq!(a.codes().len() + b.codes().len(), 0);
        check_unique(&*store, &id).await;
    });
}

#[test]
fn a_local_conversation_is_stored_when_it_is_resumed() {
    on_both(script, async |harness| {
        let (empty, store) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
        let a = Machine::new(&harness, "a");
        let (id, _) = a.ask("one", &empty, Conversation::new()).await;
        a.ask("two", &store, Conversation::resume(id.clone())).await;
        // The local transcript was complete, so it was resumed where it is.
        assert_eq!(prompts(&harness), ["one", "two"]);
        let b = Machine::new(&harness, "b");
        b.ask("three", &store, Conversation::resume(id.clone())).await;
        assert_eq!(prompts(&harness), ["one", "two", "three"]);
        check_unique(&*store, &id).await;
    });
}

#[test]
fn a_fork_leaves_its_origin_unchanged() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let before = entries(&*store, &id).await;
        let (copy, stored) = b.ask("two", &store, Conversation::fork(id.clone())).await;
        assert_ne!(copy, id);
        assert_eq!(stored, Some(true));
        assert_eq!(entries(&*store, &id).await, before);
        assert_eq!(b.private_folders(), [] as [PathBuf; 0]);
        a.ask("three", &store, Conversation::resume(copy)).await;
        assert_eq!(prompts(&harness), ["one", "two", "three"]);
    });
}

#[test]
fn an_unknown_conversation_is_an_error_or_a_new_one() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let a = Machine::new(&harness, "a");
        let options = a.options(&store).conversation(Conversation::resume(UNKNOWN));
        let error = in_time(Session::start(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        assert_eq!(error.session_id().unwrap().as_str(), UNKNOWN);
        let (id, _) = a.ask("one", &store, Conversation::fork_latest()).await;
        assert_ne!(id.as_str(), UNKNOWN);
        let empty = Arc::new(MemoryStore::new());
        let (other, _) = a.ask("one", &empty, Conversation::latest()).await;
        assert_ne!(other, id);
        let (id, _) = a.ask("two", &store, Conversation::resume_or_start(UNKNOWN)).await;
        assert_eq!(id.as_str(), UNKNOWN);
        assert_eq!(prompts(&harness), ["two"]);
        let (_, stored) = a.ask("three", &store, Conversation::resume_or_start(UNKNOWN)).await;
        assert_eq!(stored, Some(true));
        assert_eq!(prompts(&harness), ["two", "three"]);
    });
}

/// A CLI that is killed while it starts, or a handshake, leaves entries in the store that no CLI resumes.
#[test]
fn stored_session_without_messages_is_not_resumed() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let a = Machine::new(&harness, "a");
        let line = json!({
            "type": "queue-operation", "operation": "enqueue", "timestamp": "2026-11-18T00:00:00.000Z",
            "sessionId": UNKNOWN, "content": "one",
        });
        let key = SessionKey::new("tenant", "app", UNKNOWN).unwrap();
        let left = [NewEntry::new(None, line.to_string(), 0).unwrap()];
        store.append(&key, Append::new(&left)).await.unwrap();
        for conversation in [Conversation::resume(UNKNOWN), Conversation::fork(UNKNOWN)] {
            let options = a.options(&store).conversation(conversation);
            let error = in_time(Session::start(options)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
            assert!(error.to_string().contains("has no messages"), "{error}");
        }
        // The latest conversation is not that one either.
        let options = a.options(&store).conversation(Conversation::latest());
        let session = in_time(Session::start(options)).await.unwrap();
        assert_ne!(session.session_id().unwrap().as_str(), UNKNOWN);
        in_time(session.stop()).await.unwrap();

        let options = a.options(&store).conversation(Conversation::resume_or_start(UNKNOWN));
        for (prompt, is_resumed) in [("one", false), ("two", true)] {
            let session = in_time(Session::start(&options)).await.unwrap();
            assert_eq!(session.is_resumed(), Some(is_resumed));
            let outcome = in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
            assert_eq!(outcome.stored, Some(true));
            in_time(session.stop()).await.unwrap();
        }
        assert_eq!(prompts(&harness), ["one", "two"]);
        let b = Machine::new(&harness, "b");
        b.ask("three", &store, Conversation::resume(UNKNOWN)).await;
        assert_eq!(prompts(&harness), ["one", "two", "three"]);
        // The acknowledged entry is still the first one.
        let id = SessionId::from(UNKNOWN);
        assert_eq!(entries(&*store, &id).await[0].1, line.to_string());
        check_unique(&*store, &id).await;
    });
}

/// The same with a local transcript, which has nothing but such entries either.
#[test]
fn local_transcript_without_messages_is_set_aside_with_a_store() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let a = Machine::new(&harness, "a");
        let cwd = fs::canonicalize(a.cwd()).unwrap();
        let name = claude_wire::transcript::project_folder_name(cwd.to_str().unwrap());
        let folder = a.config().join("projects").join(name);
        fs::create_dir_all(&folder).unwrap();
        let line = format!("{}\n", json!({"type": "mode", "mode": "normal", "sessionId": UNKNOWN}));
        fs::write(folder.join(format!("{UNKNOWN}.jsonl")), &line).unwrap();
        let (_, stored) = a.ask("one", &store, Conversation::resume_or_start(UNKNOWN)).await;
        assert_eq!(stored, Some(true));
        let kept = fs::read_to_string(folder.join(format!("{UNKNOWN}.jsonl.unused"))).unwrap();
        assert_eq!(kept, line);
        a.ask("two", &store, Conversation::resume(UNKNOWN)).await;
        assert_eq!(prompts(&harness), ["one", "two"]);
    });
}

#[test]
fn a_run_without_its_store_is_recovered_later() {
    on_both(script, async |harness| {
        let store = FaultyStore::new();
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        // The error is permanent, so that the run does not wait for it.
        let conversation = Conversation::resume(id.clone());
        let options = b.options(&store).conversation(conversation.clone());
        let session = in_time(Session::start(options)).await.unwrap();
        store.fail(StoreErrorKind::Rejected);
        let outcome = in_time(session.send("two").await.unwrap().finish()).await.unwrap();
        assert_eq!(outcome.stored, Some(false));
        in_time(session.stop()).await.unwrap();
        let folders = b.private_folders();
        assert_eq!(folders.len(), 1);
        assert_eq!(b.codes(), [WarningCode::StoreDegraded]);
        // While the store fails, everything is kept.
        let error = recover(&b.options(&store)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreFailed, "{error}");
        assert_eq!(b.private_folders(), folders);
        store.fail(None);
        let recovered = recover(&b.options(&store)).await.unwrap();
        assert_eq!(recovered.len(), 1);
        assert!(matches!(recovered[0].outcome, RecoveryOutcome::Stored(count) if count > 1));
        assert_eq!(recovered[0].session, id);
        assert_eq!(b.private_folders(), [] as [PathBuf; 0]);
        assert_eq!(recover(&b.options(&store)).await.unwrap(), []);
        a.ask("three", &store, conversation).await;
        assert_eq!(prompts(&harness), ["one", "two", "three"]);
        check_unique(&store.memory, &id).await;
    });
}

#[test]
fn a_branch_that_another_host_left_behind_is_reported_once() {
    on_both(script, async |harness| {
        let store = FaultyStore::new();
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let conversation = Conversation::resume(id.clone());
        let options = b.options(&store).conversation(conversation.clone());
        let session = in_time(Session::start(options)).await.unwrap();
        store.fail(StoreErrorKind::Rejected);
        in_time(session.send("two").await.unwrap().finish()).await.unwrap();
        in_time(session.stop()).await.unwrap();
        store.fail(None);
        // The machine was cut off, and another one continues the conversation.
        a.ask("three", &store, conversation.clone()).await;
        assert_eq!(prompts(&harness), ["one", "three"]);
        let folders = b.private_folders();
        b.ask("four", &store, conversation.clone()).await;
        assert_eq!(prompts(&harness), ["one", "three", "four"]);
        assert_eq!(b.codes(), [WarningCode::StoreDegraded, WarningCode::OrphanedBranch]);
        let text = b.warnings.all()[1].to_string();
        assert!(text.contains(folders[0].to_str().unwrap()), "{text}");
        let kept = fs::read_to_string(folders[0].join(format!("{id}.jsonl"))).unwrap();
        assert!(kept.contains("two"));
        assert_eq!(recover(&b.options(&store)).await.unwrap(), []);
        check_unique(&store.memory, &id).await;
    });
}

#[test]
fn the_last_host_wins() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let conversation = Conversation::resume(id.clone());
        // Two hosts on one machine, too.
        for second in [&a, &b] {
            let options = second.options(&store).conversation(conversation.clone());
            let first = in_time(Session::start(options)).await.unwrap();
            let (_, stored) = second.ask("two", &store, conversation.clone()).await;
            assert_eq!(stored, Some(true));
            let turn = match first.send("three").await {
                Ok(turn) => in_time(turn.finish()).await.map(|outcome| outcome.stored),
                Err(error) => Err(error),
            };
            assert_eq!(turn.unwrap_err().kind(), ErrorKind::Superseded);
            assert_eq!(in_time(first.stop()).await.unwrap_err().kind(), ErrorKind::Superseded);
        }
        a.ask("four", &store, conversation).await;
        let seen = prompts(&harness);
        assert!(!seen.contains(&"three".to_owned()), "{seen:?}");
        check_unique(&*store, &id).await;
    });
}

#[test]
fn a_store_that_does_not_answer_fails_the_start() {
    run(async {
        let harness = Harness::in_memory(script()).await.unwrap();
        let store = FaultyStore::new();
        let a = Machine::new(&harness, "a");
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        store.refuse_loads(StoreErrorKind::Corrupt);
        let b = Machine::new(&harness, "b");
        let options = b.options(&store).conversation(Conversation::resume(id));
        let error = in_time(Session::start(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreFailed, "{error}");
        assert_eq!(b.private_folders(), [] as [PathBuf; 0]);
    });
}

/// What a user has set up, as the CLI reports it.
async fn set_up(options: Options) -> (serde_json::Value, Vec<String>) {
    let session = in_time(Session::start(options)).await.unwrap();
    let mut messages = session.messages();
    let turn = session.send("hello").await.unwrap();
    in_time(turn.finish()).await.unwrap();
    let mut found = None;
    while found.is_none() {
        let item = in_time(messages.next()).await.unwrap().unwrap();
        if let Item::Message(message) = item {
            let message: serde_json::Value = serde_json::to_value(&message).unwrap();
            found = Some(message).filter(|message| message["subtype"] == "init");
        }
    }
    let mut init = found.unwrap();
    let names = session.server_info().unwrap().commands;
    let mut names: Vec<String> = names.iter().filter_map(|command| command.name.clone()).collect();
    names.sort();
    in_time(session.stop()).await.unwrap();
    let kept = ["skills", "agents", "slash_commands", "output_style", "memory_paths", "plugins"];
    init.as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
    (init, names)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn skills_agents_commands_settings_and_memory_are_the_same_after_a_resume() {
    run(async {
        let harness = Harness::real(script(), real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let config = b.config();
        write(
            &config.join("skills/review/SKILL.md"),
            "---\nname: review\ndescription: d\n---\nx\n",
        );
        write(&config.join("commands/deploy.md"), "Deploy it.\n");
        write(&config.join("agents/tester.md"), "---\nname: tester\ndescription: d\n---\nx\n");
        write(&config.join("output-styles/terse.md"), "---\nname: terse\ndescription: d\n---\nx\n");
        let settings = json!({"outputStyle": "terse", "model": "claude-opus-4-6"});
        write(&config.join("settings.json"), &settings.to_string());
        let fresh = set_up(b.options(&store)).await;
        let resumed = b.options(&store).conversation(Conversation::resume(id.clone()));
        assert_eq!(set_up(resumed).await, fresh);
        assert!(fresh.0.to_string().contains("review"), "{}", fresh.0);
        assert!(fresh.0.to_string().contains("tester"), "{}", fresh.0);
        assert!(fresh.1.contains(&"deploy".to_owned()), "{:?}", fresh.1);
        assert_eq!(b.private_folders(), [] as [PathBuf; 0]);

        // What the model remembers belongs to the project, not to the run.
        let memory = fresh.0["memory_paths"]["auto"].as_str().unwrap().to_owned();
        let note = Path::new(&memory).join("note.md");
        let call = json!({"file_path": note, "content": "remembered"});
        let reply = [Reply::new().and_tool("Write", call), Reply::text("Done.")];
        harness.api().set_script(Script::new().otherwise(reply));
        let options = b.options(&store).conversation(Conversation::resume(id));
        let collected = in_time(query("remember", options).await.unwrap().collect()).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(fs::read_to_string(note).unwrap(), "remembered");
    });
}

#[test]
fn a_config_directory_that_was_not_chosen_gets_the_transcript_in_place() {
    run(async {
        let harness = Harness::real(script(), real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        let a = Machine::new(&harness, "a");
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let home = harness.root().join("own");
        fs::create_dir_all(&home).unwrap();
        let options = || {
            let options = Options::new()
                .cli_path(harness.program().unwrap())
                .cwd(a.cwd())
                .environment(EnvironmentPolicy::Clean)
                .store(StoreOptions::new("tenant", store.clone()).project("app"))
                .conversation(Conversation::resume(id.clone()));
            let variables = harness.variables().into_iter();
            let variables = variables.filter(|(name, _)| name != "CLAUDE_CONFIG_DIR");
            let options =
                variables.fold(options, |options, (name, value)| options.env(name, value));
            options.env("HOME", home.to_string_lossy())
        };
        let ask = async |prompt: &str| {
            let collected = in_time(query(prompt, options()).await.unwrap().collect()).await;
            assert_eq!(collected.stored, Some(true), "{:?}", collected.error);
        };
        ask("two").await;
        assert_eq!(prompts(&harness), ["one", "two"]);
        // Another machine continues; the local transcript is behind, and is replaced.
        a.ask("three", &store, Conversation::resume(id.clone())).await;
        ask("four").await;
        assert_eq!(prompts(&harness), ["one", "two", "three", "four"]);
        let projects = home.join(".claude/projects");
        let folders: Vec<PathBuf> =
            fs::read_dir(projects).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        let names = fs::read_dir(&folders[0]).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [format!("{id}.jsonl"), "memory".to_owned()]);
        check_unique(&*store, &id).await;
    });
}

#[test]
fn a_relative_config_directory_is_below_the_working_directory() {
    on_both(script, async |harness| {
        let store = Arc::new(MemoryStore::new());
        let machine = Machine::new(&harness, "a");
        let options = |conversation| {
            let options = machine.options(&store).env("CLAUDE_CONFIG_DIR", "../config");
            options.conversation(conversation)
        };
        let ask = async |prompt: &str, conversation| {
            let run = query(prompt, options(conversation)).await.unwrap();
            let collected = in_time(run.collect()).await;
            assert_eq!(collected.stored, Some(true), "{:?}", collected.error);
        };
        ask("one", Conversation::new()).await;
        let history = History::from_options(&options(Conversation::new())).unwrap();
        let sessions = history.list(ListFilter::new()).await.unwrap().sessions;
        let id = sessions[0].session_id.clone();
        ask("two", Conversation::resume(id.clone())).await;
        assert_eq!(prompts(&harness), ["one", "two"]);
        assert_eq!(machine.private_folders(), [] as [PathBuf; 0]);
        check_unique(&*store, &id).await;
    });
}

/// `cargo xtask prove killed-hosts` kills ten times as many.
#[test]
fn killed_hosts_lose_nothing_that_was_acknowledged() {
    run(async {
        let harness = Harness::real(script(), real()).await.unwrap();
        let (rounds, url) = (SQLITE.repetitions / 10, sqlite_url(&harness));
        let count = killed_hosts::count(&harness, Path::new(HOST), &url, rounds, 7).await.unwrap();
        assert!(count.acknowledged > 0);
    });
}
