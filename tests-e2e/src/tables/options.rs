//! The setters of `Options` and of its groups: what they do, how they are sent to the CLI, and their defaults.

use super::{docs, markdown, sources};

/// The values that group options, in the order of their tables in the guide.
const GROUPS: [&str; 3] = ["Conversation", "Limits", "Timeouts"];

/// A setter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setter {
    /// The file that declares it.
    pub file: String,
    /// The type that it belongs to: `Options`, or a group.
    pub owner: &'static str,
    /// The name.
    pub name: String,
    /// Whether it creates the value instead of changing one.
    pub is_constructor: bool,
    /// The types of its arguments.
    pub types: Vec<String>,
    /// What it does.
    pub summary: String,
    /// How it is sent to the CLI: the sentence of its docs that starts with "Sent as".
    pub sent: Option<String>,
    /// Its default: the sentence of its docs that starts with "Default:".
    pub default: Option<String>,
}

impl Setter {
    /// Returns the name in the public API.
    pub fn item(&self) -> String {
        format!("{}::{}", self.owner, self.name)
    }

    /// Whether it is sent with this flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.sent.as_deref().is_some_and(|sent| sent.split('`').any(|word| word == flag))
    }

    /// Whether its value can contain a text: not if it is a flag, a number, a duration or a group of those.
    pub fn can_hold_text(&self) -> bool {
        const OTHERS: [&str; 11] = [
            "bool",
            "u32",
            "u64",
            "usize",
            "f64",
            "Duration",
            "impl Into<Option<Duration>>",
            "Limits",
            "Timeouts",
            "Include",
            "VersionCheck",
        ];
        self.types.iter().any(|kind| !OTHERS.contains(&kind.as_str()))
    }
}

/// Returns all setters, by file.
///
/// # Errors
///
/// Returns an error when the sources cannot be read.
pub fn setters() -> Result<Vec<Setter>, String> {
    let files = sources("options")?;
    let owners = ["Options"].into_iter().chain(GROUPS);
    let in_files =
        |owner| files.iter().flat_map(move |(file, source)| in_source(file, owner, source));
    Ok(owners.flat_map(in_files).collect())
}

/// Returns the public functions of a type that take it by value; for a group, also its constructors.
fn in_source(file: &str, owner: &'static str, source: &str) -> Vec<Setter> {
    let block = format!("impl {owner} {{");
    let found = docs::functions(source, &[block.as_str()]).into_iter();
    let setter = |found: docs::DocumentedFn| {
        let rest = found.declaration.strip_prefix("pub fn ")?.split_once('(')?.1.trim_start();
        let (arguments, is_constructor) =
            match rest.strip_prefix("self").or_else(|| rest.strip_prefix("mut self")) {
                Some(arguments) => (arguments, false),
                None if owner != "Options" && !rest.starts_with('&') => (rest, true),
                None => return None,
            };
        let arguments = arguments.split(") -> Self").next()?;
        Some(Setter {
            owner,
            is_constructor,
            file: file.to_owned(),
            types: types(arguments),
            summary: found.summary(),
            sent: found.text_after("Sent as "),
            default: found.text_after("Default: "),
            name: found.name,
        })
    };
    found.filter_map(setter).collect()
}

/// Returns the types in `, a: b, c: d`. Types that contain commas are split.
fn types(arguments: &str) -> Vec<String> {
    let arguments = arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    arguments
        .map(|argument| argument.split_once(": ").map_or(argument, |(_, kind)| kind).to_owned())
        .collect()
}

/// Returns a table for each file with setters, and for each group.
pub(super) fn tables() -> Result<Vec<(String, String)>, String> {
    let setters = setters()?;
    let parts = setters.chunk_by(|one, other| (one.owner, &one.file) == (other.owner, &other.file));
    let named = |part: &[Setter]| match part[0].owner {
        "Options" => (format!("options {}", part[0].file), table("option", part)),
        group => (format!("members of {group}"), table(&format!("`{group}::`"), part)),
    };
    Ok(parts.map(named).collect())
}

fn table(title: &str, setters: &[Setter]) -> String {
    let rows: Vec<[String; 4]> = setters
        .iter()
        .map(|setter| {
            let Setter { name, summary, sent, default, .. } = setter.clone();
            let (sent, default) = (sent.unwrap_or_default(), default.unwrap_or_default());
            [format!("`{name}`"), summary, sent, default]
        })
        .collect();
    markdown([title, "what it does", "sent as", "default"], &rows)
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
    fn setters_are_found_in_every_format() {
        let found = in_source("x.rs", "Options", SOURCE);
        let names: Vec<&str> = found.iter().map(|setter| setter.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(found[0].has_flag("--a") && !found[0].has_flag("--a-b"));
        let texts: Vec<bool> = found.iter().map(Setter::can_hold_text).collect();
        assert_eq!(texts, [false, true, false], "{found:?}");
        let rows = table("option", &found[..1]);
        assert!(rows.ends_with("| `a` | Sets a | `--a` or `--a-b=x` | none |\n"), "{rows}");
    }

    #[test]
    fn members_of_a_group_include_its_constructors() {
        let source = "impl Group {
    /// Makes one.
    pub fn one(id: impl Into<String>) -> Self {
    }

    /// Sets b. Default: 1.
    pub fn b(mut self, b: u32) -> Self {
    }

    pub fn look(&self) -> u32 {
    }
}
";
        let found = in_source("x.rs", "Group", source);
        let kinds = found.iter().map(|setter| (setter.item(), setter.is_constructor));
        let expected = [("Group::one".to_owned(), true), ("Group::b".to_owned(), false)];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
        assert_eq!(found[0].types, ["impl Into<String>"]);
    }
}
