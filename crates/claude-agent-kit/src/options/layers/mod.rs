//! Options from several sources: the builder, the environment, config files.
//!
//! Each source becomes options of its own, and [`TABLE`] defines how they are merged.

mod groups;
mod json;
mod nearest;
mod node;
mod structured;
mod table;
mod take;
#[cfg(test)]
mod tests;
#[cfg(feature = "config")]
mod toml;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use claude_wire::control::PermissionMode;
use claude_wire::launch::{Problem, Secret};

use self::node::{Entry, Node, Position, Value, Wrong};
use self::table::Row;
pub(crate) use self::table::{Rule, TABLE};
use super::{Options, Source, prepare};
use crate::error::{Error, ErrorKind, Result};
use crate::{list, small_file};

/// The maximum number of reported problems.
const MAX_REPORTED: usize = 100;

/// Sources of options below the builder. The host names each source; no file is searched for.
///
/// The environment takes precedence over files, and a later file over an earlier one. The guide has the
/// [variables, the keys and the rules](crate::guide::options).
///
/// ```
/// use claude_agent_kit::Options;
///
/// # fn main() -> claude_agent_kit::Result<()> {
/// let options = Options::layered()
///     .file_text("agent.json", r#"{"model": "haiku", "max_turns": 3}"#)
///     .variables([("CLAUDE_MODEL", "sonnet")])
///     .under(Options::new().max_turns(5))?;
/// assert_eq!(
///     options.explain().to_string(),
///     "max_turns = 5 (builder)\nmodel = \"sonnet\" (variable CLAUDE_MODEL)\n",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "layers do nothing until they are loaded"]
pub struct Layers {
    /// The variables of the table that are set; `None` if the value is not valid UTF-8.
    variables: Vec<(&'static str, Option<Secret>)>,
    /// Lowest first.
    files: Vec<ConfigFile>,
}

#[derive(Clone, Debug)]
struct ConfigFile {
    path: PathBuf,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// The file has not been read.
    Unread { optional: bool },
    /// Given by the host.
    Given(Secret),
}

impl Options {
    /// Starts a list of sources of options: add sources, then [`load`](Layers::load) them or merge them
    /// [`under`](Layers::under) the options of the builder.
    pub fn layered() -> Layers {
        Layers::default()
    }
}

impl Layers {
    /// Adds the variables that the guide lists from the environment of this process. An empty variable
    /// counts as not set.
    pub fn environment(mut self) -> Self {
        for name in TABLE.iter().filter_map(|row| row.variable) {
            if let Some(value) = std::env::var_os(name) {
                self.variable(name, value);
            }
        }
        self
    }

    /// Adds these variables as if they were set in the environment. Variables that the guide does not
    /// list are ignored.
    pub fn variables(
        mut self,
        variables: impl IntoIterator<Item = (impl AsRef<str>, impl Into<OsString>)>,
    ) -> Self {
        for (name, value) in variables {
            if let Some(name) = known_variable(name.as_ref()) {
                self.variable(name, value.into());
            }
        }
        self
    }

    fn variable(&mut self, name: &'static str, value: OsString) {
        if let Some(at) = self.variables.iter().position(|(other, _)| *other == name) {
            self.variables.swap_remove(at);
        }
        if !value.is_empty() {
            self.variables.push((name, value.into_string().ok().map(Secret::from)));
        }
    }

    /// Adds a config file, which must exist. Its extension determines its format: `.toml` (with the
    /// feature `config`) or `.json`.
    pub fn file(self, path: impl Into<PathBuf>) -> Self {
        self.with_file(path, Content::Unread { optional: false })
    }

    /// Adds a config file if it exists.
    pub fn optional_file(self, path: impl Into<PathBuf>) -> Self {
        self.with_file(path, Content::Unread { optional: true })
    }

    /// Adds a text as the content of a config file; `path` is used in problems and sources.
    pub fn file_text(self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.with_file(path, Content::Given(Secret::from(text)))
    }

    fn with_file(mut self, path: impl Into<PathBuf>, content: Content) -> Self {
        self.files.push(ConfigFile { path: path.into(), content });
        self
    }

    /// Returns the options of these sources.
    ///
    /// Blocks while it reads the files. Setters called on the result replace or append as usual; use
    /// [`under`](Self::under) to merge options with these sources.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`](crate::ErrorKind::InvalidOptions) with every problem of every
    /// source: unreadable files, unknown keys, wrong types, contradicting values; each with its
    /// variable, or its file, line and column.
    pub fn load(self) -> Result<Options> {
        self.under(Options::new())
    }

    /// Returns the options of these sources, merged below those of `builder`.
    ///
    /// Blocks while it reads the files.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn under(self, builder: impl Into<Options>) -> Result<Options> {
        self.merge(&builder.into())
    }

    fn merge(&self, builder: &Options) -> Result<Options> {
        let mut problems = Vec::new();
        let mut stack = Vec::new();
        for file in &self.files {
            if let Some(layer) = file.layer(&mut problems) {
                stack.push(layer);
            }
        }
        stack.push(of_variables(&self.variables, &mut problems));
        let merged = merged(&stack, builder.clone(), &mut problems);
        if problems.is_empty() {
            problems = contradictions(&merged, builder);
        }
        if problems.is_empty() { Ok(merged) } else { Err(invalid(problems)) }
    }
}

/// Returns the name of a variable of the table.
fn known_variable(name: &str) -> Option<&'static str> {
    TABLE.iter().filter_map(|row| row.variable).find(|known| *known == name)
}

fn invalid(mut problems: Vec<Problem>) -> Error {
    let more = problems.len().saturating_sub(MAX_REPORTED);
    problems.truncate(MAX_REPORTED);
    let mut texts = list::map(&problems, &ToString::to_string);
    if more > 0 {
        texts.push(format!("{more} more problems"));
    }
    let message = format!("invalid configuration: {}", prepare::enumerated(&texts));
    Error::new(ErrorKind::InvalidOptions, message).with(|facts| facts.problems = problems)
}

/// Merges the layers, lowest first, with the builder on top.
fn merged(stack: &[Options], builder: Options, problems: &mut Vec<Problem>) -> Options {
    // Callbacks come from the builder; every other value is merged.
    let mut all = Options::new();
    let mut levels = groups::Levels::new();
    for row in TABLE {
        for level in 0..=stack.len() {
            let layer = stack.get(level).unwrap_or(&builder);
            let sources = layer.origins.of(row.name);
            if sources.is_empty() {
                continue;
            }
            levels.push((row.name, level));
            if let Err(reason) = row.put(&mut all, layer) {
                problems.push(Problem::new(&[row.name], reason));
            }
            if row.rule == Rule::Highest {
                all.origins.remove(row.name);
            }
            for source in sources {
                all.origins.add(row.name, source.clone());
            }
        }
    }
    groups::remove_ignored(&mut all, &levels);
    let mut merged = builder;
    for row in TABLE.iter().filter(|row| !all.origins.of(row.name).is_empty()) {
        row.replace(&mut merged, &all);
    }
    merged.origins = all.origins;
    merged
}

/// Returns the problems of the merged options, without those of the builder alone, which are reported
/// when it is used.
fn contradictions(options: &Options, builder: &Options) -> Vec<Problem> {
    let own = prepare::problems(builder);
    let elsewhere = |name: &&str| options.origins.not_from_builder(name).next().is_some();
    let mut found = prepare::problems(options);
    found.retain(|problem| problem.options.iter().any(elsewhere) || !own.contains(problem));
    found
}

fn of_variables(
    variables: &[(&'static str, Option<Secret>)],
    problems: &mut Vec<Problem>,
) -> Options {
    let mut layer = Options::new();
    for row in TABLE {
        let Some(name) = row.variable else { continue };
        let Some((_, value)) = variables.iter().find(|(other, _)| *other == name) else { continue };
        let Some(value) = value else {
            problems.push(Problem::new(
                &[row.name],
                format!("variable {name}: the value is not valid UTF-8"),
            ));
            continue;
        };
        match row.take_variable(value.expose(), &mut layer) {
            Ok(()) => layer.origins.replace(row.name, Source::variable(name)),
            Err(wrong) => {
                for wrong in wrong {
                    let reason = format!("variable {name}: {}", wrong.reason);
                    problems.push(Problem::new(&[row.name], reason));
                }
            }
        }
    }
    if layer.settings.permission_mode == Some(PermissionMode::BypassPermissions) {
        let reason = "variable CLAUDE_PERMISSION_MODE: \"bypassPermissions\" disables permission \
                      checks, which is not allowed in an environment variable; help: call \
                      `permission_mode` on the builder";
        problems.push(Problem::new(&["permission_mode"], reason));
    }
    layer
}

/// The parser of a config file format.
type Parse = fn(&str) -> std::result::Result<Node, Vec<Wrong>>;

impl ConfigFile {
    fn layer(&self, problems: &mut Vec<Problem>) -> Option<Options> {
        let whole =
            |reason: String| Problem::new(&[], format!("{}: {reason}", self.path.display()));
        let parse = match parser(&self.path) {
            Ok(parse) => parse,
            Err(reason) => {
                problems.push(whole(reason.to_owned()));
                return None;
            }
        };
        let text = match &self.content {
            Content::Given(text) => Ok(text.expose().to_owned()),
            Content::Unread { .. } => read(&self.path),
        };
        match text {
            Ok(text) => Some(self.read(&text, parse, problems)),
            Err(error) => {
                let optional = matches!(self.content, Content::Unread { optional: true });
                if !(optional && error.kind() == io::ErrorKind::NotFound) {
                    problems.push(whole(format!("failed to read the file: {error}")));
                }
                None
            }
        }
    }

    fn read(&self, text: &str, parse: Parse, problems: &mut Vec<Problem>) -> Options {
        let place = |at| {
            let Position { line, column } = Position::of(text, at);
            Source::file(&self.path, line, column)
        };
        let mut report = |options: &[&'static str], wrong: Vec<Wrong>| {
            // Counting lines is slow.
            for wrong in wrong.into_iter().take(MAX_REPORTED) {
                let reason = format!("{}: {}", place(wrong.at), wrong.reason);
                problems.push(Problem::new(options, reason));
            }
        };
        let mut layer = Options::new();
        let entries = match parse(text) {
            Ok(Node { value: Value::Table(entries), .. }) => entries,
            Ok(node) => {
                report(
                    &[],
                    vec![Wrong::new(node.at, format!("expected a table, found {}", node.kind()))],
                );
                return layer;
            }
            Err(wrong) => {
                report(&[], wrong);
                return layer;
            }
        };
        let mut unknown = Vec::new();
        for (row, Entry { at, node, .. }) in of_rows(entries, &mut unknown) {
            match row.take(&node, &mut layer) {
                Ok(()) => layer.origins.replace(row.name, place(at)),
                Err(wrong) => report(&[row.name], wrong),
            }
        }
        report(&[], unknown);
        layer
    }
}

/// Assigns the entries of a file to rows. A table that is a group is split into its members; the other
/// keys stay together, for the row with the name of the group.
fn of_rows(entries: Vec<Entry>, unknown: &mut Vec<Wrong>) -> Vec<(&'static Row, Entry)> {
    let mut found = Vec::new();
    for mut entry in entries {
        let (mut known, mut members) = (Vec::new(), Vec::new());
        for row in TABLE {
            if let Some((group, name)) = row.member()
                && group == entry.name
            {
                known.push(name);
                members.push(row);
            }
        }
        if let Value::Table(inner) = &mut entry.node.value {
            for part in std::mem::take(inner) {
                match known.iter().position(|name| *name == part.name) {
                    Some(at) => found.push((members[at], part)),
                    None => inner.push(part),
                }
            }
            if inner.is_empty() && !members.is_empty() {
                continue;
            }
        }
        match (TABLE.iter().find(|row| row.name == entry.name), entry.node.value) {
            (Some(row), value) => {
                entry.node.value = value;
                found.push((row, entry));
            }
            (None, Value::Table(rest)) if !members.is_empty() => {
                for part in &rest {
                    unknown.push(Wrong::new(part.at, structured::unknown(&part.name, &known)));
                }
            }
            (None, _) if !members.is_empty() => {
                let reason = format!("{:?} must be a table", entry.name);
                unknown.push(Wrong::new(entry.node.at, reason));
            }
            (None, _) => unknown.push(Wrong::new(entry.at, unknown_option(&entry.name))),
        }
    }
    found
}

fn unknown_option(name: &str) -> String {
    let mut known = Vec::new();
    for row in TABLE {
        known.push(row.member().map_or(row.name, |(group, _)| group));
    }
    structured::unknown(name, &known)
}

fn parser(path: &Path) -> std::result::Result<Parse, &'static str> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension {
        "json" => Ok(json::parse),
        #[cfg(feature = "config")]
        "toml" => Ok(toml::parse),
        #[cfg(not(feature = "config"))]
        "toml" => Err("TOML requires the feature `config` of claude-agent-kit"),
        _ => Err("unknown format; help: use the extension .toml or .json"),
    }
}

fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(small_file::read(path)?).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
        let Position { line, column } = Position::of(&text, good);
        io::Error::other(format!("line {line}, column {column} is not valid UTF-8"))
    })
}
