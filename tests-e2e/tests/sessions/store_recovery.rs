//! What the recovery of ended runs may send to a store, and what it may not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claude_agent_kit::id::SessionId;
use claude_agent_kit::store::{
    Append, Epoch, MemoryStore, NewEntry, Recovered, RecoveryOutcome, SessionKey, SessionStore,
    StoreErrorKind, recover,
};
use claude_agent_kit::{Conversation, Exit, Session};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;
use tests_e2e::workspace::is_root;

use crate::helpers::{in_memory, on_both, start, turn};
use crate::store_mirror::FaultyStore;
use crate::store_resume::{Machine, entries, prompts, script};
use crate::support::{SIM, in_time, real, run};

/// Kills the CLI of a session, and waits for the end of the run.
async fn kill(session: &Session) {
    let pid = i32::try_from(session.pid().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(in_time(session.stop()).await.unwrap(), Some(Exit::Signal(9)));
}

/// Checks that a session is still owned by its host.
async fn check_owner(owner: Session) {
    assert_eq!(turn(&owner, "three").await.stored, Some(true));
    in_time(owner.stop()).await.unwrap();
}

fn stored(recovered: &[Recovered]) -> u64 {
    match recovered {
        [Recovered { outcome: RecoveryOutcome::Stored(count), .. }] => *count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fork_whose_cli_is_killed_leaves_its_origin_to_the_owner() {
    run(async {
        for harness in [
            Harness::sim_process(script(), SIM).await.unwrap(),
            Harness::real(script(), real()).await.unwrap(),
        ] {
            let store = Arc::new(MemoryStore::new());
            let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
            let (id, _) = a.ask("one", &store, Conversation::new()).await;
            let resume = Conversation::resume(id.clone());
            let owner = start(a.options(&store).conversation(resume)).await;
            let fork = start(b.options(&store).conversation(Conversation::fork(id.clone()))).await;
            turn(&fork, "two").await;
            let copy = fork.session_id().unwrap();
            kill(&fork).await;
            check_owner(owner).await;
            assert_eq!(b.private_folders(), [] as [PathBuf; 0]);
            a.ask("four", &store, Conversation::resume(copy)).await;
            assert_eq!(prompts(&harness), ["one", "two", "four"]);
        }
    });
}

#[test]
fn a_recovered_fork_leaves_its_origin_to_the_owner() {
    on_both(script, async |harness| {
        // The session of the fork can be claimed and has an epoch, or cannot and has none.
        for can_claim in [true, false] {
            let store = FaultyStore::new();
            let names = if can_claim { ["a", "b"] } else { ["c", "d"] };
            let [a, b] = names.map(|name| Machine::new(&harness, name));
            let (id, _) = a.ask("one", &store, Conversation::new()).await;
            let resume = Conversation::resume(id.clone());
            let owner = start(a.options(&store).conversation(resume)).await;
            let before = entries(&store.memory, &id).await;
            let fork = start(b.options(&store).conversation(Conversation::fork(id.clone()))).await;
            store.fail(StoreErrorKind::Rejected);
            if !can_claim {
                store.refuse_claims(StoreErrorKind::Rejected);
            }
            assert_eq!(turn(&fork, "two").await.stored, Some(false));
            let copy = fork.session_id().unwrap();
            in_time(fork.stop()).await.unwrap();
            store.fail(None);
            store.refuse_claims(None);
            let recovered = recover(&b.options(&store)).await.unwrap();
            assert!(stored(&recovered) > 1, "{recovered:?}");
            assert_eq!(entries(&store.memory, &id).await, before);
            check_owner(owner).await;
            assert_eq!(b.private_folders(), [] as [PathBuf; 0]);
            a.ask("four", &store, Conversation::resume(copy)).await;
            assert_eq!(prompts(&harness), ["one", "two", "four"]);
        }
    });
}

/// Writes what an agent could write: a note with these members, and a transcript of the session.
fn forge(machine: &Machine<'_>, id: &SessionId, members: &Value) -> PathBuf {
    let folder = machine.config().join("projects/claude-agent-kit-evil");
    fs::create_dir_all(&folder).unwrap();
    let mut note = json!({"scope": "tenant", "project": "app", "session": id.as_str(), "epochs": {},
        "restored": 0, "process": {}, "state": "ended"});
    for (name, value) in members.as_object().unwrap() {
        note[name] = value.clone();
    }
    fs::write(folder.join("session-store.json"), note.to_string()).unwrap();
    let entry = json!({"type": "user", "uuid": "aaaaaaaa-0000-4000-8000-000000000001",
        "message": {"role": "user", "content": "evil"}, "sessionId": id.as_str()});
    fs::write(folder.join(format!("{id}.jsonl")), format!("{entry}\n")).unwrap();
    folder
}

#[test]
fn a_forged_note_reaches_no_session_of_another_run() {
    in_memory(script(), async |harness| {
        let store = Arc::new(MemoryStore::new());
        let (a, x) = (Machine::new(&harness, "a"), Machine::new(&harness, "x"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let resume = Conversation::resume(id.clone());
        let owner = start(a.options(&store).conversation(resume)).await;
        // The CLI writes such an entry at the end of a turn. Its ID follows from the ID of the session.
        let latch = json!({"type": "atis-latch", "atis": "", "sessionId": id.as_str()});
        let latch = [NewEntry::new(None, latch.to_string(), 0).unwrap()];
        let key = SessionKey::new("tenant", "app", id.as_str()).unwrap();
        store.append(&key, Append::new(&latch).epoch(Epoch::new(2))).await.unwrap();
        let before = entries(&*store, &id).await;
        // The epoch of the owner is easy to guess.
        let live = json!({id.as_str(): 2});
        for members in [
            json!({}),
            json!({"epochs": live}),
            json!({"created": [id.as_str()]}),
            json!({"epochs": live, "created": [id.as_str()]}),
            json!({"epochs": live, "acknowledged": {id.as_str(): "x"}}),
            json!({"epochs": live, "acknowledged": {id.as_str(): latch[0].id().as_str()}}),
        ] {
            let folder = forge(&x, &id, &members);
            let recovered = recover(&x.options(&store)).await.unwrap();
            let outcome = RecoveryOutcome::Orphaned(folder.clone());
            assert!(
                matches!(&recovered[..], [it] if it.session == id && it.outcome == outcome),
                "{members}: {recovered:?}"
            );
            assert_eq!(entries(&*store, &id).await, before, "{members}");
            // What was not sent is kept, and reported once.
            assert!(folder.join(format!("{id}.jsonl")).exists());
            assert_eq!(recover(&x.options(&store)).await.unwrap(), []);
        }
        check_owner(owner).await;
    });
}

#[test]
fn a_note_of_another_user_is_ignored() {
    if !is_root() {
        return;
    }
    in_memory(script(), async |harness| {
        let store = Arc::new(MemoryStore::new());
        let x = Machine::new(&harness, "x");
        let id = SessionId::from("0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11");
        let folder = forge(&x, &id, &json!({"created": [id.as_str()]}));
        let note = folder.join("session-store.json");
        std::os::unix::fs::chown(&note, Some(65_534), Some(65_534)).unwrap();
        assert_eq!(recover(&x.options(&store)).await.unwrap(), []);
        assert_eq!(entries(&*store, &id).await, []);
        std::os::unix::fs::chown(&note, Some(0), Some(0)).unwrap();
        assert_eq!(stored(&recover(&x.options(&store)).await.unwrap()), 1);
    });
}

/// Returns how often the store has each text.
async fn counts(store: &dyn SessionStore, id: &SessionId) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (_, text) in entries(store, id).await {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

/// Removes the last entry that the store has from a file, as the CLI does when it retracts one, and returns
/// how often the file and the store together have each text, and how many lines the store lacks.
fn retract(path: &Path, stored: &BTreeMap<String, usize>) -> (BTreeMap<String, usize>, u64) {
    let text = fs::read_to_string(path).unwrap();
    let is_stored = |line: &&str| line.contains("\"uuid\"") && stored.contains_key(*line);
    let last = text.lines().rfind(is_stored).unwrap();
    fs::write(path, text.replace(&format!("{last}\n"), "")).unwrap();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.contains("\"api-request")) {
        *lines.entry(line).or_default() += 1;
    }
    let (mut all, mut missing) = (stored.clone(), 0);
    for (line, count) in lines {
        let known = all.entry(line.to_owned()).or_default();
        missing += count.saturating_sub(*known) as u64;
        *known = (*known).max(count);
    }
    (all, missing)
}

#[test]
fn every_entry_is_stored_once_after_a_retraction() {
    on_both(script, async |harness| {
        let store = FaultyStore::new();
        let (a, b) = (Machine::new(&harness, "a"), Machine::new(&harness, "b"));
        let (id, _) = a.ask("one", &store, Conversation::new()).await;
        let resume = Conversation::resume(id.clone());
        let session = start(b.options(&store).conversation(resume)).await;
        assert_eq!(turn(&session, "two").await.stored, Some(true));
        store.fail(StoreErrorKind::Rejected);
        assert_eq!(turn(&session, "three").await.stored, Some(false));
        in_time(session.stop()).await.unwrap();
        store.fail(None);
        let path = b.private_folders()[0].join(format!("{id}.jsonl"));
        let (expected, missing) = retract(&path, &counts(&store.memory, &id).await);
        assert!(missing > 0);
        let recovered = recover(&b.options(&store)).await.unwrap();
        assert_eq!(stored(&recovered), missing);
        assert_eq!(counts(&store.memory, &id).await, expected);
        assert_eq!(b.private_folders(), [] as [PathBuf; 0]);
    });
}
