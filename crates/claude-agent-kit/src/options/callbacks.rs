//! Options that register callbacks.

use std::future::Future;

use claude_wire::control::{Elicitation, UserDialog};

use super::{Options, strings};
use crate::callback::{CallbackContext, IntoCallbackResult, Registry};
use crate::elicitation::{DialogResponse, ElicitationResponse};
use crate::hook::{HookEvent, HookRegistration, IntoHookResponse};
use crate::permission::{Permission, ToolRequest};
use crate::question::{self, Answers, Questions};

impl Options {
    /// Adds a hook: `callback` is called whenever the event happens, and the CLI follows its
    /// response. Several hooks can be added for one event; they run concurrently. Sent as `hooks` in
    /// the handshake. Default: none.
    ///
    /// The event is a constant such as [`PreToolUse`](crate::hook::PreToolUse), optionally with a
    /// [matcher](HookRegistration::matching). The callback receives the event's input and returns
    /// nothing, a [`HookResponse`](crate::hook::HookResponse), or a `Result` of one of them.
    ///
    /// The callback runs in a task of its own, so it may take as long as its timeout allows
    /// ([`Timeouts::hook`](crate::Timeouts::hook)), and delays only the CLI at this point. A callback
    /// that blocks its thread belongs on [`on_blocking`](Self::on_blocking). If the callback returns
    /// an error, panics or takes too long, the CLI continues as if there were no hook, with a
    /// warning, unless the hook was registered to [fail closed](HookRegistration::fail_closed).
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
    /// The response has to fit the event:
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

    /// Adds a hook, as [`on`](Self::on) does, with a callback that may block its thread: it runs on a
    /// thread for blocking work.
    ///
    /// Such a callback cannot be aborted; one that takes long should check the token of its context.
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

    /// Calls `callback` to decide whether a tool may run, where no rule decides that. Sent as
    /// `--permission-prompt-tool=stdio`. Default: no callback, and what no rule allows is denied.
    ///
    /// Requests are answered independently of each other. If the callback fails, the tool is
    /// denied.
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
    /// There is no "ask":
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

    /// Does the same as [`can_use_tool`](Self::can_use_tool) for a callback that may block its
    /// thread. The one that is set last counts.
    pub fn can_use_tool_blocking<F, A>(self, callback: F) -> Self
    where
        F: Fn(ToolRequest, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<Permission>,
    {
        self.change_callbacks(|callbacks| callbacks.set_blocking_can_use_tool(callback))
    }

    /// Lets `handler` answer the model's questions to the user. Sent as
    /// `--permission-prompt-tool=stdio`. Default: the model cannot ask; the tool for it
    /// (`AskUserQuestion`) is not offered.
    ///
    /// It is asked in every permission mode, and whatever the rules say. If it fails, the model is
    /// told that the questions were not answered. See [`Answers`] for an example.
    pub fn ask_user<F, R>(self, handler: F) -> Self
    where
        F: Fn(Questions, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<Answers>> + Send + 'static,
    {
        self.change_callbacks(|callbacks| callbacks.set_ask_user(handler))
    }

    /// Does the same as [`ask_user`](Self::ask_user) for a handler that may block its thread, as
    /// one that reads from a terminal does. The one that is set last counts.
    pub fn ask_user_blocking<F, A>(self, handler: F) -> Self
    where
        F: Fn(Questions, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<Answers>,
    {
        self.change_callbacks(|callbacks| callbacks.set_blocking_ask_user(handler))
    }

    /// Lets `callback` answer for the user when an MCP server outside this process asks something
    /// (elicitation). See [`ElicitationResponse`] for an example. Default: what is asked is declined,
    /// with a warning.
    ///
    /// If the callback fails, the question is declined.
    pub fn on_elicitation<F, R>(self, callback: F) -> Self
    where
        F: Fn(Elicitation, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<ElicitationResponse>> + Send + 'static,
    {
        self.change_callbacks(|callbacks| callbacks.user.set_elicitation(callback))
    }

    /// Does the same as [`on_elicitation`](Self::on_elicitation) for a callback that may block its
    /// thread. The one that is set last counts.
    pub fn on_elicitation_blocking<F, A>(self, callback: F) -> Self
    where
        F: Fn(Elicitation, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<ElicitationResponse>,
    {
        self.change_callbacks(|callbacks| callbacks.user.set_blocking_elicitation(callback))
    }

    /// Shows the CLI's dialogs of these kinds with `callback`; `kinds` must not be empty. Sent as
    /// `supportedDialogKinds` in the handshake. Default: no dialogs are supported, and one that
    /// comes anyway is left unanswered, with a warning.
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

    /// Does the same as [`on_user_dialog`](Self::on_user_dialog) for a callback that may block its
    /// thread. The one that is set last counts, with its kinds.
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

    /// Sets whether all hooks [fail closed](HookRegistration::fail_closed). Sent as `hooks` in
    /// the handshake. Default: only those that say so.
    pub fn hooks_fail_closed(self, closed: bool) -> Self {
        self.told("hooks_fail_closed")
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

/// Tools that must not be offered because nobody here could serve them.
///
/// The CLI offers the model's questions whenever permissions are asked of the host.
pub(crate) fn extra_disallowed_tools(callbacks: &Registry) -> Vec<String> {
    let unserved = callbacks.has_can_use_tool() && !callbacks.has_ask_user();
    unserved.then(|| question::TOOL.to_owned()).into_iter().collect()
}
