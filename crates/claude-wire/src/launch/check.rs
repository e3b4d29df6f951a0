//! What cannot be passed on, told all at once.

use std::fmt;

use super::settings::{Settings, SettingsSource, SystemPrompt};
use super::{Form, Needs};
use crate::json::Json;

/// Something that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The options that it is about.
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
    contradictions(&mut found, settings, needs);
    values(&mut found, settings);
    objects(&mut found, settings);
    if let Form::Print { prompt } = form {
        print_mode(&mut found, settings, needs);
        in_arguments(&mut found, settings, prompt);
    }
    if found.0.is_empty() { Ok(()) } else { Err(Problems(found.0)) }
}

/// Settings that another one beats.
pub(super) fn ignored(settings: &Settings) -> Vec<(&'static str, &'static str)> {
    let beaten = settings.resume.is_some() && settings.continue_latest;
    beaten.then_some(("continue_latest", "resume")).into_iter().collect()
}

fn contradictions(found: &mut Found, settings: &Settings, needs: &Needs) {
    let resumes = settings.resume.is_some() || settings.continue_latest;
    if needs.permission_callback && settings.permission_prompt_tool.is_some() {
        found.add(
            &["can_use_tool", "permission_prompt_tool"],
            "only one of them can answer permission requests; leave one out",
        );
    }
    if settings.fork_session && !resumes {
        found
            .add(&["fork_session"], "there is nothing to fork; give `resume` or `continue_latest`");
    }
    if settings.session_id.is_some() && resumes && !settings.fork_session {
        found.add(
            &["session_id", "resume"],
            "a session that goes on keeps its id; fork it, or leave `session_id` out",
        );
    }
    if settings.resume_at.is_some() && settings.resume.is_none() {
        found.add(&["resume_at"], "a message belongs to a session; give `resume` too");
    }
    if settings.model.is_some() && settings.model == settings.fallback_model {
        found.add(&["model", "fallback_model"], "falling back to the same model changes nothing");
    }
}

fn values(found: &mut Found, settings: &Settings) {
    for (name, value) in [
        ("model", &settings.model),
        ("fallback_model", &settings.fallback_model),
        ("permission_prompt_tool", &settings.permission_prompt_tool),
    ] {
        if let Some(value) = value {
            found.text(name, value);
        }
    }
    if settings.max_budget_usd.is_some_and(|dollars| !dollars.is_finite() || dollars <= 0.0) {
        found.add(&["max_budget_usd"], "a budget is a positive number of dollars");
    }
    if settings.max_turns == Some(0) {
        found.add(&["max_turns"], "at least one turn is needed");
    }
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
    lists(found, settings);
}

fn lists(found: &mut Found, settings: &Settings) {
    for (name, entries) in [
        ("allowed_tools", &settings.allowed_tools),
        ("disallowed_tools", &settings.disallowed_tools),
        ("betas", &settings.betas),
    ] {
        for entry in entries {
            found.text(name, entry);
            if entry.trim().is_empty() {
                found.add(&[name], "an entry is empty");
            }
        }
    }
}

/// What stands on the command line in print mode and in the handshake otherwise.
fn in_arguments(found: &mut Found, settings: &Settings, prompt: &str) {
    found.text("prompt", prompt);
    if let Some(SystemPrompt::Text(text)) = &settings.system_prompt {
        found.text("system_prompt", text);
    }
    if let Some(text) = &settings.append_system_prompt {
        found.text("append_system_prompt", text.expose());
    }
}

/// JSON that has to be an object: a text in its place is a mistake easily made.
fn objects(found: &mut Found, settings: &Settings) {
    const NONE: &str = "is no JSON object; make one with `Json::from_text` or `serde_json::json!`";
    let object = |json: &Json| json.as_str().starts_with('{');
    for (name, config) in settings.mcp_servers.iter() {
        if !object(config) {
            found.add(&["mcp_server"], format!("the configuration of {name:?} {NONE}"));
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
}

/// What only the control protocol can carry.
fn print_mode(found: &mut Found, settings: &Settings, needs: &Needs) {
    if needs.permission_callback {
        found.add(&["print_mode", "can_use_tool"], ONE_WAY);
    }
    if needs.hooks {
        found.add(&["print_mode", "hooks"], ONE_WAY);
    }
    if needs.user_callback {
        found.add(&["print_mode", "on_elicitation or on_user_dialog"], ONE_WAY);
    }
    if !needs.servers.is_empty() {
        found.add(&["print_mode", "in-process servers"], ONE_WAY);
    }
    if settings.file_checkpointing {
        found.add(&["print_mode", "file_checkpointing"], ONE_WAY);
    }
}

const ONE_WAY: &str = "print mode is one-way, the CLI cannot ask the host; leave one out";

#[derive(Default)]
struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, options: &[&'static str], reason: impl Into<String>) {
        self.0.push(Problem::new(options, reason));
    }

    fn text(&mut self, option: &'static str, value: &str) {
        if value.contains('\0') {
            self.add(&[option], "the value holds a NUL character, which no argument can");
        }
    }
}
