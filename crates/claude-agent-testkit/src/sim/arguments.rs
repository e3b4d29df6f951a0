//! Parses the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::cli_version::CliVersion;
use super::permission_rule::{PermissionRule, parse_rules};

/// The valid permission modes.
pub(super) const MODES: [&str; 6] =
    ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"];

/// The parsed command line and environment.
#[derive(Debug, Clone, Default)]
pub(super) struct Launch {
    pub(super) version: String,
    /// The protocol differences of that version.
    pub(super) cli_version: CliVersion,
    pub(super) env: BTreeMap<String, String>,
    pub(super) cwd: PathBuf,
    /// Whether to run a single prompt and exit.
    pub(super) print: bool,
    pub(super) prompt: Option<String>,
    /// Whether stdin contains messages rather than a prompt.
    pub(super) session: bool,
    /// Whether a resumed session waits for `initialize`.
    pub(super) await_initialize: bool,
    pub(super) output: OutputFormat,
    pub(super) partial: bool,
    pub(super) replay: bool,
    pub(super) hook_events: bool,
    pub(super) mirror: bool,
    pub(super) ask_host: bool,
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) allowed: Vec<PermissionRule>,
    pub(super) disallowed: Vec<PermissionRule>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) mcp_config: Vec<String>,
    pub(super) max_turns: Option<u64>,
    pub(super) max_budget: Option<f64>,
    pub(super) system_prompt: Option<String>,
    pub(super) append_system_prompt: Option<String>,
    pub(super) json_schema: Option<Value>,
    pub(super) resume: Option<String>,
    pub(super) continues: bool,
    pub(super) fork: bool,
    pub(super) session_id: Option<String>,
    pub(super) settings: Option<String>,
    pub(super) setting_sources: Option<Vec<String>>,
    pub(super) add_dirs: Vec<String>,
    pub(super) agents: Option<Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

/// The result of parsing a command line.
#[derive(Debug)]
pub(super) enum LaunchAction {
    Run(Box<Launch>),
    /// Prints this text and exits.
    Print(String),
    /// Writes this error to stderr and exits with code 1.
    Fail(String),
}

/// The number of values of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionArity {
    Nothing,
    One,
    /// One value, unless an option follows.
    Maybe,
    /// All values up to the next option.
    Many,
}

/// The options of the real CLI, including those that have no effect here.
const OPTIONS: &[(OptionArity, &[&str])] = &[
    (
        OptionArity::Nothing,
        &[
            "--print",
            "-p",
            "--verbose",
            "--include-partial-messages",
            "--include-hook-events",
            "--replay-user-messages",
            "--session-mirror",
            "--continue",
            "-c",
            "--fork-session",
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
            "--strict-mcp-config",
            "--no-session-persistence",
            "--exclude-dynamic-system-prompt-sections",
            "--forward-subagent-text",
            "--await-initialize",
            "--disable-slash-commands",
            "--bare",
            "--ide",
            "--chrome",
            "--no-chrome",
            "--version",
            "-v",
            "--help",
            "-h",
        ],
    ),
    (
        OptionArity::One,
        &[
            "--output-format",
            "--input-format",
            "--model",
            "--fallback-model",
            "--permission-mode",
            "--permission-prompt-tool",
            "--max-turns",
            "--max-budget-usd",
            "--max-thinking-tokens",
            "--thinking",
            "--effort",
            "--system-prompt",
            "--system-prompt-file",
            "--append-system-prompt",
            "--append-system-prompt-file",
            "--json-schema",
            "--session-id",
            "--resume-session-at",
            "--settings",
            "--setting-sources",
            "--agents",
            "--agent",
            "--name",
            "-n",
            "--debug-file",
            "--task-budget",
            "--thinking-display",
            "--permission-prompts",
            "--project-config-root",
            "--resume-drops-turn",
            "--managed-settings",
            "--system-prompt-snapshot",
        ],
    ),
    (
        OptionArity::Maybe,
        &[
            "--resume",
            "-r",
            "--debug",
            "-d",
            "--worktree",
            "-w",
            "--from-pr",
            "--prompt-suggestions",
        ],
    ),
    (
        OptionArity::Many,
        &[
            "--allowedTools",
            "--allowed-tools",
            "--disallowedTools",
            "--disallowed-tools",
            "--tools",
            "--mcp-config",
            "--add-dir",
            "--betas",
            "--plugin-dir",
            "--plugin-dir-no-mcp",
            "--file",
        ],
    ),
];

fn option_arity(option: &str) -> Option<OptionArity> {
    OPTIONS.iter().find(|(_, names)| names.contains(&option)).map(|(arity, _)| *arity)
}

impl Launch {
    /// Parses a command line, without the program name.
    pub(super) fn parse(mut self, arguments: &[String]) -> LaunchAction {
        let mut rest = arguments.iter().map(String::as_str).peekable();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                self.prompt = rest.next().map(str::to_owned).or(self.prompt);
                continue;
            }
            if !argument.starts_with('-') || argument == "-" {
                self.prompt.get_or_insert_with(|| argument.to_owned());
                continue;
            }
            let (name, bound) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (argument, None),
            };
            let Some(arity) = option_arity(name) else {
                return LaunchAction::Fail(format!("error: unknown option '{name}'"));
            };
            let mut values: Vec<&str> = bound.into_iter().collect();
            let is_value = |value: &&str| !value.starts_with('-');
            match arity {
                OptionArity::One if bound.is_none() => values.extend(rest.next()),
                OptionArity::Maybe if bound.is_none() => values.extend(rest.next_if(is_value)),
                OptionArity::Many => {
                    while let Some(value) = rest.next_if(is_value) {
                        values.push(value);
                    }
                }
                _ => {}
            }
            if values.is_empty() && matches!(arity, OptionArity::One | OptionArity::Many) {
                return LaunchAction::Fail(format!("error: option '{name}' argument missing"));
            }
            match self.apply_option(name, &values) {
                Ok(None) => {}
                Ok(Some(start)) => return start,
                Err(reason) => return LaunchAction::Fail(format!("error: {reason}")),
            }
        }
        self.finish()
    }

    /// Applies an option. Some options end the program.
    fn apply_option(
        &mut self,
        name: &str,
        values: &[&str],
    ) -> Result<Option<LaunchAction>, String> {
        let value = values.first().copied().unwrap_or_default();
        let owned = || Some(value.to_owned());
        match name {
            "--version" | "-v" => {
                return Ok(Some(LaunchAction::Print(format!("{} (Claude Code)", self.version))));
            }
            "--help" | "-h" => {
                return Ok(Some(LaunchAction::Print(
                    "Usage: claude [options] [prompt]".to_owned(),
                )));
            }
            "--print" | "-p" => self.print = true,
            "--output-format" => self.output = output_format(value)?,
            "--input-format" => self.session = value == "stream-json",
            "--include-partial-messages" => self.partial = true,
            "--include-hook-events" => self.hook_events = true,
            "--replay-user-messages" => self.replay = true,
            "--await-initialize" => self.await_initialize = true,
            "--session-mirror" => self.mirror = true,
            "--permission-prompt-tool" => self.ask_host = value == "stdio",
            "--model" => self.model = owned(),
            "--permission-mode" => self.mode = Some(mode(value)?),
            "--dangerously-skip-permissions" => self.mode = Some("bypassPermissions".to_owned()),
            "--allowedTools" | "--allowed-tools" => self.allowed.extend(rules(values)),
            "--disallowedTools" | "--disallowed-tools" => self.disallowed.extend(rules(values)),
            "--tools" => self.tools = Some(names(values)),
            "--mcp-config" => {
                self.mcp_config.extend(values.iter().map(|value| (*value).to_owned()));
            }
            "--max-turns" => self.max_turns = Some(number(name, value)?),
            "--max-budget-usd" => self.max_budget = Some(number(name, value)?),
            "--system-prompt" => self.system_prompt = owned(),
            "--append-system-prompt" => self.append_system_prompt = owned(),
            "--json-schema" => self.json_schema = Some(json(name, value)?),
            "--agents" => self.agents = Some(json(name, value)?),
            "--resume" | "-r" => self.resume = owned(),
            "--continue" | "-c" => self.continues = true,
            "--fork-session" => self.fork = true,
            "--session-id" => self.session_id = owned(),
            "--settings" => self.settings = owned(),
            "--setting-sources" => self.setting_sources = Some(names(values)),
            "--add-dir" => self.add_dirs.extend(values.iter().map(|value| (*value).to_owned())),
            _ => {}
        }
        Ok(None)
    }

    fn finish(self) -> LaunchAction {
        if self.session && self.output != OutputFormat::StreamJson {
            return LaunchAction::Fail(
                "Error: --input-format=stream-json requires output-format=stream-json.".to_owned(),
            );
        }
        LaunchAction::Run(Box::new(self))
    }

    pub(super) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// Returns whether a variable is set to a true value.
    pub(super) fn is_enabled(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| !matches!(value, "" | "0" | "false"))
    }
}

fn output_format(value: &str) -> Result<OutputFormat, String> {
    match value {
        "text" => Ok(OutputFormat::Text),
        "json" => Ok(OutputFormat::Json),
        "stream-json" => Ok(OutputFormat::StreamJson),
        _ => Err(format!("option '--output-format' argument '{value}' is invalid")),
    }
}

fn mode(value: &str) -> Result<String, String> {
    if MODES.contains(&value) {
        return Ok(value.to_owned());
    }
    Err(format!("option '--permission-mode <mode>' argument '{value}' is invalid"))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("option '{name}' argument '{value}' is not a number"))
}

fn json(name: &str, value: &str) -> Result<Value, String> {
    serde_json::from_str(value).map_err(|error| format!("option '{name}' is not JSON: {error}"))
}

fn rules(values: &[&str]) -> Vec<PermissionRule> {
    values.iter().flat_map(|value| parse_rules(value)).collect()
}

fn names(values: &[&str]) -> Vec<String> {
    let names = values.iter().flat_map(|value| value.split([',', ' ']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> LaunchAction {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        Launch { version: "2.1.325".to_owned(), ..Launch::default() }.parse(&arguments)
    }

    fn launch(arguments: &[&str]) -> Launch {
        match read(arguments) {
            LaunchAction::Run(launch) => *launch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn option_values_follow_or_use_an_equals_sign() {
        let launch = launch(&[
            "--output-format",
            "stream-json",
            "--verbose",
            "--input-format=stream-json",
            "--allowedTools",
            "Bash(git log:*),Read",
            "Edit",
            "--max-turns=3",
            "--tools=",
        ]);
        assert!(launch.session && !launch.print);
        assert_eq!(launch.allowed.len(), 3);
        assert_eq!(launch.max_turns, Some(3));
        assert_eq!(launch.tools, Some(Vec::new()));
    }

    #[test]
    fn the_prompt_follows_a_double_dash() {
        let launch = launch(&["--print", "--output-format", "stream-json", "--", "--not-a-flag"]);
        assert_eq!(launch.prompt.as_deref(), Some("--not-a-flag"));
    }

    #[test]
    fn unknown_options_and_values_are_rejected() {
        for (arguments, text) in [
            (&["--no-such-flag"][..], "unknown option '--no-such-flag'"),
            (&["--no-such-flag=1"], "unknown option '--no-such-flag'"),
            (&["--permission-mode", "never"], "'never' is invalid"),
            (&["--max-turns", "many"], "not a number"),
            (&["--model"], "argument missing"),
        ] {
            let LaunchAction::Fail(reason) = read(arguments) else { panic!("{arguments:?}") };
            assert!(reason.contains(text), "{reason}");
        }
        assert!(
            matches!(read(&["--version"]), LaunchAction::Print(text) if text == "2.1.325 (Claude Code)")
        );
    }
}
