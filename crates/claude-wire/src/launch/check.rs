//! Checks the settings and reports all problems at once.

use std::fmt;

use super::extensions::Skills;
use super::settings::{SYSTEM_PROMPT_BOUNDARY, Secret, Settings, SettingsSource, SystemPromptBase};
use super::thinking::Mode;
use super::{Form, Needs, contradictions, print_mode, values};
use crate::json::Json;
use crate::visible::visible_message;

/// An invalid option or a contradiction of options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The options concerned; empty if the problem is not about an option.
    pub options: Vec<&'static str>,
    /// The problem and the help.
    pub reason: String,
}

impl Problem {
    /// Creates a problem of these options.
    pub fn new(options: &[&'static str], reason: impl Into<String>) -> Self {
        Self { options: options.to_vec(), reason: reason.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.options.is_empty() {
            write!(f, "{}: ", self.options.join(" and "))?;
        }
        visible_message(&self.reason).fmt(f)
    }
}

/// All problems of the settings.
#[derive(Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Returns the problems, at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Creates a single problem.
    pub fn one(options: &[&'static str], reason: impl Into<String>) -> Self {
        Self(vec![Problem::new(options, reason)])
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "; " };
            write!(f, "{comma}{problem}")?;
        }
        Ok(())
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Problems {}

pub(super) fn check(settings: &Settings, form: &Form, needs: &Needs) -> Result<(), Problems> {
    let mut found = Found::default();
    contradictions::check(&mut found, settings, needs);
    numbers(&mut found, settings);
    thinking(&mut found, settings);
    pairs(&mut found, settings);
    values::check(&mut found, settings);
    extensions(&mut found, settings);
    objects(&mut found, settings);
    servers(&mut found, settings);
    if let Form::Print { prompt } = form {
        print_mode::check(&mut found, settings, needs, prompt);
    }
    if found.0.is_empty() { Ok(()) } else { Err(Problems(found.0)) }
}

fn numbers(found: &mut Found, settings: &Settings) {
    if settings.max_budget_usd.is_some_and(|dollars| !dollars.is_finite() || dollars <= 0.0) {
        found.add(&["max_budget_usd"], "the budget must be a positive number of dollars");
    }
    if settings.max_turns == Some(0) {
        found.add(&["max_turns"], "the limit must be at least 1 turn");
    }
    if settings.task_budget == Some(0) {
        found.add(&["task_budget"], "the budget must be at least 1 token");
    }
}

fn thinking(found: &mut Found, settings: &Settings) {
    let Some(thinking) = &settings.thinking else { return };
    if thinking.mode == Mode::Budget(0) {
        found.add(&["thinking"], "the thinking budget must be at least 1 token; help: use `Thinking::disabled` to turn thinking off");
    }
    if thinking.mode == Mode::Disabled && thinking.display.is_some() {
        found.add(&["thinking"], "`display` has no effect because thinking is disabled");
    }
}

/// What the name of a flag looks like. Names are shown up to the first space or `=`, because the rest may be secret.
const FLAG_NAME: &str = "pass the name without spaces and `=`, and the value as a separate argument, as in \
                         `add_arg((\"name\", \"value\"))`";

/// The maximum length of a flag in a problem, in characters.
const MAX_SHOWN: usize = 64;

fn pairs(found: &mut Found, settings: &Settings) {
    for (name, value) in settings.env.iter() {
        if name.is_empty() || name.contains(['=', '\0']) {
            let shown = name.split(['=', '\0']).next().unwrap_or_default();
            found.add(&["env"], format!("invalid environment variable name: \"{shown}…\""));
        } else if value.expose().contains('\0') {
            found.add(&["env"], format!("the value of {name} contains a NUL character"));
        }
    }
    for (flag, value) in &settings.extra_args {
        self::flag(found, flag, value.as_ref());
    }
}

/// Checks a flag that has no setter.
fn flag(found: &mut Found, flag: &str, value: Option<&Secret>) {
    let is_separator =
        |letter: char| letter == '=' || letter.is_whitespace() || letter.is_control();
    let wrong = match flag.find(is_separator) {
        Some(at) if flag[at..].starts_with('=') => Some("it contains `=`"),
        Some(at) if flag[at..].starts_with(char::is_whitespace) => Some("it contains whitespace"),
        Some(_) => Some("it contains a control character"),
        None if flag.trim_start_matches('-').is_empty() => Some("it is empty"),
        None => None,
    };
    // The name may contain the value by mistake, and the value may be secret.
    let name = flag.split(is_separator).next().unwrap_or_default();
    let mut shown: String = name.chars().take(MAX_SHOWN).collect();
    if shown.len() < flag.len() {
        shown.push('…');
    }
    if let Some(wrong) = wrong {
        let reason = format!(
            "\"{shown}\", which was passed to `add_arg`, is not the name of a flag: {wrong}; help: {FLAG_NAME}"
        );
        found.add(&["extra_args"], reason);
    }
    if value.is_some_and(|value| value.expose().contains('\0')) {
        let reason = format!(
            "the value of \"{shown}\", which was passed to `add_arg`, contains a NUL character; help: remove it"
        );
        found.add(&["extra_args"], reason);
    }
}

fn extensions(found: &mut Found, settings: &Settings) {
    for (name, agent) in settings.agents.iter() {
        if name.trim().is_empty() {
            found.add(&["agents"], "the name of an agent is empty");
        }
        for (field, text) in [("description", &agent.description), ("prompt", &agent.prompt)] {
            if text.trim().is_empty() {
                found.add(&["agents"], format!("the {field} of the agent {name:?} is empty"));
            }
        }
    }
    if let Some(Skills::Only(names)) = &settings.skills {
        for name in names {
            if let Some(reason) = invalid_skill_name(name) {
                found.add(&["skills"], format!("invalid skill name {name:?}: {reason}"));
            }
        }
    }
    for (name, tool) in settings.tool_aliases.iter() {
        if name.trim().is_empty() || tool.trim().is_empty() {
            found.add(&["tool_aliases"], "the name of a tool or an alias is empty");
        }
    }
    if let Some(SystemPromptBase::Parts(parts)) = &settings.system_prompt {
        let boundaries = parts.iter().filter(|part| *part == SYSTEM_PROMPT_BOUNDARY).count();
        if boundaries > 1 {
            found.add(
                &["system_prompt"],
                format!("the prompt has {boundaries} boundaries; help: use at most one"),
            );
        }
    }
}

/// Returns why a skill name is invalid: it becomes part of a permission rule, in which some characters
/// have a meaning.
fn invalid_skill_name(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.trim() != name {
        Some("the name is empty, or starts or ends with whitespace")
    } else if name.contains(['(', ')', ',']) || name.contains(char::is_control) {
        Some("the name contains a parenthesis, a comma or a control character")
    } else if name == "*" || name.ends_with(":*") || name.ends_with(" *") {
        Some("the name is a pattern; help: use `Skills::All` to allow all skills")
    } else if name.starts_with('/') {
        Some("the name starts with a slash; help: remove the slash")
    } else if name.contains(r"\\") || name.ends_with('\\') {
        Some("the name contains a backslash that would escape the next character")
    } else {
        None
    }
}

/// Checks that JSON values are objects, because a string is a common mistake.
fn objects(found: &mut Found, settings: &Settings) {
    const NOT_AN_OBJECT: &str =
        "is not a JSON object; help: create one with `Json::from_text` or `serde_json::json!`";
    let object = |json: &Json| json.text().starts_with('{');
    for (name, config) in settings.mcp_servers.iter() {
        if !object(config) {
            found.add(&["mcp"], format!("the configuration of {name:?} {NOT_AN_OBJECT}"));
        }
    }
    if settings.output_schema.as_ref().is_some_and(|schema| !object(schema)) {
        found.add(&["output_schema"], format!("the schema {NOT_AN_OBJECT}"));
    }
    if let Some(SettingsSource::Value(value)) = &settings.settings
        && !object(value)
    {
        found.add(&["settings"], format!("the value {NOT_AN_OBJECT}"));
    }
    if settings.managed_settings.as_ref().is_some_and(|managed| !object(managed.as_json())) {
        found.add(&["managed_settings"], format!("the value {NOT_AN_OBJECT}"));
    }
}

/// Checks the names of MCP servers whose tools the CLI would silently hide.
fn servers(found: &mut Found, settings: &Settings) {
    // The CLI names a tool `mcp__server__tool`, and hides tools whose name is longer than 128.
    const LONGEST: usize = 128 - "mcp____".len() - 1;
    for (name, _) in settings.mcp_servers.iter() {
        // The CLI counts UTF-16 code units.
        let length = name.encode_utf16().count();
        if length > LONGEST {
            let reason = format!(
                "the name of an MCP server has {length} characters, but the CLI hides the tools of \
                 servers with more than {LONGEST}"
            );
            found.add(&["mcp"], reason);
        } else if name == "__proto__" {
            found.add(&["mcp"], "the CLI ignores an MCP server with the name `__proto__`");
        }
    }
}

#[derive(Default)]
pub(super) struct Found(Vec<Problem>);

impl Found {
    pub(super) fn add(&mut self, options: &[&'static str], reason: impl Into<String>) {
        self.0.push(Problem::new(options, reason));
    }

    pub(super) fn text(&mut self, option: &'static str, value: &str) {
        if value.contains('\0') {
            self.add(
                &[option],
                "the value contains a NUL character, which arguments cannot contain",
            );
        }
    }
}
