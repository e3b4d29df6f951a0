//! Checks `docs/conformance.md` and the other documents against the code.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;

use claude_agent_kit::{CliVersion, MINIMUM_VERSION};
use tests_e2e::limits;
use tests_e2e::public_api::CRATES;
use tests_e2e::tables;
use tests_e2e::workspace::{has_test, root, sources};

/// The requirement families of the specification, and the number of requirements in each.
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
    ("API", 10),
    ("SAF", 7),
    ("HIS", 6),
    ("STO", 9),
    ("APR", 4),
    ("DOC", 4),
    ("TST", 5),
    ("PUB", 3),
];

/// Returns the last column of the table, by requirement ID.
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
    let mut expected = 1;
    assert!(rows.contains_key("STO-0"), "docs/conformance.md has no row for STO-0");
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
        assert!(!proofs.is_empty(), "{id} names neither a test nor a benchmark");
        for proof in proofs {
            match proof.strip_prefix('`').and_then(|proof| proof.strip_suffix('`')) {
                Some(test) => assert!(has_test(test), "{id} names {test}, which does not exist"),
                None => assert!(
                    ["benchmark ", "second harness"].iter().any(|kind| proof.starts_with(kind)),
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
fn readme_has_the_expected_sections() {
    let readme = text_of("README.md");
    for part in [
        "cargo run --example quickstart",
        "cargo xtask test",
        "## Platforms",
        "| | query | session |",
        "## What counts as success",
        "into_result",
        "strict_exit_status",
        "## Faults survived",
        "cargo test -p tests-e2e --test faults",
        "## Speed",
        "cargo xtask bench",
        "## Troubleshooting",
        "EmptyOutput",
        "LoginMissing",
        "UnsupportedCliVersion",
        "on_stderr",
    ] {
        assert!(readme.contains(part), "README.md does not contain {part}");
    }
}

/// The oldest CLI for print mode; `e2e/kit/versions` checks that the kit reports it.
const MINIMUM_FOR_PRINT_MODE: CliVersion = CliVersion::new(1, 0, 0);

#[test]
fn documents_name_the_minimum_versions() {
    for path in
        ["README.md", "docs/cli-versions.md", "crates/claude-agent-kit/src/guide/processes.md"]
    {
        let text = text_of(path);
        for version in [MINIMUM_VERSION, MINIMUM_FOR_PRINT_MODE] {
            assert!(text.contains(&format!("| {version} |")), "{path} does not name {version}");
        }
    }
}

/// Returns the variants of a public enum of the kit.
fn variants(name: &str) -> Vec<String> {
    let start = format!("claude_agent_kit::{name}::");
    let listing = text_of("docs/api/claude-agent-kit.txt");
    let variants = listing.lines().filter_map(|line| line.strip_prefix(&start)?.split_once(": "));
    let variants = variants.filter(|(name, _)| name.starts_with(char::is_uppercase));
    variants.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn guide_documents_every_error_and_warning() {
    let guide = text_of("crates/claude-agent-kit/src/guide/errors.md");
    for name in ["ErrorKind", "WarningCode"] {
        let variants = variants(name);
        assert!(variants.len() > 10, "{variants:?}");
        for variant in variants {
            assert!(
                guide.contains(&format!("\n| `{variant}` |")),
                "the guide does not document {name}::{variant}"
            );
        }
    }
}

#[test]
fn xtask_test_compares_the_public_api() {
    assert!(text_of("tests-e2e/src/bin/xtask/checks.rs").contains("api::is_as_listed("));
    for name in CRATES {
        let listing = text_of(&format!("docs/api/{name}.txt"));
        let start = format!("{}::", name.replace('-', "_"));
        assert!(listing.lines().count() > 20 && listing.lines().is_sorted(), "{name}");
        assert!(listing.lines().all(|line| line.starts_with(&start)), "{name}");
    }
}

#[test]
fn xtask_test_runs_the_unit_tests_in_a_bare_environment() {
    assert!(text_of("tests-e2e/src/bin/xtask/checks.rs").contains("bare::run("));
    let bare = text_of("tests-e2e/src/bin/xtask/bare.rs");
    for part in ["env_clear()", r#""--net""#, r#""HOME", NO_HOME"#, r#""claude", "npm""#] {
        assert!(bare.contains(part), "{part}");
    }
    for name in CRATES {
        assert!(bare.contains(&format!(r#"("{name}", None)"#)), "{name}");
    }
}

#[test]
fn xtask_test_checks_other_platforms_and_the_oldest_rust() {
    let (readme, steps) = (text_of("README.md"), text_of("tests-e2e/src/bin/xtask/checks.rs"));
    for platform in ["macOS", "Windows"] {
        let step = format!("(\"{platform}\", Action::Call(|_| platforms::check(");
        assert!(steps.contains(&step) && readme.contains(platform), "{platform}");
    }
    assert!(steps.contains("platforms::check_minimum_rust()"));
    let checks = text_of("tests-e2e/src/bin/xtask/platforms.rs");
    for part in ["-D warnings", "CARGO_PKG_RUST_VERSION", r#""toolchain", "install", MINIMUM_RUST"#]
    {
        assert!(checks.contains(part), "{part}");
    }
}

#[test]
fn guide_tables_match_the_code() {
    for chapter in tables::chapters().unwrap() {
        if let Some((stored, derived)) = chapter.difference() {
            panic!(
                "{} is stale; help: run `{}`\nstored:  {stored}\nderived: {derived}",
                chapter.path.display(),
                tables::COMMAND
            );
        }
    }
}

#[test]
fn every_option_documents_its_default() {
    let setters = tables::options::setters().unwrap();
    assert!(setters.len() > 90, "{setters:?}");
    // A setter that refers to another one documents no default of its own.
    let refers = |summary: &str| summary.contains(" like `");
    for setter in setters {
        assert!(!setter.summary.is_empty(), "`{}` has no docs", setter.name);
        let is_documented =
            setter.is_constructor || setter.default.is_some() || refers(&setter.summary);
        assert!(is_documented, "the docs of `{}` name no default", setter.item());
    }
}

#[test]
fn documented_wire_names_of_options_exist_in_the_code() {
    let mut code = String::new();
    for (_, source) in sources("crates/claude-wire/src").unwrap() {
        code += &source;
    }
    for setter in tables::options::setters().unwrap() {
        let sent = setter.sent.unwrap_or_default();
        for name in sent.split('`').skip(1).step_by(2) {
            let name = name.split('=').next().unwrap();
            // A field whose wire name equals its Rust name appears only as a field.
            let is_there =
                code.contains(&format!("\"{name}\"")) || code.contains(&format!(" {name}: "));
            assert!(
                is_there,
                "`{}` is documented as sent as `{name}`, which is not in the code",
                setter.name
            );
        }
    }
}

#[test]
fn every_option_is_used_in_an_integration_test() {
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
    let setters = tables::options::setters().unwrap();
    let unused: Vec<String> = setters
        .into_iter()
        .map(|setter| setter.name)
        .filter(|name| {
            !tests.contains(&format!(".{name}(")) && !tests.contains(&format!("::{name}("))
        })
        .collect();
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn every_example_is_documented_and_run_by_xtask_test() {
    let (readme, steps) = (text_of("README.md"), text_of("tests-e2e/src/bin/xtask/examples.rs"));
    let mut count = 0;
    for entry in fs::read_dir(root().join("crates/claude-agent-kit/examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(readme.contains(&format!("| `{name}` |")), "README.md does not list {name}");
        assert!(steps.contains(&format!("\"{name}\",")), "`cargo xtask test` does not run {name}");
        count += 1;
    }
    assert!(count > 5, "{count}");
}

#[test]
fn limits_chapter_matches_the_code() {
    assert_eq!(limits::mismatches().unwrap(), Vec::<String>::new());
}

#[test]
fn limits_chapter_lists_every_timeout() {
    assert_eq!(limits::undocumented_timeouts().unwrap(), Vec::<String>::new());
}

#[test]
fn tests_named_in_the_security_review_exist() {
    let review = fs::read_to_string(root().join("docs/security-review.md")).unwrap();
    let named: Vec<&str> =
        review.split('`').filter(|text| text.contains("::") && text.contains('/')).collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|test| !has_test(test)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn tests_named_for_invariants_exist() {
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
            assert!(has_test(test), "invariant {number} names {test}, which does not exist");
        }
    }
    assert!(numbers > 15, "{numbers}");
}

/// Returns the patterns of the arms of every `match` in a source file.
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
                // The body of the arm: up to the comma or to the end of its block.
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
fn session_machine_enums_are_matched_without_wildcards() {
    const SEAM: [&str; 13] = [
        "Event::",
        "Effect::",
        "Frame::",
        "RunFailure::",
        "Rejection::",
        "Completion::",
        "RunState::",
        "RunEnd::",
        "Exit::",
        "RunWarning::",
        "TurnEnd::",
        "ShutdownStep::",
        "CallbackOutcome::",
    ];
    let mut seen = 0;
    for folder in ["crates/claude-agent-kit/src", "crates/claude-agent-core/src/session"] {
        for (path, code) in sources(folder).unwrap() {
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
                    assert!(arm != "_", "{path}: a wildcard next to {:?}", arms[0].trim());
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} matches of these enums were found");
}

#[test]
fn unsafe_code_is_limited_to_two_modules() {
    for krate in CRATES {
        for (path, code) in sources(&format!("crates/{krate}/src")).unwrap() {
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
