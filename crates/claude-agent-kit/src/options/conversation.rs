//! Options about which conversation it is.

use claude_wire::id::{MessageId, SessionId};

use super::Options;

impl Options {
    /// The session to go on with (`--resume`). Default: a new one.
    pub fn resume(self, session: impl Into<SessionId>) -> Self {
        self.change_settings(|settings| settings.resume = Some(session.into()))
    }

    /// The message of the resumed session to go on from; what came after it is left out
    /// (`--resume-session-at`). Default: the last one.
    pub fn resume_at(self, message: impl Into<MessageId>) -> Self {
        self.change_settings(|settings| settings.resume_at = Some(message.into()))
    }

    /// Whether to go on with the latest session of the directory (`--continue`).
    /// [`resume`](Self::resume) beats it, with a warning. Default: no.
    pub fn continue_latest(self, latest: bool) -> Self {
        self.change_settings(|settings| settings.continue_latest = latest)
    }

    /// Whether to go on in a copy, so that the resumed session stays as it is (`--fork-session`).
    /// Default: no.
    pub fn fork_session(self, fork: bool) -> Self {
        self.change_settings(|settings| settings.fork_session = fork)
    }

    /// The id of the new session, a UUID (`--session-id`). Default: the CLI makes one.
    pub fn session_id(self, session: impl Into<SessionId>) -> Self {
        self.change_settings(|settings| settings.session_id = Some(session.into()))
    }

    /// Whether to use the one-way form for old CLIs: the prompt on the command line, no handshake,
    /// no hooks, callbacks or servers inside this process (`--print`). Default: no.
    ///
    /// The prompt is then limited in size and shows in the list of processes.
    pub fn print_mode(self, print: bool) -> Self {
        self.change_host(|host| host.print_mode = print)
    }
}
