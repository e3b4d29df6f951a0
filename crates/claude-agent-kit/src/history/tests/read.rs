//! Messages, entries, issues and subagents.

use super::*;
use crate::session_files::members::SessionFiles;
#[cfg(unix)]
use crate::session_files::open::counted;

#[tokio::test]
async fn messages_are_streamed_in_order_and_in_pages() {
    let fixture = Fixture::new();
    // More than one batch.
    fixture.write(1, &conversation(400, &fixture.work()));
    let all = fixture.history.messages(&id(1), MessageFilter::default()).await.unwrap();
    assert_eq!(all.len(), 800);
    let all = texts(all).await;
    assert_eq!((all.len(), all[0].as_str(), all[799].as_str()), (800, "Question 0", "Answer 399"));
    let transcript = fixture.history.open(&id(1)).await.unwrap();
    let page = transcript.messages(MessageFilter::default()).await.unwrap().skip(10).take(3);
    assert_eq!(texts(page).await, ["Question 5", "Answer 5", "Question 6"]);
    let mut rest = transcript.messages(MessageFilter::default()).await.unwrap();
    rest.next().await.unwrap().unwrap();
    // Behind what was decoded already.
    let rest = rest.skip(700).take(2);
    assert_eq!(texts(rest).await, ["Answer 350", "Question 351"]);
    let beyond = transcript.messages(MessageFilter::default()).await.unwrap().skip(9999);
    assert!(beyond.is_empty() && texts(beyond).await.is_empty());
}

#[tokio::test]
async fn long_transcripts_are_indexed_in_parts_with_the_same_result() {
    let fixture = Fixture::new();
    let mut lines = conversation(8000, &fixture.work());
    // Longer than a part, twice in a row: one begins where the other ends.
    for (at, text) in [(3, "x".repeat(5 << 20)), (4, "y\n".repeat(2 << 20))] {
        let (uuid, parent) = (format!("u{at}"), format!("a{}", at - 1));
        lines[2 * at] = prompt(&uuid, Some(&parent), &text, &fixture.work());
        lines[2 * at + 1] = response(&format!("a{at}"), &uuid, &text);
    }
    let mut bytes = text(&lines).into_bytes();
    bytes.extend(b"{\"type\":\"user\",\"uuid\":\"torn");
    assert!(bytes.len() > 24 << 20, "{}", bytes.len());
    fs::write(fixture.write(1, &lines), &bytes).unwrap();
    let mut whole = Index::new();
    whole.feed(&bytes);
    whole.finish();
    let transcript = fixture.history.open(&id(1)).await.unwrap();
    assert!(transcript.index().entries().eq(whole.entries()));
    assert_eq!(transcript.index().issues(), whole.issues());
    assert_eq!(transcript.index().position(), whole.position());
    assert_eq!(transcript.index().tree().messages(MessageFilter::default()).len(), 16_000);
    let messages = texts(transcript.messages(MessageFilter::default()).await.unwrap()).await;
    assert_eq!(messages[6], "x".repeat(5 << 20));
    assert_eq!(messages[9], "y\n".repeat(2 << 20));
    assert_eq!(messages[15_999], "Answer 7999");
}

#[tokio::test]
async fn bytes_of_entries_are_kept_on_request() {
    let fixture = Fixture::new();
    let long = prompt("u1", Some("a0"), &"é\n".repeat(200_000), &fixture.work());
    let mut lines = conversation(1, &fixture.work());
    lines.push(long);
    fixture.write(1, &lines);
    for keep in [false, true] {
        let mut entries = fixture.history.entries(&id(1)).await.unwrap();
        if keep {
            entries = entries.with_raw();
        }
        let mut position = 0;
        while let Some(entry) = entries.next().await {
            let entry = entry.unwrap();
            let line = lines[position].to_string();
            let raw = entry.raw().map(|raw| raw.to_vec());
            assert_eq!(raw, keep.then(|| line.clone().into_bytes()), "line {position}");
            assert_eq!(serde_json::to_value(&entry).unwrap(), lines[position]);
            position += 1;
        }
        assert_eq!(position, 3);
    }
    let last = fixture.history.last_messages(&id(1), 1, MessageFilter::default()).await.unwrap();
    assert_eq!(last[0].content().unwrap().to_text(), "é\n".repeat(200_000));
}

#[tokio::test]
async fn message_has_its_role_and_ids() {
    let fixture = Fixture::new();
    fixture.write(1, &conversation(1, &fixture.work()));
    let mut messages =
        fixture.history.messages(&id(1), MessageFilter::default()).await.unwrap().skip(1);
    let message = messages.next().await.unwrap().unwrap();
    assert_eq!(message.role, MessageRole::Assistant);
    assert_eq!((message.uuid().as_deref(), message.parent_agent_id.clone()), (Some("a0"), None));
    assert_eq!(message.entry.parent_uuid().as_deref(), Some("u0"));
    assert_eq!(message.entry.raw(), None);
    assert!(messages.next().await.is_none());
}

#[tokio::test]
async fn last_messages_equal_the_end_of_all_messages() {
    let fixture = Fixture::new();
    let mut lines = conversation(3000, &fixture.work());
    // The file is larger than the part that is read first.
    for line in &mut lines {
        line["padding"] = json!("x".repeat(500));
    }
    let path = fixture.write(1, &lines);
    assert!(path.metadata().unwrap().len() > 3 * 1024 * 1024);
    let filter = MessageFilter::default();
    let all = texts(fixture.history.messages(&id(1), filter).await.unwrap()).await;
    for count in [0, 1, 7, 2500, 5999, 6000, 9999] {
        let last = fixture.history.last_messages(&id(1), count, filter).await.unwrap();
        let last: Vec<String> =
            last.iter().map(|message| message.content().unwrap().to_text()).collect();
        assert_eq!(last, all[all.len().saturating_sub(count)..], "{count}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn last_messages_read_the_end_of_a_long_transcript_only() {
    let fixture = Fixture::new();
    let mut lines = conversation(4000, &fixture.work());
    for line in &mut lines {
        line["padding"] = json!("x".repeat(2000));
    }
    let path = fixture.write(1, &lines);
    let size = usize::try_from(path.metadata().unwrap().len()).unwrap();
    assert!(size > 16 * 1024 * 1024);
    let filter = MessageFilter::default();
    counted::take(&path);
    assert_eq!(fixture.history.last_messages(&id(1), 10, filter).await.unwrap().len(), 10);
    let read = counted::take(&path);
    assert!(read < 2 * 1024 * 1024, "{read} of {size} bytes");
    // Once for the index and once for the messages.
    assert_eq!(texts(fixture.history.messages(&id(1), filter).await.unwrap()).await.len(), 8000);
    let read = counted::take(&path);
    assert!((2 * size - 4096..2 * size + size / 10).contains(&read), "{read} of {size} bytes");
}

#[tokio::test]
async fn damaged_lines_are_reported_and_the_rest_is_read() {
    let fixture = Fixture::new();
    let lines = conversation(2, &fixture.work());
    let path = fixture.write(1, &[]);
    let (first, rest) = lines.split_at(2);
    let torn = &text(&rest[1..])[..40];
    let damaged = format!(
        "{}not json\n{}\0\0{}{torn}",
        text(first),
        text(&rest[..1]).trim_end(),
        text(&rest[1..])
    );
    fs::write(&path, damaged).unwrap();
    let transcript = fixture.history.open(&id(1)).await.unwrap();
    let messages = transcript.messages(MessageFilter::default()).await.unwrap();
    assert_eq!(texts(messages).await, ["Question 0", "Answer 0", "Question 1", "Answer 1"]);
    let issues = transcript.issues().await.unwrap();
    let kinds: Vec<IssueKind> = issues.iter().map(|issue| issue.kind).collect();
    assert!(
        kinds.contains(&IssueKind::Malformed) && kinds.contains(&IssueKind::Torn),
        "{issues:?}"
    );
    assert_eq!(fixture.history.issues(&id(1)).await.unwrap(), issues);
}

#[tokio::test]
async fn entries_and_branches_are_all_readable() {
    let fixture = Fixture::new();
    let mut lines = conversation(2, &fixture.work());
    lines.push(json!({"type": "custom-title", "customTitle": "t"}));
    // A second branch from the first response.
    lines.push(prompt("u9", Some("a0"), "Other question", &fixture.work()));
    fixture.write(1, &lines);
    let mut entries = fixture.history.entries(&id(1)).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(entry) = entries.next().await {
        kinds.push(entry.unwrap().kind().to_owned());
    }
    assert_eq!(kinds, ["user", "assistant", "user", "assistant", "custom-title", "user"]);
    let transcript = fixture.history.open(&id(1)).await.unwrap();
    let branches = transcript.branches().await.unwrap();
    assert_eq!(branches.len(), 2);
    let mut old = transcript.branch(branches[0]).await.unwrap();
    let mut uuids = Vec::new();
    while let Some(entry) = old.next().await {
        uuids.push(entry.unwrap().uuid().unwrap().into_owned());
    }
    assert_eq!(uuids, ["u0", "a0", "u1", "a1"]);
    fixture.write(2, &conversation(30, &fixture.work()));
    let other = fixture.history.open(&id(2)).await.unwrap();
    let foreign = other.branches().await.unwrap()[0];
    assert!(transcript.branch(foreign).await.unwrap().is_empty());
}

#[tokio::test]
async fn file_that_is_cut_while_it_is_read_is_an_error_per_message() {
    let fixture = Fixture::new();
    let path = fixture.write(1, &conversation(2, &fixture.work()));
    let mut messages = fixture.history.messages(&id(1), MessageFilter::default()).await.unwrap();
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    for _ in 0..4 {
        let error = messages.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HistoryIo);
        assert!(error.to_string().contains("was rewritten while it was read"), "{error}");
        assert!(error.is_retryable(), "{error}");
    }
    assert!(messages.next().await.is_none());
}

#[tokio::test]
async fn subagents_are_listed_with_their_parents_and_messages() {
    let fixture = Fixture::new();
    let path = fixture.write(1, &conversation(1, &fixture.work()));
    assert!(fixture.history.subagents(&id(1)).await.unwrap().is_empty());
    let folder = path.with_extension("").join("subagents/workflows/run");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent-a1.jsonl"), text(&conversation(2, &fixture.work()))).unwrap();
    fs::write(folder.join("journal.jsonl"), "{}\n").unwrap();
    fs::write(
        folder.join("agent-a1.meta.json"),
        r#"{"agentType":"Explore","description":"Look","toolUseId":"toolu_1","parentAgentId":"no/id"}"#,
    )
    .unwrap();
    let found = fixture.history.subagents(&id(1)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].agent_type.as_deref(), Some("Explore"));
    assert_eq!(found[0].parent_agent_id, None);
    let agent = &found[0].agent_id;
    let mut messages = fixture.history.subagent_messages(&id(1), agent).await.unwrap();
    assert_eq!(messages.len(), 4);
    let message = messages.next().await.unwrap().unwrap();
    assert_eq!(message.parent_tool_use_id, Some("toolu_1".into()));
    let error = fixture.history.subagent_messages(&id(1), &"a2".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
}

#[tokio::test]
async fn transcript_of_a_subagent_has_entries_and_issues() {
    let fixture = Fixture::new();
    let path = fixture.write(1, &conversation(1, &fixture.work()));
    let folder = path.with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    let lines = [text(&conversation(1, &fixture.work())), "{\"type\":\"us\n".to_owned()].concat();
    fs::write(folder.join("agent-a1.jsonl"), &lines).unwrap();
    let agent = crate::id::AgentId::from("a1");
    let transcript = fixture.history.open_subagent(&id(1), &agent).await.unwrap();
    assert_eq!(transcript.path(), Some(&*folder.join("agent-a1.jsonl")));
    let mut entries = transcript.entries().unwrap();
    assert_eq!(entries.len(), lines.lines().count() - 1);
    assert_eq!(entries.next().await.unwrap().unwrap().kind(), "user");
    let issues = transcript.issues().await.unwrap();
    assert_eq!(issues.iter().map(|issue| issue.kind).collect::<Vec<_>>(), [IssueKind::Torn]);
    let filter = MessageFilter::default();
    let messages = transcript.messages(filter).await.unwrap().len();
    assert_eq!(messages, fixture.history.subagent_messages(&id(1), &agent).await.unwrap().len());
}

#[tokio::test]
async fn entries_larger_than_a_batch_are_read_one_by_one() {
    let fixture = Fixture::new();
    let mut lines = conversation(3, &fixture.work());
    for line in [1, 2, 4] {
        lines[line]["padding"] = json!("x".repeat(2 * 1024 * 1024));
    }
    fixture.write(1, &lines);
    let messages = fixture.history.messages(&id(1), MessageFilter::default()).await.unwrap();
    let expected = ["Question 0", "Answer 0", "Question 1", "Answer 1", "Question 2", "Answer 2"];
    assert_eq!(texts(messages).await, expected);
    let last = fixture.history.last_messages(&id(1), 3, MessageFilter::default()).await.unwrap();
    assert_eq!(last.len(), 3);
}

#[test]
fn nothing_is_chosen_for_a_caller_that_is_gone() {
    let fixture = Fixture::new();
    let path = fixture.write(1, &conversation(3, &fixture.work()));
    let mut index = Index::new();
    index.feed(&fs::read(&path).unwrap());
    let located = SessionFiles { id: id(1), path: path.clone() };
    let flag = CancelFlag::default();
    let count = |tree: &Tree<'_>| tree.message_list(MessageFilter::default()).len();
    assert!(flag.choose(&index, count).unwrap() > 0);
    drop(CancelGuard(flag.clone()));
    let chosen = std::cell::Cell::new(usize::MAX);
    let error = flag.choose(&index, |tree| chosen.set(count(tree))).unwrap_err();
    assert_eq!(error.to_string(), "the call was cancelled");
    assert_eq!(chosen.get(), 0);
    let error = fork::fork(&located, &ForkOptions::new(), &flag).unwrap_err();
    assert_eq!(error.to_string(), "the call was cancelled");
    let files = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(files.count(), 1);
}
