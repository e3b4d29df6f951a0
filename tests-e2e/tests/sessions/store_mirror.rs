//! Mirroring transcripts to a session store.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claude_agent_kit::store::{
    Append, Appended, EntryPage, Epoch, List, Load, MemoryStore, ProjectKey, SessionKey,
    SessionList, SessionStore, StoreError, StoreErrorKind, StoreFailurePolicy, StoreFuture,
    StoreOptions, Subpath,
};
use claude_agent_kit::{
    Conversation, ErrorKind, Exit, Options, Session, TurnOutcome, Warning, WarningCode, query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests_e2e::harness::Harness;
use tokio::sync::watch;

use crate::fake_cli::{FakeCli, connect, on_paused_clock};
use crate::helpers::{Notes, on_both};
use crate::support::{in_time, until};

pub(crate) const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";
pub(crate) const PROJECT: &str = "-work";

fn key() -> SessionKey {
    SessionKey::new("tenant", PROJECT, ID).unwrap()
}

/// A store with faults.
#[derive(Default)]
pub(crate) struct FaultyStore {
    pub(crate) memory: MemoryStore,
    /// The kind of the error with which appends fail.
    error: Mutex<Option<StoreErrorKind>>,
    /// The kind of the error with which loads fail.
    load_error: Mutex<Option<StoreErrorKind>>,
    /// The kind of the error with which claims fail.
    claim_error: Mutex<Option<StoreErrorKind>>,
    /// Whether the next appends fail although they are stored.
    loses_response: AtomicBool,
    panics: AtomicBool,
    /// While true, appends wait.
    pub(crate) stalled: watch::Sender<bool>,
    appends: AtomicUsize,
    largest: AtomicUsize,
}

impl FaultyStore {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn fail(&self, kind: impl Into<Option<StoreErrorKind>>) {
        *self.error.lock().unwrap() = kind.into();
    }

    pub(crate) fn refuse_loads(&self, kind: StoreErrorKind) {
        *self.load_error.lock().unwrap() = Some(kind);
    }

    pub(crate) fn refuse_claims(&self, kind: impl Into<Option<StoreErrorKind>>) {
        *self.claim_error.lock().unwrap() = kind.into();
    }

    fn attempts(&self) -> usize {
        self.appends.load(Ordering::Relaxed)
    }

    pub(crate) async fn texts(&self) -> Vec<String> {
        texts(&self.memory, &key()).await
    }
}

async fn texts(store: &MemoryStore, key: &SessionKey) -> Vec<String> {
    let page = store.load(key, Load::all().limit(100_000)).await.unwrap();
    page.entries.iter().map(|entry| entry.text.to_string()).collect()
}

impl SessionStore for FaultyStore {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        let error = *self.claim_error.lock().unwrap();
        match error {
            Some(kind) => Box::pin(async move { Err(StoreError::new(kind, "cannot be claimed")) }),
            None => self.memory.claim(key),
        }
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            self.appends.fetch_add(1, Ordering::Relaxed);
            self.largest.fetch_max(append.entries.len(), Ordering::Relaxed);
            assert!(!self.panics.load(Ordering::Relaxed), "deliberate failure");
            let mut stalled = self.stalled.subscribe();
            stalled.wait_for(|stalled| !stalled).await.unwrap();
            let error = *self.error.lock().unwrap();
            if let Some(kind) = error {
                return Err(StoreError::new(kind, "the store is down"));
            }
            let appended = self.memory.append(key, append).await?;
            if self.loses_response.swap(false, Ordering::Relaxed) {
                return Err(StoreError::new(StoreErrorKind::Unavailable, "connection lost"));
            }
            Ok(appended)
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        let error = *self.load_error.lock().unwrap();
        match error {
            Some(kind) => Box::pin(async move { Err(StoreError::new(kind, "cannot be read")) }),
            None => self.memory.load(key, load),
        }
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        self.memory.list(project, list)
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        self.memory.subpaths(key)
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        self.memory.delete(key, subpath)
    }
}

/// A session on a fake CLI and its store.
pub(crate) struct Fixture {
    /// The config directory of the CLI.
    pub(crate) config: TempDir,
    pub(crate) session: Session,
    pub(crate) cli: FakeCli,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) warnings: Notes<Warning>,
}

impl Fixture {
    pub(crate) async fn new(policy: StoreFailurePolicy) -> Self {
        let (store, warnings) = (FaultyStore::new(), Notes::new());
        let (notes, config) = (warnings.clone(), tempfile::tempdir().unwrap());
        let options = Options::new()
            .env("CLAUDE_CONFIG_DIR", config.path().to_string_lossy())
            .on_warning(move |warning| notes.add(warning.clone()))
            .store(StoreOptions::new("tenant", store.clone()).on_failure(policy));
        let (session, cli) = connect(options).await;
        Self { config, session, cli, store, warnings }
    }

    async fn mirror(&mut self, entries: &[&str]) {
        let path = self.path();
        self.cli.mirror(&path.to_string_lossy(), entries).await;
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.config.path().join(format!("projects/{PROJECT}/{ID}.jsonl"))
    }

    /// Appends lines to the local transcript.
    pub(crate) fn write(&self, lines: &[&str]) {
        let path = self.path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
    }

    /// Runs a turn whose entries are in the local transcript, too.
    pub(crate) async fn written_turn(&mut self, entries: &[&str]) -> Option<bool> {
        self.write(entries);
        self.turn(entries).await.unwrap().stored
    }

    /// Runs a turn whose entries are these.
    pub(crate) async fn turn(&mut self, entries: &[&str]) -> claude_agent_kit::Result<TurnOutcome> {
        let turn = self.session.send("go").await.unwrap();
        let user = self.cli.read_line().await;
        self.mirror(entries).await;
        self.cli.send_result(&user).await;
        in_time(turn.finish()).await
    }

    pub(crate) fn codes(&self) -> Vec<WarningCode> {
        self.warnings.all().iter().map(Warning::code).collect()
    }

    pub(crate) async fn stop(mut self) -> Arc<FaultyStore> {
        let stop = self.session.stop();
        let ends = async {
            while self.cli.next_line().await.is_some() {}
            self.cli.close_stdout();
            self.cli.exit(Exit::Code(0));
        };
        let (stopped, ()) = tokio::join!(in_time(stop), ends);
        stopped.unwrap();
        self.store
    }
}

impl FakeCli {
    pub(crate) async fn mirror(&mut self, path: &str, entries: &[&str]) {
        let entries = entries.join(",");
        let line = format!(
            "{{\"type\":\"transcript_mirror\",\"filePath\":{path:?},\"entries\":[{entries}]}}\n"
        );
        self.write(line.as_bytes()).await;
    }
}

pub(crate) const CONTINUE: StoreFailurePolicy = StoreFailurePolicy::Continue;

#[test]
fn a_result_is_delivered_when_its_entries_are_stored() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        // Not the form that a serializer would write, and equal entries.
        let entries = [r#"{"a":  1}"#, r#"{"type":"mode"}"#, r#"{"type":"mode"}"#];
        let outcome = fixture.turn(&entries).await.unwrap();
        assert_eq!((outcome.stored, outcome.warnings.len()), (Some(true), 0));
        assert_eq!(fixture.store.texts().await, entries);
        // More follow after the last result.
        fixture.mirror(&[r#"{"type":"mode"}"#]).await;
        let store = fixture.stop().await;
        assert_eq!(store.texts().await.len(), 4);
    });
}

#[test]
fn transcripts_of_subagents_and_of_other_sessions_have_their_keys() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        let other = "1b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";
        let agent = format!("/c/projects/{PROJECT}/{ID}/subagents/agent-a.jsonl");
        fixture.cli.mirror(&agent, &["1"]).await;
        fixture.cli.mirror(&format!("/c/projects/-other/{other}.jsonl"), &["2"]).await;
        fixture.cli.mirror("/c/notes.jsonl", &["3"]).await;
        assert_eq!(fixture.turn(&["4"]).await.unwrap().stored, Some(true));
        assert_eq!(fixture.codes(), [WarningCode::NotStored]);
        let memory = &fixture.store.memory;
        let subpaths = memory.subpaths(&key()).await.unwrap();
        assert_eq!(subpaths, [Subpath::new("subagents/agent-a").unwrap()]);
        let other = SessionKey::new("tenant", "-other", other).unwrap();
        assert_eq!(texts(memory, &other).await, ["2"]);
        assert_eq!(fixture.store.texts().await, ["1", "4"]);
        fixture.stop().await;
    });
}

#[test]
fn a_failed_append_is_retried_without_storing_an_entry_twice() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        fixture.store.loses_response.store(true, Ordering::Relaxed);
        let entries = [r#"{"type":"mode"}"#; 2];
        assert_eq!(fixture.turn(&entries).await.unwrap().stored, Some(true));
        assert_eq!(fixture.store.attempts(), 2);
        assert_eq!(fixture.store.texts().await, entries);
        // A resumed run counts the equal entries that the store has.
        let store = fixture.stop().await;
        let options = Options::new().store(StoreOptions::new("tenant", store.clone()));
        let (session, cli) = connect(options).await;
        let mut second = Fixture {
            config: tempfile::tempdir().unwrap(),
            session,
            cli,
            store,
            warnings: Notes::new(),
        };
        assert_eq!(second.turn(&entries[..1]).await.unwrap().stored, Some(true));
        assert_eq!(second.stop().await.texts().await.len(), 3);
    });
}

#[test]
fn a_store_that_stays_down_degrades_the_mirror_once() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        assert_eq!(fixture.turn(&["1"]).await.unwrap().stored, Some(true));
        fixture.store.fail(StoreErrorKind::Unavailable);
        let began = tokio::time::Instant::now();
        assert_eq!(fixture.turn(&["2"]).await.unwrap().stored, Some(false));
        let took = began.elapsed().as_millis();
        assert!((30_000..31_000).contains(&took), "{took}");
        let attempts = fixture.store.attempts();
        assert!((7..=10).contains(&attempts), "{attempts}");
        assert_eq!(fixture.turn(&["3"]).await.unwrap().stored, Some(false));
        assert_eq!(fixture.codes(), [WarningCode::StoreDegraded]);
        assert_eq!(fixture.stop().await.texts().await, ["1"]);
    });
}

/// An entry with a UUID that ends in this number.
pub(crate) fn message(number: u32) -> String {
    format!(r#"{{"type":"user","uuid":"00000000-0000-4000-8000-0000000000{number:02}"}}"#)
}

const MODE: &str = r#"{"type":"mode"}"#;
const SHAPE: &str = r#"{"type":"api-request-shape"}"#;

#[test]
fn a_degraded_mirror_is_caught_up_without_a_gap_or_a_duplicate() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        // Lines from before this run, which are not in the store.
        fixture.write(&[&message(1), MODE]);
        let (second, third, fourth) = (message(2), message(3), message(4));
        assert_eq!(fixture.written_turn(&[MODE, &second, MODE]).await, Some(true));
        fixture.store.fail(StoreErrorKind::Unavailable);
        fixture.write(&[SHAPE]);
        assert_eq!(fixture.written_turn(&[MODE, &third]).await, Some(false));
        assert_eq!(fixture.written_turn(&[MODE, MODE]).await, Some(false));
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert_eq!(fixture.codes(), [WarningCode::StoreDegraded]);
        fixture.store.fail(None);
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(fixture.codes(), [WarningCode::StoreDegraded, WarningCode::StoreRecovered]);
        assert_eq!(fixture.written_turn(&[MODE, &fourth]).await, Some(true));
        let expected = [MODE, &second, MODE, MODE, &third, MODE, MODE, MODE, &fourth];
        assert_eq!(fixture.stop().await.texts().await, expected);
    });
}

#[test]
fn a_store_that_works_again_is_caught_up_at_the_end() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        fixture.store.loses_response.store(true, Ordering::Relaxed);
        fixture.store.fail(StoreErrorKind::Unavailable);
        let lines: Vec<String> = (0..1_200).map(|number| format!(r#"{{"n":{number}}}"#)).collect();
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(fixture.written_turn(&refs).await, Some(false));
        fixture.store.fail(None);
        fixture.store.loses_response.store(false, Ordering::Relaxed);
        let warnings = fixture.warnings.clone();
        let store = fixture.stop().await;
        assert_eq!(store.texts().await, lines);
        assert_eq!(store.largest.load(Ordering::Relaxed), 500);
        assert_eq!(warnings.all().last().unwrap().code(), WarningCode::StoreRecovered);
    });
}

#[test]
fn a_store_that_rejects_or_panics_is_not_asked_again() {
    on_paused_clock(async {
        for panics in [false, true] {
            let mut fixture = Fixture::new(CONTINUE).await;
            fixture.store.fail(StoreErrorKind::Rejected);
            fixture.store.panics.store(panics, Ordering::Relaxed);
            assert_eq!(fixture.turn(&["1"]).await.unwrap().stored, Some(false));
            assert_eq!(fixture.store.attempts(), 1);
            assert_eq!(fixture.codes(), [WarningCode::StoreDegraded]);
            if panics {
                // The message of a panic may contain entries.
                let text = fixture.warnings.all()[0].to_string();
                let expected = format!("panicked while it stored entries of session {ID}; ");
                assert!(text.contains(&expected) && !text.contains("deliberate"), "{text}");
            }
            fixture.stop().await;
        }
    });
}

#[test]
fn a_stalled_store_blocks_neither_messages_nor_callbacks() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(StoreFailurePolicy::Wait).await;
        fixture.store.stalled.send_replace(true);
        let mut messages = fixture.session.messages();
        let turn = fixture.session.send("go").await.unwrap();
        let user = fixture.cli.read_line().await;
        fixture.mirror(&["1"]).await;
        fixture.cli.send_text("Hello.").await;
        in_time(messages.next()).await.unwrap().unwrap();
        fixture.cli.send_result(&user).await;
        // An operation is served while the result waits.
        let operation = async {
            let request = fixture.cli.expect_request("set_model").await;
            fixture.cli.respond(&request, json!({})).await;
        };
        let (changed, ()) = tokio::join!(in_time(fixture.session.set_model("m")), operation);
        changed.unwrap();
        // The request is repeated after its timeout, without an end.
        let finish = tokio::spawn(turn.finish());
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(!finish.is_finished() && fixture.store.attempts() > 4);
        fixture.store.stalled.send_replace(false);
        assert_eq!(in_time(finish).await.unwrap().unwrap().stored, Some(true));
        assert_eq!(fixture.codes(), []);
        assert_eq!(fixture.stop().await.texts().await, ["1"]);
    });
}

#[test]
fn memory_is_limited_while_the_store_is_stalled() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(StoreFailurePolicy::Wait).await;
        fixture.store.stalled.send_replace(true);
        let entry = format!("\"{}\"", "x".repeat(1024 * 1024));
        for _ in 0..10 {
            fixture.mirror(&[&entry]).await;
        }
        assert_eq!(fixture.turn(&["1"]).await.unwrap().stored, Some(false));
        assert_eq!(fixture.codes(), [WarningCode::StoreDegraded]);
        fixture.stop().await;
    });
}

#[test]
fn many_entries_are_appended_in_bounded_batches() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        let entries: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
        let refs: Vec<&str> = entries.iter().map(String::as_str).collect();
        assert_eq!(fixture.turn(&refs).await.unwrap().stored, Some(true));
        assert_eq!(fixture.store.largest.load(Ordering::Relaxed), 500);
        assert_eq!(fixture.stop().await.texts().await, entries);
    });
}

#[test]
fn a_superseded_run_is_stopped() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        fixture.turn(&["1"]).await.unwrap();
        // Another host takes over.
        fixture.store.memory.claim(&key()).await.unwrap();
        let turn = fixture.session.send("go").await.unwrap();
        fixture.cli.read_line().await;
        fixture.mirror(&["2"]).await;
        let error = in_time(turn.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Superseded, "{error}");
        assert!(error.to_string().contains("claimed by another host"), "{error}");
        assert!(fixture.cli.next_line().await.is_none());
        assert_eq!(fixture.store.texts().await, ["1"]);
    });
}

#[test]
fn a_run_can_be_stopped_when_its_store_fails() {
    on_paused_clock(async {
        let mut fixture = Fixture::new(StoreFailurePolicy::Stop).await;
        fixture.store.fail(StoreErrorKind::Full);
        let turn = fixture.session.send("go").await.unwrap();
        fixture.cli.read_line().await;
        fixture.mirror(&["1"]).await;
        let error = in_time(turn.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreFailed, "{error}");
        assert!(error.to_string().contains("the store is down"), "{error}");
    });
}

#[test]
fn a_result_that_waits_for_a_lost_store_is_not_handed_out() {
    for (policy, kind) in
        [(CONTINUE, ErrorKind::Superseded), (StoreFailurePolicy::Stop, ErrorKind::StoreFailed)]
    {
        on_paused_clock(async {
            let mut fixture = Fixture::new(policy).await;
            fixture.turn(&["1"]).await.unwrap();
            fixture.store.stalled.send_replace(true);
            let mut messages = fixture.session.messages();
            let turn = fixture.session.send("go").await.unwrap();
            let user = fixture.cli.read_line().await;
            fixture.mirror(&["2"]).await;
            fixture.cli.send_result(&user).await;
            let finish = tokio::spawn(turn.finish());
            until("the append begins", || fixture.store.attempts() == 2).await;
            if kind == ErrorKind::Superseded {
                fixture.store.memory.claim(&key()).await.unwrap();
            } else {
                fixture.store.fail(StoreErrorKind::Full);
            }
            fixture.store.stalled.send_replace(false);
            assert_eq!(in_time(finish).await.unwrap().unwrap_err().kind(), kind);
            // Neither is another result, or one on the stream of all messages.
            fixture.cli.send_result(&user).await;
            let mut error = None;
            while let Some(item) = in_time(messages.next()).await {
                match item {
                    Ok(item) => assert!(item.message().is_none(), "{item:?}"),
                    Err(found) => error = Some(found.kind()),
                }
            }
            assert_eq!(error, Some(kind));
        });
    }
}

#[test]
fn stop_flushes_for_at_most_ten_seconds() {
    on_paused_clock(async {
        for recovers in [false, true] {
            let mut fixture = Fixture::new(StoreFailurePolicy::Wait).await;
            let (store, warnings) = (fixture.store.clone(), fixture.warnings.clone());
            store.stalled.send_replace(true);
            fixture.mirror(&["1"]).await;
            let began = tokio::time::Instant::now();
            let recover = async {
                tokio::time::sleep(Duration::from_secs(3)).await;
                store.stalled.send_replace(!recovers);
            };
            let (stopped, ()) = tokio::join!(fixture.stop(), recover);
            let seconds = began.elapsed().as_secs();
            assert_eq!(seconds, if recovers { 3 } else { 10 });
            assert_eq!(stopped.texts().await.len(), usize::from(recovers));
            assert_eq!(warnings.all().len(), usize::from(!recovers));
        }
    });
}

/// Returns the files below a directory that are transcripts, with their paths.
fn transcripts(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path.to_string_lossy().into_owned(), text);
            }
        }
    }
    found
}

fn script() -> Script {
    Script::new().otherwise([Reply::text("Hello. \u{1F600} \"quoted\" é")])
}

/// Compares the store with the files of the CLI.
async fn check_files(harness: &Harness, store: &MemoryStore) {
    let projects = harness.root().join("home/.claude/projects");
    let files = transcripts(&projects);
    assert_eq!(files.len(), 1, "{:?}", files.keys());
    for (path, text) in files {
        let path = Path::new(&path);
        let project = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let session = path.file_stem().unwrap().to_str().unwrap();
        let key = SessionKey::new("tenant", project, session).unwrap();
        let is_mirrored = |line: &&str| {
            let line: Value = serde_json::from_str(line).unwrap();
            !line["type"].as_str().unwrap().starts_with("api-request")
        };
        let lines: Vec<&str> = text.lines().filter(is_mirrored).collect();
        assert!(lines.len() > 3);
        assert_eq!(texts(store, &key).await, lines);
    }
}

#[test]
fn the_store_has_the_lines_of_the_local_files() {
    on_both(script, async |harness| {
        let config = harness.root().join("home/.claude");
        let store = Arc::new(MemoryStore::new());
        let options = || {
            let options = harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
            options.store(StoreOptions::new("tenant", store.clone()))
        };
        let session = in_time(Session::start(options())).await.unwrap();
        for prompt in ["one", "two"] {
            let outcome = in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
            assert_eq!(outcome.stored, Some(true), "{:?}", outcome.warnings);
        }
        let id = session.session_id().unwrap();
        in_time(session.stop()).await.unwrap();
        check_files(&harness, &store).await;
        let options = options().conversation(Conversation::resume(id));
        let collected = in_time(query("three", options).await.unwrap().collect()).await;
        assert_eq!(collected.stored, Some(true), "{:?}", collected.error);
        check_files(&harness, &store).await;
    });
}

#[test]
fn options_that_contradict_a_store_are_reported() {
    on_paused_clock(async {
        let store = || StoreOptions::new("tenant", MemoryStore::new());
        let options = Options::new().store(store()).conversation(Conversation::new().ephemeral());
        let error = Session::start(options).await.unwrap_err();
        assert_eq!(error.problems()[0].options, ["store", "conversation.persist"]);
        let options = Options::new().store(StoreOptions::new("", MemoryStore::new()));
        let error = Session::start(options).await.unwrap_err();
        assert_eq!(error.problems()[0].options, ["store"]);
        let warnings = Notes::new();
        let notes = warnings.clone();
        let options = Options::new().store(store()).file_checkpointing(true);
        let (session, _cli) =
            connect(options.on_warning(move |warning| notes.add(warning.clone()))).await;
        until("the warning", || !warnings.all().is_empty()).await;
        assert_eq!(warnings.all()[0].options(), ["store", "file_checkpointing"]);
        drop(session);
    });
}
