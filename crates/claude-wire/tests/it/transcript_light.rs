//! What lists show of a session, titles and tags, and the names of project folders.

use claude_wire::Json;
use claude_wire::transcript::{
    Ends, SummaryData, TranscriptError, is_project_folder_override, is_same_project_name, is_uuid,
    project_folder_name, project_folder_prefix, sanitize_tag, tag_line, title_line,
    with_leading_newline,
};
use serde_json::json;

use super::transcript_lines::*;

fn info(lines: &[String]) -> Option<claude_wire::transcript::SessionInfo> {
    Ends::of(&transcript(lines)).info(None)
}

fn prompt(text: &str) -> String {
    entry("user", "u", None, json!({"message": {"content": text}}))
}

fn summary(lines: &[String]) -> Option<String> {
    info(lines).map(|info| info.summary)
}

#[test]
fn the_first_prompt_skips_what_the_cli_inserted() {
    let long = "x".repeat(201);
    for (text, expected) in [
        ("Fix the build", Some("Fix the build")),
        ("  two\nlines ", Some("two lines")),
        ("<system-reminder>x</system-reminder>", None),
        ("<tag attribute>x", None),
        ("<Tag>x", Some("<Tag>x")),
        ("<3 you", Some("<3 you")),
        ("[Request interrupted by user for tool use]", None),
        ("<command-name>/cost</command-name>", Some("/cost")),
        ("<bash-input> ls -l </bash-input>", Some("! ls -l")),
        (
            "<pasted_content id=\"00af\">\nbody\n</pasted_content id=\"00af\">\n\nmore",
            Some("bodymore"),
        ),
        ("", None),
        (&long, Some(&format!("{}…", "x".repeat(200)))),
    ] {
        let found = info(&[prompt(text)]).and_then(|info| info.first_prompt);
        assert_eq!(found.as_deref(), expected, "{text}");
    }
    // 200 UTF-16 units, without splitting a pair.
    let emoji = format!("{}{}", "x".repeat(199), "\u{1f600}".repeat(2));
    assert_eq!(summary(&[prompt(&emoji)]).unwrap(), format!("{}…", "x".repeat(199)));
}

#[test]
fn entries_that_are_not_prompts_are_skipped() {
    for more in [
        json!({"isMeta": true, "message": {"content": "no"}}),
        json!({"isCompactSummary": true, "message": {"content": "no"}}),
        json!({"message": {"content": [{"type": "tool_result", "content": "no"}]}}),
    ] {
        let lines = [entry("user", "x", None, more), prompt("yes")];
        assert_eq!(summary(&lines).as_deref(), Some("yes"));
    }
}

#[test]
fn a_prompt_without_text_is_named_by_its_attachment() {
    let blocks = |kind: &str| json!({"message": {"content": [{"type": kind, "source": {}}]}});
    assert_eq!(summary(&[entry("user", "u", None, blocks("image"))]).as_deref(), Some("Image"));
    let document = [entry("user", "u", None, blocks("document"))];
    assert_eq!(summary(&document).as_deref(), Some("Document"));
    assert_eq!(summary(&[entry("user", "u", None, blocks("audio"))]), None);
}

#[test]
fn the_summary_is_the_best_that_there_is() {
    let mut lines = vec![prompt("first")];
    assert_eq!(summary(&lines).as_deref(), Some("first"));
    for (line, expected) in [
        (r#"{"type":"summary","summary":"sum"}"#, "sum"),
        (r#"{"type":"last-prompt","lastPrompt":"last"}"#, "last"),
        (r#"{"type":"ai-title","aiTitle":"ai"}"#, "ai"),
        (r#"{"type":"custom-title","customTitle":"old"}"#, "old"),
        (r#"{"customTitle":"new", "type": "custom-title"}"#, "new"),
        (
            r#"{"type":"user","message":{"content":[{"type":"tool_use","input":{"type":"custom-title","customTitle":"nested"}}]}}"#,
            "new",
        ),
        (r#"{"cut":"off{"type":"custom-title","customTitle":"glued"}"#, "glued"),
    ] {
        lines.push(line.to_owned());
        assert_eq!(summary(&lines).as_deref(), Some(expected), "{line}");
    }
}

#[test]
fn a_title_in_the_tail_wins_over_the_sidecar_and_that_over_the_head() {
    let padding = json!({"type": "x", "text": "y".repeat(140_000)}).to_string();
    let title = |text: &str| json!({"type": "custom-title", "customTitle": text}).to_string();
    let in_head = transcript(&[title("head"), padding.clone()]);
    let ends = Ends::of(&in_head);
    assert!(ends.needs_sidecar_title());
    assert_eq!(ends.custom_title(None).as_deref(), Some("head"));
    assert_eq!(ends.custom_title(Some("sidecar")).as_deref(), Some("sidecar"));
    let in_tail = transcript(&[title("head"), padding, title("tail")]);
    let ends = Ends::of(&in_tail);
    assert!(!ends.needs_sidecar_title());
    assert_eq!(ends.custom_title(Some("sidecar")).as_deref(), Some("tail"));
    assert_eq!(ends.fork_title(None), "tail (fork)");
    assert_eq!(Ends::of(b"").fork_title(None), "Forked session (fork)");
}

#[test]
fn branch_directory_tag_and_times_are_found() {
    let chain = |branch: &str, time: u32| {
        let more = json!({"cwd": "/w/\u{e9}", "gitBranch": branch, "timestamp": at(time),
            "message": {"content": "hi"}});
        entry("user", "u", None, more)
    };
    let tag = |tag: &str| json!({"type": "tag", "tag": tag, "sessionId": "s"}).to_string();
    let lines = [chain("main", 5), tag("one"), chain("topic", 9), tag("two")];
    let found = info(&lines).unwrap();
    assert_eq!(found.git_branch.as_deref(), Some("topic"));
    assert_eq!(found.cwd.as_deref(), Some("/w/\u{e9}"));
    assert_eq!(found.tag.as_deref(), Some("two"));
    assert_eq!(found.created_at, Some(1_767_225_605_000));
    let moved = r#"{"type":"relocated","relocatedCwd":"/new"}"#.to_owned();
    let found = info(&[lines[0].clone(), tag("x"), tag(""), moved]).unwrap();
    assert_eq!(found.tag, None);
    assert_eq!(found.cwd.as_deref(), Some("/new"));
}

#[test]
fn transcripts_of_subagents_are_not_listed() {
    let side = entry("user", "u", None, json!({"isSidechain": true, "message": {"content": "x"}}));
    assert_eq!(info(&[side.clone(), prompt("y")]), None);
    let state = r#"{"type":"mode","mode":"x"}"#.to_owned();
    assert_eq!(summary(&[state, side]).as_deref(), Some("x"));
}

#[test]
fn a_session_that_continues_in_another_one_says_so() {
    let id = "0f0f0f0f-0000-4000-8000-000000000000";
    let line = json!({"type": "continued-in", "continuedInSessionId": id}).to_string();
    let continued = |lines: &[String]| Ends::of(&transcript(lines)).continued_in();
    assert_eq!(continued(&[prompt("x"), line.clone()]).as_deref(), Some(id));
    assert_eq!(continued(&[line.clone(), prompt("x")]), None);
    assert_eq!(continued(&[line.replace(id, "no")]), None);
}

#[test]
fn sessions_of_programs_are_recognised() {
    let is_programmatic = |line: &str| Ends::of(line.as_bytes()).is_programmatic();
    assert!(is_programmatic(r#"{"entrypoint":"sdk-ts"}"#));
    assert!(is_programmatic(r#"{"entrypoint":"sdk-rust"}"#));
    assert!(is_programmatic(r#"{"parentUuid":null,"sessionKind":"daemon"}"#));
    assert!(!is_programmatic(r#"{"entrypoint":"cli"}"#));
}

#[test]
fn a_newer_prompt_ends_archiving() {
    let line = entry("user", "u", None, json!({"timestamp": at(5), "message": {"content": "x"}}));
    let ends = Ends::of(line.as_bytes());
    assert!(ends.has_prompt_after(1_767_225_604_000));
    assert!(!ends.has_prompt_after(1_767_225_605_000));
}

#[test]
fn the_fold_gives_what_the_light_read_gives() {
    let lines = [
        entry(
            "user",
            "u",
            None,
            json!({"message": {"content": "<command-name>/x</command-name>"},
            "cwd": "/w", "gitBranch": "main", "timestamp": at(1)}),
        ),
        prompt("first"),
        prompt("second"),
        json!({"type": "tag", "tag": "t"}).to_string(),
        json!({"type": "ai-title", "aiTitle": "ai"}).to_string(),
    ];
    let mut data = SummaryData::default();
    for (at, line) in lines.iter().enumerate() {
        data.add(line.as_bytes());
        // A store writes the data and reads it again between any two entries.
        data = SummaryData::from_json(&data.to_json());
        assert_eq!(data.info(), info(&lines[..=at]), "{line}");
    }
    let fields = data.to_json();
    assert_eq!(fields.get("firstPromptLocked"), Some(Json::from(json!(true))));
    data.add(br#"{"type":"tag","tag":""}"#);
    data.add(br#"{"type":"relocated","relocatedCwd":"/new"}"#);
    let info = data.info().unwrap();
    assert_eq!((info.tag, info.cwd.as_deref()), (None, Some("/new")));
    let mut side = SummaryData::default();
    side.add(br#"{"type":"user","isSidechain":true,"message":{"content":"x"}}"#);
    assert_eq!(side.info(), None);
    side.add(b"not json");
}

#[test]
fn lines_for_titles_and_tags_are_what_the_sdks_write() {
    assert_eq!(
        title_line("s", " A \"title\" ").unwrap(),
        b"{\"type\":\"custom-title\",\"customTitle\":\"A \\\"title\\\"\",\"sessionId\":\"s\"}\n"
    );
    assert_eq!(title_line("s", " \n"), Err(TranscriptError::EmptyTitle));
    let line = tag_line("s", Some("a\u{200b}b\u{feff}")).unwrap();
    assert_eq!(line, b"{\"type\":\"tag\",\"tag\":\"ab\",\"sessionId\":\"s\"}\n");
    assert_eq!(
        tag_line("s", None).unwrap(),
        b"{\"type\":\"tag\",\"tag\":\"\",\"sessionId\":\"s\"}\n"
    );
    assert_eq!(tag_line("s", Some("\u{200b}")), Err(TranscriptError::EmptyTag));
    assert_eq!(sanitize_tag("\u{e000}x\u{202e}\u{fe0f}"), "x\u{fe0f}");
    assert_eq!(with_leading_newline(b"x\n", Some(b'}')), b"\nx\n");
    assert_eq!(with_leading_newline(b"x\n", Some(b'\n')), b"x\n");
    assert_eq!(with_leading_newline(b"x\n", None), b"x\n");
}

#[test]
fn project_folders_are_named_as_by_the_cli() {
    assert_eq!(project_folder_name("/w/my_app v1.0"), "-w-my-app-v1-0");
    assert_eq!(project_folder_name("/w/\u{1f600}\u{e9}"), "-w----");
    let exactly = format!("/{}", "a".repeat(199));
    assert_eq!(project_folder_name(&exactly).len(), 200);
    assert_eq!(project_folder_prefix(&exactly), None);
    let long = format!("/{}", "a".repeat(200));
    let name = project_folder_name(&long);
    assert!(name.starts_with(&project_folder_prefix(&long).unwrap()), "{name}");
    assert!(is_same_project_name("/w/p", "/w-p") && !is_same_project_name("/w/p", "/w/q"));
}

#[test]
fn only_harmless_names_replace_the_project_folder() {
    for name in ["tenant_42", "a", "com", "com10", &"x".repeat(64)] {
        assert!(is_project_folder_override(name), "{name}");
    }
    for name in ["", "a/b", "..", "CON", "Lpt0", "nul", &"x".repeat(65)] {
        assert!(!is_project_folder_override(name), "{name}");
    }
}

#[test]
fn only_uuids_name_sessions() {
    assert!(is_uuid("0f0f0f0f-0000-4000-8000-0000000000AB"));
    for text in [
        "",
        "0f0f0f0f-0000-4000-8000-0000000000A",
        "0f0f0f0fx0000-4000-8000-0000000000AB",
        "0f0f0f0f-0000-4000-8000-0000000000Ag",
        "é0f0f0f-0000-4000-8000-0000000000A",
    ] {
        assert!(!is_uuid(text), "{text}");
    }
}
