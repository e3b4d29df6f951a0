//! Settings, plugins and skills.

use claude_wire::Json;
use claude_wire::control::{
    ApplyFlagSettings, GetSettings, ReloadPlugins, ReloadPluginsResponse, ReloadSkills,
    ReloadSkillsResponse, SettingsResponse,
};

use crate::error::Result;
use crate::session::Session;

operations! { Session:
    /// Changes settings of this session, over those of all files. Each key replaces the one of that
    /// name; `null` removes it.
    fn apply_flag_settings(settings: impl Into<Json>) {
        let mut request = ApplyFlagSettings::default();
        request.settings = settings.into();
        request
    }

    /// Returns the settings that are in force, and where they come from.
    fn settings() -> SettingsResponse { GetSettings::default() }

    /// Reloads the skills.
    fn reload_skills() -> ReloadSkillsResponse { ReloadSkills::default() }
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
    pub async fn reload_plugins(&self, request: ReloadPlugins) -> Result<ReloadPluginsResponse> {
        if request.refuse_if_busy == Some(true) {
            let capability = "reload_plugins_refuse_if_busy_v1";
            self.require("reload_plugins", "refuse_if_busy", capability).await?;
        }
        self.operate(request.into()).await
    }
}
