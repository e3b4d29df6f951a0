//! Settings, rules, hooks, plugins and skills.

use claude_wire::Json;
use claude_wire::control::{
    ApplyFlagSettings, GetHooksListing, GetSettings, HooksListing, ListPermissionRules,
    PermissionRulesAnswer, ReloadOutputStyles, ReloadOutputStylesAnswer, ReloadPlugins,
    ReloadPluginsAnswer, ReloadSkills, ReloadSkillsAnswer, SettingsAnswer, SettingsFile,
    UpdateSettings,
};

use crate::error::Result;
use crate::session::Session;

operations! {
    /// Changes settings of this session, over those of all files. Each key replaces the one of that
    /// name; `null` removes it.
    fn apply_flag_settings(settings: impl Into<Json>) {
        let mut request = ApplyFlagSettings::default();
        request.settings = settings.into();
        request
    }

    /// Changes settings in a file. The CLI takes `outputStyle` for the local one and `effortLevel`
    /// for the user's, and refuses all others.
    fn update_settings(file: impl Into<SettingsFile>, settings: impl Into<Json>) {
        let mut request = UpdateSettings::default();
        (request.source, request.settings) = (Some(file.into()), settings.into());
        request
    }

    /// Returns the settings that are in force, and where they come from.
    fn get_settings() -> SettingsAnswer { GetSettings::default() }

    /// Returns the hooks of all settings files and plugins; not those of the host.
    fn get_hooks_listing() -> HooksListing { GetHooksListing::default() }

    /// Returns the permission rules that are in force.
    fn list_permission_rules() -> PermissionRulesAnswer { ListPermissionRules::default() }

    /// Reloads the skills.
    fn reload_skills() -> ReloadSkillsAnswer { ReloadSkills::default() }

    /// Reloads the output styles.
    fn reload_output_styles() -> ReloadOutputStylesAnswer { ReloadOutputStyles::default() }
}

impl Session {
    /// Reloads the plugins. [`ReloadPlugins::default`] does so at once.
    ///
    /// # Errors
    /// Those of [`Self::request`]. [`Unsupported`](crate::ErrorKind::Unsupported) also when
    /// `refuse_if_busy` is set and the CLI would ignore it.
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn reload_plugins(&self, how: ReloadPlugins) -> Result<ReloadPluginsAnswer> {
        if how.refuse_if_busy == Some(true) {
            let capability = "reload_plugins_refuse_if_busy_v1";
            self.require("reload_plugins", "refuse_if_busy", capability).await?;
        }
        self.operate(how.into()).await
    }
}
