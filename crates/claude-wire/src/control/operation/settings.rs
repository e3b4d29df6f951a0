//! Settings, rules and hooks that are in force.

use crate::json::{Extra, Json, List, Number};

request! {
    /// Change settings of this session, over those of the command line.
    ApplyFlagSettings = "apply_flag_settings" {
        /// What changes; `null` takes a setting back.
        settings: Json,
    }
}

impl ApplyFlagSettings {
    /// Creates a request with these settings.
    pub fn new(settings: impl Into<Json>) -> Self {
        Self { settings: settings.into(), extra: Extra::default() }
    }
}

request! {
    /// Change settings in a file.
    UpdateSettings = "update_settings" {
        /// The file.
        source: Option<SettingsFile>,
        /// What changes.
        settings: Json,
    }
}

open_enum! {
    /// A file of settings that can be changed.
    pub enum SettingsFile {
        /// Of this machine and this project.
        Local = "localSettings",
        /// Of the user.
        User = "userSettings",
    }
}

request! {
    /// Which settings are in force?
    GetSettings = "get_settings" {}
}

wire_struct! {
    /// The settings that are in force.
    #[derive(Default)]
    pub struct SettingsResponse {
        /// All together.
        effective: Option<Json>,
        /// Where they come from, the weakest first.
        sources: List<SettingsLayer>,
        /// What the session made of them.
        applied: Option<AppliedSettings>,
        /// What could not be read.
        errors: List<Json>,
        /// What is not told.
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
    /// What the session made of its settings.
    #[derive(Default)]
    pub struct AppliedSettings {
        /// The model.
        model: Option<String>,
        /// How hard it thinks.
        effort: Option<String>,
        /// The model that advises it.
        advisor: Option<Json>,
        /// Whether it works with many agents.
        ultracode: Option<bool>,
    }
}

request! {
    /// Which rules about permissions are in force?
    ListPermissionRules = "list_permission_rules" {}
}

wire_struct! {
    /// The rules about permissions.
    #[derive(Default)]
    pub struct PermissionRulesResponse {
        /// The rules and what they are about.
        state: Option<PermissionRules>,
    }
}

wire_struct! {
    /// The rules about permissions, and the directories that tools may use.
    #[derive(Default)]
    pub struct PermissionRules {
        /// The rules.
        rules: List<PermissionRuleInfo>,
        /// The directories beside the working directory.
        workspace_directories: List<WorkspaceDirectory> as "workspaceDirectories",
        /// The directory in which the process began.
        original_cwd: Option<String> as "originalCwd",
        /// Whether only rules of the organisation count.
        managed_only: Option<bool> as "managedOnly",
        /// What could not be read.
        errors: List<Json>,
        /// What is not told.
        withheld: Option<Json>,
    }
}

wire_struct! {
    /// A rule about permissions.
    #[derive(Default)]
    pub struct PermissionRuleInfo {
        /// `allow`, `deny` or `ask`.
        behavior: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// The rule.
        rule: Option<String>,
        /// The rule for people.
        description: Option<Json>,
        /// `persistent`, `session` or `readonly`.
        editability: Option<String>,
        /// Why it does not count.
        not_in_effect: Option<Json> as "notInEffect",
    }
}

wire_struct! {
    /// A directory that tools may use.
    #[derive(Default)]
    pub struct WorkspaceDirectory {
        /// Where it is.
        path: Option<String>,
        /// Who added it.
        source: Option<String>,
    }
}

request! {
    /// Which hooks are there in settings?
    GetHooksListing = "get_hooks_listing" {}
}

wire_struct! {
    /// The hooks of all settings. Callbacks of the host are not among them.
    #[derive(Default)]
    pub struct HooksListing {
        /// The events that have hooks.
        events: List<HookEventInfo>,
        /// The hooks.
        hooks: List<HookInfo>,
        /// All events that the CLI knows.
        event_catalog: List<HookEventInfo> as "eventCatalog",
        /// What the organisation says of hooks.
        policy: Option<HookPolicy>,
        /// What holds in safe mode.
        safe_mode: Option<Json> as "safeMode",
        /// What holds in bare mode.
        bare_mode: Option<Json> as "bareMode",
        /// What could not be read.
        errors: List<Json>,
    }
}

wire_struct! {
    /// An event that can have hooks.
    #[derive(Default)]
    pub struct HookEventInfo {
        /// Its name.
        name: Option<String>,
        /// When it comes.
        summary: Option<String>,
        /// Whether hooks can be for a part of it.
        supports_matcher: Option<bool> as "supportsMatcher",
        /// How many hooks it has.
        hook_count: Option<Number> as "hookCount",
    }
}

wire_struct! {
    /// A hook of some settings.
    #[derive(Default)]
    pub struct HookInfo {
        /// The event.
        event: Option<String>,
        /// What of it.
        matcher: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// The same for people.
        source_label: Option<String> as "sourceLabel",
        /// The plugin that it comes from.
        plugin_name: Option<String> as "pluginName",
        /// `command`, `prompt`, `agent`, `http` or `mcp_tool`.
        kind: Option<String> as "type",
        /// What to show.
        display_text: Option<String> as "displayText",
        /// What it runs.
        command_text: Option<String> as "commandText",
        /// What the text is called.
        content_label: Option<String> as "contentLabel",
        /// When it runs.
        condition: Option<String>,
        /// Seconds that it may take.
        timeout: Option<Number>,
        /// What is shown while it runs.
        status_message: Option<String> as "statusMessage",
        /// Whether it runs only once.
        runs_once: Option<bool> as "runsOnce",
        /// Whether nothing waits for it.
        runs_in_background: Option<bool> as "runsInBackground",
        /// Whether it is switched off.
        disabled: Option<bool>,
        /// How it could be changed.
        editable: Option<Json>,
    }
}

wire_struct! {
    /// What the organisation says of hooks.
    #[derive(Default)]
    pub struct HookPolicy {
        /// Whether it forbids them.
        disabled_by_policy: Option<bool> as "disabledByPolicy",
        /// Whether only its own count.
        managed_only: Option<bool> as "managedOnly",
        /// Whether only those of plugins count.
        plugin_only: Option<bool> as "pluginOnly",
        /// Whether all are off.
        all_disabled: Option<bool> as "allDisabled",
        /// How many are its own.
        policy_hook_count: Option<Number> as "policyHookCount",
        /// Whether it could not be read.
        policy_unreadable: Option<bool> as "policyUnreadable",
    }
}
