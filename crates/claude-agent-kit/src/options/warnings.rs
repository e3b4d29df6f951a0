//! What is not obeyed, or will not work as it looks.

use claude_wire::control::PermissionMode;
use claude_wire::launch::CommandLine;
use claude_wire::settings::PermissionPrompts;

use super::{HostOptions, Options};
use crate::mcp::names;
use crate::warning::{Warning, WarningCode};

/// Everything that is told of these options, which can be used.
pub(super) fn of(options: &Options, command: &CommandLine) -> Vec<Warning> {
    let beaten = beaten_by_transport(&options.host);
    let ignored = command.ignored.iter().copied().chain(beaten).map(ignored);
    ignored.chain(shadowed(options)).chain(rules_that_miss(options)).collect()
}

/// What a transport of the host's own does not ask for.
fn beaten_by_transport(host: &HostOptions) -> Vec<(&'static str, &'static str)> {
    if host.transport.is_none() {
        return Vec::new();
    }
    let runtime = host.runtime.executable.is_some() || !host.runtime.arguments.is_empty();
    [("cli_path", host.cli_path.is_some()), ("executable", runtime), ("user", host.user.is_some())]
        .into_iter()
        .filter_map(|(option, given)| given.then_some((option, "transport")))
        .collect()
}

fn ignored((beaten, winner): (&'static str, &'static str)) -> Warning {
    let message = format!("`{beaten}` is not obeyed, because `{winner}` beats it");
    Warning::new(WarningCode::OptionIgnored, message)
        .with(|facts| facts.options = vec![beaten, winner])
}

/// Options that decide before the permission callback is asked.
fn shadowed(options: &Options) -> Vec<Warning> {
    if !options.host.callbacks.has_can_use_tool() {
        return Vec::new();
    }
    let warning = |option: &'static str, message: String| {
        Warning::new(WarningCode::PermissionCallbackShadowed, message)
            .with(|facts| facts.options = vec![option, "can_use_tool"])
    };
    let settings = &options.settings;
    let mut warnings = Vec::new();
    if settings.permission_mode == Some(PermissionMode::BypassPermissions) {
        let message = "`permission_mode` lets everything run, so `can_use_tool` is never asked";
        warnings.push(warning("permission_mode", message.to_owned()));
    }
    if settings.permission_prompts == Some(PermissionPrompts::None) {
        let message = "with `permission_prompts` nobody is asked, `can_use_tool` neither";
        warnings.push(warning("permission_prompts", message.to_owned()));
    }
    let bare: Vec<&str> = settings
        .allowed_tools
        .iter()
        .map(|rule| rule.trim())
        .filter(|rule| is_bare(rule))
        .collect();
    if !bare.is_empty() {
        let message = format!(
            "`allowed_tools` lets {} run, so `can_use_tool` is never asked about that",
            bare.join(", ")
        );
        warnings.push(warning("allowed_tools", message));
    }
    warnings
}

/// Whether a rule lets every use of a tool run.
fn is_bare(rule: &str) -> bool {
    !rule.contains('(') || rule.ends_with("(*)")
}

/// Rules for a whole server that the CLI reads as rules of another one.
fn rules_that_miss(options: &Options) -> Vec<Warning> {
    let outside = options.settings.mcp_servers.iter().map(|(name, _)| name.to_owned());
    let servers: Vec<String> = outside.chain(options.host.callbacks.servers.names()).collect();
    let rules = options.settings.allowed_tools.iter().map(|rule| rule.trim());
    let missing = rules.filter_map(|rule| {
        let server = servers.iter().find(|server| names::is_missed_by(server, rule))?;
        let message = format!(
            "the CLI does not take `{rule}` in `allowed_tools` for a rule of the server {server:?}, \
             because its name has `__` or ends in `_` there; write `{rule}__*`"
        );
        let warning = Warning::new(WarningCode::OptionIgnored, message);
        Some(warning.with(|facts| facts.options = vec!["allowed_tools"]))
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use claude_wire::Json;

    use super::*;
    use crate::mcp::RawServer;
    use crate::options::prepare;
    use crate::{Answers, Permission};

    fn warnings(options: &Options) -> Vec<Warning> {
        prepare(options, None).map_err(|error| error.to_string()).unwrap().warnings
    }

    fn told(options: &Options) -> Vec<(WarningCode, Vec<&'static str>)> {
        let warnings = warnings(options).into_iter();
        warnings.map(|warning| (warning.code(), warning.options().to_vec())).collect()
    }

    #[test]
    fn options_that_keep_the_permission_callback_from_being_asked_are_told() {
        let check = |options: Options, callback: bool, expected: &[&'static str]| {
            let options = if callback {
                options.can_use_tool(|_, _| async { Permission::allow() })
            } else {
                options.ask_user(|_, _| async { Answers::new() })
            };
            let warnings = told(&options);
            let expected: Vec<_> = expected
                .iter()
                .map(|name| (WarningCode::PermissionCallbackShadowed, vec![*name, "can_use_tool"]))
                .collect();
            assert_eq!(warnings, expected, "{options:?}");
        };
        let bypass = || Options::new().permission_mode(PermissionMode::BypassPermissions);
        check(bypass(), true, &["permission_mode"]);
        check(bypass(), false, &[]);
        check(Options::new().permission_mode(PermissionMode::Plan), true, &[]);
        check(Options::new().permission_prompts("none"), true, &["permission_prompts"]);
        check(Options::new().allowed_tools(["Bash(git log:*)"]), true, &[]);
        check(Options::new().allowed_tools(["Bash(git log:*)", "Read"]), true, &["allowed_tools"]);
        check(Options::new().allowed_tools(["Bash(*)"]), true, &["allowed_tools"]);
        check(Options::new().allowed_tools(["Read"]), false, &[]);
        check(bypass().allowed_tools(["Read"]), true, &["permission_mode", "allowed_tools"]);
    }

    #[test]
    fn a_rule_that_the_cli_reads_as_one_of_another_server_is_told() {
        let inside = |name: &str| {
            let server = RawServer::new(|message: Json, _| async { Ok(message) });
            Options::new().mcp(name, server)
        };
        let outside = |name: &str| Options::new().mcp(name, Json::from_text("{}").unwrap());
        for (options, rule, missed) in [
            (inside("a__b"), "mcp__a__b", true),
            (inside("a_"), "mcp__a_", true),
            (outside("a__b"), " mcp__a__b ", true),
            (outside("é"), "mcp___", true),
            // Rules that the CLI obeys, or that are about something else.
            (inside("a__b"), "mcp__a__b__*", false),
            (inside("a__b"), "mcp__a__b__t", false),
            (inside("_a"), "mcp___a", false),
            (inside("a"), "mcp__a__b", false),
            (outside("a.b"), "mcp__a_b", false),
        ] {
            let warnings = warnings(&options.allowed_tools([rule]));
            let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            assert_eq!(warnings.len(), usize::from(missed), "{rule}: {texts:?}");
            for warning in warnings {
                assert_eq!(warning.code(), WarningCode::OptionIgnored);
                assert_eq!(warning.options(), ["allowed_tools"]);
                let better = format!("write `{}__*`", rule.trim());
                assert!(warning.to_string().contains(&better), "{warning}");
            }
        }
    }
}
