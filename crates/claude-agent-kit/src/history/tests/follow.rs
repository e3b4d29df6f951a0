//! Following a transcript.

use std::io::Write as _;

use super::*;

fn append(path: &Path, text: &str) {
    File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

async fn follow(fixture: &Fixture) -> Follow {
    fixture.history.follow(&id(1)).await.unwrap().interval(Duration::from_millis(10))
}

async fn next_uuid(follow: &mut Follow) -> String {
    match next(follow).await {
        FollowEvent::Entry(entry) => entry.uuid().unwrap().into_owned(),
        event => format!("{event:?}"),
    }
}

async fn next(follow: &mut Follow) -> FollowEvent {
    tokio::time::timeout(Duration::from_secs(20), follow.next()).await.unwrap().unwrap()
}

#[tokio::test]
async fn entries_are_returned_as_they_are_written() {
    let fixture = Fixture::new();
    let lines = conversation(3, &fixture.work());
    let path = fixture.write(1, &lines[..2]);
    let mut follow = follow(&fixture).await;
    append(&path, &text(&lines[2..3]));
    assert_eq!(next_uuid(&mut follow).await, "u1");
    // A line in two writes is one entry.
    let (first, second) = (text(&lines[3..4]), text(&lines[4..5]));
    append(&path, &first[..30]);
    let early = tokio::time::timeout(Duration::from_millis(50), follow.next()).await;
    assert!(early.is_err());
    append(&path, &format!("{}{second}", &first[30..]));
    assert_eq!(next_uuid(&mut follow).await, "a1");
    assert_eq!(next_uuid(&mut follow).await, "u2");
    append(&path, "not json\n");
    let FollowEvent::Issue(issue) = next(&mut follow).await else { unreachable!("an issue") };
    assert_eq!(issue.kind, IssueKind::Malformed);
    assert_eq!(issue.offset + issue.len + 1, path.metadata().unwrap().len());
}

#[tokio::test]
async fn following_from_the_start_returns_everything() {
    let fixture = Fixture::new();
    fixture.write(1, &conversation(2, &fixture.work()));
    let mut follow = follow(&fixture).await.from_start();
    for expected in ["u0", "a0", "u1", "a1"] {
        assert_eq!(next_uuid(&mut follow).await, expected);
    }
}

#[tokio::test]
async fn following_survives_truncation_and_rewriting() {
    let fixture = Fixture::new();
    let lines = conversation(4, &fixture.work());
    let path = fixture.write(1, &lines[..4]);
    let mut follow = follow(&fixture).await;
    append(&path, &text(&lines[4..5]));
    assert_eq!(next_uuid(&mut follow).await, "u2");
    // The last message is retracted in place.
    let kept = text(&lines[..4]).len() as u64;
    File::options().write(true).open(&path).unwrap().set_len(kept).unwrap();
    assert!(matches!(next(&mut follow).await, FollowEvent::Rewritten));
    append(&path, &text(&lines[6..7]));
    assert_eq!(next_uuid(&mut follow).await, "u3");
    // One in the middle is cut out, and the file is replaced with one that is longer.
    let temporary = path.with_extension("tmp");
    let rewritten = [&lines[..1], &lines[2..4], &lines[6..8]].concat();
    fs::write(&temporary, text(&rewritten)).unwrap();
    fs::rename(&temporary, &path).unwrap();
    assert!(matches!(next(&mut follow).await, FollowEvent::Rewritten));
    assert_eq!(next_uuid(&mut follow).await, "a3");
}

#[tokio::test]
async fn following_continues_when_a_deleted_file_is_created_again() {
    let fixture = Fixture::new();
    let lines = conversation(2, &fixture.work());
    let path = fixture.write(1, &lines[..2]);
    let mut follow = follow(&fixture).await;
    fs::remove_file(&path).unwrap();
    assert!(matches!(next(&mut follow).await, FollowEvent::Removed));
    fs::write(&path, text(&lines[2..3])).unwrap();
    assert!(matches!(next(&mut follow).await, FollowEvent::Rewritten));
    assert_eq!(next_uuid(&mut follow).await, "u1");
}

#[tokio::test]
async fn following_waits_for_the_end_of_a_long_line() {
    let fixture = Fixture::new();
    let lines = conversation(1, &fixture.work());
    let path = fixture.write(1, &lines[..1]);
    let mut long = lines[1].clone();
    long["padding"] = json!("x".repeat(3 * 1024 * 1024));
    let long = text(&[long]);
    let (first, rest) = long.split_at(2 * 1024 * 1024);
    append(&path, first);
    let mut follow = follow(&fixture).await;
    append(&path, rest);
    assert_eq!(next_uuid(&mut follow).await, "a0");
}
