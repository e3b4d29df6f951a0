//! The history in a store, and copies between the disk and stores.

use std::collections::BTreeMap;

use super::*;
use crate::store::faulty::FaultyStore;
use crate::store::{
    Append, Load, MemoryStore, NewEntry, ProjectKey, SessionKey, SessionStore as _, StoreOptions,
};

/// A session on disk, and a store.
struct StoreFixture {
    disk: Fixture,
    store: Arc<FaultyStore>,
}

impl StoreFixture {
    fn new(store: FaultyStore) -> Self {
        Self { disk: Fixture::new(), store: Arc::new(store) }
    }

    fn stored(&self) -> History {
        let options = StoreOptions::new("tenant", self.store.clone());
        History::in_store(&options).for_directory(self.disk.work())
    }

    fn project(&self) -> String {
        claude_wire::transcript::project_folder_name(self.disk.work().to_str().unwrap())
    }

    fn key(&self, number: u32) -> SessionKey {
        SessionKey::new("tenant", &self.project(), id(number)).unwrap()
    }

    /// Writes a session with a subagent.
    fn write_with_subagent(&self, number: u32, turns: usize) -> PathBuf {
        let path = self.disk.write(number, &conversation(turns, &self.disk.work()));
        let folder = path.with_extension("").join("subagents");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("agent-a1.jsonl"), text(&conversation(2, Path::new("/")))).unwrap();
        let metadata = json!({"agentType": "Explore", "toolUseId": "toolu_1", "finished": true});
        fs::write(folder.join("agent-a1.meta.json"), metadata.to_string()).unwrap();
        path
    }

    async fn texts(&self, number: u32) -> Vec<String> {
        let load = Load::all().limit(1_000_000).max_bytes(usize::MAX);
        let page = self.store.inner.load(&self.key(number), load).await.unwrap();
        page.entries.iter().map(|entry| entry.text.to_string()).collect()
    }
}

/// Returns the files below a folder with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
    found
}

#[tokio::test]
async fn a_copy_out_of_a_store_equals_the_original() {
    let fixture = StoreFixture::new(FaultyStore::default());
    let path = fixture.write_with_subagent(1, 700);
    let copy = fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
    assert_eq!((copy.copied, copy.present, copy.damaged), (1405, 0, 0));
    assert_eq!(copy.project, fixture.project());
    let limits = fixture.store.appends.lock().unwrap().clone();
    assert!(limits.iter().all(|(entries, bytes)| *entries <= 500 && *bytes <= 1 << 20));

    let target = tempfile::tempdir().unwrap();
    let exported = History::at(target.path());
    let copy = fixture.stored().copy_to(&id(1), &exported).await.unwrap();
    assert_eq!((copy.copied, copy.project.clone()), (1405, fixture.project()));
    let folder = path.parent().unwrap();
    let relative = |root: &Path, files: BTreeMap<PathBuf, String>| {
        let strip = |path: PathBuf| path.strip_prefix(root).unwrap().to_owned();
        files.into_iter().map(|(path, text)| (strip(path), text)).collect::<BTreeMap<_, _>>()
    };
    let copied = target.path().join("projects").join(copy.project);
    assert_eq!(relative(&copied, files(&copied)), relative(folder, files(folder)));
}

#[tokio::test]
async fn an_interrupted_copy_continues_and_has_a_summary() {
    let expected = {
        let fixture = StoreFixture::new(FaultyStore::default());
        fixture.write_with_subagent(1, 900);
        fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
        fixture.texts(1).await
    };
    for stores_failed_appends in [false, true] {
        for requests in 0..7 {
            let store = FaultyStore { stores_failed_appends, ..FaultyStore::default() };
            let fixture = StoreFixture::new(store);
            fixture.write_with_subagent(1, 900);
            fixture.store.fail_after(requests);
            let copied = fixture.disk.history.copy_to(&id(1), &fixture.stored()).await;
            assert_eq!(copied.is_ok(), requests == 6, "{requests}");
            fixture.store.repair();
            let before = fixture.texts(1).await.len() as u64;
            let copy = fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
            assert_eq!((copy.copied, copy.present), (1805 - before, before));
            let stored: Vec<String> = fixture.texts(1).await;
            let without_work = |texts: &[String]| texts.iter().map(String::len).collect::<Vec<_>>();
            assert_eq!(without_work(&stored), without_work(&expected));
            // One request for the list, and none for entries.
            fixture.store.fail_after(1);
            let page = fixture.stored().list(ListFilter::new()).await.unwrap();
            assert_eq!(page.sessions[0].first_prompt.as_deref(), Some("Question 0"));
        }
    }
}

#[tokio::test]
async fn damaged_lines_and_records_of_requests_are_not_copied() {
    let fixture = StoreFixture::new(FaultyStore::default());
    let path = fixture.disk.write(1, &[prompt("u1", None, "Hi", &fixture.disk.work())]);
    let mut text = fs::read_to_string(&path).unwrap();
    text +=
        "not json\n{\"type\":\"api-request\",\"id\":1}\n\0\0{\"type\":\"mode\",\"mode\":\"x\"}\n";
    text += "{\"type\":\"tag\",\"tag\":\"api-request\"}\n{\"type\":\"user\",\"uuid\":\"torn";
    fs::write(&path, text).unwrap();
    let copy = fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
    assert_eq!((copy.copied, copy.damaged), (3, 2));
    assert!(fixture.texts(1).await.iter().all(|text| !text.contains("torn")));
}

#[tokio::test]
async fn a_session_that_continues_is_copied_again_from_where_it_was() {
    let fixture = StoreFixture::new(FaultyStore::default());
    let path = fixture.write_with_subagent(1, 2);
    fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
    fixture.disk.history.rename(&id(1), "New").await.unwrap();
    let copy = fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
    assert_eq!((copy.copied, copy.present), (1, 9));
    let info = fixture.stored().info(&id(1)).await.unwrap().unwrap();
    assert_eq!(info.custom_title.as_deref(), Some("New"));
    // The store has more than the file, which is kept.
    let error = fixture.stored().copy_to(&id(1), &fixture.disk.history).await;
    assert!(error.is_ok(), "{error:?}");
    fs::write(&path, "{}\n").unwrap();
    let error = fixture.stored().copy_to(&id(1), &fixture.disk.history).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
}

#[tokio::test]
async fn unknown_sessions_and_projects_without_a_folder_are_errors() {
    let fixture = StoreFixture::new(FaultyStore::default());
    let (disk, stored) = (fixture.disk.history.clone(), fixture.stored());
    for unknown in [id(1), SessionId::from("../../x")] {
        for (from, to) in [(&disk, &stored), (&stored, &disk), (&stored, &stored)] {
            let error = from.copy_to(&unknown, to).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
        }
        for error in [
            stored.open(&unknown).await.unwrap_err(),
            stored.subagents(&unknown).await.unwrap_err(),
            stored.fork(&unknown, ForkOptions::new()).await.unwrap_err(),
            stored.rename(&unknown, "x").await.unwrap_err(),
            stored.delete(&unknown).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
        }
        assert_eq!(stored.info(&unknown).await.unwrap(), None);
    }
    let error = disk.copy_to(&id(1), &disk).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    for project in ["..", "a/b", "c:d", "\u{7}"] {
        let options = StoreOptions::new("tenant", fixture.store.clone()).project(project);
        let stored = History::in_store(&options);
        let project = ProjectKey::new("tenant", project).unwrap();
        let entry = NewEntry::new(None, "{}", 0).unwrap();
        let key = project.session(id(1)).unwrap();
        fixture.store.append(&key, Append::new(&[entry])).await.unwrap();
        let error = stored.copy_to(&id(1), &disk).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    }
}

#[tokio::test]
async fn a_session_moves_between_stores_and_projects() {
    let fixture = StoreFixture::new(FaultyStore { page: 2, ..FaultyStore::default() });
    fixture.write_with_subagent(1, 3);
    fixture.disk.history.copy_to(&id(1), &fixture.stored()).await.unwrap();
    let options = StoreOptions::new("other", MemoryStore::new());
    let other = History::in_store(&options);
    let moved = History::in_store(&options.project("moved"));
    let copy = fixture.stored().copy_to(&id(1), &moved).await.unwrap();
    assert_eq!((copy.copied, copy.project.as_str()), (11, "moved"));
    let messages = moved.messages(&id(1), MessageFilter::default()).await.unwrap();
    assert_eq!(texts(messages).await.len(), 6);
    assert_eq!(moved.subagents(&id(1)).await.unwrap().len(), 1);
    assert!(other.list(ListFilter::new()).await.unwrap().sessions.is_empty());
}

#[tokio::test]
async fn reads_from_a_store_equal_those_from_disk() {
    let fixture = StoreFixture::new(FaultyStore { page: 3, ..FaultyStore::default() });
    fixture.write_with_subagent(1, 5);
    let (disk, stored) = (fixture.disk.history.clone(), fixture.stored());
    disk.copy_to(&id(1), &stored).await.unwrap();
    let filter = MessageFilter::default();
    for history in [&disk, &stored] {
        let messages = history.messages(&id(1), filter).await.unwrap().skip(2).take(2);
        assert_eq!(texts(messages).await, ["Question 1", "Answer 1"]);
        let last = history.last_messages(&id(1), 1, filter).await.unwrap();
        assert_eq!(last[0].content().unwrap().to_text(), "Answer 4");
        let agents = history.subagents(&id(1)).await.unwrap();
        assert_eq!(agents[0].agent_type.as_deref(), Some("Explore"));
        assert_eq!(agents.len(), 1);
        let mut messages = history.subagent_messages(&id(1), &agents[0].agent_id).await.unwrap();
        let first = messages.next().await.unwrap().unwrap();
        assert_eq!(first.parent_tool_use_id.unwrap().as_str(), "toolu_1");
        assert!(history.issues(&id(1)).await.unwrap().is_empty());
    }
    let transcript = stored.open(&id(1)).await.unwrap();
    assert_eq!((transcript.path(), stored.config_dir()), (None, None));
}

#[tokio::test]
async fn changes_in_a_store_are_in_the_list() {
    let fixture = StoreFixture::new(FaultyStore::default());
    fixture.write_with_subagent(1, 2);
    fixture.write_with_subagent(2, 1);
    let stored = fixture.stored();
    for number in [1, 2] {
        fixture.disk.history.copy_to(&id(number), &stored).await.unwrap();
    }
    stored.rename(&id(1), "  Title ").await.unwrap();
    stored.tag(&id(1), Some("v1")).await.unwrap();
    let fork = stored.fork(&id(1), ForkOptions::new()).await.unwrap();
    // One request for the list: all summaries are up to date.
    fixture.store.fail_after(1);
    let page = stored.list(ListFilter::new()).await.unwrap();
    fixture.store.repair();
    assert_eq!(ids(&page), [fork.clone(), id(1), id(2)]);
    assert_eq!(page.sessions[0].custom_title.as_deref(), Some("Title (fork)"));
    assert_eq!(page.sessions[1].custom_title.as_deref(), Some("Title"));
    assert_eq!(page.sessions[1].tag.as_deref(), Some("v1"));
    let page = stored.list(ListFilter::new().offset(1).limit(1)).await.unwrap();
    assert_eq!((ids(&page), page.has_more), (vec![id(1)], true));
    let messages = stored.messages(&fork, MessageFilter::default()).await.unwrap();
    assert_eq!(texts(messages).await, ["Question 0", "Answer 0", "Question 1", "Answer 1"]);

    stored.tag(&id(1), None).await.unwrap();
    assert_eq!(stored.info(&id(1)).await.unwrap().unwrap().tag, None);
    let error = stored.rename(&id(1), " ").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    stored.delete(&id(1)).await.unwrap();
    stored.force_delete(&fork).await.unwrap();
    assert_eq!(ids(&stored.list(ListFilter::new()).await.unwrap()), [id(2)]);
    // A session that was deleted can be copied again, with a summary.
    fixture.disk.history.copy_to(&id(1), &stored).await.unwrap();
    fixture.store.fail_after(1);
    assert_eq!(ids(&stored.list(ListFilter::new()).await.unwrap()), [id(1), id(2)]);
}

#[tokio::test]
async fn a_missing_or_old_summary_is_made_from_the_entries() {
    let fixture = StoreFixture::new(FaultyStore { page: 1, ..FaultyStore::default() });
    let (stored, key) = (fixture.stored(), fixture.key(1));
    let lines = conversation(2, Path::new("/srv"));
    let entries: Vec<NewEntry> =
        lines.iter().map(|line| NewEntry::new(None, line.to_string(), 0).unwrap()).collect();
    fixture.store.append(&key, Append::new(&entries)).await.unwrap();
    let info = stored.info(&id(1)).await.unwrap().unwrap();
    assert_eq!((info.summary.as_str(), info.cwd.as_deref()), ("Question 0", Some("/srv")));
    assert_eq!((info.file_size, info.path), (None, None));

    let last = crate::store::Sequence::new(4);
    let title = NewEntry::new(None, r#"{"type":"custom-title","customTitle":"T"}"#, 0).unwrap();
    let append = Append::new(std::slice::from_ref(&title));
    fixture.store.append(&key, append.summary(last, r#"{"firstPrompt":"x"}"#)).await.unwrap();
    let later = NewEntry::new(None, r#"{"type":"custom-title","customTitle":"U"}"#, 0).unwrap();
    fixture.store.append(&key, Append::new(&[later])).await.unwrap();
    let info = &stored.list(ListFilter::new()).await.unwrap().sessions[0];
    assert_eq!((info.summary.as_str(), &info.cwd), ("U", &None));
    // Data of another program.
    let entry = NewEntry::new(None, r#"{"type":"mode"}"#, 0).unwrap();
    let append = Append::new(std::slice::from_ref(&entry));
    let last = crate::store::Sequence::new(6);
    fixture.store.append(&key, append.summary(last, "not json")).await.unwrap();
    let info = &stored.list(ListFilter::new()).await.unwrap().sessions[0];
    assert_eq!((info.summary.as_str(), info.cwd.as_deref()), ("U", Some("/srv")));
}

#[tokio::test]
async fn what_a_store_does_not_keep_is_an_error() {
    let fixture = StoreFixture::new(FaultyStore::default());
    fixture.write_with_subagent(1, 1);
    let stored = fixture.stored();
    fixture.disk.history.copy_to(&id(1), &stored).await.unwrap();
    for error in [
        stored.archive(&id(1)).await.unwrap_err(),
        stored.unarchive(&id(1)).await.unwrap_err(),
        stored.follow(&id(1)).await.map(drop).unwrap_err(),
        stored.is_live(&id(1)).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[tokio::test]
async fn a_deleted_session_cannot_be_written_by_its_owner() {
    let fixture = StoreFixture::new(FaultyStore::default());
    fixture.write_with_subagent(1, 1);
    let (stored, key) = (fixture.stored(), fixture.key(1));
    fixture.disk.history.copy_to(&id(1), &stored).await.unwrap();
    let epoch = fixture.store.claim(&key).await.unwrap();
    stored.delete(&id(1)).await.unwrap();
    let entry = NewEntry::new(None, "{}", 0).unwrap();
    let append = Append::new(std::slice::from_ref(&entry)).epoch(epoch);
    assert!(fixture.store.append(&key, append).await.is_err());
}

#[tokio::test]
async fn a_call_can_be_repeated_after_a_failure_of_the_store() {
    let fixture = StoreFixture::new(FaultyStore { page: 1, ..FaultyStore::default() });
    fixture.write_with_subagent(1, 2);
    let stored = fixture.stored();
    fixture.disk.history.copy_to(&id(1), &stored).await.unwrap();
    fixture.store.fail_after(2);
    let error = stored.open(&id(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreFailed);
    assert!(error.is_retryable());
    fixture.store.repair();
    let transcript = stored.open(&id(1)).await.unwrap();
    assert_eq!(transcript.entries().unwrap().len(), 4);
}

#[test]
fn a_store_on_a_runtime_without_timers_is_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stored = StoreFixture::new(FaultyStore::default()).stored();
    runtime.block_on(async {
        for error in [
            stored.list(ListFilter::new()).await.unwrap_err(),
            stored.info(&id(1)).await.unwrap_err(),
            stored.messages(&id(1), MessageFilter::default()).await.unwrap_err(),
            stored.subagents(&id(1)).await.unwrap_err(),
            stored.rename(&id(1), "t").await.unwrap_err(),
            stored.fork(&id(1), ForkOptions::new()).await.unwrap_err(),
            stored.delete(&id(1)).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NoRuntime, "{error}");
            assert!(error.to_string().contains("has no timers"), "{error}");
        }
    });
}
