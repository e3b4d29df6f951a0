//! Options that register callbacks.

use std::future::Future;

use claude_wire::control::{Elicitation, UserDialog};

use super::{Options, strings};
use crate::approval::ApprovalPolicy;
use crate::callback::{CallbackContext, IntoCallbackResult, Registry};
use crate::elicitation::{DialogResponse, ElicitationResponse};
use crate::hook::{HookEvent, HookRegistration, IntoHookResponse};
use crate::permission::{Permission, ToolRequest};
use crate::question::{self, Answers, Questions};

impl Options {
    /// Adds a hook: `callback` is called whenever the event happens, and its response controls how the
    /// CLI continues. Several hooks can be added for one event; they run concurrently. Sent as `hooks`
    /// in the handshake. Default: none.
    ///
    /// The event is a constant such as [`PreToolUse`](crate::hook::PreToolUse), optionally with a
    /// [matcher](HookRegistration::matching). The callback receives the input of the event and returns
    /// `()`, a [`HookResponse`](crate::hook::HookResponse), or a `Result` of one of them.
    ///
    /// Each callback runs in its own task, up to its timeout
    /// ([`Timeouts::hook`](crate::Timeouts::hook)), and delays only its own request. Use
    /// [`on_blocking`](Self::on_blocking) for a callback that blocks its thread. If the callback returns
    /// an error, panics or times out, the CLI continues as if there were no hook, and a warning is
    /// reported, unless the hook was registered to [fail closed](HookRegistration::fail_closed).
    ///
    /// ```
    /// use claude_agent_kit::hook::{HookResponse, PostToolUse, PreToolUse};
    /// use claude_agent_kit::{Options, ToolInput};
    ///
    /// let options = Options::new()
    ///     .on(PreToolUse.matching("Bash").fail_closed(), |call, _ctx| async move {
    ///         match call.tool_input() {
    ///             ToolInput::Bash(bash) if bash.command == "cargo test" => HookResponse::new(),
    ///             _ => HookResponse::deny("only the tests may run"),
    ///         }
    ///     })
    ///     .on(PostToolUse, |call, _ctx| async move {
    ///         println!("{} ran", call.tool());
    ///     });
    /// ```
    ///
    /// A response that the event does not support does not compile:
    ///
    /// ```compile_fail,E0277
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::hook::{HookResponse, PreToolUse};
    ///
    /// Options::new().on(PreToolUse, |_, _| async { HookResponse::block("denied with `deny`") });
    /// ```
    pub fn on<E, F, R>(self, registration: HookRegistration<E>, callback: F) -> Self
    where
        E: HookEvent,
        F: Fn(E, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoHookResponse<E>> + Send + 'static,
    {
        self.change_callbacks(|callbacks| callbacks.add_hook(registration, callback))
    }

    /// Adds a hook like [`on`](Self::on), with a callback that may block: it runs on a thread for
    /// blocking work.
    ///
    /// Such a callback cannot be aborted. If it takes long, it should check the token of its context.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::hook::{HookResponse, PreToolUse};
    ///
    /// let options = Options::new().on_blocking(PreToolUse, |_call, _ctx| {
    ///     let rules = std::fs::read_to_string("rules.txt")?;
    ///     Ok(HookResponse::new().additional_context(rules))
    /// });
    /// ```
    pub fn on_blocking<E, F, T>(self, registration: HookRegistration<E>, callback: F) -> Self
    where
        E: HookEvent,
        F: Fn(E, CallbackContext) -> T + Send + Sync + 'static,
        T: IntoHookResponse<E>,
    {
        self.change_callbacks(|callbacks| callbacks.add_blocking_hook(registration, callback))
    }

    /// Sets the permission callback, which decides about tool calls that no rule decides. Replaces an
    /// earlier one. Sent as `--permission-prompt-tool=stdio`. Default: no callback; calls that no rule
    /// allows are denied.
    ///
    /// Callbacks run concurrently. If the callback fails, the tool call is denied.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::Permission;
    ///
    /// let options = Options::new().can_use_tool(|request, _ctx| async move {
    ///     match request.tool_name.as_str() {
    ///         "Bash" => Permission::deny("no shells here"),
    ///         _ => Permission::allow(),
    ///     }
    /// });
    /// ```
    ///
    /// The callback must decide; it cannot return "ask":
    ///
    /// ```compile_fail,E0277
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::hook::{HookResponse, input::PreToolUseInput};
    ///
    /// Options::new()
    ///     .can_use_tool(|_, _| async { HookResponse::<PreToolUseInput>::ask("a user?") });
    /// ```
    pub fn can_use_tool<F, R>(self, callback: F) -> Self
    where
        F: Fn(ToolRequest, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<Permission>> + Send + 'static,
    {
        self.change_callbacks(|callbacks| callbacks.set_can_use_tool(callback))
    }

    /// Sets the permission callback like [`can_use_tool`](Self::can_use_tool), for a callback that may
    /// block. Replaces an earlier one.
    pub fn can_use_tool_blocking<F, A>(self, callback: F) -> Self
    where
        F: Fn(ToolRequest, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<Permission>,
    {
        self.change_callbacks(|callbacks| callbacks.set_blocking_can_use_tool(callback))
    }

    /// Sets the handler that answers the model's questions to the user. Replaces an earlier one. Sent as
    /// `--permission-prompt-tool=stdio`. Default: none; the tool `AskUserQuestion` is not offered to
    /// the model.
    ///
    /// The handler is called in every permission mode and regardless of the rules. If it fails, the
    /// model is informed that the questions were not answered. See [`Answers`] for an example.
    pub fn ask_user<F, R>(self, handler: F) -> Self
    where
        F: Fn(Questions, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<Answers>> + Send + 'static,
    {
        self.change_callbacks(|callbacks| callbacks.set_ask_user(handler))
    }

    /// Sets the handler for questions like [`ask_user`](Self::ask_user), for a handler that may block,
    /// for example to read from a terminal. Replaces an earlier one.
    pub fn ask_user_blocking<F, A>(self, handler: F) -> Self
    where
        F: Fn(Questions, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<Answers>,
    {
        self.change_callbacks(|callbacks| callbacks.set_blocking_ask_user(handler))
    }

    /// Sets the callback that answers questions of external MCP servers to the user (elicitation).
    /// Replaces an earlier one. See [`ElicitationResponse`] for an example. Default: none; questions are
    /// declined, with a warning.
    ///
    /// If the callback fails, the question is declined.
    pub fn on_elicitation<F, R>(self, callback: F) -> Self
    where
        F: Fn(Elicitation, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<ElicitationResponse>> + Send + 'static,
    {
        self.change_callbacks(|callbacks| callbacks.user.set_elicitation(callback))
    }

    /// Sets the elicitation callback like [`on_elicitation`](Self::on_elicitation), for a callback that
    /// may block. Replaces an earlier one.
    pub fn on_elicitation_blocking<F, A>(self, callback: F) -> Self
    where
        F: Fn(Elicitation, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<ElicitationResponse>,
    {
        self.change_callbacks(|callbacks| callbacks.user.set_blocking_elicitation(callback))
    }

    /// Sets the callback that shows dialogs of the CLI of the given kinds; `kinds` must not be empty.
    /// Replaces an earlier one. Sent as `supportedDialogKinds` in the handshake. Default: none; requests
    /// for dialogs get no response, with a warning.
    ///
    /// If the callback fails, the dialog is cancelled.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::elicitation::DialogResponse;
    ///
    /// let kinds = ["refusal_fallback_prompt"];
    /// let options = Options::new().on_user_dialog(kinds, |dialog, _ctx| async move {
    ///     println!("{}: {:?}", dialog.dialog_kind, dialog.payload);
    ///     DialogResponse::cancelled()
    /// });
    /// ```
    pub fn on_user_dialog<F, R>(
        self,
        kinds: impl IntoIterator<Item = impl Into<String>>,
        callback: F,
    ) -> Self
    where
        F: Fn(UserDialog, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<DialogResponse>> + Send + 'static,
    {
        let kinds = strings(kinds);
        self.change_callbacks(|callbacks| callbacks.user.set_dialog(kinds, callback))
    }

    /// Sets the dialog callback like [`on_user_dialog`](Self::on_user_dialog), for a callback that may
    /// block. Replaces an earlier one and its kinds.
    pub fn on_user_dialog_blocking<F, A>(
        self,
        kinds: impl IntoIterator<Item = impl Into<String>>,
        callback: F,
    ) -> Self
    where
        F: Fn(UserDialog, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<DialogResponse>,
    {
        let kinds = strings(kinds);
        self.change_callbacks(|callbacks| callbacks.user.set_blocking_dialog(kinds, callback))
    }

    /// Sets which tool calls need the [approval](crate::approval) of a user, who may decide later and in another
    /// process. Replaces an earlier policy. Sent as a `PreToolUse` hook in the handshake that fails closed, and as
    /// `--permission-prompt-tool=stdio`. Default: none.
    ///
    /// The policy takes precedence over permission rules, the permission mode and
    /// [`can_use_tool`](Self::can_use_tool): a call that needs approval does not run without it, even if a rule
    /// allows it. A rule that denies the call, and another `PreToolUse` hook that denies it, take precedence over an
    /// approval; if another such hook returns [`ask`](crate::hook::HookResponse::ask), `can_use_tool` is called for an
    /// approved call too.
    ///
    /// See the [guide](crate::guide::approvals).
    pub fn approvals(self, policy: ApprovalPolicy) -> Self {
        self.change_callbacks(|callbacks| callbacks.approvals = Some(policy))
    }

    /// Sets whether all hooks [fail closed](HookRegistration::fail_closed). Sent as `hooks` in
    /// the handshake. Default: false; only the hooks that were registered with `fail_closed` do.
    pub fn hooks_fail_closed(self, closed: bool) -> Self {
        self.set_by_builder("hooks_fail_closed")
            .change_callbacks(|callbacks| callbacks.hooks_fail_closed = closed)
    }

    fn change_callbacks(self, change: impl FnOnce(&mut Registry)) -> Self {
        self.change(|host| {
            change(&mut host.callbacks);
            host.needs.permission_callback = host.callbacks.has_permission();
            host.needs.hooks = host.callbacks.has_hooks();
            let user = &host.callbacks.user;
            host.needs.user_callback = user.has_elicitation() || user.has_dialog();
        })
    }
}

/// Returns the tools that must not be offered because no callback handles them.
///
/// With a permission callback, the CLI offers `AskUserQuestion` even without a handler for it.
pub(crate) fn extra_disallowed_tools(callbacks: &Registry) -> Vec<String> {
    let unserved = callbacks.has_permission() && !callbacks.has_ask_user();
    unserved.then(|| question::TOOL.to_owned()).into_iter().collect()
}
