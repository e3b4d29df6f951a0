//! Moves the pin of the newest CLI, and shows what that changes.

use std::fs;
use std::process::{Command, ExitCode, Stdio};

use claude_agent_testkit::recording::today;
use tests_e2e::real_cli;
use tests_e2e::workspace::root;

use super::Outcome;
use super::checks::cargo;

const PACKAGE: &str = "tests-e2e/package.json";
const VERSIONS: &str = "docs/cli-versions.md";

/// A place that names the pinned version or its date: the file, the text before, and the text after it.
type Place = (&'static str, &'static str, &'static str);

const VERSION_PLACES: [Place; 3] = [
    (PACKAGE, "\"@anthropic-ai/claude-code\": \"", "\""),
    (VERSIONS, "\nThe tests use ", ","),
    (VERSIONS, "runs on 2.1.261, 2.1.290 and ", "."),
];

const DATE_PLACE: Place = (VERSIONS, "the newest released version on ", ".");

/// What nobody but a person can do, after the output above was read.
const LEFT: &str = "\
1. Read the differences of drift: which messages, fields and flows changed, and whether the SDK must react.
2. Record the corpus again: `git mv` the directory in crates/claude-wire/tests/corpus to the new version, then
   `cargo xtask record`, `cargo xtask record-transcripts`, and
   `UPDATE_EXPECT=1 cargo test -p claude-wire --test it transcript_corpus`.
3. Change the simulated CLI where the real one changed, and its version (`VERSION` in
   crates/claude-agent-testkit/src/sim/mod.rs); list accepted differences in tests-e2e/allowed_differences.md.
4. Add a column to the table of docs/cli-versions.md if a fact changed: `cargo xtask cli-versions` with all its
   versions.
5. Write the rows of docs/parity.md that could not be derived; move the pins of the official SDKs in
   tests-e2e/parity if there are newer ones, and run `cargo xtask parity` again.
6. Run the tests, then replace the old version where a text says what was observed with it (listed above), and
   describe the changes in CHANGELOG.md.";

/// Sets the pins to this version, installs it, and prints the differences and what is left to do.
pub(crate) fn run(version: &str) -> Outcome {
    if !is_version(version) {
        return Err(format!("\"{version}\" is not a version; help: use one such as 2.1.326").into());
    }
    let old = real_cli::pinned_version();
    set_pins(version, &today())?;
    let columns: &[&str] =
        if old == version { &["cli-versions", version] } else { &["cli-versions", &old, version] };
    let mut failed = Vec::new();
    // In new processes, because the pins are compiled into this program.
    for words in [&["cli"], &["drift"], columns, &["parity"]] {
        println!("== cargo xtask {}", words.join(" "));
        if !cargo(&["xtask"]).args(words).status()?.success() {
            if words[0] == "cli" {
                return Err(format!("claude {version} cannot be installed").into());
            }
            failed.push(words.join(" "));
        }
    }
    println!("== texts that name {old}");
    let mut git = Command::new("git");
    git.args(["grep", "--count", "--fixed-strings", &old, "--", "*.rs", "*.md"]);
    git.args([":!CHANGELOG.md", ":!docs/proofs.md", ":!docs/performance.md"]);
    git.current_dir(root()).stdin(Stdio::null()).status()?;
    if !failed.is_empty() {
        println!("== with differences or failures: {}", failed.join("; "));
    }
    println!("== left to do\n{LEFT}");
    Ok(ExitCode::SUCCESS)
}

/// Writes the version into all places, and the checksums of its packages into the lock file.
fn set_pins(version: &str, date: &str) -> Result<(), Box<dyn std::error::Error>> {
    for file in [PACKAGE, VERSIONS] {
        let path = root().join(file);
        let text = fs::read_to_string(&path)?;
        let changed = with_pins(file, &text, version, date)?;
        if changed == text {
            continue;
        }
        println!("{file}: {version}");
        fs::write(path, changed)?;
        if file == PACKAGE {
            let mut npm = Command::new("npm");
            npm.args(["install", "--package-lock-only", "--ignore-scripts", "--no-audit"]);
            // Without the address of a registry, which differs between machines.
            npm.args(["--no-fund", "--omit-lockfile-registry-resolved=true"]);
            npm.current_dir(root().join("tests-e2e")).stdin(Stdio::null());
            if !npm.status()?.success() {
                return Err("npm could not update tests-e2e/package-lock.json".into());
            }
        }
    }
    Ok(())
}

/// Returns a file with the version in its places. The date changes only together with a version.
fn with_pins(file: &str, text: &str, version: &str, date: &str) -> Result<String, String> {
    let mut changed = text.to_owned();
    for (_, before, after) in VERSION_PLACES.iter().filter(|place| place.0 == file) {
        changed = replaced(&changed, before, after, version)?;
    }
    let (dated, before, after) = DATE_PLACE;
    if dated == file && changed != text {
        changed = replaced(&changed, before, after, date)?;
    }
    Ok(changed)
}

/// Replaces what is between two texts.
fn replaced(text: &str, before: &str, after: &str, new: &str) -> Result<String, String> {
    let missing = || format!("no place for the version after \"{}\"", before.trim());
    let start = text.find(before).ok_or_else(missing)? + before.len();
    let rest = &text[start..];
    // A version contains dots: the text after it begins with the last character that is none of its own.
    let length = rest
        .find(|character: char| !(character.is_ascii_digit() || ".-".contains(character)))
        .map_or(rest.len(), |end| if after == "." { end - 1 } else { end });
    if !rest[length..].starts_with(after) {
        return Err(missing());
    }
    Ok(format!("{}{new}{}", &text[..start], &rest[length..]))
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Versions\n\nThe tests use 2.1.326, which was the newest released version on \
                            2026-11-18. A suite\nruns on 2.1.261, 2.1.290 and 2.1.326.\n";

    #[test]
    fn pins_are_replaced_with_their_date() {
        let package = r#"{"dependencies": {"@anthropic-ai/claude-code": "2.1.326"}}"#;
        assert_eq!(
            with_pins(PACKAGE, package, "2.2.0", "2027-01-02").unwrap(),
            r#"{"dependencies": {"@anthropic-ai/claude-code": "2.2.0"}}"#
        );
        assert_eq!(
            with_pins(VERSIONS, DOCUMENT, "2.2.0", "2027-01-02").unwrap(),
            "# Versions\n\nThe tests use 2.2.0, which was the newest released version on 2027-01-02. A suite\n\
             runs on 2.1.261, 2.1.290 and 2.2.0.\n"
        );
    }

    #[test]
    fn the_pinned_version_changes_nothing() {
        assert_eq!(with_pins(VERSIONS, DOCUMENT, "2.1.326", "2027-01-02").unwrap(), DOCUMENT);
    }

    #[test]
    fn a_text_without_its_place_is_an_error() {
        let error = with_pins(PACKAGE, "{}", "2.2.0", "2027-01-02").unwrap_err();
        assert!(error.starts_with("no place for the version after"), "{error}");
        let other = DOCUMENT.replace("The tests use 2.1.326,", "The tests use 2.1.326 and");
        assert!(with_pins(VERSIONS, &other, "2.2.0", "2027-01-02").is_err());
    }

    #[test]
    fn every_place_exists() {
        let pinned = real_cli::pinned_version();
        for file in [PACKAGE, VERSIONS] {
            let text = fs::read_to_string(root().join(file)).unwrap();
            assert_eq!(with_pins(file, &text, &pinned, "2027-01-02").unwrap(), text, "{file}");
            assert!(with_pins(file, &text, "9.9.9", "2027-01-02").unwrap().contains("9.9.9"));
        }
    }

    #[test]
    fn versions_are_told_from_other_words() {
        assert!(is_version("2.1.326"));
        for word in ["", "latest", "2.1", "2.1.", "2.1.326-beta", "2.1.3.4"] {
            assert!(!is_version(word), "{word}");
        }
    }
}
