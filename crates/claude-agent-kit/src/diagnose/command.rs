//! Shows the command line of the CLI, so that a start that failed can be repeated by hand.

use std::fmt::Write as _;

use crate::cli::Program;

/// The flags whose values are shown. The values of all others may be prompts, schemas or secrets.
const SHOWN: [&str; 24] = [
    "--add-dir",
    "--agent",
    "--betas",
    "--debug-file",
    "--effort",
    "--fallback-model",
    "--max-budget-usd",
    "--max-thinking-tokens",
    "--max-turns",
    "--mcp-config",
    "--model",
    "--permission-mode",
    "--permission-prompt-tool",
    "--permission-prompts",
    "--plugin-dir",
    "--resume",
    "--resume-session-at",
    "--session-id",
    "--setting-sources",
    "--settings",
    "--system-prompt-file",
    "--task-budget",
    "--thinking",
    "--tools",
];

/// The maximum length of a command in bytes.
const MAX_BYTES: usize = 1024;

/// Returns the command that starts the CLI. `…` replaces the prompt, the arguments of a runtime, and every value that may
/// be more than a name, a number or a path, or that a shell would not pass on as it is.
pub(crate) fn shown(program: &Program, arguments: &[String]) -> String {
    let mut command = program.executable().display().to_string();
    match &*program.arguments_before() {
        [] => {}
        [script] => push(&mut command, &script.to_string_lossy()),
        [.., script] => {
            command.push_str(" …");
            push(&mut command, &script.to_string_lossy());
        }
    }
    for argument in arguments {
        if argument == "--" {
            // The prompt follows.
            command.push_str(" -- …");
            break;
        }
        if command.len() > MAX_BYTES {
            command.push_str(" …");
            break;
        }
        match argument.split_once('=') {
            Some((flag, value)) if SHOWN.contains(&flag) && is_plain(value) => {
                push(&mut command, argument);
            }
            Some((flag, _)) => {
                // Writing to a string cannot fail.
                let _ = write!(command, " {}=…", limited(flag));
            }
            None => push(&mut command, argument),
        }
    }
    command
}

fn push(command: &mut String, word: &str) {
    command.push(' ');
    command.push_str(&limited(word));
}

fn limited(word: &str) -> String {
    match word.char_indices().nth(256) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

/// Returns whether a value is a name, a number, a path or a list of them. JSON is not.
fn is_plain(value: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.,:/@+*".contains(letter);
    value.len() <= 256 && value.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_command_shows_names_and_paths_and_nothing_else() {
        let program = Program::from(PathBuf::from("/opt/claude"));
        let arguments = words(&[
            "--output-format",
            "stream-json",
            "--model=opus",
            "--append-system-prompt=hush",
            "--settings={\"env\":{\"KEY\":\"hush\"}}",
            "--mcp-config=/srv/servers.json",
            "--api-token=hush",
            "--desktop",
            "--",
            "--model=hush",
        ]);
        assert_eq!(
            shown(&program, &arguments),
            "/opt/claude --output-format stream-json --model=opus --append-system-prompt=… --settings=… \
             --mcp-config=/srv/servers.json --api-token=… --desktop -- …"
        );
    }

    #[test]
    fn the_length_of_a_command_is_limited() {
        let program = Program::from(PathBuf::from("/opt/claude"));
        let long = format!("--{}", "x".repeat(5_000));
        let arguments = vec![long; 500];
        let text = shown(&program, &arguments);
        assert!(text.len() < 2 * MAX_BYTES && text.ends_with(" …"), "{} bytes", text.len());
    }

    #[test]
    fn arguments_of_a_runtime_are_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("cli.mjs");
        for (arguments, between) in [(Vec::new(), " "), (words(&["--token", "hush"]), " … ")] {
            let program = Program::with_runtime(script.clone(), "/usr/bin/node".into(), arguments);
            let expected = format!("/usr/bin/node{between}{} --verbose", script.display());
            assert_eq!(shown(&program, &words(&["--verbose"])), expected);
        }
    }
}
