//! Reads doc comments from sources formatted by rustfmt.

/// A function and the first paragraph of its doc comment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentedFn {
    /// The name.
    pub name: String,
    /// Its declaration as one line, up to the body.
    pub declaration: String,
    /// The first paragraph of its doc comment, as one line.
    pub paragraph: String,
}

impl DocumentedFn {
    /// Returns the first sentence, without links and full stop.
    pub fn summary(&self) -> String {
        without_links(sentences(&self.paragraph).next().unwrap_or_default())
    }

    /// Returns the rest of the sentence that starts with these words, without links and full stop.
    pub fn text_after(&self, beginning: &str) -> Option<String> {
        let mut rest = sentences(&self.paragraph).filter_map(|line| line.strip_prefix(beginning));
        rest.next().map(without_links)
    }
}

/// Returns the functions of the blocks that open with one of these lines, such as `impl Options {`.
pub fn functions(source: &str, blocks: &[&str]) -> Vec<DocumentedFn> {
    let (mut found, mut inside, mut comment) = (Vec::new(), false, Vec::new());
    let lines: Vec<&str> = source.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if !line.starts_with(' ') && !line.is_empty() {
            inside = blocks.contains(line);
        }
        let Some(line) = line.strip_prefix("    ").filter(|_| inside) else { continue };
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
        } else if !line.starts_with("#[") {
            if let Some(name) = name(line) {
                let declaration = declaration(&lines[at..]);
                let paragraph = paragraph(&comment);
                found.push(DocumentedFn { name, declaration, paragraph });
            }
            comment.clear();
        }
    }
    found
}

fn name(line: &str) -> Option<String> {
    let start = ["pub fn ", "pub async fn ", "fn "];
    let rest = start.iter().find_map(|start| line.strip_prefix(start))?;
    rest.split(['(', '<']).next().map(str::to_owned)
}

/// Returns the declaration at the start of these lines, as one line. Its body opens at the end of a line, or on a line
/// of its own.
fn declaration(lines: &[&str]) -> String {
    let mut declaration = String::new();
    for line in lines {
        let line = line.trim();
        if line == "{" {
            break;
        }
        declaration += line.split_once(" {").map_or(line, |(before, _)| before);
        if line.contains(" {") {
            break;
        }
        declaration.push(' ');
    }
    declaration
}

/// Joins the lines up to the first empty one.
pub(super) fn paragraph(comment: &[&str]) -> String {
    let lines = comment.iter().copied().take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Splits a paragraph into sentences, without their full stops.
pub(super) fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    paragraph.split(". ").map(|sentence| sentence.trim_end_matches('.'))
}

/// Converts ``[`a`](b)`` to `` `a` ``. Brackets inside of code are kept.
pub(super) fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once('[') {
        plain += before;
        let is_code = plain.matches('`').count() % 2 == 1;
        let Some((title, after)) = link.split_once(']').filter(|_| !is_code) else {
            plain.push('[');
            rest = link;
            continue;
        };
        plain += title;
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "impl Options {
    /// Sets [`a`](Self::a), or [`B`]. Sent as `--a`.
    /// Default: no. More.
    ///
    /// Another paragraph. Default: yes.
    #[cfg(unix)]
    pub fn a(
        self,
        x: u8,
    ) -> Self {
        /// Inner.
        fn inner() {}
    }

    /// Helps.
    fn b<T>(self) {}
}

impl Other {
    /// Not here.
    pub fn c(self) {}
}
";

    #[test]
    fn functions_are_found_with_their_first_paragraph() {
        let found = functions(SOURCE, &["impl Options {"]);
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(found[0].declaration, "pub fn a( self, x: u8, ) -> Self");
        assert_eq!(found[0].summary(), "Sets `a`, or `B`");
        assert_eq!(found[0].text_after("Sent as ").as_deref(), Some("`--a`"));
        assert_eq!(found[0].text_after("Default: ").as_deref(), Some("no"));
        assert_eq!(found[1].text_after("Default: "), None);
    }

    #[test]
    fn links_become_text_and_brackets_in_code_stay() {
        let text = "Sets [`a`](Self::a), [b] or `[\"c\", \"d\"]`, and [`E`]; `x[` [";
        assert_eq!(without_links(text), "Sets `a`, b or `[\"c\", \"d\"]`, and `E`; `x[` [");
    }
}
