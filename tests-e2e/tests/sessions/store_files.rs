//! Files of a config directory that an agent made: links, pipes, and files of other users.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::id::SessionId;
use claude_agent_kit::store::{
    Append, Appended, EntryId, EntryPage, Epoch, List, Load, MemoryStore, ProjectKey, Sequence,
    SessionKey, SessionList, SessionStore, StoreErrorKind, StoreFuture, StoreOptions, StoredEntry,
    Subpath,
};
use claude_agent_kit::{Conversation, ErrorKind, OsUser, Session, WarningCode};
use tests_e2e::harness::Harness;
use tests_e2e::workspace::is_root;

use crate::fake_cli::on_paused_clock;
use crate::helpers::{in_memory, start};
use crate::store_mirror::{CONTINUE, FaultyStore, Fixture, ID, PROJECT, message};
use crate::store_resume::{Machine, entries, script};
use crate::support::{FakeProgram, HANDSHAKE, RESULT, in_time, run};

const SECRET: &str = r#"{"display":"the password is HUNTER2"}"#;

/// Writes a file that no agent may read.
fn secret(folder: &Path) -> PathBuf {
    let path = folder.join("secret.json");
    fs::write(&path, format!("{SECRET}\n")).unwrap();
    path
}

/// Lets a store fail until the mirror is degraded, changes the files, and returns what the store has after
/// the store works again.
fn caught_up_after(change: impl FnOnce(&Path)) -> Vec<String> {
    on_paused_clock(async {
        let mut fixture = Fixture::new(CONTINUE).await;
        assert_eq!(fixture.written_turn(&[&message(1)]).await, Some(true));
        fixture.store.fail(StoreErrorKind::Unavailable);
        assert_eq!(fixture.written_turn(&[&message(2)]).await, Some(false));
        change(&fixture.path());
        fixture.store.fail(None);
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(fixture.codes(), [WarningCode::StoreDegraded]);
        fixture.stop().await.texts().await
    })
}

#[test]
fn a_transcript_that_became_a_link_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let secret = secret(folder.path());
    let stored = caught_up_after(|path| {
        fs::remove_file(path).unwrap();
        symlink(&secret, path).unwrap();
    });
    assert_eq!(stored, [message(1)]);
    // The same with the folder of the transcript.
    fs::write(folder.path().join(format!("{ID}.jsonl")), SECRET.to_owned() + "\n").unwrap();
    let stored = caught_up_after(|path| {
        let project = path.parent().unwrap();
        fs::remove_dir_all(project).unwrap();
        symlink(folder.path(), project).unwrap();
    });
    assert_eq!(stored, [message(1)]);
}

#[test]
fn a_path_outside_of_the_config_directory_is_not_read() {
    on_paused_clock(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("projects/{PROJECT}/{ID}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{SECRET}\n")).unwrap();
        let mut fixture = Fixture::new(CONTINUE).await;
        fixture.store.fail(StoreErrorKind::Unavailable);
        fixture.cli.mirror(&path.to_string_lossy(), &[&message(1)]).await;
        assert_eq!(fixture.written_turn(&[&message(2)]).await, Some(false));
        fixture.store.fail(None);
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(fixture.codes(), [WarningCode::StoreDegraded]);
        assert!(!fixture.stop().await.texts().await.concat().contains("HUNTER2"));
    });
}

/// A machine with a conversation that is not in a store.
async fn local_conversation(harness: &Harness) -> (Machine<'_>, SessionId, PathBuf) {
    let a = Machine::new(harness, "a");
    let (id, _) = a.ask("one", &Arc::new(MemoryStore::new()), Conversation::new()).await;
    let projects = fs::read_dir(a.config().join("projects")).unwrap();
    let folder = projects.map(|entry| entry.unwrap().path()).next().unwrap();
    (a, id, folder)
}

#[test]
fn links_beside_a_transcript_are_not_read() {
    in_memory(script(), async |harness| {
        let (a, id, folder) = local_conversation(&harness).await;
        let outside = harness.root().join("outside");
        fs::create_dir_all(&outside).unwrap();
        let secret = secret(&outside);
        let agents = folder.join(id.as_str()).join("subagents");
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("agent-a.jsonl"), format!("{}\n", message(1))).unwrap();
        symlink(&secret, agents.join("agent-a.meta.json")).unwrap();
        symlink(&secret, agents.join("agent-b.jsonl")).unwrap();
        fs::write(outside.join("agent-c.jsonl"), format!("{SECRET}\n")).unwrap();
        symlink(&outside, agents.join("linked")).unwrap();
        let store = Arc::new(MemoryStore::new());
        a.ask("two", &store, Conversation::resume(id.clone())).await;
        let texts: Vec<String> =
            entries(&*store, &id).await.into_iter().map(|(_, text)| text).collect();
        assert!(texts.contains(&message(1)), "{texts:?}");
        assert!(!texts.concat().contains("HUNTER2"), "{texts:?}");
    });
}

#[test]
fn a_pipe_in_place_of_a_transcript_is_an_error() {
    in_memory(script(), async |harness| {
        let (a, id, folder) = local_conversation(&harness).await;
        let path = folder.join(format!("{id}.jsonl"));
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let store = Arc::new(MemoryStore::new());
        let options = a.options(&store).conversation(Conversation::resume(id.clone()));
        let error = in_time(Session::start(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreFailed, "{error}");
        assert!(error.to_string().contains("not a regular file"), "{error}");
    });
}

/// A CLI that reports more than a stalled store lets the host keep, so that the rest is read from the file.
fn talkative(path: &Path) -> String {
    let path = path.display();
    let frame = format!(
        "printf '{{\"type\":\"transcript_mirror\",\"filePath\":\"{path}\",\"entries\":[\"'; \
         head -c 1000000 /dev/zero | tr '\\0' x; printf '\"]}}\\n'\n"
    );
    format!("{HANDSHAKE}{}{RESULT}read -r rest\n", frame.repeat(10))
}

#[test]
fn a_file_of_another_user_is_not_read() {
    let (user, group) = (65_534, 65_534);
    if !is_root() {
        return;
    }
    run(async {
        for is_own in [true, false] {
            let config = tempfile::tempdir().unwrap();
            let path = config.path().join(format!("projects/{PROJECT}/{ID}.jsonl"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // A hard link to a file of root; some systems let everybody make one.
            fs::hard_link(secret(config.path()), &path).unwrap();
            if is_own {
                std::os::unix::fs::chown(&path, Some(user), Some(group)).unwrap();
            }
            let fake = FakeProgram::new(&talkative(&path));
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(fake.path().parent().unwrap(), open).unwrap();
            let store = FaultyStore::new();
            store.stalled.send_replace(true);
            let options = fake
                .options()
                .user(OsUser::ids(user, group))
                .env("CLAUDE_CONFIG_DIR", config.path().to_string_lossy())
                .store(StoreOptions::new("tenant", store.clone()));
            let session = start(options).await;
            let outcome = in_time(session.send("go").await.unwrap().finish()).await.unwrap();
            assert_eq!(outcome.stored, Some(false));
            store.stalled.send_replace(false);
            in_time(session.stop()).await.unwrap();
            let expected = if is_own { vec![SECRET.to_owned()] } else { Vec::new() };
            assert_eq!(store.texts().await, expected);
        }
    });
}

/// A store whose sessions have no end.
#[derive(Default)]
struct EndlessStore(MemoryStore);

impl SessionStore for EndlessStore {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        self.0.claim(key)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        self.0.append(key, append)
    }

    fn load<'a>(&'a self, _: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        let next = Sequence::new(load.after.get() + 1);
        let entry = StoredEntry::new(next, None, EntryId::unique(), "{}");
        // Others run too.
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(EntryPage::new(vec![entry], true))
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        self.0.list(project, list)
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        self.0.subpaths(key)
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        self.0.delete(key, subpath)
    }
}

#[test]
fn a_store_without_end_fails_the_start() {
    in_memory(script(), async |harness| {
        let (a, id, _) = local_conversation(&harness).await;
        let store = Arc::new(EndlessStore::default());
        let options = a.options(&store).conversation(Conversation::resume(id));
        let error = in_time(Session::start(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreFailed, "{error}");
        assert!(error.to_string().contains("more of the session than"), "{error}");
    });
}
