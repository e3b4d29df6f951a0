//! The error type.

mod kind;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use claude_wire::id::{RequestId, SessionId};
use claude_wire::launch::Problem;
use claude_wire::{Cost, Exit, Json};
use serde::{Serialize, Serializer};

pub use self::kind::ErrorKind;
use self::kind::Recovery;
use crate::cli::CliVersion;
use crate::diagnose::{TEXT_BYTES, method_of};
use crate::list;
use crate::store::StoreError;
use claude_session_store::json_object::JsonObject;
use claude_wire::visible::visible_message;

/// An error of a run, a session or an operation: a kind to match on, facts to inspect, and a text.
///
/// The text names what happened, the cause and what to do about it. The kind and the facts are part of
/// the API; the text is not, and may change in every release.
///
/// Serializes as one JSON object; facts without a value are omitted: `{"type":"error",
/// "kind":"rate_limited","text":…,"hint":…,"help":…,"retryable":true,"retry_after_seconds":…,
/// "resumable":true,"session_id":…,"api_status":429,"exit":{"code":1},"cost":{…},"operation":…,"code":…,"server":…,
/// "problems":[…]}`. Texts have at most 4 KiB, with secrets masked. The output of the CLI and
/// of the model is not included.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    help: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    facts: Facts,
}

/// The facts of an error. Each kind has its own.
#[derive(Clone, Default)]
pub(crate) struct Facts {
    pub(crate) exit: Option<Exit>,
    pub(crate) stopped_by_sdk: bool,
    pub(crate) stderr_tail: Option<Arc<str>>,
    pub(crate) stdout_tail: Option<String>,
    pub(crate) line: Option<Bytes>,
    pub(crate) size: Option<u64>,
    pub(crate) limit: Option<Duration>,
    pub(crate) session_id: Option<SessionId>,
    pub(crate) detected: Option<CliVersion>,
    pub(crate) flag: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) operation: Option<String>,
    pub(crate) request_id: Option<RequestId>,
    pub(crate) code: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) value: Option<Json>,
    pub(crate) api_status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
    /// Whether the same call fails again until the user changes something.
    pub(crate) is_permanent: bool,
    pub(crate) cost: Cost,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_message(kind, message.into())
    }

    /// Not inlined, as [`Self::inner_mut`]: an error is created in hundreds of places.
    #[inline(never)]
    fn with_message(kind: ErrorKind, message: String) -> Self {
        let facts = Facts::default();
        let inner = Inner { kind, message, hint: None, help: None, source: None, facts };
        Self { inner: Arc::new(inner) }
    }

    /// Adds the probable cause.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner_mut().hint = Some(hint.into());
        self
    }

    /// Adds what to do about the error.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.inner_mut().help = Some(help.into());
        self
    }

    /// Adds the error that caused this one.
    pub(crate) fn caused_by(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        self.set_source(Arc::new(source));
        self
    }

    /// Adds the error of the operating system that caused this one, and whether a retry may help.
    pub(crate) fn caused_by_io(self, source: io::Error) -> Self {
        let is_permanent = needs_a_change(&source);
        self.caused_by(source).with(|facts| facts.is_permanent = is_permanent)
    }

    fn set_source(&mut self, source: Arc<dyn std::error::Error + Send + Sync>) {
        self.inner_mut().source = Some(source);
    }

    /// Adds facts.
    pub(crate) fn with(mut self, fill: impl FnOnce(&mut Facts)) -> Self {
        fill(&mut self.inner_mut().facts);
        self
    }

    /// Returns the error of an operation that failed because this error ended the session.
    pub(crate) fn in_operation(&self, operation: &str) -> Self {
        let (inner, method) = (&self.inner, method_of(operation));
        let message = format!("`{method}` failed because the session has ended: {}", inner.message);
        let mut facts = inner.facts.clone();
        facts.operation = Some(operation.to_owned());
        let (hint, help) = (inner.hint.clone(), inner.help.clone());
        let kind = match self.kind() {
            ErrorKind::InitializeTimeout
            | ErrorKind::InitializeRejected
            | ErrorKind::ExitedDuringInit
            | ErrorKind::ConversationNotFound => ErrorKind::NotInitialized,
            // Another session on this runtime would fail as well.
            ErrorKind::RuntimeGone => ErrorKind::RuntimeGone,
            // The process works; its store decided the end.
            kind @ (ErrorKind::Superseded | ErrorKind::StoreFailed) => kind,
            _ => ErrorKind::TransportClosed,
        };
        let source = Some(Arc::new(self.clone()) as _);
        let inner = Inner { kind, message, hint, help, source, facts };
        Self { inner: Arc::new(inner) }
    }

    /// Adds the cost of the attempt that failed.
    pub(crate) fn with_cost(self, cost: Cost) -> Self {
        self.with(|facts| facts.cost = cost)
    }

    #[inline(never)]
    fn inner_mut(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.inner)
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns whether the same call may succeed later without a change: `false` for mistakes in the options, the
    /// environment or the installation. Effects that the call had before it failed may then happen twice.
    pub fn is_retryable(&self) -> bool {
        if self.inner.facts.is_permanent {
            return false;
        }
        // A request that the API rejected for its content is rejected again.
        let is_rejected = self.api_status().is_some_and(|status| status < 500 && status != 408);
        let source = self.inner.source.as_deref();
        let store_error = source.and_then(|source| source.downcast_ref::<StoreError>());
        let may_help = self.kind().recovery().contains(&Recovery::Retry)
            || store_error.is_some_and(StoreError::is_retryable);
        may_help && !(self.kind() == ErrorKind::ApiError && is_rejected)
    }

    /// Returns whether the conversation can be continued by resuming [`session_id`](Self::session_id)
    /// in another run: the run ended early, and not because of the content of the conversation.
    pub fn is_resumable(&self) -> bool {
        self.kind().recovery().contains(&Recovery::Resume) && self.session_id().is_some()
    }

    /// Returns how long to wait before a retry: the delay before the last retry of the CLI, which is the
    /// delay that the API requested if it requested one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.facts.retry_after
    }

    /// Returns the cost of the turn or query that failed, so that failed attempts can be added up.
    /// Zero for errors of other calls.
    pub fn cost(&self) -> Cost {
        self.inner.facts.cost
    }

    /// Returns the HTTP status with which the API rejected the request.
    pub fn api_status(&self) -> Option<u16> {
        self.inner.facts.api_status
    }

    /// Returns the text without the help.
    pub(crate) fn message(&self) -> &str {
        &self.inner.message
    }

    /// Returns the probable cause, if it is known.
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// Returns what to do about the error, if that is known. The text of the error ends with it, after
    /// `; help: `.
    pub fn help(&self) -> Option<&str> {
        self.inner.help.as_deref()
    }

    /// Returns how the process exited.
    pub fn exit(&self) -> Option<Exit> {
        self.inner.facts.exit
    }

    /// Returns whether the SDK stopped the process.
    pub fn stopped_by_sdk(&self) -> bool {
        self.inner.facts.stopped_by_sdk
    }

    /// Returns the last 64 KiB of stderr, with secrets masked.
    pub fn stderr_tail(&self) -> Option<&str> {
        self.inner.facts.stderr_tail.as_deref()
    }

    /// Returns the last 64 KiB of stdout before the handshake ended, with secrets masked.
    pub fn stdout_tail(&self) -> Option<&str> {
        self.inner.facts.stdout_tail.as_deref()
    }

    /// Returns the last line of stdout that was not a message: its first 4 KiB, with secrets masked.
    pub fn line(&self) -> Option<&Bytes> {
        self.inner.facts.line.as_ref()
    }

    /// Returns the size that exceeded a limit, in bytes.
    pub fn size(&self) -> Option<u64> {
        self.inner.facts.size
    }

    /// Returns the timeout that was exceeded.
    pub fn limit(&self) -> Option<Duration> {
        self.inner.facts.limit
    }

    /// Returns the ID of the session, if it is known.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.inner.facts.session_id.as_ref()
    }

    /// Returns the version of the CLI, if it is known.
    pub fn detected_version(&self) -> Option<CliVersion> {
        self.inner.facts.detected
    }

    /// Returns the flag that the CLI does not support.
    pub fn flag(&self) -> Option<&str> {
        self.inner.facts.flag.as_deref()
    }

    /// Returns the reason that the CLI gave: its first 4 KiB, with secrets masked. For
    /// [`NoStructuredOutput`](ErrorKind::NoStructuredOutput) returns the whole text of the result, as
    /// the model wrote it.
    pub fn output(&self) -> Option<&str> {
        self.inner.facts.output.as_deref()
    }

    /// Returns every problem of the options.
    pub fn problems(&self) -> &[Problem] {
        &self.inner.facts.problems
    }

    /// Returns the operation that failed, by the name of its control request, such as `mcp_call`.
    pub fn operation(&self) -> Option<&str> {
        self.inner.facts.operation.as_deref()
    }

    /// Returns the ID of the control request of that operation.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.inner.facts.request_id.as_ref()
    }

    /// Returns the name of the MCP server that the error concerns.
    pub fn server(&self) -> Option<&str> {
        self.inner.facts.server.as_deref()
    }

    /// Returns the value that does not match its type.
    pub fn value(&self) -> Option<&Json> {
        self.inner.facts.value.as_ref()
    }

    /// Returns the CLI's error code, with secrets masked.
    pub fn code(&self) -> Option<&str> {
        self.inner.facts.code.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        visible_message(&self.inner.message).fmt(f)?;
        match &self.inner.help {
            Some(help) => write!(f, "; help: {}", visible_message(help)),
            None => Ok(()),
        }
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let facts = &self.inner.facts;
        let retry_after = facts.retry_after.map(|delay| delay.as_secs_f64());
        let problems = list::map(&facts.problems, &ToString::to_string);
        let mut object = JsonObject::new(serializer, "error")?;
        object.field("kind", &self.inner.kind)?;
        object.field("text", &limited(&visible_message(&self.inner.message).to_string()))?;
        let visible = |text: &str| limited(&visible_message(text).to_string()).into_owned();
        object.optional("hint", self.hint().map(visible).as_ref())?;
        object.optional("help", self.help().map(visible).as_ref())?;
        object.field("retryable", &self.is_retryable())?;
        object.optional("retry_after_seconds", retry_after.as_ref())?;
        object.field("resumable", &self.is_resumable())?;
        object.optional("session_id", facts.session_id.as_ref())?;
        object.optional("api_status", facts.api_status.as_ref())?;
        object.optional("exit", facts.exit.as_ref())?;
        if facts.cost != Cost::default() {
            object.field("cost", &facts.cost)?;
        }
        object.optional("operation", facts.operation.as_deref().map(limited).as_ref())?;
        object.optional("code", facts.code.as_deref().map(limited).as_ref())?;
        object.optional("server", facts.server.as_deref().map(limited).as_ref())?;
        object.list("problems", &problems)?;
        object.end()
    }
}

/// Returns whether the same operation on files fails again until the user changes a path, a permission or a file.
fn needs_a_change(error: &io::Error) -> bool {
    use io::ErrorKind;

    matches!(
        error.kind(),
        ErrorKind::AlreadyExists
            | ErrorKind::InvalidData
            | ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::Unsupported
    )
}

/// Returns at most 4 KiB of a text, with `…` at the end if there is more.
fn limited(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    let end = (0..=TEXT_BYTES - '…'.len_utf8()).rev().find(|end| text.is_char_boundary(*end));
    Cow::Owned(format!("{}…", &text[..end.unwrap_or_default()]))
}

/// The text and the help, as `fn main() -> Result<…>` prints them.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles only if one error can be returned to many callers on any thread.
    const fn is_shareable<T: Clone + Send + Sync + 'static>() {}
    const _: () = is_shareable::<Error>();
    const _: () = is_shareable::<crate::Warning>();

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn the_text_ends_with_the_help() {
        let error = Error::new(ErrorKind::SpawnFailed, "failed to start");
        assert_eq!(error.to_string(), "failed to start");
        let error = error.with_help("try again").with_hint("out of memory");
        assert_eq!(error.to_string(), "failed to start; help: try again");
        assert_eq!((error.hint(), error.help()), (Some("out of memory"), Some("try again")));
    }

    #[test]
    fn file_errors_are_worth_a_retry_unless_the_user_must_change_something() {
        use io::ErrorKind as Io;
        for (kind, is_retryable) in [
            (Io::AlreadyExists, false),
            (Io::InvalidData, false),
            (Io::InvalidFilename, false),
            (Io::InvalidInput, false),
            (Io::IsADirectory, false),
            (Io::NotADirectory, false),
            (Io::NotFound, false),
            (Io::PermissionDenied, false),
            (Io::ReadOnlyFilesystem, false),
            (Io::Unsupported, false),
            (Io::Interrupted, true),
            (Io::Other, true),
            (Io::OutOfMemory, true),
            (Io::StorageFull, true),
            (Io::TimedOut, true),
            (Io::WouldBlock, true),
        ] {
            let error = Error::new(ErrorKind::HistoryIo, "").caused_by_io(kind.into());
            assert_eq!(error.is_retryable(), is_retryable, "{kind:?}");
            assert!(std::error::Error::source(&error).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn the_guide_lists_for_every_kind_whether_a_retry_may_help() {
        let guide = include_str!("../guide/errors.md");
        let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut checked = 0;
        for (name, row) in rows {
            let Some(kind) = ErrorKind::ALL.iter().find(|kind| format!("{kind:?}") == name) else {
                continue;
            };
            let cells: Vec<&str> = row.split(" | ").collect();
            let Some(again) = cells.get(3) else { continue };
            let may_help = !again.starts_with("no");
            assert_eq!(Error::new(*kind, "").is_retryable(), may_help, "{name}: {again}");
            checked += 1;
        }
        assert_eq!(checked, ErrorKind::ALL.len());
    }

    #[test]
    fn every_kind_has_a_unique_name_in_snake_case() {
        let mut names: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
        for kind in ErrorKind::ALL {
            assert_eq!(kind.as_str().replace('_', ""), format!("{kind:?}").to_lowercase());
            assert_eq!(kind.to_string(), kind.as_str());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn an_error_serializes_without_the_output_of_the_cli() {
        let error = Error::new(ErrorKind::RateLimited, "the rate limit was reached")
            .with_help("wait")
            .with(|facts| {
                facts.session_id = Some("s".into());
                facts.api_status = Some(429);
                facts.retry_after = Some(Duration::from_millis(1500));
                facts.exit = Some(Exit::Code(1));
                facts.stderr_tail = Some("words of stderr".into());
                facts.output = Some("words of the model".into());
                facts.line = Some(Bytes::from_static(b"words of stdout"));
            });
        assert_eq!(
            serde_json::to_string(&error).unwrap(),
            concat!(
                r#"{"type":"error","kind":"rate_limited","text":"the rate limit was reached","#,
                r#""help":"wait","retryable":true,"retry_after_seconds":1.5,"resumable":true,"#,
                r#""session_id":"s","api_status":429,"exit":{"code":1}}"#,
            )
        );
        let long = Error::new(ErrorKind::TurnFailed, "ä".repeat(TEXT_BYTES));
        let json = serde_json::to_value(&long).unwrap();
        let text = json["text"].as_str().unwrap();
        assert!((TEXT_BYTES - 1..=TEXT_BYTES).contains(&text.len()) && text.ends_with("ä…"));
    }

    #[test]
    fn invisible_characters_in_an_error_are_escaped() {
        let said = "said \u{202e}ok\u{1b}[2K\nand more";
        let error = Error::new(ErrorKind::TurnFailed, said).with_help(said);
        let shown = "said \\u{202e}ok\\u{1b}[2K\nand more";
        assert_eq!(error.to_string(), format!("{shown}; help: {shown}"));
        let json = serde_json::to_value(&error).unwrap();
        assert_eq!((&json["text"], &json["help"]), (&shown.into(), &shown.into()));
    }

    #[test]
    fn the_cause_is_the_source() {
        use std::error::Error as _;

        let error = Error::new(ErrorKind::SpawnFailed, "failed to start");
        assert!(error.source().is_none());
        let error = error.caused_by(io::Error::from(io::ErrorKind::NotFound));
        assert!(error.source().unwrap().is::<io::Error>());
        let later = error.in_operation("set_model");
        assert!(later.source().unwrap().is::<Error>());
    }

    #[test]
    fn only_errors_with_a_session_id_are_resumable() {
        let with_id = |kind| Error::new(kind, "").with(|facts| facts.session_id = Some("s".into()));
        assert!(with_id(ErrorKind::ProcessFailed).is_resumable());
        assert!(!Error::new(ErrorKind::ProcessFailed, "").is_resumable());
        assert!(!with_id(ErrorKind::ConversationNotFound).is_resumable());
    }

    #[test]
    fn debug_output_is_the_text_without_the_facts() {
        let error = Error::new(ErrorKind::ProcessFailed, "it failed")
            .with(|facts| facts.stderr_tail = Some("words of stderr".into()));
        let copy = error.clone();
        assert_eq!(copy.kind(), error.kind());
        assert_eq!(copy.stderr_tail(), Some("words of stderr"));
        assert_eq!(format!("{copy:?}"), "it failed");
        assert_eq!(format!("{:?}", copy.with_help("try again")), "it failed; help: try again");
    }
}
