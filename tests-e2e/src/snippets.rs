//! The code blocks of the README and the guide, as readers see them, for a project that depends only on the public API.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::workspace::root;

/// A code block of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snippet {
    /// The document and the line of the opening fence, such as `guide_hooks_24`.
    pub name: String,
    /// The code without the lines that rustdoc hides.
    pub code: String,
}

impl Snippet {
    /// Returns a module that contains the snippet. Code without a `main` function or a test is wrapped in an async function
    /// that returns a `Result`.
    pub fn module(&self) -> String {
        if self.code.contains("fn main(") || self.code.contains("#[tokio::test") {
            return self.code.clone();
        }
        format!(
            "async fn snippet() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n",
            self.code
        )
    }
}

/// Returns every Rust snippet of the README and of the guide.
///
/// # Errors
///
/// Returns an error when a document cannot be read.
pub fn all() -> io::Result<Vec<Snippet>> {
    let mut snippets = of_file("readme", &root().join("README.md"))?;
    let mut chapters: Vec<PathBuf> = Vec::new();
    for guide in ["crates/claude-agent-kit/src/guide", "crates/claude-agent-store/src/guide"] {
        for entry in fs::read_dir(root().join(guide))? {
            chapters.push(entry?.path());
        }
    }
    chapters.sort();
    for chapter in chapters.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let stem = chapter.file_stem().unwrap_or_default().to_string_lossy();
        snippets.extend(of_file(&format!("guide_{stem}"), chapter)?);
    }
    Ok(snippets)
}

fn of_file(document: &str, path: &Path) -> io::Result<Vec<Snippet>> {
    Ok(of_text(document, &fs::read_to_string(path)?))
}

/// Returns the Rust snippets of a document in Markdown.
pub fn of_text(document: &str, text: &str) -> Vec<Snippet> {
    let mut snippets = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut code = String::new();
        for (_, line) in lines.by_ref().take_while(|(_, line)| !line.starts_with("```")) {
            if !is_hidden(line) {
                code.push_str(line);
                code.push('\n');
            }
        }
        if is_rust(info) {
            snippets.push(Snippet { name: format!("{document}_{}", number + 1), code });
        }
    }
    snippets
}

/// Whether rustdoc would compile a block with this info string and expect success.
fn is_rust(info: &str) -> bool {
    info.split(',').all(|word| matches!(word.trim(), "" | "rust" | "no_run" | "should_panic"))
}

/// Whether rustdoc hides this line.
fn is_hidden(line: &str) -> bool {
    let line = line.trim_start();
    line == "#" || line.starts_with("# ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_contain_the_visible_lines() {
        let text = "\
# Title
```sh
cargo add x
```
```no_run
# use hidden::thing;
let a = 1;
#
#[tokio::main]
```
```compile_fail,E0277
no();
```
";
        let expected =
            Snippet { name: "doc_5".to_owned(), code: "let a = 1;\n#[tokio::main]\n".to_owned() };
        assert_eq!(of_text("doc", text), [expected]);
    }

    #[test]
    fn code_without_main_is_wrapped_in_an_async_function() {
        let snippet = |code: &str| Snippet { name: "s".to_owned(), code: code.to_owned() };
        assert!(snippet("run().await?;").module().starts_with("async fn snippet()"));
        for whole in ["fn main() {}", "#[tokio::test]\nasync fn passes() {}"] {
            assert_eq!(snippet(whole).module(), whole);
        }
    }

    #[test]
    fn readme_and_guide_are_read() {
        let snippets = all().unwrap();
        for document in ["readme_", "guide_queries_", "guide_hooks_", "guide_testing_"] {
            assert!(
                snippets.iter().any(|snippet| snippet.name.starts_with(document)),
                "{document}"
            );
        }
    }

    /// Counts the lines of a program, without blank lines and comments.
    fn lines(path: &str) -> usize {
        let text = fs::read_to_string(root().join("docs/ergonomics").join(path)).unwrap();
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count()
    }

    #[test]
    fn line_counts_of_the_ergonomics_page_are_correct() {
        let page = fs::read_to_string(root().join("docs/ergonomics.md")).unwrap();
        let (mut before, mut after) = (0, 0);
        for name in ["batch", "sse", "approvals", "fault", "replay"] {
            let old = lines(&format!("before/{name}.rs"));
            let new = lines(&format!("after/{name}.rs"));
            let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
            assert!(row.ends_with(&format!("| {old} | {new} |")), "{row}: {old}, {new}");
            before += old;
            after += new;
        }
        assert!(page.contains(&format!("| all | | {before} | {after} |")), "{before}, {after}");
        assert!(after * 4 <= before, "{after} of {before}");
    }
}
