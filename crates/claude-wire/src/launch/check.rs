//! What cannot be passed on, told all at once.

use std::fmt;

use super::extensions::Skills;
use super::settings::{SYSTEM_PROMPT_BOUNDARY, Settings, SettingsSource, SystemPromptBase};
use super::thinking::Mode;
use super::{Form, Needs, contradictions, print_mode, values};
use crate::json::Json;

/// Something that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The options that it is about; none, if it is about something that is no option.
    pub options: Vec<&'static str>,
    /// What is wrong and what to do.
    pub reason: String,
}

impl Problem {
    /// Something that is wrong with these options.
    pub fn new(options: &[&'static str], reason: impl Into<String>) -> Self {
        Self { options: options.to_vec(), reason: reason.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.options.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.options.join(" and "), self.reason)
    }
}

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems, at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// One problem.
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
        found.add(&["max_budget_usd"], "a budget is a positive number of dollars");
    }
    if settings.max_turns == Some(0) {
        found.add(&["max_turns"], "at least one turn is needed");
    }
    if settings.task_budget == Some(0) {
        found.add(&["task_budget"], "at least one token is needed");
    }
}

fn thinking(found: &mut Found, settings: &Settings) {
    let Some(thinking) = &settings.thinking else { return };
    if thinking.mode == Mode::Budget(0) {
        found.add(&["thinking"], "a budget of no tokens is none; say `Thinking::disabled`");
    }
    if thinking.mode == Mode::Disabled && thinking.display.is_some() {
        found.add(&["thinking"], "there is nothing to display where thinking is disabled");
    }
}

fn pairs(found: &mut Found, settings: &Settings) {
    for (name, value) in &settings.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let shown = name.split(['=', '\0']).next().unwrap_or_default();
            found.add(&["env"], format!("the name beginning {shown:?} is none of a variable"));
        } else if value.expose().contains('\0') {
            found.add(&["env"], format!("the value of {name} holds a NUL character"));
        }
    }
    for (flag, value) in &settings.extra_args {
        let name = flag.trim_start_matches('-');
        // What was written into the name may be the value, and that may be a key.
        let shown = flag.split(['=', ' ', '\n', '\0']).next().unwrap_or_default();
        if name.is_empty() || name.contains(['=', '\0', ' ', '\n']) {
            found.add(&["extra_args"], format!("the name beginning {shown:?} is none of a flag"));
        }
        if value.as_ref().is_some_and(|value| value.expose().contains('\0')) {
            found.add(&["extra_args"], format!("the value of {shown} holds a NUL character"));
        }
    }
}

fn extensions(found: &mut Found, settings: &Settings) {
    for (name, agent) in settings.agents.iter() {
        if name.trim().is_empty() {
            found.add(&["agents"], "an agent has no name");
        }
        for (what, text) in [("description", &agent.description), ("prompt", &agent.prompt)] {
            if text.trim().is_empty() {
                found.add(&["agents"], format!("the agent {name:?} has no {what}"));
            }
        }
    }
    if let Some(Skills::Only(names)) = &settings.skills {
        for name in names {
            if let Some(why) = not_a_skill(name) {
                found.add(&["skills"], format!("{name:?} is no name of a skill: {why}"));
            }
        }
    }
    for (name, tool) in &settings.tool_aliases {
        if name.trim().is_empty() || tool.trim().is_empty() {
            found.add(&["tool_aliases"], "a name is empty");
        }
    }
    if let Some(SystemPromptBase::Parts(parts)) = &settings.system_prompt {
        let boundaries = parts.iter().filter(|part| *part == SYSTEM_PROMPT_BOUNDARY).count();
        if boundaries > 1 {
            found.add(&["system_prompt"], format!("it has {boundaries} boundaries, not one"));
        }
    }
}

/// Why this cannot name a skill: it becomes part of a rule, in which these mean something else.
fn not_a_skill(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.trim() != name {
        Some("it is empty, or begins or ends with a blank")
    } else if name.contains(['(', ')', ',']) || name.contains(char::is_control) {
        Some("it holds a parenthesis, a comma or a control character")
    } else if name == "*" || name.ends_with(":*") || name.ends_with(" *") {
        Some("it is a pattern; `Skills::All` allows all of them")
    } else if name.starts_with('/') {
        Some("it begins with a slash; leave that out")
    } else if name.contains(r"\\") || name.ends_with('\\') {
        Some("it holds a backslash that would escape something")
    } else {
        None
    }
}

/// JSON that has to be an object: a text in its place is a mistake easily made.
fn objects(found: &mut Found, settings: &Settings) {
    const NONE: &str = "is no JSON object; make one with `Json::from_text` or `serde_json::json!`";
    let object = |json: &Json| json.text().starts_with('{');
    for (name, config) in settings.mcp_servers.iter() {
        if !object(config) {
            found.add(&["mcp"], format!("the configuration of {name:?} {NONE}"));
        }
    }
    if settings.output_schema.as_ref().is_some_and(|schema| !object(schema)) {
        found.add(&["output_schema"], format!("the schema {NONE}"));
    }
    if let Some(SettingsSource::Value(value)) = &settings.settings
        && !object(value)
    {
        found.add(&["settings"], format!("the value {NONE}"));
    }
    if settings.managed_settings.as_ref().is_some_and(|managed| !object(managed.as_json())) {
        found.add(&["managed_settings"], format!("the value {NONE}"));
    }
}

/// Names of servers of which the CLI would offer nothing, without a word.
fn servers(found: &mut Found, settings: &Settings) {
    // A tool is `mcp__server__tool` to the CLI, which leaves out those that are longer than 128.
    const LONGEST: usize = 128 - "mcp____".len() - 1;
    for (name, _) in settings.mcp_servers.iter() {
        // It counts as JavaScript does.
        let length = name.encode_utf16().count();
        if length > LONGEST {
            let reason = format!(
                "the name of a server has {length} characters; with more than {LONGEST} no tool \
                 of it would be offered"
            );
            found.add(&["mcp"], reason);
        } else if name == "__proto__" {
            found.add(&["mcp"], "the CLI does not see a server of the name `__proto__`");
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
            self.add(&[option], "the value holds a NUL character, which no argument can");
        }
    }
}
