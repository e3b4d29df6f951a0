//! Which conversation a run is.

use claude_wire::id::{MessageId, SessionId};
use claude_wire::launch::{Origin, Secret, Start};

use super::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::history::History;

/// Which conversation a run is: a new one, an earlier one, or a copy of that.
///
/// ```
/// use claude_agent_kit::{Conversation, Options};
///
/// let new = Options::new().conversation(Conversation::new().title("Release notes"));
/// let later = Options::new().conversation(Conversation::resume("7d9f3c1e-…"));
/// let copy = Options::new().conversation(Conversation::fork("7d9f3c1e-…").at("message-3"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a conversation does nothing until it is given to `Options::conversation`"]
pub struct Conversation {
    start: Start,
    title: Option<Secret>,
    persist: Option<bool>,
}

impl Conversation {
    /// Starts a new conversation. The SDK makes its ID, a UUID, which is known from the start.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a new conversation with this ID, a UUID. Sent as `--session-id`.
    pub fn with_id(id: impl Into<SessionId>) -> Self {
        Self::starting(Start::with_id(id.into()))
    }

    /// Resumes the latest conversation of the working directory; starts a new one if there is none.
    /// Sent as `--continue`.
    pub fn latest() -> Self {
        Self::starting(Start::from_origin(Origin::Latest))
    }

    /// Resumes the conversation with this ID. Sent as `--resume`.
    pub fn resume(id: impl Into<SessionId>) -> Self {
        Self::starting(Start::from_origin(Origin::Session(id.into())))
    }

    /// Resumes the conversation with this ID, a UUID, or starts a new one with that ID if the CLI
    /// says that it does not exist. A conversation of another working directory is an error
    /// ([`ConversationNotFound`](crate::ErrorKind::ConversationNotFound)), which names that directory.
    /// Any other failure is reported as it is. Sent as `--resume`, then `--session-id`.
    ///
    /// [`Session::is_resumed`](crate::Session::is_resumed) and
    /// [`QueryStream::is_resumed`](crate::QueryStream::is_resumed) say which it was.
    pub fn resume_or_start(id: impl Into<SessionId>) -> Self {
        let mut conversation = Self::resume(id);
        conversation.start.or_new = true;
        conversation
    }

    /// Resumes a copy of the conversation with this ID, which stays as it is. Sent as `--resume`
    /// and `--fork-session`.
    pub fn fork(id: impl Into<SessionId>) -> Self {
        let mut conversation = Self::resume(id);
        conversation.start.fork = true;
        conversation
    }

    /// Resumes a copy of the latest conversation of the working directory. Sent as `--continue` and
    /// `--fork-session`.
    pub fn fork_latest() -> Self {
        let mut conversation = Self::latest();
        conversation.start.fork = true;
        conversation
    }

    /// Sets the ID of the copy, a UUID. Sent as `--session-id`. Default: the SDK makes one.
    pub fn fork_id(mut self, id: impl Into<SessionId>) -> Self {
        self.start.id = Some(id.into());
        self
    }

    /// Sets the message of the earlier conversation to continue from; what came after it is left
    /// out. Sent as `--resume-session-at`. Default: the last message.
    pub fn at(mut self, message: impl Into<MessageId>) -> Self {
        self.start.at = Some(message.into());
        self
    }

    /// Names the prompt of the turn that [`at`](Self::at) leaves out. If it would leave out
    /// something else, the CLI refuses to resume, so that nothing is lost by mistake. Sent as
    /// `--resume-drops-turn`. Default: whatever comes after that message is left out.
    pub fn dropping_turn(mut self, prompt: impl Into<MessageId>) -> Self {
        self.start.dropping_turn = Some(prompt.into());
        self
    }

    /// Sets the title of the new conversation. Not in print mode. Sent as `title` in the handshake.
    /// Default: the CLI makes one.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(Secret::from(title));
        self
    }

    /// Keeps the conversation off the disk, so that it cannot be resumed. Sent as
    /// `--no-session-persistence`. Default: it is stored.
    pub fn ephemeral(mut self) -> Self {
        self.persist = Some(false);
        self
    }

    /// Stores the conversation, whatever a config file or a variable says. Default: what those say,
    /// and it is stored if they say nothing.
    pub fn persistent(mut self) -> Self {
        self.persist = Some(true);
        self
    }

    fn starting(start: Start) -> Self {
        Self { start, ..Self::default() }
    }
}

impl Options {
    /// Sets which conversation it is. Replaces an earlier value, but for a title and a persistence
    /// that the new value does not set. Sent as the flags below. Default: a new one.
    ///
    /// Where the transcript of the conversation is missing, a session fails to start, and the stream of
    /// a query ends, with [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound); no prompt is
    /// sent.
    pub fn conversation(self, conversation: Conversation) -> Self {
        let Conversation { start, title, persist } = conversation;
        let mut options = self.change_settings("conversation", |settings| settings.start = start);
        if title.is_some() {
            options =
                options.change_settings("conversation.title", |settings| settings.title = title);
        }
        if persist.is_some() {
            options = options.change_settings("conversation.persist", |settings| {
                settings.persist_session = persist;
            });
        }
        options
    }

    /// Uses the one-way form for old CLIs: the prompt on the command line, no handshake, no hooks,
    /// callbacks or servers inside this process. Sent as `--print`. Default: no.
    ///
    /// The prompt is then limited in size and shows in the list of processes.
    pub fn print_mode(self, print: bool) -> Self {
        self.change_host("print_mode", |host| host.print_mode = print)
    }
}

/// What to start if the CLI does not know the conversation.
pub(crate) struct Fallback {
    /// Boxed, since futures of users hold it.
    pub(crate) options: Box<Options>,
    id: SessionId,
}

impl Fallback {
    /// Whether the error is the CLI's own answer that it does not know this conversation.
    pub(crate) fn is_for(&self, error: &Error) -> bool {
        let names_it = |text: &str| text.contains(self.id.as_str());
        error.kind() == ErrorKind::ConversationNotFound && error.stderr_tail().is_some_and(names_it)
    }

    /// Fails if the conversation exists in the folder of another project, where the CLI does not look:
    /// a new one with the same ID would hide it.
    ///
    /// # Errors
    /// [`ErrorKind::ConversationNotFound`] with the directory of the conversation.
    pub(crate) async fn check_other_projects(&self, error: &Error) -> Result<()> {
        let host = &self.options.host;
        // The files of another machine or user cannot be seen from here.
        if host.transport.is_some() || host.user.is_some() {
            return Ok(());
        }
        // Without a config directory there are no other projects.
        let Ok(history) = History::from_options(&self.options) else { return Ok(()) };
        let directory = self.options.settings.cwd.clone().unwrap_or_else(|| ".".into());
        if history.for_directory(directory).session_path(&self.id).await?.is_some() {
            return Ok(());
        }
        let Some(path) = history.session_path(&self.id).await? else { return Ok(()) };
        let cwd = history.info(&self.id).await?.and_then(|info| info.cwd);
        let (place, help) = match cwd {
            Some(cwd) => (format!("of \"{cwd}\""), format!("set `cwd` to \"{cwd}\"")),
            None => (format!("at \"{}\"", path.display()), "set `cwd` to its directory".to_owned()),
        };
        let message = format!(
            "session {} exists, but in another project folder, {place}, so the CLI cannot resume it here",
            self.id
        );
        let other_id = format!("{help}, or use another ID");
        Err(Error::new(ErrorKind::ConversationNotFound, message)
            .with_help(other_id)
            .with(|facts| facts.session_id = Some(self.id.clone()))
            .caused_by(error.clone()))
    }
}

impl Options {
    /// Returns what to start if the CLI does not know the conversation to resume.
    pub(crate) fn fallback(&self) -> Option<Fallback> {
        let start = self.settings.start.fallback()?;
        let id = start.session_id()?.clone();
        let mut options = Box::new(self.clone());
        options.settings.start = start;
        Some(Fallback { options, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::prepare;

    const ID: &str = "7d9f3c1e-0000-4000-8000-000000000001";

    /// The arguments that follow from a conversation, or what is wrong with it.
    fn sent(conversation: Conversation) -> std::result::Result<String, String> {
        let options = Options::new().conversation(conversation);
        let plain = prepare(&Options::new(), None).ok().unwrap().command.arguments.len();
        match prepare(&options, None) {
            Ok(prepared) => Ok(prepared.command.arguments[plain..].join(" ")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_conversation_has_its_flags() {
        for (conversation, expected) in [
            (Conversation::new(), String::new()),
            (Conversation::with_id(ID), format!("--session-id={ID}")),
            (Conversation::latest(), "--continue".to_owned()),
            (Conversation::resume("r"), "--resume=r".to_owned()),
            (Conversation::resume_or_start(ID), format!("--resume={ID}")),
            (
                Conversation::resume("r").at("m").dropping_turn("p"),
                "--resume=r --resume-session-at=m --resume-drops-turn=p".to_owned(),
            ),
            (Conversation::fork("r"), "--resume=r --fork-session".to_owned()),
            (
                Conversation::fork("r").fork_id(ID),
                format!("--resume=r --fork-session --session-id={ID}"),
            ),
            (Conversation::fork_latest(), "--continue --fork-session".to_owned()),
            (Conversation::new().ephemeral(), "--no-session-persistence".to_owned()),
            (Conversation::new().ephemeral().persistent(), String::new()),
        ] {
            assert_eq!(sent(conversation.clone()), Ok(expected), "{conversation:?}");
        }
    }

    #[test]
    fn modifiers_that_do_not_fit_are_problems() {
        for (conversation, part) in [
            (Conversation::with_id("1"), "not a UUID"),
            (Conversation::resume_or_start("1"), "not a UUID"),
            (Conversation::resume(""), "an ID is empty"),
            (Conversation::new().at("m"), "`at` needs a session"),
            (Conversation::latest().at("m"), "`at` needs a session"),
            (Conversation::resume_or_start(ID).at("m"), "takes no message"),
            (Conversation::resume("r").dropping_turn("p"), "`dropping_turn` needs"),
            (Conversation::resume("r").fork_id(ID), "keeps its ID"),
        ] {
            let error = sent(conversation.clone()).unwrap_err();
            assert!(error.contains("conversation: ") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_conversation_replaces_the_earlier_one_and_keeps_its_title() {
        let first = Conversation::resume("r").at("m").title("t").ephemeral();
        let options = Options::new().conversation(first).conversation(Conversation::latest());
        assert_eq!(options.settings.start, Start::from_origin(Origin::Latest));
        assert_eq!(options.settings.title, Some(Secret::from("t")));
        assert_eq!(options.settings.persist_session, Some(false));
        assert_eq!(
            options.explain().to_string(),
            "conversation = {\"latest\": true} (builder)\n\
             conversation.persist = false (builder)\nconversation.title = *** (builder)\n"
        );
    }

    #[tokio::test]
    async fn conversation_of_another_project_is_not_started_again() {
        let root = tempfile::tempdir().unwrap();
        let (here, there) = (root.path().join("here"), root.path().join("there"));
        let config = root.path().join("config");
        for directory in [&here, &there] {
            std::fs::create_dir(directory).unwrap();
        }
        let options = Options::new()
            .cwd(&here)
            .env("CLAUDE_CONFIG_DIR", config.to_str().unwrap())
            .conversation(Conversation::resume_or_start(ID));
        let fallback = options.fallback().unwrap();
        let unknown = Error::new(ErrorKind::ConversationNotFound, "the CLI does not know it");
        fallback.check_other_projects(&unknown).await.unwrap();

        let there = std::fs::canonicalize(there).unwrap();
        let name = claude_wire::transcript::project_folder_name(there.to_str().unwrap());
        let folder = config.join("projects").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let entry = serde_json::json!({
            "parentUuid": null, "type": "user", "uuid": "u", "cwd": there,
            "message": {"role": "user", "content": "Hi"},
        });
        std::fs::write(folder.join(format!("{ID}.jsonl")), format!("{entry}\n")).unwrap();
        let error = fallback.check_other_projects(&unknown).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
        assert_eq!(error.session_id().map(SessionId::as_str), Some(ID));
        let text = error.to_string();
        let help = format!("; help: set `cwd` to \"{}\", or use another ID", there.display());
        assert!(text.contains("exists, but in another project folder") && text.ends_with(&help));

        let same = Options::new().cwd(&there);
        let same = same.env("CLAUDE_CONFIG_DIR", config.to_str().unwrap());
        let same = same.conversation(Conversation::resume_or_start(ID)).fallback().unwrap();
        same.check_other_projects(&unknown).await.unwrap();
    }
}
