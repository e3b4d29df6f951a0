//! The setters of `Options`: what they do, how the CLI is told, and the default.

use super::{docs, markdown, sources};

/// A setter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setter {
    /// The file that it stands in.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The types of its arguments.
    pub types: Vec<String>,
    /// What it does.
    pub summary: String,
    /// How the CLI is told: the sentence of its docs that begins with "Sent as".
    pub sent: Option<String>,
    /// What holds without it: the sentence of its docs that begins with "Default:".
    pub default: Option<String>,
}

impl Setter {
    /// Whether the CLI is told by this flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.sent.as_deref().is_some_and(|sent| sent.split('`').any(|word| word == flag))
    }

    /// Whether its value can hold a text: not if it is a switch, a number or a duration.
    pub fn can_hold_text(&self) -> bool {
        const OTHERS: [&str; 7] =
            ["bool", "u32", "u64", "usize", "f64", "Duration", "impl Into<Option<Duration>>"];
        self.types.is_empty() || self.types.iter().any(|kind| !OTHERS.contains(&kind.as_str()))
    }
}

/// All setters, by file.
///
/// # Errors
///
/// When the sources cannot be read.
pub fn setters() -> Result<Vec<Setter>, String> {
    let files = sources("options")?;
    Ok(files.iter().flat_map(|(file, source)| in_source(file, source)).collect())
}

/// The public functions of `Options` that take it by value.
fn in_source(file: &str, source: &str) -> Vec<Setter> {
    let found = docs::functions(source, &["impl Options {"]).into_iter();
    let setter = |found: docs::Documented| {
        let rest = found.declaration.strip_prefix("pub fn ")?.split_once('(')?.1;
        let arguments = rest.trim_start().strip_prefix("self")?.split(") -> Self").next()?;
        Some(Setter {
            file: file.to_owned(),
            types: types(arguments),
            summary: found.summary(),
            sent: found.said("Sent as "),
            default: found.said("Default: "),
            name: found.name,
        })
    };
    found.filter_map(setter).collect()
}

/// The types in `, a: b, c: d`. Those with commas of their own come in pieces.
fn types(arguments: &str) -> Vec<String> {
    let arguments = arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    arguments
        .map(|argument| argument.split_once(": ").map_or(argument, |(_, kind)| kind).to_owned())
        .collect()
}

/// A table for each file that has setters.
pub(super) fn tables() -> Result<Vec<(String, String)>, String> {
    let setters = setters()?;
    let groups = setters.chunk_by(|one, other| one.file == other.file);
    Ok(groups.map(|group| (format!("options {}", group[0].file), table(group))).collect())
}

fn table(setters: &[Setter]) -> String {
    let rows: Vec<[String; 4]> = setters
        .iter()
        .map(|setter| {
            let Setter { name, summary, sent, default, .. } = setter.clone();
            let (sent, default) = (sent.unwrap_or_default(), default.unwrap_or_default());
            [format!("`{name}`"), summary, sent, default]
        })
        .collect();
    markdown(["option", "what it does", "sent as", "default"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "impl Options {
    pub fn new() -> Self {
    }

    /// Sets a. Sent as `--a` or `--a-b=x`. Default: none.
    pub fn a(self) -> Self {
    }

    pub fn b<P>(self, p: P) -> Self
    where
        P: Fn(String),
    {
    }

    pub fn c(
        self,
        x: u32,
        y: impl Into<Option<Duration>>,
    ) -> Self {
    }

    fn d(self) -> Self {
    }
}
impl Other {
    pub fn e(self) {
    }
}
";

    #[test]
    fn setters_are_found_in_every_form_in_which_they_are_written() {
        let found = in_source("x.rs", SOURCE);
        let names: Vec<&str> = found.iter().map(|setter| setter.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(found[0].has_flag("--a") && !found[0].has_flag("--a-b"));
        let texts: Vec<bool> = found.iter().map(Setter::can_hold_text).collect();
        assert_eq!(texts, [true, true, false], "{found:?}");
        let rows = table(&found[..1]);
        assert!(rows.ends_with("| `a` | Sets a | `--a` or `--a-b=x` | none |\n"), "{rows}");
    }
}
