//! Parsing of script files, and the errors for invalid ones.

#![expect(clippy::panic, reason = "a failure here fails the test")]

use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::fault::{Fault, Faults, Point};
use claude_agent_testkit::sim::script_file::{self, ScriptError};
use proptest::prelude::*;
use serde_json::json;

/// Checks that the file is parsed to this script.
#[track_caller]
fn check_script(file: &str, model: &Script) {
    let script = script_file::parse(file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format!("{:?}", script.model), format!("{model:?}"), "{file}");
}

/// Checks that the steps are parsed to this reply.
#[track_caller]
fn check_answer(steps: &str, reply: Reply) {
    check_script(&format!("otherwise\n{steps}"), &Script::new().otherwise([reply]));
}

/// Checks that the lines are parsed to these faults.
#[track_caller]
fn check_faults(lines: &str, expected: impl IntoIterator<Item = (Point, Fault)>) {
    let script =
        script_file::parse(&format!("faults\n{lines}")).unwrap_or_else(|error| panic!("{error}"));
    let expected =
        expected.into_iter().fold(Faults::new(), |faults, (point, fault)| faults.at(point, fault));
    assert_eq!(format!("{:?}", script.faults), format!("{expected:?}"), "{lines}");
}

#[test]
fn every_kind_of_content_can_be_scripted() {
    check_answer(r#"say "Hello.""#, Reply::text("Hello."));
    check_answer(r#"think "Hm." say "Yes.""#, Reply::thinking("Hm.").and_text("Yes."));
    check_answer("call Read", Reply::tool("Read", json!({})));
    check_answer(
        r#"call mcp__calc__add {"a": 2, "b": [3]}"#,
        Reply::tool("mcp__calc__add", json!({"a": 2, "b": [3]})),
    );
    check_answer(r#"call "my tool" {}"#, Reply::tool("my tool", json!({})));
    check_answer(
        "call Bash {\n  \"command\": \"echo '}' # no comment\"\n} # a comment\ncall Bash {}",
        Reply::tool("Bash", json!({"command": "echo '}' # no comment"}))
            .and_tool("Bash", json!({})),
    );
    check_answer(r#"raw "half \ud83d""#, Reply::new().raw_text_json(r#""half \ud83d""#));
    check_answer("nothing", Reply::new());
    check_answer(
        r#"error 529 overloaded_error "Overloaded""#,
        Reply::error(529, "overloaded_error", "Overloaded"),
    );
}

#[test]
fn every_delivery_option_can_be_scripted() {
    let hello = || Reply::text("Hello.");
    let check =
        |steps: &str, reply: Reply| check_answer(&format!("say \"Hello.\"\n{steps}"), reply);
    check("stop-reason max_tokens", hello().stop_reason("max_tokens"));
    check("usage 10 5", hello().usage(10, 5));
    check("deltas-of 4", hello().deltas_of(4));
    check(r#"header x-should-retry "false""#, hello().header("x-should-retry", "false"));
    check("retry-after 3", hello().retry_after(3));
    check("pause-before 200ms", hello().pause_before(Duration::from_millis(200)));
    check("pause-between 2s", hello().pause_between(Duration::from_secs(2)));
    check("hold", hello().hold());
    check("drop-after 3", hello().drop_after_events(3));
    check("usage 1 2 hold deltas-of 1", hello().usage(1, 2).hold().deltas_of(1));
    check_answer("hold say \"Hello.\"", hello().hold());
}

#[test]
fn strings_support_json_escapes() {
    check_answer(
        r#"say "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 é # no comment""#,
        Reply::text("\"\\/\u{8}\u{c}\n\r\té😀 é # no comment"),
    );
}

#[test]
fn rules_keep_the_order_of_the_file() {
    let file = r#"
        otherwise
            say "Eh?"
        when "a" say "1" then call T {} then say "2"
        when attempts "b"
            error 429 rate_limit_error "slow down" retry-after 1
            then
            say "Now."
        since "c" say "3"
    "#;
    let slow = Reply::error(429, "rate_limit_error", "slow down").retry_after(1);
    let model = Script::new()
        .when("a", [Reply::text("1"), Reply::tool("T", json!({})), Reply::text("2")])
        .when_attempts("b", [slow, Reply::text("Now.")])
        .since("c", [Reply::text("3")])
        .otherwise([Reply::text("Eh?")]);
    check_script(file, &model);
}

#[test]
fn whitespace_is_not_significant() {
    let expected = Script::new().when("a", [Reply::text("b"), Reply::text("c")]);
    check_script("when \"a\" say \"b\" then say \"c\"", &expected);
    check_script("\u{feff}when \"a\"\r\n\tsay \"b\"\r\n\r\n\tthen\r\n\tsay \"c\"#x\r\n", &expected);
    check_script("# x\n   when \"a\"#\n say\t\"b\"\nthen # x\nsay \"c\"\n#", &expected);
    check_script("", &Script::new());
    check_script("\n# nothing\n\n", &Script::new());
}

#[test]
fn the_version_is_parsed() {
    assert_eq!(script_file::parse("version 2.1.325").unwrap().version.as_deref(), Some("2.1.325"));
    assert_eq!(script_file::parse("").unwrap().version, None);
}

#[test]
fn every_fault_point_can_be_scripted() {
    let kind = |kind: &str| kind.to_owned();
    check_faults("at start hang", [(Point::Start, Fault::Hang)]);
    check_faults("before result hang", [(Point::Before(kind("result"), 1), Fault::Hang)]);
    check_faults("after system/init 2 hang", [(Point::After(kind("system/init"), 2), Fault::Hang)]);
    check_faults("at signal hang", [(Point::Signal, Fault::Hang)]);
    check_faults("after * 100 hang", [(Point::After(kind("*"), 100), Fault::Hang)]);
    check_faults(
        "on control_request/initialize hang",
        [(Point::Read(kind("control_request/initialize"), 1), Fault::Hang)],
    );
}

#[test]
fn every_fault_can_be_scripted() {
    let check = |text: &str, fault: Fault| {
        check_faults(&format!("at start {text}"), [(Point::Start, fault)]);
    };
    let bytes = |bytes: &[u8]| Fault::Bytes(bytes.to_vec());
    check("exit 3", Fault::Exit(3));
    check("signal SIGKILL", Fault::Signal(9));
    check("signal TERM", Fault::Signal(15));
    check("signal 64", Fault::Signal(64));
    check("hang", Fault::Hang);
    check("ignore-sigterm", Fault::IgnoreTerminate);
    check(r#"bytes "{\"a\":\xff\x00é\n""#, bytes(b"{\"a\":\xff\x00\xc3\xa9\n"));
    check(r#"line "{}""#, bytes(b"{}\n"));
    check("garbage", bytes(b"this is not JSON\n"));
    check("garbage-utf8", bytes(b"\xff\xfe\xc3( is not UTF-8\n"));
    check("long-line 10mb", Fault::LongLine(10 * 1024 * 1024));
    check("long-line 64kb", Fault::LongLine(64 * 1024));
    check("messages 1000", Fault::Messages(1000));
    check("deltas 1000", Fault::Deltas(1000));
    check("stderr 300", Fault::Stderr(300));
    check("pause 200ms", Fault::Pause(Duration::from_millis(200)));
    check("close-stdout", Fault::CloseStdout);
    check("close-stdin", Fault::CloseStdin);
    check("leave-grandchild 5s", Fault::LeaveGrandchild(Duration::from_secs(5)));
    check("stop-reading", Fault::StopReading);
}

#[test]
fn faults_can_modify_the_next_line() {
    let check = |text: &str, fault: Fault| {
        let point = Point::Before("result".to_owned(), 1);
        check_faults(&format!("before result {text}"), [(point, fault)]);
    };
    check("swallow", Fault::Swallow);
    check("twice", Fault::Twice);
    check("behind", Fault::Behind);
    check("wrong-id", Fault::WrongId);
    check("wrong-shape", Fault::WrongShape);
}

#[test]
fn faults_of_one_line_occur_at_one_point() {
    let result = || Point::Before("result".to_owned(), 1);
    check_faults(
        "before result pause 1s exit 3 # enough\n at start hang",
        [
            (result(), Fault::Pause(Duration::from_secs(1))),
            (result(), Fault::Exit(3)),
            (Point::Start, Fault::Hang),
        ],
    );
}

#[test]
fn the_example_is_a_script() {
    let script = script_file::parse(script_file::EXAMPLE).unwrap();
    assert_eq!(script.version.as_deref(), Some("2.1.325"));
    assert!(!script.faults.is_empty());
}

/// Checks the position, the expectation and the found text of an error.
#[track_caller]
fn check_error(file: &str, line: usize, column: usize, expected: &str, found: &str) -> ScriptError {
    let error = script_file::parse(file).expect_err(file);
    assert_eq!((error.line(), error.column()), (line, column), "{error}");
    assert_eq!(error.expected(), expected, "{error}");
    assert_eq!(error.found(), found, "{error}");
    // As `fn main() -> Result<…>` prints it.
    assert_eq!(format!("{error:?}"), error.to_string());
    error
}

const SECTION: &str = "`version`, `when`, `since`, `otherwise` or `faults`";
const STEP: &str = "a step of an answer such as `say`, or `then`, or a section";
const CONTENT: &str = "content such as `say`, or `error`, or `nothing`";
const TEXT: &str = "a quoted string";
const CLOSED: &str = "a closing quote before the end of the line";
const FAULT: &str = "a fault such as `exit` or `pause`";
const KIND: &str = "a kind of line such as `result`, `system/init` or `*`";
const DURATION: &str = "a duration such as `200ms` or `2s`";
const SIZE: &str = "a size such as `10`, `64kb` or `10mb`";

#[test]
fn an_error_in_a_section_is_reported() {
    check_error("say \"x\"", 1, 1, SECTION, "`say`");
    check_error("\n  \"x\"", 2, 3, SECTION, "`\"x\"`");
    check_error("version", 1, 8, "a version such as `2.1.325`", "the end of the script");
    check_error("version 2.1", 1, 9, "a version such as `2.1.325`", "`2.1`");
    check_error("version 1.2.3\nversion 1.2.4", 2, 1, "at most one `version`", "`version`");
    check_error("when hello say \"x\"", 1, 6, TEXT, "`hello`");
    check_error("when # x\n\"a\" say \"x\"", 1, 5, TEXT, "the end of the line");
    check_error("when \"\"\nsay \"x\"", 1, 6, "a non-empty string", "`\"\"`");
    check_error("since \"\"\nsay \"x\"", 1, 7, "a non-empty string", "`\"\"`");
    check_error("otherwise say \"x\"\notherwise", 2, 1, "at most one `otherwise`", "`otherwise`");
}

#[test]
fn an_error_in_an_answer_is_reported() {
    check_error("otherwise", 1, 10, CONTENT, "the end of the script");
    check_error("when \"a\"\nwhen \"b\" say \"x\"", 2, 1, CONTENT, "`when`");
    check_error("otherwise\n  then\n  say \"x\"", 2, 3, CONTENT, "`then`");
    check_error("otherwise\n  say \"x\" then hold\n\n", 4, 1, CONTENT, "the end of the script");
    check_error("otherwise\n  say 42", 2, 7, TEXT, "`42`");
    check_error("otherwise\n  say\n  \"x\"", 2, 6, TEXT, "the end of the line");
    check_error("otherwise say \"x\r\n\"", 1, 17, CLOSED, "the end of the line");
    check_error("otherwise say \"x\\\"", 1, 19, CLOSED, "the end of the script");
    check_error("otherwise say \"é\\q\"", 1, 17, "a JSON escape such as `\\n`", "`\\q`");
    check_error(
        "otherwise say \"\\x41\"",
        1,
        16,
        "a JSON escape (`\\x` is only valid in `bytes` and `line`)",
        "`\\x`",
    );
    check_error("otherwise say \"\\u12\"", 1, 16, "`\\u` and four hexadecimal digits", "`\\u`");
    let halves = "both halves of a surrogate pair (`raw` takes one)";
    check_error("otherwise say \"\\ud83d!\"", 1, 16, halves, "`\\u`");
    check_error("otherwise say \"\\ude00\"", 1, 16, halves, "`\\u`");
    check_error("otherwise error 200 x \"y\"", 1, 17, "a status from 400 to 599", "`200`");
    check_error(
        "otherwise error 500 {",
        1,
        21,
        "a kind of error such as `overloaded_error`",
        "`{`",
    );
    check_error("otherwise error 500 x say \"y\"", 1, 23, TEXT, "`say`");
    let no_content = "`then`, because an error has no content";
    check_error("otherwise error 500 x \"y\" say \"z\"", 1, 27, no_content, "`say`");
    let first = "`error` as the first step of the answer";
    check_error("otherwise hold error 500 x \"y\"", 1, 16, first, "`error`");
    check_error("otherwise usage 10\n5", 1, 19, "a number of output tokens", "the end of the line");
    check_error("otherwise usage -1 5", 1, 17, "a number of input tokens", "`-1`");
    check_error("otherwise deltas-of 0", 1, 21, "a number of characters from 1", "`0`");
    check_error("otherwise pause-before 200", 1, 24, DURATION, "`200`");
    check_error("otherwise pause-between 1.5s", 1, 25, DURATION, "`1.5s`");
    check_error(
        "otherwise retry-after 99999999999999999999",
        1,
        23,
        "a number of seconds",
        "`99999999999999999999`",
    );
}

#[test]
fn an_error_in_json_is_reported_at_its_position() {
    check_error("otherwise call {}", 1, 16, "the name of a tool", "`{}`");
    check_error("otherwise call T [1]", 1, 18, STEP, "`[1]`");
    check_error("otherwise call T {\"a\": 1", 1, 18, "a complete JSON object", "`{\"a\":`");
    check_error("otherwise call T {a: 1}", 1, 19, "valid JSON (key must be a string)", "`a:`");
    check_error(
        "otherwise\n call T {\"a\": 1,\n   \"é\": nil}",
        3,
        10,
        "valid JSON (expected ident)",
        "`il}`",
    );
    check_error(
        "otherwise call T {\"a\": 1\n  then\n  say \"x\"",
        2,
        3,
        "valid JSON (expected `,` or `}`)",
        "`then`",
    );
    let deep = format!("otherwise call T {}", "{\"a\":".repeat(500));
    let error = script_file::parse(&deep).unwrap_err();
    assert!(error.expected().contains("recursion limit"), "{error}");
}

#[test]
fn an_error_in_faults_is_reported() {
    check_error("faults exit 3", 1, 8, "`at`, `before`, `after`, `on` or a section", "`exit`");
    check_error("faults at the-end exit 3", 1, 11, "`start` or `signal`", "`the-end`");
    check_error("faults before exit 3", 1, 15, KIND, "`exit`");
    check_error("faults before \"result\" exit 3", 1, 15, KIND, "`\"result\"`");
    check_error("faults before result, exit 3", 1, 15, KIND, "`result,`");
    check_error("faults before result 0 exit 3", 1, 22, "a number from 1", "`0`");
    check_error("faults before result\nexit 3", 1, 21, FAULT, "the end of the line");
    check_error("faults before result exit 3 before", 1, 29, FAULT, "`before`");
    let no_line = "a fault that does not modify a line, which requires `before`";
    check_error("faults at start pause 1s twice", 1, 26, no_line, "`twice`");
    check_error("faults on user swallow", 1, 16, no_line, "`swallow`");
    check_error("faults after result wrong-id", 1, 21, no_line, "`wrong-id`");
    check_error("faults at start exit 256", 1, 22, "an exit code from 0 to 255", "`256`");
    check_error(
        "faults at start signal NOPE",
        1,
        24,
        "a signal such as `SIGKILL` or `9`",
        "`NOPE`",
    );
    check_error("faults at start pause 2h", 1, 23, DURATION, "`2h`");
    check_error("faults at start long-line 10gb", 1, 27, SIZE, "`10gb`");
    check_error("faults at start stderr 99999999999999999mb", 1, 24, SIZE, "`99999999999999999mb`");
    check_error(
        "faults at start bytes \"\\xg0\"",
        1,
        24,
        "`\\x` and two hexadecimal digits",
        "`\\x`",
    );
}

#[test]
fn a_misspelled_word_has_a_suggestion() {
    let check = |file: &str, expected: Option<&str>| {
        let error = script_file::parse(file).unwrap_err();
        assert_eq!(error.nearest(), expected, "{error}");
    };
    check("wehn \"a\"", Some("when"));
    check("otherwise sya \"x\"", Some("say"));
    check("otherwise say \"x\" tehn", Some("then"));
    check("otherwise say \"x\"\nfault", Some("faults"));
    check("otherwise pause_before 2s", Some("pause-before"));
    check("faults at strat hang", Some("start"));
    check("faults befor result hang", Some("before"));
    check("faults at start hangs", Some("hang"));
    check("faults at start weather", None);
}

#[test]
fn an_error_shows_its_line_and_a_caret() {
    #[track_caller]
    fn check(file: &str, expected: &str) {
        assert_eq!(script_file::parse(file).unwrap_err().to_string(), expected);
    }
    check(
        "otherwise\n\tsya \"Hello.\" # x",
        "line 2, column 2: expected a step of an answer such as `say`, or `then`, or a section, \
         found `sya`; did you mean `say`?\n\tsya \"Hello.\" # x\n\t^",
    );
    check(
        "otherwise\r\n  say\r\n",
        "line 2, column 6: expected a quoted string, found the end of the line\n  say\n     ^",
    );
    check(
        "otherwise\n",
        "line 2, column 1: expected content such as `say`, or `error`, or `nothing`, \
         found the end of the script",
    );
    let long = format!("otherwise say \"{}\" say {}", "x".repeat(500), "y".repeat(500));
    let shown = script_file::parse(&long).unwrap_err().to_string();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(
        lines[0],
        format!("line 1, column 522: expected a quoted string, found `{}…`", "y".repeat(30))
    );
    assert_eq!(lines[1], format!("{}\" say {}", "x".repeat(54), "y".repeat(60)));
    assert_eq!(lines[2], format!("{}^", " ".repeat(60)));
}

/// Checks that any text is either a script or an error whose position is inside the text.
fn never_panics(text: &str) {
    let Err(error) = script_file::parse(text) else { return };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line = text.split('\n').nth(error.line() - 1).expect("the line exists");
    assert!(error.column() <= line.chars().count() + 1, "{error}");
    assert!(error.to_string().contains(error.expected()));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        never_panics(&text);
    }

    #[test]
    fn no_mixture_of_known_pieces_makes_the_parser_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)
    ) {
        never_panics(&pieces.concat());
    }

    #[test]
    fn no_damage_to_the_example_makes_the_parser_panic(
        at in any::<prop::sample::Index>(),
        cut in 0_usize..20,
        put in "[\\PC\n]{0,3}",
    ) {
        let mut text: Vec<char> = script_file::EXAMPLE.chars().collect();
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, put.chars());
        never_panics(&text.into_iter().collect::<String>());
    }
}

const PIECES: &[&str] = &[
    " ",
    "\n",
    "\r\n",
    "\t",
    "#",
    "\"",
    "\"\"",
    "\"a\"",
    "\\",
    "\"\\u",
    "d83d",
    "\\ud83d\\udc00",
    "é",
    "{",
    "}",
    "{}",
    "[",
    "{\"a\":",
    "1",
    "0",
    "2s",
    "10mb",
    "3.4.5",
    "when ",
    "otherwise ",
    "version ",
    "faults ",
    "attempts ",
    "then ",
    "say ",
    "call T ",
    "raw ",
    "error 500 x ",
    "hold ",
    "usage ",
    "nothing ",
    "at start ",
    "before ",
    "after result ",
    "on ",
    "exit ",
    "bytes \"\\x",
    "pause ",
    "signal ",
    "\u{feff}",
    "\u{2028}",
    "😀",
];
