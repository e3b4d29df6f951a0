//! Control requests of the CLI.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::control::{CliControlRequest, CliRequest, HookCallback, McpMessage};
use claude_wire::id::{CallbackId, RequestId};
use claude_wire::message::Malformed;
use claude_wire::{Envelope, Extra, Undecodable, repair};

use super::callbacks::CallbackRequest;
use super::event::{DeliveredPermissions, HookPlan, RunWarning};
use super::failure_rule::{self, FailureRule};
use super::machine::Machine;
use super::shorten::{MAX_NAME_BYTES, MAX_REASON_BYTES, shorten, truncate};

/// The tool with which the model asks the user questions. A call arrives as a permission request.
pub const QUESTION_TOOL: &str = "AskUserQuestion";

impl Machine {
    pub(super) fn on_control_request(&mut self, line: &Bytes, now: Duration) {
        match CliControlRequest::decode(line) {
            Ok(request) => {
                if let Some(session) = string_field(&request.extra, "session_id") {
                    self.evidence.set_session_id(&session);
                }
                if self.accepts_requests() && self.handshake.is_new(&request.request_id) {
                    self.serve_request(Box::new(request), line, now);
                }
            }
            Err(malformed) => self.on_malformed_request(line, malformed.reason),
        }
    }

    /// Rejects a line whose type is `control_request` but whose fields cannot be decoded.
    fn on_malformed_request(&mut self, line: &Bytes, reason: String) {
        let text = repair::valid(line);
        let envelope = Envelope::read_fields(text.as_bytes()).unwrap_or_default();
        let Some(request_id) = envelope.request_id.as_deref().map(RequestId::from) else {
            let reason = "control request without `request_id`";
            return self.out.warn(RunWarning::Malformed(Malformed::new(line.clone(), reason)));
        };
        if self.accepts_requests() && self.handshake.is_new(&request_id) {
            self.reject_malformed(&request_id, &envelope, reason);
        }
    }

    pub(super) fn on_cancel_request(
        &mut self,
        envelope: &Envelope<'_>,
        line: &Bytes,
        now: Duration,
    ) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else {
            let reason = "cancellation without `request_id`";
            return self.out.warn(RunWarning::Malformed(Malformed::new(line.clone(), reason)));
        };
        self.callbacks.cancel(&id, now, &mut self.out);
    }

    /// Rejects a request that exceeds the line length limit, of which only both ends are known.
    pub(super) fn on_oversized_request(&mut self, envelope: &Envelope<'_>, size: u64) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else { return };
        if !self.accepts_requests() || self.callbacks.is_pending(&id) {
            return;
        }
        let reason =
            format!("the request of {size} bytes exceeds the line length limit of the host");
        if envelope.subtype.as_deref() == Some("hook_callback") {
            return self.respond_by_rule(&id, &self.unidentified_hook_rule(None), reason);
        }
        self.out.respond_error(&id, &reason);
    }

    /// Starts the callback of a new request, or responds if there is none.
    pub(super) fn serve_request(
        &mut self,
        request: Box<CliControlRequest>,
        line: &Bytes,
        now: Duration,
    ) {
        let id = request.request_id.clone();
        if self.callbacks.is_pending(&id) {
            return;
        }
        let (rule, timeout) = match &request.request {
            CliRequest::HookCallback(hook) => match self.find_hook(hook) {
                Ok(found) => found,
                Err((rule, reason)) => return self.respond_by_rule(&id, &rule, reason),
            },
            CliRequest::CanUseTool(tool) => {
                let rule = FailureRule::Permission { tool: tool.tool_name.clone() };
                if !self.plan.permissions {
                    let reason = "the host has no callback for permissions".to_owned();
                    return self.respond_by_rule(&id, &rule, reason);
                }
                (rule, self.plan.permission_timeout)
            }
            CliRequest::McpMessage(message) => {
                let rule = mcp_rule(message);
                if !self.plan.mcp_servers.contains(&message.server_name) {
                    return self.reject_unknown_server(&id, message);
                }
                if let Some(rpc_id) = failure_rule::mcp_cancelled(&message.message) {
                    let server = &message.server_name;
                    self.callbacks.cancel_mcp(server, &rpc_id, now, &mut self.out);
                }
                (rule, None)
            }
            CliRequest::Elicitation(_) if !self.plan.elicitation => {
                return self.decline_elicitation(&id);
            }
            CliRequest::Elicitation(elicitation) => {
                let rule = FailureRule::Elicitation { server: elicitation.mcp_server_name.clone() };
                (rule, self.plan.permission_timeout)
            }
            CliRequest::RequestUserDialog(dialog) if !self.plan.dialogs => {
                return self.ignore_dialog(&dialog.dialog_kind);
            }
            CliRequest::RequestUserDialog(dialog) => {
                let rule = FailureRule::Dialog { kind: dialog.dialog_kind.clone() };
                (rule, self.plan.permission_timeout)
            }
            CliRequest::Undecodable(undecodable) => {
                return self.reject_undecodable(&id, undecodable);
            }
            // Also a kind that the types know and this machine does not.
            _ => {
                let subtype = request.request.kind().unwrap_or_default();
                let subtype = shorten(subtype, MAX_NAME_BYTES);
                let reason = format!("Unsupported control request subtype: {subtype}");
                return self.reject_request(&id, subtype.into_owned(), reason);
            }
        };
        let (line, is_delivered) = (line.clone(), self.is_delivered(&request.request));
        let callback = CallbackRequest { request, line, rule, timeout, is_delivered };
        self.callbacks.start(callback, now, &mut self.out);
    }

    /// Returns whether a request is also delivered among the messages.
    fn is_delivered(&self, request: &CliRequest) -> bool {
        let CliRequest::CanUseTool(tool) = request else { return false };
        match self.plan.delivered_permissions {
            DeliveredPermissions::None => false,
            DeliveredPermissions::All => true,
            DeliveredPermissions::AllButQuestions => tool.tool_name != QUESTION_TOOL,
        }
    }

    /// Returns the failure rule and the timeout of a hook callback, or the reason why it cannot run.
    fn find_hook(
        &self,
        hook: &HookCallback,
    ) -> Result<(FailureRule, Option<Duration>), (FailureRule, String)> {
        let Some(plan) = self.plan.hooks.get(hook.callback_id.as_str()) else {
            let reason = format!("no hook is registered with the callback ID {}", hook.callback_id);
            return Err((self.unidentified_hook_rule(hook.event().as_deref()), reason));
        };
        Ok((hook_rule(plan), Some(plan.timeout)))
    }

    /// Returns the failure rule of a hook request whose callback cannot be identified. It is
    /// fail-closed if a hook of its event is, or, if the event is unknown too, if any hook is.
    fn unidentified_hook_rule(&self, event: Option<&str>) -> FailureRule {
        let is_match = |hook: &&HookPlan| event.is_some_and(|event| *hook.event == *event);
        let hooks = self.plan.hooks.values();
        if let Some(HookPlan { event, .. }) = hooks.clone().find(is_match) {
            let closed = hooks.filter(is_match).any(|hook| hook.fail_closed);
            return FailureRule::Hook { event: event.clone(), closed };
        }
        let closed = hooks.into_iter().any(|hook| hook.fail_closed);
        FailureRule::Hook { event: "".into(), closed }
    }

    /// Rejects a request of a known subtype whose fields cannot be decoded.
    fn reject_undecodable(&mut self, id: &RequestId, undecodable: &Undecodable) {
        let reason = undecodable.reason.clone();
        let fields: Extra = undecodable.raw.deserialize().unwrap_or_default();
        match undecodable.kind.as_deref() {
            Some("hook_callback") => {
                let callback = string_field(&fields, "callback_id").map(CallbackId::from);
                let plan = callback.and_then(|callback| self.plan.hooks.get(callback.as_str()));
                let rule = plan.map_or_else(
                    || self.unidentified_hook_rule(event_name(&fields).as_deref()),
                    hook_rule,
                );
                self.respond_by_rule(id, &rule, reason);
            }
            Some("can_use_tool") => {
                let tool = string_field(&fields, "tool_name").unwrap_or_default();
                self.respond_by_rule(id, &FailureRule::Permission { tool }, reason);
            }
            kind => self.reject_request(id, kind.unwrap_or("control request").to_owned(), reason),
        }
    }

    /// Rejects a malformed request that has an ID.
    fn reject_malformed(&mut self, id: &RequestId, envelope: &Envelope<'_>, reason: String) {
        // The CLI treats an error response as a hook without a decision.
        if envelope.subtype.as_deref() == Some("hook_callback") {
            return self.respond_by_rule(id, &self.unidentified_hook_rule(None), reason);
        }
        let request = envelope.subtype.as_deref().unwrap_or("control request").to_owned();
        self.reject_request(id, request, reason);
    }

    fn reject_request(&mut self, id: &RequestId, request: String, mut reason: String) {
        truncate(&mut reason, MAX_REASON_BYTES);
        self.out.respond_error(id, &reason);
        self.out.warn(RunWarning::UnsupportedRequest { request, response: reason });
    }

    /// Responds by the failure rule to a request without a callback.
    fn respond_by_rule(&mut self, id: &RequestId, rule: &FailureRule, mut reason: String) {
        truncate(&mut reason, MAX_REASON_BYTES);
        self.out.respond(id, &rule.response(&reason));
        let (request, response) = (rule.describe(), rule.effect());
        self.out.warn(RunWarning::CallbackFailed { request, reason, response });
    }

    fn reject_unknown_server(&mut self, id: &RequestId, message: &McpMessage) {
        let name = shorten(&message.server_name, MAX_NAME_BYTES);
        let reason = format!("the host has no MCP server named {name}");
        let response = match failure_rule::mcp_id(&message.message) {
            Some(rpc_id) => failure_rule::mcp_error(&rpc_id, -32601, &reason),
            None => failure_rule::mcp_acknowledgement(),
        };
        self.out.respond(id, &response);
        let request = mcp_rule(message).describe();
        self.out.warn(RunWarning::UnsupportedRequest { request, response: reason });
    }

    /// Declines an elicitation, as the official SDKs do without a handler.
    fn decline_elicitation(&mut self, id: &RequestId) {
        self.out.respond(id, &failure_rule::decline());
        let (request, reason) = ("elicitation".to_owned(), "declined".to_owned());
        self.out.warn(RunWarning::UnsupportedRequest { request, response: reason });
    }

    /// Sends no response to a dialog, as the official SDKs do without a handler: another client of the
    /// session may show it.
    fn ignore_dialog(&mut self, kind: &str) {
        let request = format!("dialog {kind}");
        let reason = "none, because another client of the session may show the dialog".to_owned();
        self.out.warn(RunWarning::UnsupportedRequest { request, response: reason });
    }

    /// Returns whether requests are served: not after stdin was closed or the process has exited, and
    /// not while the run is being stopped.
    fn accepts_requests(&self) -> bool {
        self.out.is_open() && self.process.exited.is_none() && self.stop_reason.is_none()
    }
}

fn hook_rule(plan: &HookPlan) -> FailureRule {
    FailureRule::Hook { event: plan.event.clone(), closed: plan.fail_closed }
}

fn mcp_rule(message: &McpMessage) -> FailureRule {
    let server = message.server_name.clone();
    if failure_rule::is_mcp_response(&message.message) {
        return FailureRule::McpResponse { server };
    }
    let message = &message.message;
    FailureRule::Mcp {
        server,
        id: failure_rule::mcp_id(message),
        tool: failure_rule::mcp_tool(message),
    }
}

/// Returns the event in the input of a hook request.
fn event_name(request: &Extra) -> Option<String> {
    string_field(&request.get("input")?.deserialize().ok()?, "hook_event_name")
}

fn string_field(fields: &Extra, name: &str) -> Option<String> {
    fields.get(name)?.deserialize().ok()
}
