//! Options about which conversation it is.

use claude_wire::id::{MessageId, SessionId};
use claude_wire::launch::Secret;

use super::Options;

/// Which conversation a run is: one value in place of five options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conversation {
    /// A new one.
    #[default]
    New,
    /// A new one with this id, a UUID.
    NewWithId(SessionId),
    /// The latest of the directory; a new one if there is none.
    Latest,
    /// This one.
    Resume(SessionId),
    /// This one, from this message on; what came after it is left out.
    ResumeAt(SessionId, MessageId),
    /// A copy of this one, which stays as it is.
    Fork(SessionId),
    /// A copy of this one up to this message.
    ForkAt(SessionId, MessageId),
}

impl Options {
    /// Sets which conversation it is, as one value. Replaces whatever [`resume`](Self::resume) and
    /// the like said. Sent as the flags of `resume` and the like. Default: a new one.
    ///
    /// Where the transcript of the conversation is missing, a session fails to start with
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and a query gives the
    /// CLI's error result; no prompt is sent.
    pub fn conversation(self, conversation: Conversation) -> Self {
        let told = ["resume", "resume_at", "resume_drops_turn", "continue_latest", "fork_session"];
        let told = told.into_iter().fold(self, Self::told);
        told.change_settings("session_id", |settings| {
            settings.continue_latest = conversation == Conversation::Latest;
            settings.resume_drops_turn = None;
            settings.fork_session =
                matches!(conversation, Conversation::Fork(_) | Conversation::ForkAt(..));
            (settings.session_id, settings.resume, settings.resume_at) = match conversation {
                Conversation::New | Conversation::Latest => (None, None, None),
                Conversation::NewWithId(id) => (Some(id), None, None),
                Conversation::Resume(id) | Conversation::Fork(id) => (None, Some(id), None),
                Conversation::ResumeAt(id, message) | Conversation::ForkAt(id, message) => {
                    (None, Some(id), Some(message))
                }
            };
        })
    }

    /// Resumes a session. Sent as `--resume`. Default: a new one.
    pub fn resume(self, session: impl Into<SessionId>) -> Self {
        self.change_settings("resume", |settings| settings.resume = Some(session.into()))
    }

    /// Sets the message of the resumed session to continue from; what came after it is left out.
    /// Sent as `--resume-session-at`. Default: the last one.
    pub fn resume_at(self, message: impl Into<MessageId>) -> Self {
        self.change_settings("resume_at", |settings| settings.resume_at = Some(message.into()))
    }

    /// Names the prompt of the turn that [`resume_at`](Self::resume_at) leaves out. If it would
    /// leave out something else, the CLI refuses to resume, so that nothing is lost by mistake.
    /// Sent as `--resume-drops-turn`. Default: whatever comes after that message is left out.
    pub fn resume_drops_turn(self, prompt: impl Into<MessageId>) -> Self {
        self.change_settings("resume_drops_turn", |settings| {
            settings.resume_drops_turn = Some(prompt.into());
        })
    }

    /// Resumes the latest session of the directory. [`resume`](Self::resume) takes precedence, with
    /// a warning. Sent as `--continue`. Default: no.
    pub fn continue_latest(self, latest: bool) -> Self {
        self.change_settings("continue_latest", |settings| settings.continue_latest = latest)
    }

    /// Continues in a copy, so that the resumed session stays as it is. Sent as `--fork-session`.
    /// Default: no.
    pub fn fork_session(self, fork: bool) -> Self {
        self.change_settings("fork_session", |settings| settings.fork_session = fork)
    }

    /// Sets the ID of the new session, a UUID. Sent as `--session-id`. Default: the CLI makes one.
    pub fn session_id(self, session: impl Into<SessionId>) -> Self {
        self.change_settings("session_id", |settings| settings.session_id = Some(session.into()))
    }

    /// Sets the title of the new session. Not in print mode. Sent as `title` in the handshake.
    /// Default: the CLI makes one.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change_settings("title", |settings| settings.title = Some(Secret::from(title)))
    }

    /// Sets whether the session is kept on disk, so that it can be resumed. Sent as
    /// `--no-session-persistence` if not. Default: yes.
    pub fn persist_session(self, persist: bool) -> Self {
        self.change_settings("persist_session", |settings| settings.persist_session = Some(persist))
    }

    /// Uses the one-way form for old CLIs: the prompt on the command line, no handshake, no hooks,
    /// callbacks or servers inside this process. Sent as `--print`. Default: no.
    ///
    /// The prompt is then limited in size and shows in the list of processes.
    pub fn print_mode(self, print: bool) -> Self {
        self.change_host("print_mode", |host| host.print_mode = print)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_replaces_all_that_was_said_of_the_conversation() {
        let all = || {
            Options::new()
                .resume("r")
                .resume_at("m")
                .resume_drops_turn("d")
                .continue_latest(true)
                .fork_session(true)
                .session_id("s")
        };
        let id = || SessionId::from("i");
        let message = || MessageId::from("n");
        for (conversation, expected) in [
            (Conversation::New, Options::new()),
            (Conversation::NewWithId(id()), Options::new().session_id("i")),
            (Conversation::Latest, Options::new().continue_latest(true)),
            (Conversation::Resume(id()), Options::new().resume("i")),
            (Conversation::ResumeAt(id(), message()), Options::new().resume("i").resume_at("n")),
            (Conversation::Fork(id()), Options::new().resume("i").fork_session(true)),
            (
                Conversation::ForkAt(id(), message()),
                Options::new().resume("i").resume_at("n").fork_session(true),
            ),
        ] {
            let options = all().conversation(conversation.clone());
            assert_eq!(options.settings, expected.settings, "{conversation:?}");
        }
    }
}
