//! What the CLI says of itself, of its session and of what that used.

use claude_wire::control::{
    AccountInfo, AgentInfo, BinaryVersion, ContextUsage, GetBinaryVersion, GetContextUsage,
    GetSessionCost, GetUsage, Initialize, InitializeAnswer, ListModels, ListModelsAnswer,
    ModelInfo, RenameSession, SessionCost, SetColor, SlashCommand, UsageAnswer,
};

use crate::session::Session;

operations! {
    /// Sends `initialize` again and returns the updated server information. What was registered at
    /// the start stays.
    fn reinitialize() -> InitializeAnswer { Initialize::default() }

    /// Returns what fills the context.
    fn get_context_usage() -> ContextUsage { GetContextUsage::default() }

    /// Returns what fills the context in the given detail: `summary` or `full`.
    fn get_context_usage_in(detail: impl Into<String>) -> ContextUsage {
        let mut request = GetContextUsage::default();
        request.detail = Some(detail.into());
        request
    }

    /// Returns what the session used, and what is left of the account's limits. The CLI may change
    /// the contents. With `skip_behaviors` it does not look for what the account was used for.
    fn get_usage(skip_behaviors: bool) -> UsageAnswer {
        let mut request = GetUsage::default();
        request.skip_behaviors = skip_behaviors.then_some(true);
        request
    }

    /// Returns the cost of the session, as text for users.
    fn get_session_cost() -> SessionCost { GetSessionCost::default() }

    /// Returns the models to choose from, as they are now.
    fn list_models() -> ListModelsAnswer { ListModels::default() }

    /// Returns the version of the running CLI.
    fn get_binary_version() -> BinaryVersion { GetBinaryVersion::default() }

    /// Changes the title of the session.
    fn rename_session(title: impl Into<RenameSession>) { title.into() }

    /// Changes the colour of the session.
    fn set_color(color: impl Into<String>) {
        let mut request = SetColor::default();
        request.color = color.into();
        request
    }
}

/// What the handshake told, without asking again. Empty before it is done.
impl Session {
    /// What the CLI can do beyond older ones, as far as it says so in the handshake. More of it
    /// stands in [`InitMessage::capabilities`](claude_wire::message::InitMessage::capabilities) at
    /// the beginning of each turn.
    pub fn capabilities(&self) -> Vec<String> {
        self.server_info().unwrap_or_default().capabilities.into_vec()
    }

    /// The commands of the CLI. Changes of them are told by the message
    /// [`CommandsChanged`](claude_wire::message::SystemMessage::CommandsChanged).
    pub fn supported_commands(&self) -> Vec<SlashCommand> {
        self.server_info().unwrap_or_default().commands.into_vec()
    }

    /// The models to choose from.
    pub fn supported_models(&self) -> Vec<ModelInfo> {
        self.server_info().unwrap_or_default().models.into_vec()
    }

    /// The agents.
    pub fn supported_agents(&self) -> Vec<AgentInfo> {
        self.server_info().unwrap_or_default().agents.into_vec()
    }

    /// Whose login it is.
    pub fn account_info(&self) -> Option<AccountInfo> {
        self.server_info()?.account
    }
}
