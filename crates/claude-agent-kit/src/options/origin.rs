//! The sources of option values.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use claude_wire::launch;

use super::Options;
use super::layers::TABLE;
use crate::list;
use crate::mask::Mask;
use crate::sort;

/// The origin of the value of an option.
///
/// Displays as `builder` for a setter of [`Options`], as `variable NAME` for an environment variable, and
/// as `path:line:column` for a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source(SourceKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum SourceKind {
    Builder,
    Variable(&'static str),
    File { path: Arc<Path>, line: usize, column: usize },
}

impl Source {
    /// A setter of [`Options`].
    pub(crate) const BUILDER: Self = Self(SourceKind::Builder);

    /// Returns the source of a value from an environment variable.
    pub(crate) const fn variable(name: &'static str) -> Self {
        Self(SourceKind::Variable(name))
    }

    /// Returns the source of a value from a file. Lines and columns are counted from 1.
    pub(crate) fn file(path: &Path, line: usize, column: usize) -> Self {
        Self(SourceKind::File { path: path.into(), line, column })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SourceKind::Builder => f.write_str("builder"),
            SourceKind::Variable(name) => write!(f, "variable {name}"),
            SourceKind::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
        }
    }
}

/// The sources of each option that was set; if several were combined, the lowest first. A vector,
/// because few options are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Vec<(&'static str, Vec<Source>)>);

impl Origins {
    pub(crate) fn replace(&mut self, option: &'static str, source: Source) {
        self.remove(option);
        self.0.push((option, vec![source]));
    }

    pub(crate) fn add(&mut self, option: &'static str, source: Source) {
        match self.position(option) {
            Some(at) if self.0[at].1.last() == Some(&source) => {}
            Some(at) => self.0[at].1.push(source),
            None => self.0.push((option, vec![source])),
        }
    }

    /// Removes the sources of an option that is no longer set.
    pub(crate) fn remove(&mut self, option: &str) {
        if let Some(at) = self.position(option) {
            self.0.swap_remove(at);
        }
    }

    /// Returns the sources of an option; empty if it is not set.
    pub(crate) fn of(&self, option: &str) -> &[Source] {
        self.position(option).map_or(&[], |at| &self.0[at].1)
    }

    fn position(&self, option: &str) -> Option<usize> {
        self.0.iter().position(|(name, _)| *name == option)
    }

    /// The sources of an option that are not the builder.
    pub(crate) fn not_from_builder(&self, option: &str) -> impl Iterator<Item = &Source> {
        self.of(option).iter().filter(|source| **source != Source::BUILDER)
    }
}

impl Options {
    /// Returns the sources of an option, lowest first.
    #[cfg(test)]
    pub(crate) fn sources(&self, option: &str) -> &[Source] {
        self.origins.of(option)
    }

    /// Returns all options that were set, with their sources. The result implements `Display`. Secrets,
    /// prompts and the values of variables are masked. Callbacks, in-process servers and transports are
    /// not included.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    ///
    /// let options = Options::new().model("sonnet").env("API_KEY", "secret");
    /// let text = options.explain().to_string();
    /// assert_eq!(text, "env = {\"API_KEY\": ***} (builder)\nmodel = \"sonnet\" (builder)\n");
    /// ```
    pub fn explain(&self) -> Explanation {
        let mask = Mask::new(launch::secrets(&self.settings));
        let mut lines: Vec<Line> = Vec::new();
        for row in TABLE {
            let sources = self.origins.of(row.name);
            if !sources.is_empty() {
                let value = mask.apply(&row.show(self)).into_owned();
                lines.push((row.name, value, sources.to_vec()));
            }
        }
        sort::sort_by_key(&mut lines, |(name, ..)| *name);
        Explanation { lines }
    }
}

/// An option, its value and its sources.
type Line = (&'static str, String, Vec<Source>);

/// The values of options with their sources. `Display` writes one line for each option.
#[derive(Clone, Debug)]
pub struct Explanation {
    lines: Vec<Line>,
}

impl Explanation {
    /// Returns the options in the order of their names, with their values as text and their sources.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str, &[Source])> {
        self.lines.iter().map(|(name, value, sources)| (*name, value.as_str(), sources.as_slice()))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value, sources) in self.iter() {
            let sources = list::map(sources, &ToString::to_string);
            writeln!(f, "{name} = {value} ({})", sources.join(", "))?;
        }
        Ok(())
    }
}
