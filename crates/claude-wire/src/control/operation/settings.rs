//! The effective settings, permission rules and hooks.

use crate::json::{Json, List, Number};

request! {
    /// Changes settings of this session. They take precedence over the command line.
    ApplyFlagSettings = "apply_flag_settings" {
        /// The changes; `null` resets a setting.
        settings: Json,
    }
}

request! {
    /// Changes settings in a file.
    UpdateSettings = "update_settings" {
        /// The file.
        source: Option<SettingsFile>,
        /// The changes.
        settings: Json,
    }
}

open_enum! {
    /// A settings file that can be changed.
    pub enum SettingsFile {
        /// The local settings of the project.
        Local = "localSettings",
        /// The settings of the user.
        User = "userSettings",
    }
}

request! {
    /// Returns the effective settings.
    GetSettings = "get_settings" {}
}

wire_struct! {
    /// The effective settings.
    #[derive(Default)]
    pub struct SettingsResponse {
        /// The merged settings.
        effective: Option<Json>,
        /// The sources, in order of increasing precedence.
        sources: List<SettingsLayer>,
        /// The values that the session applied.
        applied: Option<AppliedSettings>,
        /// The errors.
        errors: List<Json>,
        /// The redacted values.
        withheld: Option<Json>,
    }
}

wire_struct! {
    /// Settings of one source.
    #[derive(Default)]
    pub struct SettingsLayer {
        /// The source.
        source: Option<String>,
        /// Its settings.
        settings: Option<Json>,
    }
}

wire_struct! {
    /// The values that the session applied.
    #[derive(Default)]
    pub struct AppliedSettings {
        /// The model.
        model: Option<String>,
        /// The effort level.
        effort: Option<String>,
        /// The advisor model.
        advisor: Option<Json>,
        /// Whether many agents are used.
        ultracode: Option<bool>,
    }
}

request! {
    /// Lists the effective permission rules.
    ListPermissionRules = "list_permission_rules" {}
}

wire_struct! {
    /// The permission rules.
    #[derive(Default)]
    pub struct PermissionRulesResponse {
        /// The permission rules and directories.
        state: Option<PermissionRules>,
    }
}

wire_struct! {
    /// The permission rules and the directories that tools may use.
    #[derive(Default)]
    pub struct PermissionRules {
        /// The rules.
        rules: List<PermissionRuleInfo>,
        /// The additional directories.
        workspace_directories: List<WorkspaceDirectory> as "workspaceDirectories",
        /// The initial working directory of the process.
        original_cwd: Option<String> as "originalCwd",
        /// Whether only managed rules apply.
        managed_only: Option<bool> as "managedOnly",
        /// The errors.
        errors: List<Json>,
        /// The redacted values.
        withheld: Option<Json>,
    }
}

wire_struct! {
    /// A permission rule.
    #[derive(Default)]
    pub struct PermissionRuleInfo {
        /// `allow`, `deny` or `ask`.
        behavior: Option<String>,
        /// The source.
        source: Option<String>,
        /// The rule.
        rule: Option<String>,
        /// The description of the rule.
        description: Option<Json>,
        /// `persistent`, `session` or `readonly`.
        editability: Option<String>,
        /// The reason why it has no effect.
        not_in_effect: Option<Json> as "notInEffect",
    }
}

wire_struct! {
    /// A directory that tools may use.
    #[derive(Default)]
    pub struct WorkspaceDirectory {
        /// The path.
        path: Option<String>,
        /// The source.
        source: Option<String>,
    }
}

request! {
    /// Lists the hooks in the settings.
    GetHooksListing = "get_hooks_listing" {}
}

wire_struct! {
    /// The hooks in all settings, without the callbacks of the host.
    #[derive(Default)]
    pub struct HooksListing {
        /// The events that have hooks.
        events: List<HookEventInfo>,
        /// The hooks.
        hooks: List<HookInfo>,
        /// All events that the CLI knows.
        event_catalog: List<HookEventInfo> as "eventCatalog",
        /// The policy of the organization for hooks.
        policy: Option<HookPolicy>,
        /// The policy in safe mode.
        safe_mode: Option<Json> as "safeMode",
        /// The policy in bare mode.
        bare_mode: Option<Json> as "bareMode",
        /// The errors.
        errors: List<Json>,
    }
}

wire_struct! {
    /// An event that can have hooks.
    #[derive(Default)]
    pub struct HookEventInfo {
        /// Its name.
        name: Option<String>,
        /// The description of the event.
        summary: Option<String>,
        /// Whether the event supports matchers.
        supports_matcher: Option<bool> as "supportsMatcher",
        /// The number of hooks.
        hook_count: Option<Number> as "hookCount",
    }
}

wire_struct! {
    /// A hook in the settings.
    #[derive(Default)]
    pub struct HookInfo {
        /// The event.
        event: Option<String>,
        /// The matcher.
        matcher: Option<String>,
        /// The source.
        source: Option<String>,
        /// The display name of the source.
        source_label: Option<String> as "sourceLabel",
        /// The plugin that provides it.
        plugin_name: Option<String> as "pluginName",
        /// `command`, `prompt`, `agent`, `http` or `mcp_tool`.
        kind: Option<String> as "type",
        /// The text for the user.
        display_text: Option<String> as "displayText",
        /// The command or prompt.
        command_text: Option<String> as "commandText",
        /// The label of the text.
        content_label: Option<String> as "contentLabel",
        /// The condition.
        condition: Option<String>,
        /// The timeout in seconds.
        timeout: Option<Number>,
        /// The status message.
        status_message: Option<String> as "statusMessage",
        /// Whether it runs once.
        runs_once: Option<bool> as "runsOnce",
        /// Whether it is asynchronous.
        runs_in_background: Option<bool> as "runsInBackground",
        /// Whether it is disabled.
        disabled: Option<bool>,
        /// How it can be edited.
        editable: Option<Json>,
    }
}

wire_struct! {
    /// The policy of the organization for hooks.
    #[derive(Default)]
    pub struct HookPolicy {
        /// Whether hooks are disabled by policy.
        disabled_by_policy: Option<bool> as "disabledByPolicy",
        /// Whether only managed hooks run.
        managed_only: Option<bool> as "managedOnly",
        /// Whether only hooks of plugins run.
        plugin_only: Option<bool> as "pluginOnly",
        /// Whether all hooks are disabled.
        all_disabled: Option<bool> as "allDisabled",
        /// The number of managed hooks.
        policy_hook_count: Option<Number> as "policyHookCount",
        /// Whether the policy could not be loaded.
        policy_unreadable: Option<bool> as "policyUnreadable",
    }
}
