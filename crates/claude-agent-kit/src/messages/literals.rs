//! Finds the string literals of messages in the sources, to check that each is in the list.

use std::fs;
use std::path::{Path, PathBuf};

/// Literals that are not in the list, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("Provided value \"", "a part of a line of the CLI"),
    ("access to the working directory `", "needs a user other than root"),
    ("` is denied", "needs a user other than root"),
    (
        "the working directory of this process no longer exists:",
        "needs a process in such a directory",
    ),
    ("change the options", "for warnings without help, of which there are none"),
    ("correct the reported cause", "for errors without help, which these checks do not return"),
    ("the CLI sent a field that is not named:", "a log event"),
    ("the callback ended", "a log event"),
    ("the run failed", "a log event"),
    ("the run ended", "a log event"),
    ("late response to an operation", "a log event"),
    ("response without a pending operation", "a log event"),
    ("a waker of the host's executor panicked", "a log event"),
    ("the operation ended", "a log event"),
    ("the turn ended", "a log event"),
    ("the store failed:", "a log event"),
    ("the approval store failed:", "a log event"),
    ("in the store is ignored:", "a log event"),
    ("the approval policy failed:", "a log event"),
    ("the session ended with an error:", "a log event"),
    ("the store failed, trying again:", "a log event"),
    ("cannot remove \"", "a log event"),
    ("renamed a transcript without messages, which the CLI cannot resume, to \"", "a log event"),
    ("failed to rename \"", "a log event"),
    ("the store is down", "a text in a test"),
    ("cannot record the run:", "needs the feature `testing`"),
    ("timed out after", "sent to the CLI, and the reason in a warning"),
    ("the call was cancelled", "sent to the CLI"),
    ("the permission request was withdrawn", "sent to the CLI as the reason of a denial"),
    ("permission requests are no longer answered", "sent to the CLI as the reason of a denial"),
    (
        "too many permission requests are pending; try again later",
        "sent to the CLI as the reason of a denial",
    ),
    ("no callback is registered for this request", "the reason in a warning"),
    ("neither a request, nor a notification, nor a response", "sent to the CLI"),
    ("TOML requires the feature `config` of claude-agent-kit", "needs a build without it"),
    ("more problems", "the end of a list of more than 100 problems"),
    ("` printed nothing within", "needs an `id` that hangs"),
    ("failed to run `", "needs an `id` that cannot be run"),
    ("failed to encode the prompt as JSON:", "needs a content block that cannot be encoded"),
    ("the CLI has version", "a hint"),
    ("the box was created with this type", "a panic"),
];

/// Calls that mark a file as one with messages.
const CONSTRUCTORS: [&str; 8] = [
    "Error::new(ErrorKind::",
    "Warning::new(",
    "Problem::new(",
    "Wrong::new(",
    "Finding::problem(",
    "Diagnosis::new(",
    "StoreError::new(",
    "StoreError::rejected(",
];

/// Returns the literals of messages that do not occur in the text, with their files.
pub(super) fn missing_in(text: &str) -> Vec<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut missing = Vec::new();
    for path in files(&sources) {
        let source = fs::read_to_string(&path).unwrap();
        // Tests are at the end of a file.
        let code = source.split("\nmod tests {").next().unwrap_or_default();
        let joined: String = code.split_whitespace().collect();
        if !CONSTRUCTORS.iter().any(|constructor| joined.contains(constructor)) {
            continue;
        }
        for literal in literals(code) {
            for part in parts(&literal) {
                let is_exception = EXCEPTIONS.iter().any(|(exception, _)| *exception == part);
                if !text.contains(&part) && !is_exception {
                    let file = path.strip_prefix(&sources).unwrap().display();
                    missing.push(format!("{file}: {part}"));
                }
            }
        }
    }
    missing
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "messages", "guide", "testing"].contains(&name.as_str()) {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["tests.rs", "examples.rs"].contains(&name.as_str())
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Splits a literal at its placeholders into the parts that are long enough to be specific.
fn parts(literal: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut inside = false;
    for letter in literal.replace("{{", "\u{1}").replace("}}", "\u{2}").chars() {
        match letter {
            '{' => {
                inside = true;
                parts.push(String::new());
            }
            '}' => inside = false,
            _ if inside => {}
            '\u{1}' => parts.last_mut().unwrap().push('{'),
            '\u{2}' => parts.last_mut().unwrap().push('}'),
            letter => parts.last_mut().unwrap().push(letter),
        }
    }
    let trimmed = parts.iter().map(|part| part.trim().to_owned());
    trimmed.filter(|part| part.len() > 10 && part.contains(' ')).collect()
}

/// Returns the string literals of code, without those in comments and attributes.
fn literals(code: &str) -> Vec<String> {
    let lines = code.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.starts_with('#') && !line.starts_with("reason = \"")
    });
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some(start) = rest.find('"') {
        // A quote in a character literal does not begin a string.
        if rest[..start].ends_with('\'') {
            rest = &rest[start + 1..];
            continue;
        }
        rest = &rest[start + 1..];
        let mut literal = String::new();
        let mut letters = rest.char_indices();
        let end = loop {
            let Some((at, letter)) = letters.next() else { return found };
            match letter {
                '"' => break at,
                '\\' => match letters.next() {
                    Some((_, '\n')) => {
                        let indent = rest[at + 2..].chars().take_while(|c| c.is_whitespace());
                        for _ in 0..indent.count() {
                            letters.next();
                        }
                    }
                    Some((_, 'n')) => literal.push_str("\\n"),
                    Some((_, escaped)) => literal.push(escaped),
                    None => return found,
                },
                letter => literal.push(letter),
            }
        };
        rest = &rest[end + 1..];
        found.push(literal);
    }
    found
}
