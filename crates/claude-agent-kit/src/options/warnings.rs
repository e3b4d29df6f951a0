//! Warnings about options that are ignored, or that may not work as expected.

use claude_wire::control::PermissionMode;
use claude_wire::launch::CommandLine;
use claude_wire::settings::PermissionPrompts;

use super::{HostOptions, Options};
use crate::mcp::names;
use crate::warning::{Warning, WarningCode};

/// Returns the warnings about valid options.
pub(super) fn of(options: &Options, command: &CommandLine) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (option, other) in command.ignored.iter().copied() {
        warnings.push(ignored(option, other));
    }
    ignored_with_transport(&options.host, &mut warnings);
    shadowed(options, &mut warnings);
    ineffective_rules(options, &mut warnings);
    unmirrored_checkpoints(options, &mut warnings);
    warnings
}

/// Warns about options that are ignored with a custom transport.
fn ignored_with_transport(host: &HostOptions, warnings: &mut Vec<Warning>) {
    if host.transport.is_none() {
        return;
    }
    let runtime = host.runtime.executable.is_some() || !host.runtime.arguments.is_empty();
    for (option, is_given) in [
        ("cli_path", host.cli_path.is_some()),
        ("executable", runtime),
        ("user", host.user.is_some()),
    ] {
        if is_given {
            warnings.push(ignored(option, "transport"));
        }
    }
}

fn ignored(option: &'static str, other: &'static str) -> Warning {
    let message = format!(
        "`{option}` is ignored because `{other}` takes precedence; help: remove one of them"
    );
    Warning::new(WarningCode::OptionIgnored, message)
        .with(|facts| facts.options = vec![option, other])
}

/// Warns that the store does not have the checkpoints of files.
fn unmirrored_checkpoints(options: &Options, warnings: &mut Vec<Warning>) {
    if options.host.store.is_none() || !options.settings.file_checkpointing {
        return;
    }
    let message = "checkpoints of files are not sent to the store: files can be rewound only on the machine \
                   of this run; help: remove `file_checkpointing` if the session continues elsewhere";
    let warning = Warning::new(WarningCode::NotStored, message);
    warnings.push(warning.with(|facts| facts.options = vec!["store", "file_checkpointing"]));
}

/// Warns about options that decide before the permission callback is called.
fn shadowed(options: &Options, warnings: &mut Vec<Warning>) {
    if !options.host.callbacks.has_can_use_tool() {
        return;
    }
    let warning = |option: &'static str, message: String| {
        Warning::new(WarningCode::PermissionCallbackShadowed, message)
            .with(|facts| facts.options = vec![option, "can_use_tool"])
    };
    let settings = &options.settings;
    if settings.permission_mode == Some(PermissionMode::BypassPermissions) {
        let message = "`can_use_tool` is never called because `permission_mode` allows every tool; help: \
                       choose another permission mode";
        warnings.push(warning("permission_mode", message.to_owned()));
    }
    if settings.permission_prompts == Some(PermissionPrompts::None) {
        let message = "`can_use_tool` is never called because `permission_prompts` is `none`; help: remove \
                       `permission_prompts`";
        warnings.push(warning("permission_prompts", message.to_owned()));
    }
    let mut bare = Vec::new();
    for rule in &settings.allowed_tools {
        if is_bare(rule.trim()) {
            bare.push(rule.trim().to_owned());
        }
    }
    if !bare.is_empty() {
        let message = format!(
            "`can_use_tool` is never called for {} because `allowed_tools` allows every use; help: \
             remove the rule, or restrict it",
            bare.join(", ")
        );
        warnings.push(warning("allowed_tools", message));
    }
}

/// Returns whether a rule allows every use of a tool.
fn is_bare(rule: &str) -> bool {
    !rule.contains('(') || rule.ends_with("(*)")
}

/// Warns about rules for a whole server that the CLI applies to another one.
fn ineffective_rules(options: &Options, warnings: &mut Vec<Warning>) {
    let inside = options.host.callbacks.servers.names();
    for rule in &options.settings.allowed_tools {
        let rule = rule.trim();
        let is_missed = |server: &&str| names::is_missed_by(server, rule);
        let mut outside = options.settings.mcp_servers.iter().map(|(name, _)| name);
        let found = outside.find(is_missed);
        let found = found.or_else(|| inside.iter().map(String::as_str).find(is_missed));
        let Some(server) = found else { continue };
        let message = format!(
            "the rule `{rule}` of `allowed_tools` does not apply to the MCP server {server:?}: the CLI \
             ends the name of a server at the first `__`; help: use `{rule}__*`"
        );
        let warning = Warning::new(WarningCode::OptionIgnored, message);
        warnings.push(warning.with(|facts| facts.options = vec!["allowed_tools"]));
    }
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

    fn codes(options: &Options) -> Vec<(WarningCode, Vec<&'static str>)> {
        let warnings = warnings(options).into_iter();
        warnings.map(|warning| (warning.code(), warning.options().to_vec())).collect()
    }

    #[test]
    fn options_that_bypass_the_permission_callback_are_reported() {
        let check = |options: Options, callback: bool, expected: &[&'static str]| {
            let options = if callback {
                options.can_use_tool(|_, _| async { Permission::allow() })
            } else {
                options.ask_user(|_, _| async { Answers::new() })
            };
            let warnings = codes(&options);
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
    fn rules_that_the_cli_applies_to_another_server_are_reported() {
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
            // Rules that work, or that concern something else.
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
                let better = format!("use `{}__*`", rule.trim());
                assert!(warning.to_string().contains(&better), "{warning}");
            }
        }
    }
}
