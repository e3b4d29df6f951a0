//! What a session store contains, and what it does not.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use claude_agent_kit::store::{
    Append, Load, MemoryStore, NewEntry, SessionKey, SessionStore, StoreOptions,
};
use claude_agent_kit::{Conversation, ErrorKind, Options, Session, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::support::{SIM, in_time, real, run};

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e13";

fn key() -> SessionKey {
    SessionKey::new("tenant", "app", ID).unwrap()
}

/// Returns options of a machine with its own config directory.
fn options(harness: &Harness, store: &Arc<MemoryStore>, machine: &str) -> Options {
    let config = harness.root().join(machine);
    fs::create_dir_all(&config).unwrap();
    harness
        .options()
        .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
        .allowed_tools(["Bash", "Read", "Task"])
        .store(StoreOptions::new("tenant", store.clone()).project("app"))
        .conversation(Conversation::resume_or_start(ID))
}

async fn ask(prompt: &str, options: Options) {
    let collected = in_time(query(prompt, options).await.unwrap().collect()).await;
    assert!(collected.error.is_none(), "{:?}", collected.error);
    assert_eq!(collected.stored, Some(true));
}

async fn texts(store: &MemoryStore) -> Vec<String> {
    let page = store.load(&key(), Load::all().limit(100_000)).await.unwrap();
    page.entries.iter().map(|entry| entry.text.to_string()).collect()
}

/// Returns the text of the last request to the model with this prompt.
fn request(harness: &Harness, prompt: &str) -> String {
    let requests = harness.api().requests();
    let request = requests.iter().rev().find(|it| it.last_prompt().as_deref() == Some(prompt));
    request.unwrap().body.to_string()
}

#[test]
fn a_session_without_a_turn_stores_no_entry() {
    run(async {
        let script = || Script::new().otherwise([Reply::text("Hello.")]);
        for harness in [
            Harness::in_memory(script()).await.unwrap(),
            Harness::sim_process(script(), SIM).await.unwrap(),
        ] {
            let store = Arc::new(MemoryStore::new());
            let options = options(&harness, &store, "a");
            let session = in_time(Session::start(&options)).await.unwrap();
            assert_eq!(session.session_id().unwrap(), ID);
            in_time(session.stop()).await.unwrap();
            assert_eq!(texts(&store).await, [""; 0]);
            // The store is used: a turn is stored.
            ask("one", options).await;
            assert!(!texts(&store).await.is_empty());
        }
    });
}

#[test]
fn a_start_without_a_cli_takes_no_session_from_its_owner() {
    run(async {
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let harness = Harness::sim_process(script, SIM).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        ask("one", options(&harness, &store, "a")).await;
        let epoch = store.claim(&key()).await.unwrap();
        let options = options(&harness, &store, "b").cli_path(harness.root().join("missing"));
        let error = Session::start(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CliNotFound, "{error}");
        // The next claim follows that of the owner.
        assert_eq!(store.claim(&key()).await.unwrap().get(), epoch.get() + 1);
    });
}

#[test]
fn a_large_tool_output_is_stored_as_far_as_the_model_saw_it() {
    run(async {
        let call = json!({"command": "seq 1 100000", "description": "Counts"});
        let script = Script::new()
            .when("count", [Reply::tool("Bash", call), Reply::text("Done.")])
            .otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        ask("count", options(&harness, &store, "a")).await;
        let stored = texts(&store).await.concat();
        assert!(stored.contains("tool-results"), "the transcript names the file");
        assert!(!stored.contains("\\n99999\\n100000"), "the file itself is not stored");
        // The file is on the other machine; the conversation continues with its beginning.
        ask("go on", options(&harness, &store, "b")).await;
        let seen = request(&harness, "go on");
        assert!(seen.contains("persisted-output") && seen.contains("\\n100\\n"), "{seen}");
    });
}

#[test]
fn an_entry_that_the_cli_retracted_is_not_part_of_the_conversation() {
    run(async {
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        ask("one", options(&harness, &store, "a")).await;
        // The CLI cuts such an entry out of its file, which it does not report.
        let entries = texts(&store).await;
        let answer = entries.iter().find(|text| text.contains("\"type\":\"assistant\"")).unwrap();
        let mut retracted: Value = serde_json::from_str(answer).unwrap();
        retracted["uuid"] = "aaaaaaaa-0000-4000-8000-000000000001".into();
        retracted["message"]["id"] = "msg_retracted".into();
        retracted["message"]["content"][0]["text"] = "retracted words".into();
        retracted["timestamp"] = "2020-01-01T00:00:00.000Z".into();
        let retracted = NewEntry::new(None, retracted.to_string(), 0).unwrap();
        let at = entries.iter().position(|text| text == answer).unwrap();
        let copy = Arc::new(MemoryStore::new());
        let mut occurrences = claude_agent_kit::store::Occurrences::new();
        let mut all: Vec<NewEntry> =
            entries.iter().map(|text| occurrences.entry(None, text.as_str()).unwrap()).collect();
        all.insert(at, retracted);
        copy.append(&key(), Append::new(&all)).await.unwrap();
        ask("two", options(&harness, &copy, "b")).await;
        let seen = request(&harness, "two");
        assert!(seen.contains("\"one\"") && seen.contains("Hello."), "{seen}");
        assert!(!seen.contains("retracted words"), "{seen}");
    });
}

#[test]
fn transcripts_of_subagents_move_with_the_conversation() {
    run(async {
        let call = json!({"description": "Look", "prompt": "look around", "subagent_type": "general-purpose"});
        let script = Script::new()
            .when("look around", [Reply::text("Nothing there.")])
            .when("delegate", [Reply::tool("Task", call), Reply::text("Done.")])
            .otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        let session = in_time(Session::start(options(&harness, &store, "a"))).await.unwrap();
        in_time(session.send("delegate").await.unwrap().finish()).await.unwrap();
        in_time(session.stop()).await.unwrap();
        let before = store.subpaths(&key()).await.unwrap();
        assert_eq!(before.len(), 1);
        ask("go on", options(&harness, &store, "b")).await;
        assert_eq!(store.subpaths(&key()).await.unwrap(), before);
        ask("go on again", options(&harness, &store, "a")).await;
        let seen = request(&harness, "go on again");
        assert!(seen.contains("Nothing there."), "{seen}");
    });
}

/// Returns whether a file below a directory contains the text, and which.
fn files_with(directory: &Path, text: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files_with(&path, text, found);
        } else if fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
        {
            found.push(path.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn credentials_reach_neither_the_store_nor_new_files() {
    run(async {
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        ask("one", options(&harness, &store, "a")).await;
        let secrets = ["sk-ant-planted-key-0001", "planted-token-0002", "planted-option-0003"];
        let config = harness.root().join("b");
        fs::create_dir_all(&config).unwrap();
        let credentials = config.join(".credentials.json");
        let login = json!({"claudeAiOauth": {"accessToken": secrets[1], "refreshToken": secrets[1],
            "expiresAt": 4_102_444_800_000_u64, "scopes": ["user:inference"]}});
        fs::write(&credentials, login.to_string()).unwrap();
        let options = options(&harness, &store, "b")
            .env("ANTHROPIC_API_KEY", secrets[0])
            .env("MY_OPTION", secrets[2]);
        ask("two", options).await;
        let stored = texts(&store).await.concat();
        for secret in secrets {
            assert!(!stored.contains(secret), "{secret} is stored");
            let mut found = Vec::new();
            files_with(&config, secret, &mut found);
            found.retain(|path| !path.ends_with(".credentials.json"));
            assert_eq!(found, [] as [String; 0], "{secret}");
        }
        assert_eq!(fs::read_to_string(credentials).unwrap(), login.to_string());
    });
}

#[test]
fn a_cleared_and_compacted_conversation_is_stored_under_its_ids() {
    run(async {
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        ask("one", options(&harness, &store, "a")).await;
        // On another machine, where the files of the conversation are temporary.
        let session = in_time(Session::start(options(&harness, &store, "b"))).await.unwrap();
        let mut stored = Vec::new();
        for prompt in ["two", "/compact", "three", "/clear", "four"] {
            let outcome = in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
            stored.push(outcome.stored);
        }
        assert_eq!(stored, [Some(true); 5]);
        let cleared = session.session_id().unwrap();
        assert_ne!(cleared.as_str(), ID);
        in_time(session.stop()).await.unwrap();
        let folders = fs::read_dir(harness.root().join("b/projects")).unwrap();
        let folders: Vec<String> =
            folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(!folders.iter().any(|name| name.starts_with("claude-agent-kit")), "{folders:?}");

        let options = options(&harness, &store, "a");
        ask("five", options.clone().conversation(Conversation::resume(cleared))).await;
        let seen = request(&harness, "five");
        assert!(seen.contains("\"four\"") && !seen.contains("\"three\""), "{seen}");
        ask("six", options).await;
        let seen = request(&harness, "six");
        assert!(seen.contains("\"three\"") && !seen.contains("\"four\""), "{seen}");
        assert!(seen.contains("continued from a previous conversation"), "{seen}");
    });
}

#[test]
fn a_config_directory_that_settings_move_is_not_used_silently() {
    run(async {
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        ask("one", options(&harness, &store, "a")).await;
        let options = options(&harness, &store, "b");
        let moved = harness.root().join("moved");
        let settings = json!({"env": {"CLAUDE_CONFIG_DIR": moved}});
        fs::write(harness.root().join("b/settings.json"), settings.to_string()).unwrap();
        let collected = in_time(query("two", options).await.unwrap().collect()).await;
        // A new conversation would be mixed with the one in the store.
        let error = collected.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        let stored = texts(&store).await.concat();
        assert!(stored.contains("one") && !stored.contains("\"two\""));
    });
}
