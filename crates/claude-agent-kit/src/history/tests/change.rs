//! Changes.

use super::*;

#[tokio::test]
async fn title_and_tag_are_appended_as_whole_lines() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    fixture.history.rename(&id(1), "  My \"title\" ").await.unwrap();
    fixture.history.tag(&id(1), Some("wip\u{200b}")).await.unwrap();
    let info = fixture.history.info(&id(1)).await.unwrap().unwrap();
    assert_eq!(info.custom_title.as_deref(), Some("My \"title\""));
    assert_eq!(info.tag.as_deref(), Some("wip"));
    fixture.history.tag(&id(1), None).await.unwrap();
    assert_eq!(fixture.history.info(&id(1)).await.unwrap().unwrap().tag, None);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
    for error in [
        fixture.history.rename(&id(1), " ").await.unwrap_err(),
        fixture.history.tag(&id(1), Some("")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    }
    let error = fixture.history.rename(&id(2), "t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
    assert_eq!(error.session_id(), Some(&id(2)));
    assert!(!path.with_file_name(format!("{}.jsonl", id(2))).exists());
}

#[tokio::test]
async fn line_behind_a_torn_one_starts_with_a_line_break() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{before}{{\"type\":\"us")).unwrap();
    fixture.history.rename(&id(1), "t").await.unwrap();
    let after = fs::read_to_string(&path).unwrap();
    let expected = format!(
        "{before}{{\"type\":\"us\n{{\"type\":\"custom-title\",\"customTitle\":\"t\",\"sessionId\":\"{}\"}}\n",
        id(1)
    );
    assert_eq!(after, expected);
}

#[test]
fn line_that_was_overwritten_is_noticed() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    let line = b"{\"type\":\"tag\"}\n";
    assert!(!crate::history::change::ends_with_line(&path, line).unwrap());
    fs::write(&path, [&fs::read(&path).unwrap()[..], line, b"{}\n"].concat()).unwrap();
    assert!(crate::history::change::ends_with_line(&path, line).unwrap());
    // Glued to another line it does not count.
    fs::write(&path, [b"{\"ty", &line[..]].concat()).unwrap();
    assert!(!crate::history::change::ends_with_line(&path, line).unwrap());
    fs::remove_file(&path).unwrap();
    assert!(!crate::history::change::ends_with_line(&path, line).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_changes_keep_every_line_whole() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let history = fixture.history.clone();
            tokio::spawn(async move { history.rename(&id(1), format!("title {number}")).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 41);
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[tokio::test]
async fn fork_has_a_new_id_and_leaves_the_source_unchanged() {
    let fixture = Fixture::new();
    let path = fixture.write(1, &conversation(3, &fixture.work()));
    let before = fs::read(&path).unwrap();
    let history = &fixture.history;
    let copy = history.fork(&id(1), ForkOptions::new()).await.unwrap();
    let info = history.info(&copy).await.unwrap().unwrap();
    assert_eq!(info.custom_title.as_deref(), Some("Question 0 (fork)"));
    let messages = history.messages(&copy, MessageFilter::default()).await.unwrap();
    assert_eq!(messages.len(), 6);
    let options = ForkOptions::new().up_to("a0").title("Short");
    let short = history.fork(&id(1), options).await.unwrap();
    let messages = history.messages(&short, MessageFilter::default()).await.unwrap();
    assert_eq!(texts(messages).await, ["Question 0", "Answer 0"]);
    assert_eq!(history.info(&short).await.unwrap().unwrap().summary, "Short");
    assert_eq!(fs::read(&path).unwrap(), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(info.path.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn failed_fork_leaves_no_file() {
    let fixture = Fixture::new();
    let path = fixture.write(1, &conversation(1, &fixture.work()));
    let unknown = ForkOptions::new().up_to("unknown");
    let blank = ForkOptions::new().title(" ");
    for options in [unknown, blank] {
        let error = fixture.history.fork(&id(1), options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    }
    fixture.write(2, &[json!({"type": "custom-title", "customTitle": "t"})]);
    let error = fixture.history.fork(&id(2), ForkOptions::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
}

#[tokio::test]
async fn archiving_is_written_beside_every_copy() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    let other = fixture.folder(Path::new("/elsewhere")).join(path.file_name().unwrap());
    fs::copy(&path, &other).unwrap();
    let history = &fixture.history;
    for expected in [true, false] {
        if expected {
            history.archive(&id(1)).await.unwrap();
        } else {
            history.unarchive(&id(1)).await.unwrap();
        }
        for path in [&path, &other] {
            let folder = path.with_extension("");
            let text = fs::read(folder.join("archived.json")).unwrap();
            let value: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!((&value["archived"], &value["by"]), (&json!(expected), &json!("sdk")));
            assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
        }
        let info = history.info(&id(1)).await.unwrap().unwrap();
        assert_eq!(info.archived, Some(expected));
    }
    assert_eq!(history.archive(&id(2)).await.unwrap_err().kind(), ErrorKind::ConversationNotFound);
}

#[tokio::test]
async fn deleting_removes_the_transcript_and_its_folder() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    fs::create_dir_all(path.with_extension("").join("subagents")).unwrap();
    fixture.write_at(2, 1_000_000);
    fixture.history.delete(&id(1)).await.unwrap();
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    let error = fixture.history.delete(&id(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
}

/// Writes an entry of the CLI's registry.
fn register(fixture: &Fixture, pid: u32, entry: &Value) {
    let folder = fixture.history.config_dir().unwrap().join("sessions");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{pid}.json")), entry.to_string()).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn live_session_is_deleted_only_by_force() {
    let fixture = Fixture::new();
    fixture.write_at(1, 1_000_000);
    let history = &fixture.history;
    assert!(!history.is_live(&id(1)).await.unwrap());
    let pid = std::process::id();
    register(&fixture, pid, &json!({"pid": pid, "sessionId": id(1).as_str()}));
    assert!(history.is_live(&id(1)).await.unwrap());
    assert!(!history.is_live(&id(2)).await.unwrap());
    let error = history.delete(&id(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SessionLive);
    assert!(error.to_string().contains(&format!("(process {pid})")), "{error}");
    history.force_delete(&id(1)).await.unwrap();
    assert_eq!(history.info(&id(1)).await.unwrap(), None);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn registry_entry_of_a_process_that_is_gone_is_ignored() {
    let fixture = Fixture::new();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = child.id();
    child.wait().unwrap();
    register(&fixture, gone, &json!({"pid": gone, "sessionId": id(1).as_str()}));
    assert!(!fixture.history.is_live(&id(1)).await.unwrap());
    // The ID of this process was that of a CLI long ago.
    let pid = std::process::id();
    register(&fixture, pid, &json!({"pid": pid, "sessionId": id(1).as_str(), "startedAt": 1000}));
    assert!(!fixture.history.is_live(&id(1)).await.unwrap());
    fs::write(fixture.history.config_dir().unwrap().join("sessions/9.json"), "not json").unwrap();
    assert!(!fixture.history.is_live(&id(1)).await.unwrap());
}
