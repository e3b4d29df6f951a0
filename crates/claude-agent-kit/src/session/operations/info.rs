//! The title of the session, its context, and the server information.

use claude_wire::control::{
    ContextUsage, GetContextUsage, Initialize, InitializeResponse, RenameSession,
};

operations! { Session:
    /// Sends `initialize` again and returns the updated server information. What was registered at
    /// the start stays registered.
    fn reinitialize() -> InitializeResponse { Initialize::default() }

    /// Returns what fills the context.
    fn context_usage() -> ContextUsage { GetContextUsage::default() }

    /// Changes the title of the session.
    fn rename(title: impl Into<RenameSession>) { title.into() }
}
