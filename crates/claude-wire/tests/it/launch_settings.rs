//! The CLI's own settings, typed, and the sandbox that goes on top of them.

use claude_wire::Json;
use claude_wire::control::PermissionMode;
use claude_wire::launch::Effort;
use claude_wire::settings::{CliSettings, PermissionSettings, Sandbox, SandboxNetwork};
use expect_test::{Expect, expect};

use crate::launch_options::{check, json};

#[test]
fn typed_settings_are_written_as_the_cli_reads_them() {
    let permissions =
        PermissionSettings::default().deny(["Read(./.env)"]).default_mode(PermissionMode::Plan);
    let typed = CliSettings::default()
        .output_style("Explanatory")
        .effort_level(Effort::Low)
        .cleanup_period_days(3_u32)
        .permissions(permissions)
        .set("spinnerTipsEnabled", json("false"));
    check(
        |s| s.settings = Some(typed.into()),
        &expect![[
            r#"--settings={"effortLevel":"low","outputStyle":"Explanatory","permissions":{"deny":["Read(./.env)"],"defaultMode":"plan"},"cleanupPeriodDays":3,"spinnerTipsEnabled":false}"#
        ]],
    );
}

#[test]
fn managed_settings_have_their_flag() {
    let managed = CliSettings::default().disable_all_hooks(true);
    check(
        |s| s.managed_settings = Some(managed.into()),
        &expect![[r#"--managed-settings={"disableAllHooks":true}"#]],
    );
}

#[test]
fn enabled_sandbox_is_required_unless_optional() {
    check(
        |s| s.sandbox = Some(Sandbox::default().enabled(true).into()),
        &expect![[r#"--settings={"sandbox":{"enabled":true,"failIfUnavailable":true}}"#]],
    );
    check(
        |s| s.sandbox = Some(Sandbox::default().enabled(true).fail_if_unavailable(false).into()),
        &expect![[r#"--settings={"sandbox":{"enabled":true,"failIfUnavailable":false}}"#]],
    );
    check(
        |s| s.sandbox = Some(Sandbox::default().excluded_commands(["git"]).into()),
        &expect![[r#"--settings={"sandbox":{"excludedCommands":["git"]}}"#]],
    );
}

/// The sandbox of the settings with another on top.
fn on_top(before: &str, sandbox: &str, expected: &Expect) {
    let sandbox = json(sandbox).deserialize::<Sandbox>().unwrap();
    let given = json(&format!(r#"{{"model":"m","sandbox":{before}}}"#));
    check(
        |s| {
            s.settings = Some(given.into());
            s.sandbox = Some(sandbox.into());
        },
        expected,
    );
}

#[test]
fn sandbox_is_merged_into_the_settings_key_by_key() {
    on_top(
        r#"{"enabled":true,"bwrapPath":"/b","network":{"allowedDomains":["a"],"allowLocalBinding":true}}"#,
        r#"{"allowUnsandboxedCommands":false,"network":{"allowedDomains":["b"]}}"#,
        &expect![[
            r#"--settings={"model":"m","sandbox":{"allowUnsandboxedCommands":false,"bwrapPath":"/b","enabled":true,"failIfUnavailable":true,"network":{"allowLocalBinding":true,"allowedDomains":["b"]}}}"#
        ]],
    );
}

#[test]
fn denials_of_two_sandboxes_are_combined() {
    on_top(
        r#"{"filesystem":{"denyRead":["/a","/b"],"allowWrite":["/w"]},"network":{"deniedDomains":["x"]},"credentials":{"files":[{"path":"k","mode":"deny"}]}}"#,
        r#"{"filesystem":{"denyRead":["/b","/c"]},"network":{"deniedDomains":["y"]},"credentials":{"files":[{"path":"l","mode":"mask"}]}}"#,
        &expect![[
            r#"--settings={"model":"m","sandbox":{"credentials":{"files":[{"mode":"deny","path":"k"},{"mode":"mask","path":"l"}]},"filesystem":{"allowWrite":["/w"],"denyRead":["/a","/b","/c"]},"network":{"deniedDomains":["x","y"]}}}"#
        ]],
    );
}

#[test]
fn settings_that_undo_a_sandbox_restriction_are_dropped() {
    on_top(
        r#"{"filesystem":{"disabled":true},"network":{"httpProxyPort":1,"socksProxyPort":2,"tlsTerminate":{"caCertPath":"c"}},"ripgrep":{"command":"rg","args":["-x"]}}"#,
        r#"{"filesystem":{"denyRead":["/a"]},"network":{"allowedDomains":["b"],"tlsTerminate":{"caKeyPath":"k"}},"ripgrep":{"command":"other"}}"#,
        &expect![[
            r#"--settings={"model":"m","sandbox":{"filesystem":{"denyRead":["/a"]},"network":{"allowedDomains":["b"],"tlsTerminate":{"caKeyPath":"k"}},"ripgrep":{"command":"other"}}}"#
        ]],
    );
}

#[test]
fn a_sandbox_keeps_every_field_that_is_published() {
    let text = r#"{"enabled":true,"failIfUnavailable":true,"autoAllowBashIfSandboxed":true,"allowUnsandboxedCommands":false,"network":{"allowedDomains":["a"],"deniedDomains":["b"],"strictAllowlist":true,"allowManagedDomainsOnly":false,"allowUnixSockets":["/s"],"allowAllUnixSockets":false,"allowLocalBinding":true,"allowMachLookup":["m"],"httpProxyPort":1,"socksProxyPort":2,"tlsTerminate":{"caCertPath":"c","caKeyPath":"k"}},"filesystem":{"allowWrite":["/a"],"denyWrite":["/b"],"denyRead":["/c"],"allowRead":["/d"],"allowManagedReadPathsOnly":false,"disabled":false},"credentials":{"files":[{"path":"p","mode":"mask","extract":"x","onExtractNoMatch":"warn","decode":"jwt","maskClaims":["c"],"maskDuplicates":true,"injectHosts":["h"]}],"envVars":[{"name":"n","mode":"deny"}],"allowPlaintextInject":false,"awsPairs":[{"accessKeyIdVar":"a"}],"sigv4":{"streaming":"deny"}},"ignoreViolations":{"*":["/x"]},"enableWeakerNestedSandbox":false,"allowNestedUserNamespaces":false,"enableWeakerNetworkIsolation":false,"allowAppleEvents":false,"excludedCommands":["git"],"ripgrep":{"command":"rg","args":["-x"]},"bwrapPath":"/b","socatPath":"/s"}"#;
    let sandbox: Sandbox = json(text).deserialize().unwrap();
    assert!(sandbox.extra.is_empty() && sandbox.network.as_ref().unwrap().extra.is_empty());
    assert_eq!(Json::from_serialize(&sandbox).unwrap().text(), text);
    assert_eq!(sandbox.network.unwrap().http_proxy_port, Some(1));
    let network = SandboxNetwork::default().set("later", "field");
    assert_eq!(Json::from_serialize(&network).unwrap().text(), r#"{"later":"field"}"#);
}
