//! The registry of callbacks, and the dispatch of requests of the CLI.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{DeliveredPermissions, HookPlan, SessionLimits};
use claude_wire::control::{
    CanUseTool, CliControlRequest, CliRequest, HookCallback, HookDenial, HookMatcher, OnFailure,
};
use claude_wire::id::CallbackId;
use claude_wire::launch::Problem;
use claude_wire::{Json, Map, Number};

use super::{BoxError, CallbackContext, CancelToken, IntoCallbackResult};
use crate::approval::{ApprovalPolicy, Gate};
use crate::commands::CommandSender;
use crate::elicitation::UserCallbacks;
use crate::hook::{self, HookEvent, HookRegistration, HookTarget, IntoHookResponse, PreToolUse};
use crate::mcp::Servers;
use crate::permission::{self, Permission, PermissionOrigin, ToolRequest};
use crate::question::{self, Answers, Questions};
use crate::session::SessionLink;
use crate::store::SessionClaim;

/// The callbacks of a host.
#[derive(Clone)]
pub(crate) struct Registry {
    hooks: Vec<Hook>,
    can_use_tool: Option<RunPermission>,
    ask_user: Option<RunPermission>,
    on_ignored_fields: Option<OnIgnoredFields>,
    /// Which tool calls need approval.
    pub(crate) approvals: Option<ApprovalPolicy>,
    /// Holds these calls, in a run.
    gate: Option<Arc<Gate>>,
    /// Whether the gate found that another host owns the session.
    is_superseded: Arc<AtomicBool>,
    pub(crate) user: UserCallbacks,
    pub(crate) servers: Servers,
    /// The concurrency limit for messages to in-process servers; `None` for the default.
    pub(crate) running_mcp: Option<usize>,
    pub(crate) hook_timeout: Option<Duration>,
    pub(crate) permission_timeout: Option<Duration>,
    pub(crate) hooks_fail_closed: bool,
    pub(crate) cancel_grace: Duration,
}

/// A request of the CLI to a callback.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) request: Box<CliControlRequest>,
    /// The line of the request.
    pub(crate) line: Bytes,
    pub(crate) origin: PermissionOrigin,
    pub(crate) session: SessionLink,
    pub(crate) cancel: CancelToken,
}

/// A callback that is ready to run.
pub(crate) enum CallbackRun {
    Async(Pin<Box<dyn Future<Output = CallResult> + Send>>),
    /// Runs on a thread that may block.
    Blocking(Box<dyn FnOnce() -> CallResult + Send>),
}

/// The encoded response, or why the callback failed.
pub(crate) type CallResult = Result<Json, String>;

/// What the session machine and the handshake need to know about the callbacks.
#[derive(Debug)]
pub(crate) struct HookPlans {
    pub(crate) plans: Map<HookPlan>,
    /// The hooks of `initialize`; `None` without hooks.
    pub(crate) matchers: Option<Map<Vec<HookMatcher>>>,
    pub(crate) permission_timeout: Option<Duration>,
}

/// Fields that were left out of the response of a raw hook because they do not fit the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredFields {
    pub(crate) event: String,
    pub(crate) fields: Vec<String>,
}

type OnIgnoredFields = Arc<dyn Fn(IgnoredFields) + Send + Sync>;
type RunHook = Arc<dyn Fn(Json, CallbackContext, ResponseEncoder) -> CallbackRun + Send + Sync>;
type RunPermission = Arc<dyn Fn(ToolRequest, CallbackContext) -> CallbackRun + Send + Sync>;

#[derive(Clone)]
struct Hook {
    target: HookTarget,
    run: RunHook,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            hooks: Vec::new(),
            can_use_tool: None,
            ask_user: None,
            on_ignored_fields: None,
            approvals: None,
            gate: None,
            is_superseded: Arc::default(),
            user: UserCallbacks::default(),
            servers: Servers::default(),
            running_mcp: None,
            hook_timeout: None,
            permission_timeout: None,
            hooks_fail_closed: false,
            cancel_grace: SessionLimits::default().cancel_grace,
        }
    }
}

impl Registry {
    pub(crate) fn has_hooks(&self) -> bool {
        !self.hooks.is_empty() || self.approvals.is_some()
    }

    /// Returns whether permission requests are answered, even if only the questions of the model or approved
    /// calls.
    pub(crate) fn has_permission(&self) -> bool {
        self.has_can_use_tool() || self.has_ask_user() || self.approvals.is_some()
    }

    pub(crate) fn has_can_use_tool(&self) -> bool {
        self.can_use_tool.is_some()
    }

    pub(crate) fn has_ask_user(&self) -> bool {
        self.ask_user.is_some()
    }

    /// Returns which permission requests are delivered with the messages: those for `can_use_tool`.
    pub(crate) fn delivered_permissions(&self) -> DeliveredPermissions {
        match (&self.can_use_tool, &self.ask_user) {
            (None, _) => DeliveredPermissions::None,
            (Some(_), None) => DeliveredPermissions::All,
            (Some(_), Some(_)) => DeliveredPermissions::AllButQuestions,
        }
    }

    /// Creates the gate of a run, if calls need approval, and registers its hook.
    pub(crate) fn open_gate(
        &mut self,
        project: Option<Arc<str>>,
        sessions: Vec<SessionClaim>,
        is_resumed: bool,
    ) -> Option<Arc<Gate>> {
        let gate = Arc::new(Gate::new(self.approvals.clone()?, project, sessions, is_resumed));
        let registration = PreToolUse.timeout(gate.timeout()).fail_closed();
        let for_hook = gate.clone();
        // Not shared with other runs of the same options.
        self.is_superseded = Arc::default();
        let is_superseded = self.is_superseded.clone();
        self.add_hook(registration, move |call, context| {
            let (gate, is_superseded) = (for_hook.clone(), is_superseded.clone());
            async move {
                let response = gate.respond(call, context).await;
                // The gate ends the turn only if another host owns the session.
                is_superseded.fetch_or(response.is_stop(), Ordering::Relaxed);
                response
            }
        });
        self.gate = Some(gate.clone());
        Some(gate)
    }

    /// Returns whether the gate found that another host owns the session.
    pub(crate) fn is_superseded(&self) -> Arc<AtomicBool> {
        self.is_superseded.clone()
    }

    /// Registers a function that is called when fields of a raw hook's response are left out. It must
    /// not block.
    pub(crate) fn on_ignored_fields(
        mut self,
        report: impl Fn(IgnoredFields) + Send + Sync + 'static,
    ) -> Self {
        self.on_ignored_fields = Some(Arc::new(report));
        self
    }

    /// Connects each server to the session whose driver receives these commands.
    pub(crate) fn connect_servers(mut self, commands: &CommandSender) -> Self {
        self.servers = self.servers.connect(commands);
        self
    }

    /// Returns the problems of hook registrations.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for hook in &self.hooks {
            problems.extend(hook::problem(&hook.target));
        }
        problems
    }

    pub(crate) fn plan(&self) -> HookPlans {
        let mut plans = Map::new();
        let mut matchers: Map<Vec<HookMatcher>> = Map::new();
        for (index, hook) in self.hooks.iter().enumerate() {
            let (id, target) = (hook_id(index), &hook.target);
            let timeout = target.timeout(self.hook_timeout);
            let fail_closed = target.fail_closed || self.hooks_fail_closed;
            let mut matcher = HookMatcher::new(target.pattern.clone(), [id.clone()]);
            matcher.timeout = Some(Number::from(timeout_of_cli(timeout)));
            // If blocking would make the model continue, the CLI must not block on its own.
            let blocks = fail_closed && HookDenial::for_event(&target.event).is_blocking();
            matcher.on_failure = blocks.then_some(OnFailure::Block);
            match matchers.get_mut(&target.event) {
                Some(matchers) => matchers.push(matcher),
                None => drop(matchers.insert(target.event.as_ref(), vec![matcher])),
            }
            plans.insert(id.as_str(), HookPlan::new(target.event.clone(), timeout, fail_closed));
        }
        HookPlans {
            plans,
            matchers: self.has_hooks().then_some(matchers),
            permission_timeout: self.permission_timeout,
        }
    }

    /// Returns the callback for a request of the CLI; `None` if none is registered.
    ///
    /// The function of the host, which may panic, only runs when the returned value does.
    pub(crate) fn call(&self, call: Call) -> Option<CallbackRun> {
        let Call { request, line, origin, session, cancel } = call;
        let CliControlRequest { request_id, request, .. } = *request;
        let PermissionOrigin { run, session_id } = origin;
        let mut context = CallbackContext::new(request_id, cancel, session);
        context.session_id = session_id;
        match request {
            CliRequest::HookCallback(asked) => self.call_hook(*asked, context),
            CliRequest::CanUseTool(asked) => self.call_permission(*asked, line, run, context),
            CliRequest::McpMessage(asked) => {
                self.servers.call(asked, context.session_id, context.cancel)
            }
            request => self.user.call(request, context),
        }
    }

    fn call_hook(&self, asked: HookCallback, mut context: CallbackContext) -> Option<CallbackRun> {
        let HookCallback { callback_id, input, tool_use_id, .. } = asked;
        let hook = self.hooks.get(index_of(&callback_id)?)?;
        // The first hooks may be called before the session ID is known.
        context.session_id =
            context.session_id.or_else(|| input.get("session_id")?.deserialize().ok());
        context.tool_use_id = tool_use_id;
        context.callback_id = Some(callback_id);
        let event = hook.target.event.clone();
        let encoder = ResponseEncoder { event, on_ignored_fields: self.on_ignored_fields.clone() };
        Some((hook.run)(input, context, encoder))
    }

    fn call_permission(
        &self,
        asked: CanUseTool,
        line: Bytes,
        run_number: u32,
        mut context: CallbackContext,
    ) -> Option<CallbackRun> {
        if let Some(permission) = self.granted(&asked) {
            let input = asked.input;
            return Some(CallbackRun::Async(Box::pin(async move {
                permission::encode_response(permission, &input)
            })));
        }
        let run = match (&self.ask_user, &self.can_use_tool) {
            (Some(ask_user), _) if asked.tool_name == question::TOOL => ask_user,
            (_, Some(can_use_tool)) => can_use_tool,
            (None, None) if !self.has_permission() => return None,
            (_, None) => return Some(deny_without_callback(&asked)),
        };
        context.tool_use_id.clone_from(&asked.tool_use_id);
        let origin = PermissionOrigin { run: run_number, session_id: context.session_id.clone() };
        let request = ToolRequest::new(&context.request_id, asked, origin, line);
        Some(run(request, context))
    }
}

impl Registry {
    /// Returns the permission for a call whose approval changes permission rules.
    fn granted(&self, asked: &CanUseTool) -> Option<Permission> {
        self.gate.as_ref()?.take_grant(asked.tool_use_id.as_ref()?)
    }

    pub(crate) fn add_hook<E, F, R>(&mut self, registration: HookRegistration<E>, callback: F)
    where
        E: HookEvent,
        F: Fn(E, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoHookResponse<E>> + Send + 'static,
    {
        let callback = Arc::new(callback);
        let run: RunHook = Arc::new(move |request, context, encoder| {
            let callback = callback.clone();
            CallbackRun::Async(Box::pin(async move {
                let input = E::read(request)?;
                encoder.encode(callback(input, context).await)
            }))
        });
        self.hooks.push(Hook { target: registration.into_target(), run });
    }

    pub(crate) fn add_blocking_hook<E, F, T>(
        &mut self,
        registration: HookRegistration<E>,
        callback: F,
    ) where
        E: HookEvent,
        F: Fn(E, CallbackContext) -> T + Send + Sync + 'static,
        T: IntoHookResponse<E>,
    {
        let callback = Arc::new(callback);
        let run: RunHook = Arc::new(move |request, context, encoder| {
            let callback = callback.clone();
            CallbackRun::Blocking(Box::new(move || {
                let input = E::read(request)?;
                encoder.encode(callback(input, context))
            }))
        });
        self.hooks.push(Hook { target: registration.into_target(), run });
    }

    pub(crate) fn set_can_use_tool<F, R>(&mut self, callback: F)
    where
        F: Fn(ToolRequest, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<Permission>> + Send + 'static,
    {
        let callback = Arc::new(callback);
        self.can_use_tool = Some(Arc::new(move |request, context| {
            let callback = callback.clone();
            CallbackRun::Async(Box::pin(async move {
                let input = request.input.clone();
                permission::encode_response(callback(request, context).await, &input)
            }))
        }));
    }

    pub(crate) fn set_blocking_can_use_tool<F, A>(&mut self, callback: F)
    where
        F: Fn(ToolRequest, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<Permission>,
    {
        let callback = Arc::new(callback);
        self.can_use_tool = Some(Arc::new(move |request, context| {
            let callback = callback.clone();
            CallbackRun::Blocking(Box::new(move || {
                let input = request.input.clone();
                permission::encode_response(callback(request, context), &input)
            }))
        }));
    }

    pub(crate) fn set_ask_user<F, R>(&mut self, handler: F)
    where
        F: Fn(Questions, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<Answers>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.ask_user = Some(Arc::new(move |request, context| {
            let handler = handler.clone();
            CallbackRun::Async(Box::pin(async move {
                let questions = Questions::read(request.input.clone())?;
                question::encode_response(handler(questions, context).await, &request.input)
            }))
        }));
    }

    pub(crate) fn set_blocking_ask_user<F, A>(&mut self, handler: F)
    where
        F: Fn(Questions, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<Answers>,
    {
        let handler = Arc::new(handler);
        self.ask_user = Some(Arc::new(move |request, context| {
            let handler = handler.clone();
            CallbackRun::Blocking(Box::new(move || {
                let questions = Questions::read(request.input.clone())?;
                question::encode_response(handler(questions, context), &request.input)
            }))
        }));
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("hooks", &self.hooks.len())
            .field("can_use_tool", &self.has_can_use_tool())
            .field("ask_user", &self.has_ask_user())
            .field("approvals", &self.approvals)
            .field("user", &self.user)
            .field("servers", &self.servers)
            .field("hook_timeout", &self.hook_timeout)
            .field("permission_timeout", &self.permission_timeout)
            .field("hooks_fail_closed", &self.hooks_fail_closed)
            .field("cancel_grace", &self.cancel_grace)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CallbackRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// Encodes the response of a hook, and reports the fields that it omits.
struct ResponseEncoder {
    event: Cow<'static, str>,
    on_ignored_fields: Option<OnIgnoredFields>,
}

impl ResponseEncoder {
    fn encode<E: HookEvent>(self, returned: impl IntoHookResponse<E>) -> CallResult {
        let encoded = returned.encode(&self.event)?;
        if !encoded.dropped.is_empty() {
            let ignored = IgnoredFields { event: self.event.into_owned(), fields: encoded.dropped };
            tracing::warn!(event = ignored.event, fields = ?ignored.fields, "ignored fields that do not fit the event");
            if let Some(report) = &self.on_ignored_fields {
                report(ignored);
            }
        }
        Ok(encoded.json)
    }
}

/// Returns the text of an error. Some error types include their causes in this format.
pub(crate) fn error_text(error: &BoxError) -> String {
    format!("{error:#}")
}

/// Denies a tool call like the CLI does by itself, where only a callback for questions is registered.
fn deny_without_callback(asked: &CanUseTool) -> CallbackRun {
    let reason = format!(
        "{} is not allowed by the rules, and no callback that could allow it is registered",
        asked.tool_name
    );
    let input = asked.input.clone();
    CallbackRun::Async(Box::pin(async move {
        permission::encode_response(Permission::deny(reason), &input)
    }))
}

fn hook_id(index: usize) -> CallbackId {
    CallbackId::from(format!("hook_{index}"))
}

fn index_of(id: &CallbackId) -> Option<usize> {
    let digits = id.as_str().strip_prefix("hook_")?;
    // Only the exact form of `hook_id`: no sign and no leading zeros.
    let plain = digits == "0" || digits.starts_with(|first: char| matches!(first, '1'..='9'));
    if plain { digits.parse().ok() } else { None }
}

/// Returns the timeout for the CLI, in seconds. It is longer than ours, because the CLI denies the tool
/// when its own timeout expires.
fn timeout_of_cli(timeout: Duration) -> u64 {
    /// JavaScript timers with more than 2^31 ms fire immediately.
    const MOST: u64 = 2_147_483;
    const MARGIN: u64 = 5;
    let whole = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0));
    whole.saturating_add(MARGIN).min(MOST)
}
