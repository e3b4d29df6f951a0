use std::time::Duration;

use bytes::Bytes;

use super::{Channel, Entry, EntryKind, Exit, Header, Recording};

const HEADER: &str = r#"## {"format":1,"cli_version":"2.1.325","date":"2026-11-15","scenario":"s","about":"a","argv":["-v"],"env":{"CLAUDE_X":"1"}}"#;

fn at(micros: u64, kind: EntryKind) -> Entry {
    Entry::new(Duration::from_micros(micros), kind)
}

#[test]
fn every_entry_kind_round_trips() {
    let line = |bytes: &'static [u8]| Bytes::from_static(bytes);
    let entries = vec![
        at(0, EntryKind::Sent(line(b"{\"type\":\"user\"}"))),
        at(1, EntryKind::Received(line(b"\xff\xfe not UTF-8 \r"))),
        at(2_000_000, EntryKind::Received(line(b""))),
        at(2_000_001, EntryKind::Received(line(b"  spaces  "))),
        at(2_000_002, EntryKind::Stderr(line(b"EXIT 1 0"))),
        at(2_000_003, EntryKind::Sent(line(b"EOF"))),
        at(2_000_004, EntryKind::Unfinished(Channel::Sent, line(b"{\"ty"))),
        at(2_000_005, EntryKind::Unfinished(Channel::Received, line(b"{"))),
        at(2_000_006, EntryKind::Unfinished(Channel::Stderr, line(b"\xc3"))),
        at(2_000_007, EntryKind::StdinClosed),
        at(2_000_008, EntryKind::StdoutClosed),
        at(61_000_000, EntryKind::Exited(Exit::Signal(15))),
        at(61_000_000, EntryKind::Exited(Exit::Signal(64))),
        at(61_000_001, EntryKind::Exited(Exit::Code(143))),
    ];
    let recording = Recording::new(Header::new("all"), entries);
    assert_eq!(Recording::parse(&recording.to_bytes()), Ok(recording));
}

#[test]
fn a_parsed_file_is_written_unchanged() {
    let file = format!(
        "{HEADER}\n>> 0.000123 {{\"a\":1}}\n<< 0.512034 {{}}\n!! 0.600000 text\n>> 1.200000 EOF\n<| 1.290000\nEXIT 1.300000 SIGTERM\n"
    );
    let recording = Recording::parse(file.as_bytes()).unwrap();
    assert_eq!(recording.exit(), Some(Exit::Signal(15)));
    assert_eq!(recording.sent().count(), 1);
    assert_eq!(recording.received().count(), 1);
    assert_eq!(recording.to_bytes(), file.as_bytes());
}

#[test]
fn a_parse_error_names_the_line_and_the_reason() {
    #[track_caller]
    fn check(file: &str, line: usize, reason: &str) {
        let error = Recording::parse(file.as_bytes()).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
    check("", 1, "empty");
    check("<< 0.1 {}", 1, "must start with `## `");
    check("## {\"format\":3}", 1, "unsupported format 3; the newest supported one is 2");
    check("## {\"format\":0}", 1, "unsupported format 0");
    check("## nonsense", 1, "invalid header");
    check(&format!("{HEADER}\n<< 0.1 {{}}\n?? 0.2 x"), 3, "unknown mark `??`");
    check(&format!("{HEADER}\n<< soon {{}}"), 2, "`soon` is not a time");
    check(&format!("{HEADER}\n<< 0.1 {{}}\n\n"), 3, "is not a time");
    check(&format!("{HEADER}\nEXIT 1.0 tired"), 2, "neither an exit code nor a signal");
}
