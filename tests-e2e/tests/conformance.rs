//! Keeps `docs/conformance.md` honest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the way to fail")]

use std::collections::BTreeMap;
use std::fs;

use claude_agent_kit::{MINIMUM_FOR_PRINT_MODE, MINIMUM_VERSION};
use tests_e2e::places::{exists, root};
use tests_e2e::public_api::CRATES;

/// The families of the specification and how many requirements each has.
const FAMILIES: &[(&str, u32)] = &[
    ("CLI", 7),
    ("ARG", 13),
    ("DEC", 12),
    ("MSG", 5),
    ("QRY", 11),
    ("SES", 14),
    ("CTL", 8),
    ("HOK", 8),
    ("PRM", 5),
    ("MCP", 9),
    ("OPT", 7),
    ("ERR", 5),
    ("STP", 5),
    ("TRN", 1),
    ("PLT", 1),
    ("SAF", 1),
    ("HIS", 2),
    ("DOC", 4),
    ("TST", 5),
];

/// What stands in the last column, by id.
fn rows() -> BTreeMap<String, Vec<String>> {
    let table = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect::<Vec<_>>())
        .filter(|cells| cells.len() == 3 && cells[0] != "id")
        .map(|cells| (cells[0].to_owned(), cells[2].split("<br>").map(str::to_owned).collect()))
        .collect()
}

#[test]
fn every_requirement_has_a_row() {
    let rows = rows();
    let mut expected = 0;
    for (family, count) in FAMILIES {
        for number in 1..=*count {
            let id = format!("{family}-{number}");
            assert!(rows.contains_key(&id), "docs/conformance.md has no row for {id}");
            expected += 1;
        }
    }
    assert_eq!(rows.len(), expected, "docs/conformance.md has rows for ids that do not exist");
}

#[test]
fn every_named_test_exists() {
    for (id, proofs) in rows() {
        assert!(!proofs.is_empty(), "{id} names neither a test nor an issue");
        for proof in proofs {
            match proof.strip_prefix('`').and_then(|proof| proof.strip_suffix('`')) {
                Some(test) => assert!(exists(test), "{id} names {test}, which does not exist"),
                None => assert!(
                    proof.starts_with("issue ") || proof.starts_with("second stage"),
                    "{id}: {proof}"
                ),
            }
        }
    }
}

fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_readme_has_what_people_look_for() {
    let readme = text_of("README.md");
    for part in [
        "cargo run --example quickstart",
        "cargo xtask test",
        "## Platforms",
        "| | query | session |",
        "## What counts as success",
        "is_error",
        "strict_exit_status",
        "## Faults survived",
        "cargo test -p tests-e2e --test faults",
        "## Speed",
        "cargo xtask bench",
        "## Troubleshooting",
        "EmptyOutput",
        "login_missing",
        "UnsupportedCliVersion",
        "on_stderr",
    ] {
        assert!(readme.contains(part), "README.md does not say {part}");
    }
}

#[test]
fn the_documents_name_the_minimum_versions() {
    for path in
        ["README.md", "docs/cli-versions.md", "crates/claude-agent-kit/src/guide/processes.md"]
    {
        let text = text_of(path);
        for version in [MINIMUM_VERSION, MINIMUM_FOR_PRINT_MODE] {
            assert!(text.contains(&format!("| {version} |")), "{path} does not name {version}");
        }
    }
}

/// The variants of an enum, as they stand in its source.
fn variants(path: &str, name: &str) -> Vec<String> {
    let source = text_of(path);
    let (_, body) = source.split_once(&format!("pub enum {name} {{\n")).unwrap();
    let (body, _) = body.split_once("\n}").unwrap();
    let words = body.lines().filter_map(|line| line.trim().strip_suffix(','));
    words.filter(|word| word.chars().all(char::is_alphanumeric)).map(str::to_owned).collect()
}

#[test]
fn the_guide_tells_of_every_error_and_every_warning() {
    let guide = text_of("crates/claude-agent-kit/src/guide/errors.md");
    for (file, name) in [("error", "ErrorKind"), ("warning", "WarningCode")] {
        let variants = variants(&format!("crates/claude-agent-kit/src/{file}.rs"), name);
        assert!(variants.len() > 10, "{variants:?}");
        for variant in variants {
            assert!(
                guide.contains(&format!("\n| `{variant}` |")),
                "the guide does not tell what to do about {name}::{variant}"
            );
        }
    }
}

#[test]
fn the_test_command_compares_the_public_api() {
    assert!(text_of("tests-e2e/src/bin/xtask/checks.rs").contains("api::is_as_listed(&program)"));
    for name in CRATES {
        let listing = text_of(&format!("docs/api/{name}.txt"));
        let start = format!("{}::", name.replace('-', "_"));
        assert!(listing.lines().count() > 100 && listing.lines().is_sorted(), "{name}");
        assert!(listing.lines().all(|line| line.starts_with(&start)), "{name}");
    }
}

#[test]
fn the_test_command_runs_the_unit_tests_where_there_is_nothing() {
    assert!(text_of("tests-e2e/src/bin/xtask/checks.rs").contains("!unit_tests_need_nothing()?"));
    let bare = text_of("tests-e2e/src/bin/xtask/bare.rs");
    for part in ["env_clear()", r#""--net""#, r#""HOME", NO_HOME"#, r#""claude", "npm""#] {
        assert!(bare.contains(part), "{part}");
    }
    for name in CRATES {
        assert!(bare.contains(&format!(r#""-p", "{name}""#)), "{name}");
    }
}

#[test]
fn the_test_command_checks_the_other_platforms_and_the_oldest_rust() {
    assert!(text_of("tests-e2e/src/bin/xtask/checks.rs").contains("match platforms::check()?"));
    let (readme, checks) = (text_of("README.md"), text_of("tests-e2e/src/bin/xtask/platforms.rs"));
    for platform in ["macOS", "Windows"] {
        assert!(checks.contains(platform) && readme.contains(platform), "{platform}");
    }
    for part in ["-D warnings", "CARGO_PKG_RUST_VERSION", r#""toolchain", "install", MINIMUM_RUST"#]
    {
        assert!(checks.contains(part), "{part}");
    }
}

/// The names of all setters of `Options`.
fn options() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("crates/claude-agent-kit/src/options")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let file = fs::read_to_string(path).unwrap();
        for line in file.lines().filter_map(|line| line.strip_prefix("    pub fn ")) {
            let name = line.split(['(', '<']).next().unwrap();
            if !["new", "iter", "sources", "explain"].contains(&name) {
                names.push(name.to_owned());
            }
        }
    }
    assert!(names.len() > 90, "{names:?}");
    names
}

#[test]
fn the_guide_tells_of_every_option() {
    let guide = text_of("crates/claude-agent-kit/src/guide/options.md");
    for name in options() {
        assert!(guide.contains(&format!("`{name}`")), "{name} is not told of");
    }
}

#[test]
fn every_option_is_used_in_a_test_from_outside() {
    let mut tests = String::new();
    let mut directories = vec![root().join("tests-e2e/tests"), root().join("tests-e2e/src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                tests += &fs::read_to_string(path).unwrap();
            }
        }
    }
    let unused: Vec<String> = options()
        .into_iter()
        .filter(|name| {
            !tests.contains(&format!(".{name}(")) && !tests.contains(&format!("::{name}("))
        })
        .collect();
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn every_example_is_told_of_and_run_by_the_test_command() {
    let (readme, steps) = (text_of("README.md"), text_of("tests-e2e/src/bin/xtask/checks.rs"));
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(readme.contains(&format!("| `{name}` |")), "README.md does not tell of {name}");
        let step = format!("\"--example\", \"{name}\"");
        assert!(steps.contains(&step), "`cargo xtask test` does not run {name}");
        count += 1;
    }
    assert!(count > 5, "{count}");
}

/// Limits of the guide: the row, its default, and the declaration in the code that it tells of.
const LIMITS: &[(&str, &str, &str, &str)] = &[
    (
        "the handshake",
        "60 s",
        "kit:options/prepare.rs",
        "INITIALIZE_DEFAULT: Duration = Duration::from_secs(60)",
    ),
    (
        "an operation, from its writing on",
        "30 s",
        "kit:session/operations/mod.rs",
        "const LIMIT: Duration = Duration::from_secs(30)",
    ),
    (
        "`mcp_reconnect`, `mcp_set_servers`, `rewind_files`",
        "120 s",
        "kit:session/operations/mod.rs",
        "LONG_LIMIT: Duration = Duration::from_secs(120)",
    ),
    ("a hook", "60 s", "kit:hook/mod.rs", "USUAL_LIMIT: Duration = Duration::from_secs(60)"),
    (
        "a hook for `UserPromptSubmit`, `MessageDisplay`",
        "25 s, 8 s",
        "wire:control/hook/list.rs",
        "= \"UserPromptSubmit\": Block, true, 25;",
    ),
    (
        "a hook for `UserPromptSubmit`, `MessageDisplay`",
        "25 s, 8 s",
        "wire:control/hook/list.rs",
        "= \"MessageDisplay\": Hide, false, 8;",
    ),
    (
        "a permission callback, a handler of questions or dialogs",
        "none",
        "kit:callback/registry.rs",
        "permission_timeout: None",
    ),
    (
        "a callback after its token fired",
        "1 s",
        "kit:callback/registry.rs",
        "cancel_grace: Duration::from_secs(1)",
    ),
    (
        "a callback that holds its thread",
        "1 s",
        "kit:driver/callback_tasks.rs",
        "BLOCKED: Duration = Duration::from_secs(1)",
    ),
    ("silence of a query", "none", "kit:options/host.rs", "idle_timeout: None"),
    (
        "background work after a result of a query",
        "10 min",
        "kit:options/prepare.rs",
        "CEILING_DEFAULT: Duration = Duration::from_secs(10 * 60)",
    ),
    (
        "a CLI that leaves stdin unread while too many responses wait for it",
        "5 s",
        "wire:session/event.rs",
        "stdin_stall: Duration::from_secs(5)",
    ),
    (
        "the turn that a stop interrupts",
        "1 s",
        "wire:session/shutdown.rs",
        "interrupt: Duration::from_secs(1)",
    ),
    (
        "the exit after a stop or a query closed stdin, or after stdout ended",
        "5 s",
        "kit:options/host.rs",
        "exit_grace: Duration::from_secs(5)",
    ),
    (
        "the exit after SIGTERM",
        "5 s",
        "wire:session/shutdown.rs",
        "terminate: Duration::from_secs(5)",
    ),
    (
        "a stdout that another process holds open",
        "100 ms of silence, 2 s",
        "wire:session/event.rs",
        "held_open_quiet: Duration::from_millis(100)",
    ),
    (
        "a stdout that another process holds open",
        "100 ms of silence, 2 s",
        "wire:session/event.rs",
        "held_open_most: Duration::from_secs(2)",
    ),
    (
        "the rest of stderr after a failure",
        "100 ms of silence, 2 s",
        "kit:driver/stderr.rs",
        "QUIET: Duration = Duration::from_millis(100)",
    ),
    (
        "the rest of stderr after a failure",
        "100 ms of silence, 2 s",
        "kit:driver/stderr.rs",
        "MOST: Duration = Duration::from_secs(2)",
    ),
    ("a line of the CLI", "64 MiB", "kit:options/host.rs", "max_line_bytes: 64 * MIB"),
    (
        "what is kept of a longer line",
        "its first and last 64 KiB",
        "wire:frame.rs",
        "KEPT_OF_OVERSIZED: usize = 64 * 1024",
    ),
    (
        "messages that wait for readers",
        "16 MiB",
        "kit:options/host.rs",
        "backlog: (16 * MIB, 256 * MIB)",
    ),
    (
        "the same while stdout has to be read",
        "256 MiB",
        "kit:options/host.rs",
        "backlog: (16 * MIB, 256 * MIB)",
    ),
    (
        "bytes that wait to be written to the CLI",
        "16 MiB",
        "kit:options/host.rs",
        "max_unwritten_bytes: 16 * MIB",
    ),
    (
        "responses that wait to be written to the CLI",
        "16 MiB",
        "wire:session/event.rs",
        "unwritten_response_bytes: 16 * 1024 * 1024",
    ),
    (
        "responses that wait to be written to the CLI",
        "16 MiB",
        "wire:session/stop.rs",
        "SLOW_READER_FACTOR: usize = 4",
    ),
    (
        "requests of the CLI whose callbacks wait or run",
        "256 MiB",
        "wire:session/event.rs",
        "request_bytes: 256 * 1024 * 1024",
    ),
    (
        "a name that the CLI chose, in a warning, response or log",
        "256 bytes",
        "wire:session/shorten.rs",
        "MAX_NAME_BYTES: usize = 256",
    ),
    (
        "a reason in a warning or a response",
        "4 KiB",
        "wire:session/shorten.rs",
        "MAX_REASON_BYTES: usize = 4 * 1024",
    ),
    (
        "a text with which the CLI refuses an operation, and the text of a warning",
        "4 KiB",
        "kit:diagnose/mod.rs",
        "TEXT_BYTES: usize = 4 * 1024",
    ),
    ("what is kept of stderr", "64 KiB", "kit:stderr.rs", "TAIL_BYTES: usize = 64 * 1024"),
    (
        "a line of stderr for `on_stderr`",
        "64 KiB",
        "kit:stderr.rs",
        "LINE_BYTES: usize = 64 * 1024",
    ),
    ("operations that wait for the handshake", "16", "kit:options/host.rs", "operations: (16, 64)"),
    (
        "operations that wait for answers, the handshake included",
        "64",
        "kit:options/host.rs",
        "operations: (16, 64)",
    ),
    (
        "hooks and permission callbacks that run",
        "256",
        "kit:options/host.rs",
        "callback_places: (256, 4096)",
    ),
    (
        "hooks and permission callbacks that wait",
        "4,096",
        "kit:options/host.rs",
        "callback_places: (256, 4096)",
    ),
    (
        "warnings of the start that are kept for the first reader",
        "64",
        "kit:feed.rs",
        "MOST_START_WARNINGS: usize = 64",
    ),
    (
        "messages for servers of this process that are served",
        "128",
        "wire:session/event.rs",
        "running_mcp: 128",
    ),
    (
        "messages for servers of this process that wait",
        "100",
        "wire:session/event.rs",
        "waiting_mcp: 100",
    ),
    (
        "requests of such a server that wait for answers",
        "64",
        "kit:mcp/client.rs",
        "MOST_ASKED: usize = 64",
    ),
    (
        "messages that an `rmcp` server has not read",
        "1,024",
        "kit:mcp/hosted.rs",
        "MAX_UNREAD_MESSAGES: usize = 1_024",
    ),
    (
        "background tasks of a query that are told apart",
        "4,096",
        "wire:session/background.rs",
        "MAX_KNOWN_TASKS: usize = 4096",
    ),
    (
        "messages that one result may name",
        "65,536",
        "wire:envelope/scan.rs",
        "MAX_STRINGS: usize = 64 * 1024",
    ),
    (
        "unknown types and unknown fields that are reported in a run",
        "64 of each",
        "kit:drift.rs",
        "MOST_TOLD: usize = 64",
    ),
    (
        "lines in a row that are no messages, in a query before its result",
        "4",
        "wire:session/machine.rs",
        "MOST_MALFORMED: usize = 5",
    ),
];

/// Rows that tell of limits outside of this code, or of one that differs in tests.
const OUTSIDE: &[&str] = &[
    "asking the CLI for its version",
    "an argument of the command line",
    "arguments and variables together",
];

#[test]
fn the_limits_chapter_says_what_the_code_says() {
    let guide = text_of("crates/claude-agent-kit/src/guide/limits.md");
    let rows: BTreeMap<&str, &str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter(|(what, _)| *what != "what")
        .collect();
    for (what, default, file, declared) in LIMITS {
        let rest = rows.get(what).unwrap_or_else(|| panic!("the guide has no row for {what:?}"));
        let said = rest.split(" | ").next().unwrap_or_default();
        let goes_on = said.strip_prefix(default).map(|rest| rest.chars().next());
        let whole = goes_on.is_some_and(|next| next.is_none_or(|next| ", ".contains(next)));
        assert!(whole, "{what}: the guide says {said:?}, and not {default:?}");
        let (crate_name, file) = file.split_once(':').unwrap();
        let crate_name = if crate_name == "kit" { "claude-agent-kit" } else { "claude-wire" };
        let code = text_of(&format!("crates/{crate_name}/src/{file}"));
        assert!(code.contains(declared), "{what}: {file} has no {declared:?}");
    }
    let known =
        |what: &&str| LIMITS.iter().any(|(known, ..)| known == what) || OUTSIDE.contains(what);
    let unchecked: Vec<_> = rows.keys().filter(|what| !known(what)).collect();
    assert!(unchecked.is_empty(), "rows that are not compared with the code: {unchecked:?}");
}

#[test]
fn the_tests_that_the_security_review_names_exist() {
    let review = fs::read_to_string(root().join("docs/security-review.md")).unwrap();
    let named: Vec<&str> =
        review.split('`').filter(|text| text.contains("::") && text.contains('/')).collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|test| !exists(test)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let architecture = text_of("ARCHITECTURE.md");
    let (_, invariants) = architecture.split_once("\n## Invariants\n").unwrap();
    let mut numbers = 0;
    for invariant in invariants.split("\n\n").flat_map(|part| part.split_inclusive("]\n")) {
        let Some((number, text)) = invariant.trim_start().split_once(". ") else { continue };
        if number.parse::<usize>().is_err() {
            continue;
        }
        numbers += 1;
        assert_eq!(number, numbers.to_string(), "{text}");
        let named = text.split('`').filter(|word| word.contains("::") && word.contains('/'));
        let tests: Vec<&str> = named.collect();
        assert!(!tests.is_empty(), "invariant {number} names no test");
        for test in tests {
            assert!(exists(test), "invariant {number} names {test}, which does not exist");
        }
    }
    assert!(numbers > 15, "{numbers}");
}

/// The Rust sources below a directory, with their paths; without tests.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                found.push((path.display().to_string(), code.to_owned()));
            }
        }
    }
    found
}

/// The patterns of the arms of every `match` in a source.
fn matches(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (place, _) in code.match_indices("match ") {
        let Some(open) = code[place..].find(" {\n").map(|open| place + open + 1) else { continue };
        let (mut depth, mut arms, mut pattern) = (0_usize, Vec::new(), String::new());
        let mut letters = code[open..].char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth == 1 && code[open + at..].starts_with("=>") {
                arms.push(std::mem::take(&mut pattern));
                // The arm itself: to the comma, or to the end of its block.
                let mut inner = 0_usize;
                for (_, letter) in letters.by_ref().skip(1) {
                    match letter {
                        '{' | '(' | '[' => inner += 1,
                        '}' | ')' | ']' | ',' if inner == 0 => break,
                        '}' if inner == 1 => break,
                        '}' | ')' | ']' => inner -= 1,
                        _ => {}
                    }
                }
                continue;
            }
            pattern.push(letter);
        }
        found.push(arms);
    }
    found
}

#[test]
fn no_wildcard_arm_over_the_seam() {
    const SEAM: [&str; 13] = [
        "Event::",
        "Effect::",
        "Frame::",
        "Failure::",
        "Refusal::",
        "Settled::",
        "State::",
        "End::",
        "Exit::",
        "Notice::",
        "TurnEnd::",
        "ShutdownStep::",
        "CallOutcome::",
    ];
    let mut seen = 0;
    for folder in ["crates/claude-agent-kit/src", "crates/claude-wire/src/session"] {
        for (path, code) in sources(folder) {
            for arms in matches(&code) {
                let is_seam = |arm: &String| {
                    let arm = arm.trim_start_matches(['{', ',', '\n', ' ', '}']);
                    SEAM.iter().any(|name| arm.starts_with(name))
                };
                if !arms.iter().any(is_seam) {
                    continue;
                }
                seen += 1;
                for arm in &arms {
                    let arm = arm.trim_matches(['{', ',', '\n', ' ', '}']);
                    assert!(arm != "_", "{path}: a wildcard beside {:?}", arms[0].trim());
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} matches over the seam were found");
}

#[test]
fn unsafe_code_stands_in_two_modules() {
    for krate in ["claude-wire", "claude-agent-kit", "claude-agent-testkit"] {
        for (path, code) in sources(&format!("crates/{krate}/src")) {
            let allowed =
                ["process/spawn.rs", "process/death_signal.rs", "process/spawn/fixture.rs"];
            if allowed.iter().any(|allowed| path.ends_with(allowed)) {
                continue;
            }
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let has = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                assert!(!has.into_iter().any(|word| word == "unsafe"), "{path}: {line}");
            }
        }
    }
}
