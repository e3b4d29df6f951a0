//! Replaces paths, ports, process IDs, keys and host names of this machine.

use std::path::Path;

use crate::real_cli::{DUMMY_KEY, SandboxDir};

/// The texts to replace, with their replacements.
#[derive(Debug)]
pub(super) struct Replacements {
    exact: Vec<(String, String)>,
}

impl Replacements {
    pub(super) fn of(sandbox: &SandboxDir) -> Self {
        let user = rustix::process::getuid().as_raw();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut exact = Vec::new();
        let mut place = |path: &Path, stand_in: &str| {
            let path = path.to_string_lossy().into_owned();
            // The CLI derives directory names from paths, with a dash for each non-alphanumeric character.
            exact.push((dashed(&path), dashed(stand_in)));
            exact.push((path, stand_in.to_owned()));
        };
        // Longer paths first, because the others are their prefixes.
        place(&sandbox.temporary().join(format!("claude-{user}")), "/run/cc/claude-1000");
        place(&sandbox.temporary(), "/run/cc");
        place(&sandbox.project(), "/srv/project");
        place(&sandbox.home(), "/home/user");
        place(sandbox.root(), "/srv");
        exact.push((DUMMY_KEY.to_owned(), "dummy".to_owned()));
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        exact.push((format!("Linux {kernel}"), "Linux 6.0.0".to_owned()));
        // A short name such as `vm` is also part of other words, so only whole strings are replaced.
        exact.push((format!("\"{host}\""), "\"host\"".to_owned()));
        Self { exact }
    }

    pub(super) fn scrub(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (this, stand_in) in &self.exact {
            if line.contains(this.as_str()) {
                line = line.replace(this.as_str(), stand_in);
            }
        }
        line = number_after(&line, "127.0.0.1:", "4000");
        line = number_after(&line, "\"pid\":", "4242");
        number_after(&line, "/cc-socks/", "4242")
    }
}

fn dashed(path: &str) -> String {
    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Replaces the digits that follow each `mark`.
fn number_after(line: &str, mark: &str, stand_in: &str) -> String {
    let mut pieces = line.split(mark);
    let mut scrubbed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        scrubbed.push_str(mark);
        if rest.len() < piece.len() {
            scrubbed.push_str(stand_in);
        }
        scrubbed.push_str(rest);
    }
    scrubbed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_replaced() {
        let sandbox = SandboxDir::new().unwrap();
        let replacements = Replacements::of(&sandbox);
        let user = rustix::process::getuid().as_raw();
        let project = sandbox.project().display().to_string();
        let check = |line: String, expected: &str| assert_eq!(replacements.scrub(&line), expected);
        check(format!(r#"{{"cwd":"{project}"}}"#), r#"{"cwd":"/srv/project"}"#);
        check(format!("{project}/notes.txt"), "/srv/project/notes.txt");
        check(
            format!("{}/projects/{}/x.jsonl", sandbox.config().display(), dashed(&project)),
            "/home/user/.claude/projects/-srv-project/x.jsonl",
        );
        check(
            format!("{}/claude-{user}/{}/t", sandbox.temporary().display(), dashed(&project)),
            "/run/cc/claude-1000/-srv-project/t",
        );
        check(
            format!("{}/cc-socks/9229.sock", sandbox.temporary().display()),
            "/run/cc/cc-socks/4242.sock",
        );
        check(format!("x-api-key: {DUMMY_KEY}"), "x-api-key: dummy");
    }

    #[test]
    fn numbers_of_this_run_are_replaced() {
        assert_eq!(
            number_after("http://127.0.0.1:39001/v1", "127.0.0.1:", "4000"),
            "http://127.0.0.1:4000/v1"
        );
        assert_eq!(
            number_after(r#"{"pid":12,"a":12}"#, "\"pid\":", "4242"),
            r#"{"pid":4242,"a":12}"#
        );
        assert_eq!(number_after(r#"{"pid":null}"#, "\"pid\":", "4242"), r#"{"pid":null}"#);
    }
}
