//! Damaged transcripts: what can be read is read, and the rest is reported.

use claude_wire::transcript::{Entry, Index, IssueKind};

use super::transcript_lines::*;

/// The ids of all entries, and what is wrong as offset, length and kind.
fn read(bytes: &[u8]) -> (String, Vec<(u64, u64, IssueKind)>) {
    let index = index(bytes);
    let entries: Vec<_> = index.entries().collect();
    let issues = index.issues();
    (ids(bytes, &entries), issues.iter().map(|it| (it.offset, it.len, it.kind)).collect())
}

fn line(uuid: &str) -> String {
    user(uuid, None)
}

#[test]
fn whole_lines_have_no_issues() {
    let (a, b) = (line("a"), line("b"));
    for text in [
        format!("{a}\n{b}\n"),
        format!("{a}\r\n{b}\r\n"),
        format!("\n\n  {a}  \n\t\n{b}"),
        format!("{a}\n{b}"),
    ] {
        assert_eq!(read(text.as_bytes()), ("a b".to_owned(), Vec::new()), "{text:?}");
    }
}

#[test]
fn a_record_behind_a_torn_one_is_salvaged() {
    let (a, b, c) = (line("a"), line("b"), line("c"));
    // Wherever the first one was cut off.
    for cut in 1..a.len() {
        let text = format!("{}{b}\n{c}\n", &a[..cut]);
        let (found, issues) = read(text.as_bytes());
        assert_eq!(found, "b c", "cut at {cut}");
        let (cut, length) = (cut as u64, b.len() as u64);
        assert_eq!(
            issues,
            [(0, cut, IssueKind::Torn), (cut, length, IssueKind::Spliced)],
            "cut at {cut}"
        );
    }
}

#[test]
fn records_without_a_line_break_between_them_are_salvaged() {
    let (a, b, c) = (line("a"), line("b"), line("c"));
    let (found, issues) = read(format!("{a}{b} {c}\n").as_bytes());
    assert_eq!(found, "a b c");
    assert!(issues.iter().all(|issue| issue.2 == IssueKind::Spliced));
    assert_eq!(issues.len(), 2);
}

#[test]
fn a_record_inside_another_one_is_salvaged() {
    let (a, b) = (line("a"), line("b"));
    let (start, end) = a.split_at(30);
    let (found, issues) = read(format!("{start}{b}{end}\n").as_bytes());
    assert_eq!(found, "b");
    let kinds: Vec<_> = issues.iter().map(|issue| issue.2).collect();
    assert_eq!(kinds, [IssueKind::Torn, IssueKind::Spliced, IssueKind::Malformed]);
}

#[test]
fn a_state_entry_behind_a_torn_record_is_salvaged() {
    let title = r#"{"type":"custom-title","customTitle":"T","sessionId":"s"}"#;
    let text = format!("{}{title}\n", &line("a")[..40]);
    let (found, issues) = read(text.as_bytes());
    assert_eq!(found, "-");
    assert_eq!(issues[1].2, IssueKind::Spliced);
}

#[test]
fn nested_objects_of_a_torn_record_are_not_taken_for_records() {
    for text in [
        r#"{"parentUuid":null,"type":"user","message":{"content":[{"type":"text","text":"x"}"#,
        r#"{"parentUuid":null,"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","input":{"type":"tag"}}]"#,
    ] {
        let (found, issues) = read(text.as_bytes());
        assert_eq!(found, "", "{text}");
        assert_eq!(issues, [(0, text.len() as u64, IssueKind::Torn)]);
    }
}

#[test]
fn nul_bytes_in_front_of_a_record_are_skipped() {
    let (a, b) = (line("a"), line("b"));
    let text = format!("{a}\n\0\0\0\0{b}\n");
    let (found, issues) = read(text.as_bytes());
    assert_eq!(found, "a b");
    assert_eq!(issues, [(a.len() as u64 + 5, b.len() as u64, IssueKind::NulPrefixed)]);
    let text = format!("{a}\n\0\0\0\n{b}\n\0\0");
    let (found, issues) = read(text.as_bytes());
    assert_eq!(found, "a b");
    assert_eq!(issues.len(), 2);
    assert!(issues.iter().all(|issue| issue.2 == IssueKind::Nul));
}

#[test]
fn lines_that_are_not_entries_are_reported() {
    for text in ["5", "null", "[1]", "\"x\"", "{}", r#"{"type":5}"#, "garbage", "}{", "{\"a\" 1}"] {
        let (found, issues) = read(format!("{text}\n{}\n", line("a")).as_bytes());
        assert_eq!(found, "a", "{text}");
        assert_eq!(issues, [(0, text.len() as u64, IssueKind::Malformed)], "{text}");
    }
}

#[test]
fn a_last_line_that_is_cut_off_is_torn() {
    let (a, b) = (line("a"), line("b"));
    let text = format!("{a}\n{}", &b[..25]);
    let (found, issues) = read(text.as_bytes());
    assert_eq!(found, "a");
    assert_eq!(issues, [(a.len() as u64 + 1, 25, IssueKind::Torn)]);
}

#[test]
fn a_line_that_is_still_being_written_waits_for_its_end() {
    let a = line("a");
    let mut index = Index::new();
    index.feed(&a.as_bytes()[..20]);
    assert_eq!((index.len(), index.pending(), index.position()), (0, 20, 20));
    index.feed(&a.as_bytes()[20..]);
    index.feed(b"\n");
    assert_eq!((index.len(), index.pending()), (1, 0));
    assert!(index.issues().is_empty());
}

#[test]
fn invalid_characters_are_repaired() {
    let bytes = b"{\"parentUuid\":null,\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"content\":\"x\xff\"}}\n";
    let index = index(bytes);
    assert_eq!(index.len(), 1);
    assert_eq!(index.issues()[0].kind, IssueKind::Repaired);
    let entry = Entry::decode(bytes_of(bytes, index.get(0).unwrap()).to_vec()).unwrap();
    assert!(entry.is_repaired());
    // Characters that the index does not look at do no harm to it.
    let lone = br#"{"parentUuid":null,"type":"user","uuid":"a\ud83d","toolUseResult":"\ud83d"}"#;
    assert_eq!(super::transcript_lines::index(lone).len(), 1);
}

#[test]
fn unicode_line_separators_do_not_end_a_line() {
    let text = line("a").replace("prompt", "pro\u{2028}\u{2029}\u{85}mpt");
    assert_eq!(read(text.as_bytes()), ("a".to_owned(), Vec::new()));
}

#[test]
fn a_line_above_the_limit_is_skipped_with_bounded_memory() {
    let (a, b) = (line("a"), line("b"));
    let long = format!("{a}\n{{\"type\":\"x\",\"t\":\"{}\"}}\n{b}\n", "y".repeat(100_000));
    for size in [7, 1000, long.len()] {
        let mut index = Index::with_max_line_bytes(1000);
        for chunk in long.as_bytes().chunks(size) {
            index.feed(chunk);
        }
        index.finish();
        assert_eq!(index.len(), 2, "in chunks of {size}");
        let issues = index.issues();
        assert_eq!(issues.len(), 1);
        assert_eq!(issues[0].kind, IssueKind::Oversized);
        assert_eq!(issues[0].len, 100_019);
        assert_eq!(index.get(1).unwrap().offset(), (long.len() - b.len() - 1) as u64);
    }
}

#[test]
fn an_entry_takes_at_most_64_bytes() {
    let mut index = Index::new();
    let mut parent: Option<String> = None;
    for turn in 0..20_000 {
        let uuid = format!("{turn:08x}-0000-4000-8000-000000000000");
        let text = match turn % 3 {
            0 => user(&uuid, parent.as_deref()),
            1 => call(&uuid, parent.as_deref().unwrap(), &format!("m{turn}"), "t", turn % 3000),
            _ => result(&uuid, parent.as_deref().unwrap(), "t", turn % 3000),
        };
        index.feed(text.as_bytes());
        index.feed(b"\n");
        parent = Some(uuid);
    }
    // The rest is for the choice of the conversation, see `tests/memory.rs`.
    assert!(index.memory() / index.len() <= 50, "{}", index.memory() / index.len());
    assert_eq!(index.tree().conversation().len(), 20_000);
}
