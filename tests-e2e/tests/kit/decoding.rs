//! Queries with malformed, oversized and incomplete lines.

use claude_agent_kit::Exit;
use claude_agent_kit::{ErrorKind, Limits, Timeouts, WarningCode, query};
use claude_agent_testkit::sim::{Fault, Faults};
use claude_wire::Body;
use tests_e2e::harness::processes::exists;

use crate::support::{
    SIM, ask, codes, count, error_of, faulty, faulty_process, host, kind_of, kinds,
    record_warnings, run,
};

const MIB: usize = 1024 * 1024;

/// Returns faults that write these bytes before the answer.
fn faults_writing(bytes: impl Into<Vec<u8>>) -> Faults {
    Faults::new().before("assistant", Fault::Bytes(bytes.into()))
}

#[test]
fn malformed_lines_are_warnings_with_their_bytes() {
    let lines: [&[u8]; 4] = [b"this is not JSON", b"[1, 2]", b"{\"kind\":\"x\"}", b"\xff\xfe("];
    run(async {
        let harness = faulty(faults_writing([lines.join(&b'\n').as_slice(), b"\n"].concat())).await;
        let (options, noted) = record_warnings(harness.options());
        let collected = ask("hello", options).await;
        let reported: Vec<&[u8]> =
            collected.warnings().map(|warning| &**warning.line().unwrap()).collect();
        assert_eq!(reported, lines);
        assert_eq!(codes(&collected), [WarningCode::Malformed; 4]);
        assert_eq!(
            *noted.lock().unwrap(),
            codes(&collected),
            "the callback receives the same warnings"
        );
        assert_eq!(collected.text(), "Hello.", "the query continues");
        assert!(collected.error.is_none());
    });
}

#[test]
fn fifth_malformed_line_in_a_row_ends_the_query() {
    run(async {
        let harness = faulty(faults_writing(b"one\ntwo\nthree\nfour\nfive\nsix\n")).await;
        let collected = ask("hello", harness.options()).await;
        assert_eq!(codes(&collected), [WarningCode::Malformed; 4]);
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::TooManyDecodeErrors);
        assert!(error.to_string().contains("5 lines in a row"), "{error}");
        assert_eq!(error.line().unwrap(), "five");
        assert!(error.help().is_some(), "{error}");
        assert!(collected.result().is_none());
        // The process ends as well.
        let faults = "before assistant line \"1\" line \"2\" line \"3\" line \"4\" line \"5\" hang";
        let harness = faulty_process(faults).await;
        let options = harness.options().timeouts(Timeouts::new().exit_grace(crate::support::SHORT));
        let mut stream = query("hello", options).await.unwrap();
        let pid = stream.pid().unwrap();
        let last = loop {
            match stream.next().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(last.kind(), ErrorKind::TooManyDecodeErrors);
        assert!(stream.next().await.is_none());
        assert!(stream.close().await.is_some());
        assert!(!exists(pid));
    });
}

#[test]
fn any_typed_object_resets_the_malformed_line_count() {
    let four = "garbage\n".repeat(4);
    let resets =
        ["{\"type\":\"weather\",\"sunny\":true}", "{\"type\":\"assistant\",\"message\":5}"];
    let bytes = format!("{four}{}\n{four}{}\n{four}", resets[0], resets[1]);
    run(async {
        let collected = ask("hello", faulty(faults_writing(bytes)).await.options()).await;
        let mut codes = codes(&collected);
        codes.retain(|code| *code != WarningCode::UnknownMessage);
        assert_eq!(codes, [WarningCode::Malformed; 12]);
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert!(collected.result().is_some());
    });
}

#[test]
fn unknown_and_undecodable_messages_are_delivered_with_their_bytes() {
    let weather = r#"{"type":"weather","sunny":true}"#;
    let strange = r#"{"type":"assistant","message":5}"#;
    let block = r#"{"type":"assistant","message":{"content":[{"type":"text","text":5}]}}"#;
    let surrogate = r#"{"type":"weather","text":"half \ud83d"}"#;
    run(async {
        let bytes = [weather, strange, block, surrogate, ""].join("\r\n");
        let collected = ask("hello", faulty(faults_writing(bytes)).await.options()).await;
        // Reported once, although the message came twice.
        assert_eq!(codes(&collected), [WarningCode::UnknownMessage]);
        let found = |raw: &str| {
            let mut messages = collected.messages();
            messages.find(|message| message.raw_str() == Some(raw)).unwrap()
        };
        assert!(matches!(found(weather).body, Body::Unknown(_)));
        assert!(found(strange).undecodable().is_some());
        assert!(matches!(found(block).body, Body::Assistant(_)), "only the block is isolated");
        assert_eq!(count(&collected, "weather"), 2, "{:?}", kinds(&collected));
        assert!(found(surrogate).repaired() || matches!(found(surrogate).body, Body::Unknown(_)));
    });
}

#[test]
fn line_over_the_limit_ends_the_query() {
    run(async {
        for size in [64 * 1024 + 1, 200_000_usize] {
            let faults = Faults::new().before("assistant", Fault::LongLine(size));
            // Dropping a harness removes the working directory.
            let harness = faulty(faults.clone()).await;
            let limited = harness.options().limits(Limits::new().max_line_bytes(size - 1));
            let collected = ask("hello", limited).await;
            let error = error_of(&collected);
            assert_eq!(error.kind(), ErrorKind::LineTooLong);
            assert_eq!(error.size(), Some(size as u64));
            assert!(error.to_string().contains("max_line_bytes"), "{error}");
            assert!(collected.result().is_none());
            let harness = faulty(faults).await;
            let roomy = harness.options().limits(Limits::new().max_line_bytes(size));
            let collected = ask("hello", roomy).await;
            assert!(collected.error.is_none(), "{:?}", collected.error);
            assert_eq!(count(&collected, "flood"), 1);
        }
    });
}

/// Twice the limit, plus the basic memory use of a process.
const MAX_MEMORY: usize = 2 * 64 * MIB + 16 * MIB;

/// Returns how much memory the host used, in bytes.
fn memory_growth(output: &str) -> usize {
    let number = output.split("grown ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    number.parse::<usize>().unwrap() * 1024
}

#[test]
fn line_of_60_mib_uses_less_than_twice_the_limit() {
    let output = host(&["long-line", SIM, "60mb"]);
    assert!(output.starts_with(&format!("ended; longest {};", 60 * MIB)), "{output}");
    assert!(memory_growth(&output) < MAX_MEMORY, "{output}");
}

#[test]
fn line_of_65_mib_fails_without_more_memory() {
    let output = host(&["long-line", SIM, "65mb"]);
    assert!(output.starts_with(&format!("LineTooLong Some({})", 65 * MIB)), "{output}");
    assert!(memory_growth(&output) < MAX_MEMORY, "{output}");
}

#[test]
fn complete_last_line_without_newline_is_accepted() {
    let whole = "{\"type\":\"result\",\"is_error\":false,\"result\":\"Last.\"}";
    run(async {
        let faults = |exit| {
            Faults::new()
                .before("result", Fault::Bytes(whole.into()))
                .before("result", Fault::Exit(exit))
        };
        let collected = ask("hello", faulty(faults(0)).await.options()).await;
        assert_eq!((codes(&collected), kind_of(&collected)), (Vec::new(), None));
        assert_eq!(collected.result().unwrap().result.as_deref(), Some("Last."));
        let collected = ask("hello", faulty(faults(1)).await.options()).await;
        assert_eq!(codes(&collected), [WarningCode::NonZeroExitAfterResult]);
    });
}

#[test]
fn truncated_last_line_is_a_warning_or_part_of_the_error() {
    let half = "{\"type\":\"assist";
    run(async {
        for process in [true, false] {
            let harness = async |exit: i32| {
                if process {
                    let bytes = half.replace('"', "\\\"");
                    faulty_process(&format!("before result bytes \"{bytes}\" exit {exit}")).await
                } else {
                    let faults = Faults::new().before("result", Fault::Bytes(half.into()));
                    faulty(faults.before("result", Fault::Exit(exit))).await
                }
            };
            let collected = ask("hello", harness(0).await.options()).await;
            let expected = [WarningCode::IncompleteLastLine, WarningCode::ExitWithoutResult];
            assert_eq!(codes(&collected), expected);
            assert_eq!(collected.warnings().next().unwrap().line().unwrap(), half);
            assert!(collected.error.is_none());

            let collected = ask("hello", harness(1).await.options()).await;
            assert_eq!(codes(&collected), []);
            let error = error_of(&collected);
            assert_eq!(
                (error.kind(), error.exit()),
                (ErrorKind::ProcessFailed, Some(Exit::Code(1)))
            );
            assert_eq!(error.line().unwrap(), half);
        }
    });
}

#[test]
fn flood_of_messages_is_read_completely() {
    run(async {
        let faults = Faults::new()
            .before("assistant", Fault::Messages(20_000))
            .before("assistant", Fault::Stderr(MIB));
        let collected = ask("hello", faulty(faults).await.options()).await;
        assert_eq!(count(&collected, "assistant"), 20_001);
        assert!(collected.result().is_some());
    });
}
