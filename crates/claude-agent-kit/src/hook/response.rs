//! What hooks respond with.

use std::fmt;
use std::time::Duration;

use claude_wire::control::{
    HookDecision, HookElicitation, HookOutput, HookPermission, HookPermissionResponse,
    PermissionUpdate,
};
use claude_wire::{Json, Number};

use self::sealed::EncodedResponse;
use super::event::sealed::Specific as _;
use super::input::{
    MessageDisplayInput, PermissionDeniedInput, PermissionRequestInput, PostToolUseInput,
    PreToolUseInput, SessionStartInput, WorktreeCreateInput,
};
use super::{
    CanAddContext, CanAnswerElicitation, CanAsk, CanBlock, CanDeny, CanSetTitle, CanSuppressPrompt,
    CanUpdateInput, CanWatchPaths, HookEvent,
};
use crate::callback::{BoxError, error_text};

/// The response of a hook. `E` is the type of the event's input, and is inferred
/// where the hook is registered.
///
/// The empty response, [`HookResponse::new`], lets the CLI continue. A method that does not fit the
/// event does not compile; the bound of the method names the events that have it.
///
/// ```
/// use claude_agent_kit::hook::{HookResponse, input::PreToolUseInput};
///
/// fn respond(call: &PreToolUseInput) -> HookResponse<PreToolUseInput> {
///     match call.tool_name.as_deref() {
///         Some("Bash") => HookResponse::deny("this agent does not use a shell")
///             .system_message("A shell command was denied."),
///         _ => HookResponse::new(),
///     }
/// }
/// ```
#[must_use]
pub struct HookResponse<E: HookEvent> {
    common: HookOutput,
    specific: E::Specific,
    run_async: Option<Duration>,
}

/// Responses to any event.
impl<E: HookEvent> HookResponse<E> {
    /// Creates an empty response, which lets the CLI continue.
    pub fn new() -> Self {
        let (common, specific) = (HookOutput::default(), E::Specific::default());
        Self { common, specific, run_async: None }
    }

    /// Creates a response that lets the CLI continue at once while the host handles the event for up
    /// to `timeout`. Ignored if the response has any other content.
    pub fn run_async(timeout: Duration) -> Self {
        Self { run_async: Some(timeout), ..Self::new() }
    }

    /// Ends the turn, for this reason.
    ///
    /// A tool call, permission request or model switch is denied as well: otherwise the tool would
    /// run before the turn ends.
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.common.continue_ = Some(false);
        self.common.stop_reason = Some(reason.into());
        self
    }

    /// Returns whether the response ends the turn.
    pub(crate) fn is_stop(&self) -> bool {
        self.common.continue_ == Some(false)
    }

    /// Shows a message to the user.
    pub fn system_message(mut self, message: impl Into<String>) -> Self {
        self.common.system_message = Some(message.into());
        self
    }

    /// Writes an escape sequence to the terminal, if there is one: a notification or a title.
    pub fn terminal_sequence(mut self, sequence: impl Into<String>) -> Self {
        self.common.terminal_sequence = Some(sequence.into());
        self
    }

    /// Keeps the output out of the transcript.
    pub fn suppress_output(mut self) -> Self {
        self.common.suppress_output = Some(true);
        self
    }
}

/// Responses to some events.
impl<E: HookEvent> HookResponse<E> {
    /// Creates a response that blocks what happened; the model is given the reason, except after
    /// `PreCompact`.
    ///
    /// What that does depends on the event: a prompt or command does not reach the model, the context
    /// is not compacted, changed settings are not used. After a tool has run, the model reads what is
    /// wrong with the output; `PostToolBatch` ends the turn. For `Stop` and `SubagentStop` it makes
    /// the model **continue**, with the reason as its task: check `stop_hook_active` of the input, or
    /// it never stops.
    pub fn block(reason: impl Into<String>) -> Self
    where
        E: CanBlock,
    {
        let mut response = Self::new();
        response.common.decision = Some(HookDecision::Block);
        response.common.reason = Some(reason.into());
        response
    }

    /// Creates a response that allows what is about to happen, without asking further.
    pub fn allow() -> Self
    where
        E: CanDeny,
    {
        Self::decided(HookPermission::Allow, None)
    }

    /// Creates a response that denies what is about to happen. The model is given the reason.
    pub fn deny(reason: impl Into<String>) -> Self
    where
        E: CanDeny,
    {
        Self::decided(HookPermission::Deny, Some(reason.into()))
    }

    /// Creates a response that leaves the decision to the permission callback or the user, for this
    /// reason.
    pub fn ask(reason: impl Into<String>) -> Self
    where
        E: CanAsk,
    {
        Self::decided(HookPermission::Ask, Some(reason.into()))
    }

    fn decided(decision: HookPermission, reason: Option<String>) -> Self
    where
        E: CanDeny,
    {
        let mut response = Self::new();
        E::decide(&mut response.specific, decision, reason);
        response
    }

    /// Sets the input with which the tool runs, as a whole. For `PreToolUse` it decides nothing about
    /// the permission; for `PermissionRequest` it has an effect only after [`allow`](Self::allow).
    pub fn updated_input(mut self, input: impl Into<Json>) -> Self
    where
        E: CanUpdateInput,
    {
        E::update_input(&mut self.specific, input.into());
        self
    }

    /// Adds text to what the model reads, or the subagent for `SubagentStart` and `SubagentStop`.
    pub fn additional_context(mut self, context: impl Into<String>) -> Self
    where
        E: CanAddContext,
    {
        *E::additional_context(&mut self.specific) = Some(context.into());
        self
    }

    /// Sets the title of the session.
    pub fn session_title(mut self, title: impl Into<String>) -> Self
    where
        E: CanSetTitle,
    {
        *E::session_title(&mut self.specific) = Some(title.into());
        self
    }

    /// Keeps the prompt as the user wrote it from the model.
    pub fn suppress_original_prompt(mut self) -> Self
    where
        E: CanSuppressPrompt,
    {
        *E::suppress_original_prompt(&mut self.specific) = Some(true);
        self
    }

    /// Watches these files and reports each change as [`FileChanged`](super::FileChanged). Replaces the files that were
    /// watched before.
    pub fn watch_paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self
    where
        E: CanWatchPaths,
    {
        *E::watch_paths(&mut self.specific) = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Creates a response that answers the question of an MCP server. The content should fit the
    /// schema of the question.
    pub fn accept(content: impl Into<Json>) -> Self
    where
        E: CanAnswerElicitation,
    {
        Self::elicited(HookElicitation::Accept, Some(content.into()))
    }

    /// Creates a response that declines the question of an MCP server.
    pub fn decline() -> Self
    where
        E: CanAnswerElicitation,
    {
        Self::elicited(HookElicitation::Decline, None)
    }

    /// Creates a response that dismisses the question of an MCP server without an answer.
    pub fn cancel() -> Self
    where
        E: CanAnswerElicitation,
    {
        Self::elicited(HookElicitation::Cancel, None)
    }

    fn elicited(action: HookElicitation, content: Option<Json>) -> Self
    where
        E: CanAnswerElicitation,
    {
        let mut response = Self::new();
        E::act(&mut response.specific, action, content);
        response
    }
}

/// Responses to [`PreToolUse`](super::PreToolUse).
impl HookResponse<PreToolUseInput> {
    /// Creates a response that ends the turn before the tool runs. The call is kept, and is repeated
    /// when the session is resumed.
    pub fn defer() -> Self {
        Self::decided(HookPermission::Defer, None)
    }

    /// Sets the reason of the decision; [`deny`](Self::deny) and [`ask`](Self::ask) already have one.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.specific.permission_decision_reason = Some(reason.into());
        self
    }
}

/// Responses to [`PostToolUse`](super::PostToolUse).
impl HookResponse<PostToolUseInput> {
    /// Sets what the classifier that decides about permissions reads.
    pub fn classifier_context(mut self, context: impl Into<String>) -> Self {
        self.specific.classifier_context = Some(context.into());
        self
    }

    /// Replaces the output of a built-in tool.
    pub fn updated_tool_output(mut self, output: impl Into<Json>) -> Self {
        self.specific.updated_tool_output = Some(output.into());
        self
    }

    /// Replaces the output of a tool of an MCP server.
    pub fn updated_mcp_tool_output(mut self, output: impl Into<Json>) -> Self {
        self.specific.updated_mcp_tool_output = Some(output.into());
        self
    }
}

/// Responses to [`PermissionRequest`](super::PermissionRequest).
impl HookResponse<PermissionRequestInput> {
    /// Changes permission rules as well. Has an effect only after [`allow`](Self::allow).
    pub fn updated_permissions(
        mut self,
        updates: impl IntoIterator<Item = PermissionUpdate>,
    ) -> Self {
        if let Some(HookPermissionResponse::Allow(allow)) = &mut self.specific.decision {
            allow.updated_permissions = updates.into_iter().collect();
        }
        self
    }

    /// Ends the turn as well. Has an effect only after [`deny`](Self::deny).
    pub fn interrupt(mut self) -> Self {
        if let Some(HookPermissionResponse::Deny(deny)) = &mut self.specific.decision {
            deny.interrupt = Some(true);
        }
        self
    }
}

/// Responses to [`PermissionDenied`](super::PermissionDenied).
impl HookResponse<PermissionDeniedInput> {
    /// Allows the model to try again.
    pub fn retry(mut self) -> Self {
        self.specific.retry = Some(true);
        self
    }
}

/// Responses to [`MessageDisplay`](super::MessageDisplay).
impl HookResponse<MessageDisplayInput> {
    /// Sets the text that is displayed instead of the original. The message itself is not changed.
    pub fn display_content(mut self, content: impl Into<String>) -> Self {
        self.specific.display_content = Some(content.into());
        self
    }
}

/// Responses to [`SessionStart`](super::SessionStart).
impl HookResponse<SessionStartInput> {
    /// Sets a first prompt.
    pub fn initial_user_message(mut self, message: impl Into<String>) -> Self {
        self.specific.initial_user_message = Some(message.into());
        self
    }

    /// Reloads the skills.
    pub fn reload_skills(mut self) -> Self {
        self.specific.reload_skills = Some(true);
        self
    }
}

/// Responses to [`WorktreeCreate`](super::WorktreeCreate).
impl HookResponse<WorktreeCreateInput> {
    /// Sets where the hook has created the worktree. The CLI creates none itself if such a hook is
    /// registered: without a path the model has no worktree.
    pub fn worktree_path(mut self, path: impl Into<String>) -> Self {
        self.specific.worktree_path = Some(path.into());
        self
    }
}

impl<E: HookEvent> Default for HookResponse<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: HookEvent> Clone for HookResponse<E> {
    fn clone(&self) -> Self {
        let (common, specific) = (self.common.clone(), self.specific.clone());
        Self { common, specific, run_async: self.run_async }
    }
}

impl<E: HookEvent> PartialEq for HookResponse<E> {
    fn eq(&self, other: &Self) -> bool {
        self.common == other.common
            && self.specific == other.specific
            && self.run_async == other.run_async
    }
}

impl<E: HookEvent> fmt::Debug for HookResponse<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookResponse")
            .field("common", &self.common)
            .field("specific", &self.specific)
            .field("run_async", &self.run_async)
            .finish()
    }
}

/// The return type of a hook for the event `E`: `()`, a [`HookResponse`] to the event, or a `Result` of
/// one of them with [`BoxError`]; for an event by name also a [`RawHookResponse`](super::RawHookResponse).
///
/// A response to another event does not compile:
///
/// ```compile_fail,E0277
/// use claude_agent_kit::Options;
/// use claude_agent_kit::hook::{HookResponse, PostToolUse, input::PreToolUseInput};
///
/// Options::new()
///     .on(PostToolUse, |_, _| async { HookResponse::<PreToolUseInput>::deny("too late") });
/// ```
///
/// Neither does a method that does not fit the event:
///
/// ```compile_fail,E0277
/// use claude_agent_kit::Options;
/// use claude_agent_kit::hook::{HookResponse, SubagentStart};
///
/// Options::new().on(SubagentStart, |_, _| async { HookResponse::block("it has begun") });
/// ```
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a hook for `{E}` cannot return `{Self}`",
    label = "not a response to `{E}`",
    note = "return `()`, a `HookResponse` to the event, or a `Result` of one of them with `BoxError`"
)]
pub trait IntoHookResponse<E: HookEvent>: sealed::Encode<E> + Send + 'static {}

/// How a response is encoded. Public for the bounds of public items, and not reachable from outside.
pub(super) mod sealed {
    use claude_wire::Json;

    pub trait Encode<E> {
        /// Encodes the response to an event, or returns why the hook failed.
        fn encode(self, event: &str) -> Result<EncodedResponse, String>;
    }

    /// A response as it is sent.
    #[derive(Debug)]
    pub struct EncodedResponse {
        pub json: Json,
        /// Fields that were left out because they do not fit the event.
        pub dropped: Vec<String>,
    }
}

impl<E: HookEvent> IntoHookResponse<E> for () {}

impl<E: HookEvent> sealed::Encode<E> for () {
    fn encode(self, event: &str) -> Result<EncodedResponse, String> {
        HookResponse::<E>::new().encode(event)
    }
}

impl<E: HookEvent, T: IntoHookResponse<E>> IntoHookResponse<E> for Result<T, BoxError> {}

impl<E, T: sealed::Encode<E>> sealed::Encode<E> for Result<T, BoxError> {
    fn encode(self, event: &str) -> Result<EncodedResponse, String> {
        self.map_err(|error| error_text(&error))?.encode(event)
    }
}

impl<E: HookEvent> IntoHookResponse<E> for HookResponse<E> {}

impl<E: HookEvent> sealed::Encode<E> for HookResponse<E> {
    fn encode(self, event: &str) -> Result<EncodedResponse, String> {
        let (mut output, specific) = (self.common, self.specific);
        if specific != E::Specific::default() {
            output.specific = specific.into_wire();
        }
        encode(output, self.run_async, event)
    }
}

/// Encodes the response of any event.
fn encode(
    mut output: HookOutput,
    run_async: Option<Duration>,
    event: &str,
) -> Result<EncodedResponse, String> {
    output.deny_if_stopped(event);
    let mut json = Json::from_serialize(&output);
    // The CLI reads nothing else of an asynchronous response: a denial beside it would be lost.
    if let (Some(timeout), Ok("{}")) = (run_async, json.as_ref().map(Json::text)) {
        output.is_async = Some(true);
        output.async_timeout = Some(milliseconds(timeout));
        json = Json::from_serialize(&output);
    }
    let json = json.map_err(|error| error.to_string())?;
    Ok(EncodedResponse { json, dropped: Vec::new() })
}

pub(super) fn milliseconds(time: Duration) -> Number {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}
