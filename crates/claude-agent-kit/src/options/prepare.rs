//! Checks options and computes what a start needs.

use std::ffi::OsString;
use std::time::Duration;

use claude_agent_core::session::{QueryLimits, SessionLimits};
use claude_wire::content::Content;
use claude_wire::control::Initialize;
use claude_wire::launch::{self, CommandLine, Form, Limits, Origin, Problem, command_line};

use super::settings_file::inline_settings_for_sandbox;
use super::{HostOptions, Options, extra_disallowed_tools, warnings};
use crate::approval::ApprovalPolicy;
use crate::error::{Error, ErrorKind, Result};
use crate::list;
use crate::prompt::Prompt;
use crate::warning::{Warning, WarningCode};

/// What a start needs.
pub(crate) struct Prepared {
    pub(crate) command: CommandLine,
    /// The handshake, to which hooks are added; print mode has none.
    pub(crate) initialize: Option<Box<Initialize>>,
    /// Options that are ignored, or that may not work as expected.
    pub(crate) warnings: Vec<Warning>,
    /// Values of the options that no text may contain.
    pub(crate) secrets: Vec<String>,
    /// The timeout of the handshake.
    pub(crate) initialize_timeout: Duration,
    /// How long the SDK waits for background work; `None` is without a limit.
    pub(crate) background_ceiling: Option<Duration>,
}

/// Checks the options, and the prompt if it is known, and returns how to start the CLI.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] with every problem.
pub(crate) fn prepare(options: &Options, prompt: Option<&Prompt>) -> Result<Prepared> {
    let environment =
        HostEnvironment { variables: std::env::vars_os().collect(), limits: Limits::here() };
    prepare_in(options, prompt, &environment)
}

/// Returns the problems of these options for any kind of run.
pub(super) fn problems(options: &Options) -> Vec<Problem> {
    // Print mode needs a prompt; any will do.
    let prompt = Prompt::from("hello");
    match prepare(options, Some(&prompt)) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().to_vec(),
    }
}

const INITIALIZE_VARIABLE: &str = "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT";
const CEILING_VARIABLE: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";

/// The environment of this process, as far as a start depends on it.
struct HostEnvironment {
    variables: Vec<(OsString, OsString)>,
    limits: Limits,
}

fn prepare_in(
    options: &Options,
    prompt: Option<&Prompt>,
    environment: &HostEnvironment,
) -> Result<Prepared> {
    let mut problems = limits(&options.host);
    problems.append(&mut options.host.callbacks.problems());
    problems.extend(user_problem(&options.host, cfg!(unix)));
    problems.append(&mut store_problems(options));
    problems.extend(options.host.callbacks.approvals.as_ref().and_then(ApprovalPolicy::problem));
    problems.append(&mut options.host.callbacks.servers.problems(&options.settings));
    let form = form(options, prompt, environment.limits, &mut problems);
    let mut settings = options.settings.clone();
    inline_settings_for_sandbox(&mut settings, &mut problems);
    settings.disallowed_tools.extend(extra_disallowed_tools(&options.host.callbacks));
    let command = match command_line(&settings, &form, &options.host.needs) {
        // A prompt that is too long is not reported twice.
        Ok(command) if problems.is_empty() => environment.fitting(command),
        Ok(_) => Err(Vec::new()),
        Err(found) => Err(found.into_iter().collect()),
    };
    let command = command.map_err(|more| {
        problems.extend(more);
        invalid(options, problems)
    })?;
    let mut warnings = warnings::of(options, &command);
    let mut milliseconds = |variable, default| {
        let found = environment.milliseconds(options, variable);
        found.unwrap_or_else(|warning| {
            warnings.extend(warning);
            default
        })
    };
    let initialize_timeout = options
        .host
        .initialize_timeout
        .unwrap_or_else(|| milliseconds(INITIALIZE_VARIABLE, SessionLimits::default().initialize));
    let default_ceiling = QueryLimits::default().background_ceiling.unwrap_or_default();
    let background_ceiling = options
        .host
        .background_ceiling
        .unwrap_or_else(|| milliseconds(CEILING_VARIABLE, default_ceiling));
    let mut secrets = launch::secrets(&settings);
    add_runtime_values(options, &mut secrets);
    Ok(Prepared {
        initialize: (form == Form::Session)
            .then(|| Box::new(launch::initialize(&options.settings, &options.host.needs))),
        secrets,
        command,
        warnings,
        initialize_timeout,
        background_ceiling: (!background_ceiling.is_zero()).then_some(background_ceiling),
    })
}

/// Adds the values in the arguments of the runtime of the CLI, which may be secrets.
fn add_runtime_values(options: &Options, secrets: &mut Vec<String>) {
    for argument in &options.host.runtime.arguments {
        if let Some((_, value)) = argument.expose().split_once('=') {
            secrets.push(value.to_owned());
        }
    }
}

/// The smallest limit of a line: large enough for the handshake response of a CLI without plugins.
const LEAST_LINE: usize = 64 * 1024;

/// Returns the problems of the isolation and of limits that are too small.
fn limits(host: &HostOptions) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(reason) = host.isolation {
        problems.push(Problem::new(&["isolated"], reason));
    }
    if host.max_line_bytes < LEAST_LINE {
        let reason = format!(
            "{} bytes may be too few for the handshake response of the CLI; help: set at least \
             {LEAST_LINE}",
            host.max_line_bytes
        );
        problems.push(Problem::new(&["limits.max_line_bytes"], reason));
    }
    if host.runtime.arguments.iter().any(|argument| argument.expose().contains('\0')) {
        let reason = "an argument contains a NUL character; help: remove it";
        problems.push(Problem::new(&["executable_args"], reason));
    }
    // The handshake needs one.
    if host.pending_operations == 0 {
        problems.push(Problem::new(
            &["limits.pending_operations"],
            "a limit of 0 prevents the handshake; help: set at least 1",
        ));
    }
    if host.running_callbacks == 0 {
        problems.push(Problem::new(
            &["limits.running_callbacks"],
            "a limit of 0 prevents every callback; help: set at least 1",
        ));
    }
    if host.backlog.soft > host.backlog.hard {
        let reason = "the soft limit exceeds the hard limit, so it would never be reached; help: lower the \
                      soft limit";
        problems.push(Problem::new(
            &["limits.backlog_soft_bytes", "limits.backlog_hard_bytes"],
            reason,
        ));
    }
    if host.callbacks.user.has_dialog() && host.callbacks.user.dialog_kinds().is_empty() {
        let reason =
            "no kind of dialog is given, so the callback would never be called; help: pass a kind";
        problems.push(Problem::new(&["on_user_dialog"], reason));
    }
    if host.callbacks.running_mcp == Some(0) {
        problems.push(Problem::new(
            &["limits.running_mcp_messages"],
            "a limit of 0 prevents every MCP message; help: set at least 1",
        ));
    }
    problems
}

/// Returns the problem of the option `user` on a platform without support for it. A config file can
/// set it there.
pub(crate) fn user_problem(host: &HostOptions, is_supported: bool) -> Option<Problem> {
    let reason =
        "this platform does not support running the CLI as another user; help: remove the option";
    (host.user.is_some() && !is_supported).then(|| Problem::new(&["user"], reason))
}

/// Returns the problems of a store: the CLI reports no entries of a session that it does not save.
fn store_problems(options: &Options) -> Vec<Problem> {
    let Some(store) = &options.host.store else { return Vec::new() };
    let mut problems = Vec::new();
    if let Err(error) = store.check() {
        problems.push(Problem::new(&["store"], error.to_string()));
    }
    if options.settings.persist_session == Some(false) {
        let reason = "the CLI reports no entries of a session that it does not save; help: remove one of them";
        problems.push(Problem::new(&["store", "conversation.persist"], reason));
    }
    let is_earlier = matches!(options.settings.start.origin, Origin::Latest | Origin::Session(_));
    if is_earlier && options.host.user.is_some() {
        let reason = "a conversation is written to the local disk before it is resumed, where another user \
                      could not read it; help: run this process as that user";
        problems.push(Problem::new(&["store", "user"], reason));
    }
    problems
}

/// Returns the form of the command line, and adds the problems of the prompt.
fn form(
    options: &Options,
    prompt: Option<&Prompt>,
    limits: Limits,
    problems: &mut Vec<Problem>,
) -> Form {
    if prompt.is_some_and(Prompt::is_empty) {
        problems.push(Problem::new(
            &["prompt"],
            "must not be empty; help: pass a non-empty string or at least one content block",
        ));
    }
    if prompt.is_some_and(Prompt::has_empty_id) {
        problems.push(Problem::new(
            &["prompt"],
            "the ID is empty; help: pass a non-empty ID, or omit it",
        ));
    }
    if !options.host.print_mode {
        return Form::Session;
    }
    let text = match prompt.map(Prompt::content) {
        Some(Content::Text(text)) => text.clone(),
        Some(_) => {
            let reason =
                "print mode accepts text only; help: remove `print_mode` to send content blocks";
            problems.push(Problem::new(&["print_mode", "prompt"], reason));
            String::new()
        }
        None => {
            let reason =
                "print mode supports single queries only; help: remove it to start a session";
            problems.push(Problem::new(&["print_mode"], reason));
            String::new()
        }
    };
    // The limit counts the NUL at the end.
    if text.len() >= limits.one {
        let reason = format!(
            "the prompt has {} bytes, and a command-line argument can have at most {}; help: remove \
             `print_mode`",
            text.len(),
            limits.one - 1
        );
        problems.push(Problem::new(&["print_mode", "prompt"], reason));
    }
    Form::Print { prompt: text }
}

impl HostEnvironment {
    /// Returns the command line if it fits into the limits, together with the inherited environment.
    fn fitting(&self, command: CommandLine) -> std::result::Result<CommandLine, Vec<Problem>> {
        let inherited = self.inherited_bytes(&command);
        match self.limits.check(&command, inherited) {
            Ok(()) => Ok(command),
            Err(problems) => Err(problems.into_iter().collect()),
        }
    }

    /// Returns how many bytes of this process's environment the CLI inherits.
    fn inherited_bytes(&self, command: &CommandLine) -> usize {
        // On Windows the limit is that of the command line alone.
        if cfg!(windows) {
            return 0;
        }
        // Name, `=`, value, NUL, and a pointer to it.
        let size = |(name, value): &(OsString, OsString)| {
            name.len() + value.len() + 2 + size_of::<usize>()
        };
        let inherited = self.variables.iter().filter(|(name, _)| {
            let name = name.to_string_lossy();
            command.inherit.passes(&name) && !command.set.iter().any(|(set, _)| *set == name)
        });
        inherited.map(size).sum()
    }

    /// Returns the duration that an environment variable sets, or the warning why it is ignored.
    fn milliseconds(
        &self,
        options: &Options,
        variable: &str,
    ) -> std::result::Result<Duration, Option<Warning>> {
        let given = options.settings.env.get(variable).map(|value| value.expose().to_owned());
        let own = || {
            let found = self.variables.iter().find(|(name, _)| name == variable);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        let value = given.or_else(own).filter(|value| !value.trim().is_empty()).ok_or(None)?;
        let parsed = value.trim().parse().map(Duration::from_millis);
        parsed.map_err(|_| {
            let message = format!(
                "the environment variable {variable} is ignored because it is not a whole number of \
                 milliseconds; the default is used; help: correct the value"
            );
            Some(Warning::new(WarningCode::OptionIgnored, message))
        })
    }
}

pub(super) fn invalid(options: &Options, mut problems: Vec<Problem>) -> Error {
    for problem in &mut problems {
        name_sources(options, problem);
    }
    let texts = list::map(&problems, &ToString::to_string);
    Error::new(ErrorKind::InvalidOptions, format!("invalid options: {}", enumerated(&texts)))
        .with(|facts| facts.problems = problems)
}

/// Joins problems, with numbers if there are several.
pub(crate) fn enumerated(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        several => {
            let mut numbered = Vec::with_capacity(several.len());
            for text in several {
                numbered.push(format!("({}) {text}", numbered.len() + 1));
            }
            numbered.join("; ")
        }
    }
}

/// Adds the source of each value that was not set by the builder.
fn name_sources(options: &Options, problem: &mut Problem) {
    let mut places = Vec::new();
    for option in &problem.options {
        let mut sources = Vec::new();
        for source in options.origins.not_from_builder(option) {
            sources.push(source.to_string());
        }
        if !sources.is_empty() {
            places.push(format!("`{option}` comes from {}", sources.join(", ")));
        }
    }
    if !places.is_empty() {
        let places = places.join("; ");
        problem.reason = match problem.reason.split_once("; help: ") {
            Some((reason, help)) => format!("{reason} ({places}); help: {help}"),
            None => format!("{} ({places})", problem.reason),
        };
    }
}

#[cfg(test)]
mod tests {
    use claude_wire::content::ContentBlock;

    use super::*;
    use crate::settings::{EnvironmentPolicy, McpDelivery};
    use crate::{Json, Timeouts};

    fn environment(variables: &[(&str, &str)]) -> HostEnvironment {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        HostEnvironment { variables: variables.collect(), limits: Limits::LINUX }
    }

    fn with_prompt(options: &Options, prompt: impl Into<Prompt>) -> Result<Prepared> {
        prepare_in(options, Some(&prompt.into()), &environment(&[]))
    }

    fn good(options: &Options) -> Prepared {
        with_prompt(options, "hello").map_err(|error| error.to_string()).unwrap()
    }

    /// Returns the options of every problem.
    fn problems(prepared: Result<Prepared>) -> Vec<String> {
        let Err(error) = prepared else { return Vec::new() };
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        error.problems().iter().map(|problem| problem.options.join("+")).collect()
    }

    fn warnings_of(prepared: &Prepared) -> Vec<(WarningCode, Vec<&'static str>)> {
        let warnings = prepared.warnings.iter();
        warnings.map(|warning| (warning.code(), warning.options().to_vec())).collect()
    }

    #[test]
    fn a_session_has_a_handshake_and_print_mode_has_none() {
        let session = good(&Options::new().system_prompt("Be brief."));
        assert_eq!(session.initialize.unwrap().system_prompt.as_slice(), ["Be brief."]);
        assert!(!session.command.arguments.join(" ").contains("brief"));
        let print = good(&Options::new().system_prompt("Be brief.").print_mode(true));
        assert!(print.initialize.is_none());
        assert_eq!(print.command.arguments[4..], ["--system-prompt=Be brief.", "--", "hello"]);
    }

    #[test]
    fn an_empty_prompt_is_rejected_in_both_forms() {
        let image = || {
            let image = claude_wire::content::ImageBlock::base64("image/png", "AAAA");
            Prompt::from(vec![ContentBlock::text(" "), ContentBlock::Image(image)])
        };
        for (prompt, refused) in [
            (Prompt::from(""), true),
            (Prompt::from(" \n\t\u{a0}"), true),
            (Prompt::from(Vec::new()), true),
            (Prompt::from(vec![ContentBlock::text("\n")]), true),
            (Prompt::from("x"), false),
            (Prompt::from("\0"), false),
            (image(), false),
        ] {
            let prepared = with_prompt(&Options::new(), prompt.clone());
            assert_eq!(problems(prepared).contains(&"prompt".to_owned()), refused, "{prompt:?}");
            let prepared = with_prompt(&Options::new().print_mode(true), prompt.clone());
            assert!(!refused || problems(prepared).contains(&"prompt".to_owned()), "{prompt:?}");
        }
    }

    #[test]
    fn print_mode_rejects_prompts_that_do_not_fit_its_command_line() {
        let print = Options::new().print_mode(true);
        let most = Limits::LINUX.one - 1;
        assert_eq!(problems(with_prompt(&print, "x".repeat(most))), Vec::<String>::new());
        let long = problems(with_prompt(&print, "x".repeat(most + 1)));
        assert_eq!(long, ["print_mode+prompt"]);
        assert_eq!(problems(with_prompt(&print, "a\0b")), ["prompt"]);
        let blocks = vec![ContentBlock::text("x")];
        assert_eq!(problems(with_prompt(&print, blocks)), ["print_mode+prompt"]);
        assert_eq!(problems(prepare_in(&print, None, &environment(&[]))), ["print_mode"]);
    }

    #[test]
    fn a_session_takes_prompts_of_eight_mebibytes_and_no_prompt_yet() {
        let long = "x".repeat(8 * 1024 * 1024);
        let options = Options::new()
            .system_prompt(long.as_str())
            .system_prompt(crate::SystemPrompt::default().append(&long));
        let prepared = with_prompt(&options, &long).map_err(|error| error.to_string()).unwrap();
        assert_eq!(prepared.initialize.unwrap().append_system_prompt, Some(long));
        assert!(prepare_in(&options, None, &environment(&[])).is_ok());
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let options = Options::new()
            .print_mode(true)
            .max_turns(0)
            .file_checkpointing(true)
            .limits(
                crate::Limits::new().max_line_bytes(0).backlog_soft_bytes(2).backlog_hard_bytes(1),
            )
            .mcp("x", Json::from("not an object"));
        let error = with_prompt(&options, " ").err().unwrap();
        for name in [
            "limits.max_line_bytes",
            "limits.backlog_soft_bytes and limits.backlog_hard_bytes",
            "prompt",
            "max_turns",
            "mcp",
            "print_mode and file_checkpointing",
        ] {
            assert!(error.to_string().contains(&format!("{name}: ")), "{name}: {error}");
        }
        assert_eq!(error.problems().len(), 6);
    }

    #[test]
    fn arguments_and_inherited_environment_share_a_limit() {
        let half = "x".repeat(Limits::LINUX.all / 2);
        let options = Options::new();
        let fits = |options: &Options, variables: &[(&str, &str)]| {
            prepare_in(options, None, &environment(variables)).is_ok()
        };
        assert!(fits(&options, &[("A", &half)]));
        assert!(!fits(&options, &[("A", &half), ("B", &half)]));
        // What does not reach the CLI does not count.
        let except = EnvironmentPolicy::InheritExcept(vec!["B".to_owned()]);
        assert!(fits(&options.clone().environment(except), &[("A", &half), ("B", &half)]));
        assert!(fits(&options.clone().env("B", "short"), &[("A", &half), ("B", &half)]));
        let servers =
            Options::new().mcp("x", Json::from_text(format!(r#"{{"a":"{half}"}}"#)).unwrap());
        assert!(fits(&servers, &[]));
        let servers = servers.mcp_delivery(McpDelivery::Arguments);
        assert_eq!(problems(prepare_in(&servers, None, &environment(&[]))), ["arguments"]);
    }

    #[test]
    fn a_user_is_rejected_where_it_is_not_supported() {
        let host = HostOptions { user: Some("agent".into()), ..HostOptions::default() };
        assert_eq!(user_problem(&host, false).unwrap().options, ["user"]);
        assert_eq!(user_problem(&host, true), None);
        assert_eq!(user_problem(&HostOptions::default(), false), None);
    }

    #[test]
    fn an_option_that_is_ignored_is_reported() {
        let unasked = Options::new().permission_prompts("none").permission_prompt_tool("p");
        let prepared = good(&unasked);
        let expected = vec!["permission_prompt_tool", "permission_prompts"];
        assert_eq!(warnings_of(&prepared), [(WarningCode::OptionIgnored, expected)]);
        let memory =
            crate::transport::InMemory::new(|_| async { Err(std::io::Error::other("none")) });
        let prepared =
            good(&Options::new().cli_path("claude").executable(["bun"]).transport(memory));
        let expected = ["cli_path", "executable"]
            .map(|option| (WarningCode::OptionIgnored, vec![option, "transport"]));
        assert_eq!(warnings_of(&prepared), expected);
        assert!(warnings_of(&good(&Options::new().model("m"))).is_empty());
    }

    #[test]
    fn timeouts_come_from_the_option_then_the_environment_then_the_default() {
        let seconds = Duration::from_secs;
        let both = |options: Options, variables: &[(&str, &str)]| {
            let prepared = prepare_in(&options, None, &environment(variables));
            let prepared = prepared.map_err(|error| error.to_string()).unwrap();
            let warnings = warnings_of(&prepared).len();
            (prepared.initialize_timeout, prepared.background_ceiling, warnings)
        };
        let own = &[(INITIALIZE_VARIABLE, "7000"), (CEILING_VARIABLE, " 9000\n")];
        let given =
            |value| Options::new().env(INITIALIZE_VARIABLE, value).env(CEILING_VARIABLE, value);
        let set = Options::new()
            .timeouts(Timeouts::new().initialize(seconds(1)).background_ceiling(seconds(2)));
        for (options, variables, expected) in [
            (Options::new(), &[][..], (seconds(60), Some(seconds(600)), 0)),
            (Options::new(), own, (seconds(7), Some(seconds(9)), 0)),
            (given("3000"), own, (seconds(3), Some(seconds(3)), 0)),
            (set.clone(), own, (seconds(1), Some(seconds(2)), 0)),
            (set.timeouts(Timeouts::new().background_ceiling(None)), own, (seconds(1), None, 0)),
            (Options::new(), &[(CEILING_VARIABLE, "0")], (seconds(60), None, 0)),
            (Options::new(), &[(CEILING_VARIABLE, "")], (seconds(60), Some(seconds(600)), 0)),
            (given("1 minute"), &[], (seconds(60), Some(seconds(600)), 2)),
        ] {
            assert_eq!(both(options.clone(), variables), expected, "{options:?} {variables:?}");
        }
    }

    #[test]
    fn arguments_of_the_runtime_are_checked_and_masked() {
        let nul = Options::new().executable(["node", "--a\0b"]);
        assert_eq!(problems(with_prompt(&nul, "hello")), ["executable_args"]);
        let valued = Options::new().executable(["node", "--smol", "--key=hush-hush"]);
        assert_eq!(good(&valued).secrets, ["hush-hush"]);
        assert!(!format!("{valued:?}").contains("hush"), "{valued:?}");
    }

    #[test]
    fn secrets_are_collected_for_masking_and_occur_in_no_error() {
        let options = Options::new()
            .env("ANY", "s3cr3t-a")
            .add_arg(("key", "s3cr3t-b"))
            .mcp("x", Json::from_text(r#"{"headers":{"a":"s3cr3t-c"}}"#).unwrap());
        let mut secrets = good(&options).secrets;
        secrets.sort_unstable();
        assert_eq!(secrets, ["s3cr3t-a", "s3cr3t-b", "s3cr3t-c"]);
        let wrong = options.env("A\0", "s3cr3t").max_turns(0).print_mode(true);
        let error = with_prompt(&wrong, "s3cr3t\0").err().unwrap();
        assert!(!format!("{error} {error:?} {:?}", error.problems()).contains("s3cr3t"));
    }
}
