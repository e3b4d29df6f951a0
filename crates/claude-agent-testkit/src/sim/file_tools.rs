//! The tools `Read`, `Write` and `Edit`, on real files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::engine::Engine;
use super::hooks::HookCall;
use super::json::{Object, array, text};
use super::scope::Scope;
use super::tools::ToolOutput;

impl Engine {
    pub(super) fn read_file(&self, scope: &Scope, input: &Value) -> ToolOutput {
        let path = self.input_path(input);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                return ToolOutput::error(&format!("{} cannot be read: {error}", path_text(&path)));
            }
        };
        self.queue_instructions_hook(scope, &path);
        if let Some(kind) = image_type(&path) {
            return image(&bytes, kind);
        }
        let content = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = content.split('\n').collect();
        let numbered = lines.iter().enumerate().map(|(at, line)| format!("{}\t{line}", at + 1));
        let numbered: Vec<String> = numbered.collect();
        let file = Object::new()
            .str("filePath", &path_text(&path))
            .str("content", &content)
            .plain("numLines", lines.len())
            .plain("startLine", 1)
            .plain("totalLines", lines.len());
        let result = Object::typed("text").raw("file", &file.done());
        ToolOutput::text(&numbered.join("\n"), result.done())
    }

    pub(super) fn write_file(&self, input: &Value) -> ToolOutput {
        let path = self.input_path(input);
        let content = text(&input["content"]);
        let before = fs::read_to_string(&path).ok();
        self.checkpoint(&path);
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, content));
        if let Err(error) = written {
            return ToolOutput::error(&format!("{} cannot be written: {error}", path_text(&path)));
        }
        let (kind, message) = match before {
            None => ("create", format!("Created {}", path_text(&path))),
            Some(_) => ("update", format!("Updated {}", path_text(&path))),
        };
        let changes = before.as_deref().map_or_else(|| "[]".to_owned(), |old| patch(old, content));
        let result = Object::typed(kind)
            .str("filePath", &path_text(&path))
            .str("content", content)
            .raw("structuredPatch", &changes)
            .str_or_null("originalFile", before.as_deref())
            .plain("userModified", false);
        ToolOutput::text(&message, result.done())
    }

    pub(super) fn edit_file(&self, input: &Value) -> ToolOutput {
        let path = self.input_path(input);
        let (old, new) = (text(&input["old_string"]), text(&input["new_string"]));
        let all = input["replace_all"] == true;
        let before = match fs::read_to_string(&path) {
            Ok(before) => before,
            Err(error) => {
                return ToolOutput::error(&format!("{} cannot be read: {error}", path_text(&path)));
            }
        };
        if old.is_empty() || !before.contains(old) {
            return ToolOutput::error("The text to replace was not found in the file.");
        }
        let after = if all { before.replace(old, new) } else { before.replacen(old, new, 1) };
        self.checkpoint(&path);
        if let Err(error) = fs::write(&path, &after) {
            return ToolOutput::error(&format!("{} cannot be written: {error}", path_text(&path)));
        }
        let result = Object::new()
            .str("filePath", &path_text(&path))
            .str("oldString", old)
            .str("newString", new)
            .str("originalFile", &before)
            .raw("structuredPatch", &patch(&before, &after))
            .plain("userModified", false)
            .plain("replaceAll", all);
        ToolOutput::text(&format!("Updated {}", path_text(&path)), result.done())
    }

    fn input_path(&self, input: &Value) -> PathBuf {
        self.resolve(text(&input["file_path"]), &self.state())
    }

    /// Queues the `InstructionsLoaded` hook if the directory of the file has instructions. The hook
    /// runs after all tools of the answer.
    fn queue_instructions_hook(&self, scope: &Scope, file: &Path) {
        let Some(directory) = file.parent().filter(|directory| *directory != self.launch.cwd)
        else {
            return;
        };
        let instructions = directory.join("CLAUDE.md");
        if directory.starts_with(&self.launch.cwd) && instructions.exists() {
            let input = Object::new()
                .str("file_path", &path_text(&instructions))
                .str("memory_type", "Project")
                .str("load_reason", "nested_traversal")
                .str("trigger_file_path", &path_text(file));
            super::state::lock(&scope.late_hooks)
                .push(HookCall::new("InstructionsLoaded", input).with_subject("nested_traversal"));
        }
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns one hunk that replaces all lines between the common prefix and the common suffix.
fn patch(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (rest_old, rest_new) = (&old[same..], &new[same..]);
    let tail = rest_old.iter().rev().zip(rest_new.iter().rev());
    let tail = tail.take_while(|(old, new)| old == new).count();
    let gone = &rest_old[..rest_old.len() - tail];
    let come = &rest_new[..rest_new.len() - tail];
    if gone.is_empty() && come.is_empty() {
        return "[]".to_owned();
    }
    let lines: Vec<String> = gone
        .iter()
        .map(|line| format!("-{line}"))
        .chain(come.iter().map(|line| format!("+{line}")))
        .collect();
    let hunk = Object::new()
        .plain("oldStart", same + 1)
        .plain("oldLines", gone.len())
        .plain("newStart", same + 1)
        .plain("newLines", come.len())
        .strings("lines", &lines);
    array([hunk.done()])
}

/// Returns the number of added and removed lines.
pub(super) fn changed_lines(before: &str, after: &str) -> (usize, usize) {
    let hunk: Value = serde_json::from_str(&patch(before, after)).unwrap_or_default();
    let count = |field: &str| {
        usize::try_from(hunk[0][field].as_u64().unwrap_or_default()).unwrap_or_default()
    };
    (count("newLines"), count("oldLines"))
}

fn image_type(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

fn image(bytes: &[u8], kind: &str) -> ToolOutput {
    let data = base64(bytes);
    let source = Object::typed("base64").str("data", &data).str("media_type", kind).done();
    let block = Object::typed("image").raw("source", &source).done();
    let (width, height) = png_size(bytes);
    let dimensions = Object::new()
        .plain("originalWidth", width)
        .plain("originalHeight", height)
        .plain("displayWidth", width)
        .plain("displayHeight", height);
    let file = Object::new()
        .str("base64", &data)
        .str("type", kind)
        .plain("originalSize", bytes.len())
        .raw("dimensions", &dimensions.done());
    let result = Object::typed("image").raw("file", &file.done());
    ToolOutput::content(array([block]), result.done())
}

/// Returns the size in the header of a PNG; zero for other formats.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    let number = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map_or(0, u32::from_be_bytes)
    };
    if bytes.starts_with(b"\x89PNG") { (number(16), number(20)) } else { (0, 0) }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = three
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        for digit in 0..4 {
            let filled = digit <= three.len();
            let at = number >> (18 - 6 * digit) & 63;
            text.push(if filled { char::from(DIGITS[at]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_encoded() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_patch_contains_the_changed_lines() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"), (2, 1));
        assert_eq!(patch("a\n", "a\n"), "[]");
        assert_eq!(
            patch("one\n", "two\n"),
            r#"[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-one","+two"]}]"#
        );
    }
}
