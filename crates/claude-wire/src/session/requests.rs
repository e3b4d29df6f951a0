//! What the CLI asks the host.

use std::time::Duration;

use bytes::Bytes;

use super::callbacks::Asked;
use super::event::{DeliveredPermissions, HookPlan, Notice};
use super::fail_rule::{self, FailRule};
use super::machine::Machine;
use super::shorten::{MAX_NAME_BYTES, MAX_REASON_BYTES, shorten, truncate};
use crate::control::{CliControlRequest, CliRequest, HookCallback, McpMessage};
use crate::envelope::Envelope;
use crate::from_cli::control;
use crate::hook_input::HookInput;
use crate::id::{CallbackId, RequestId};
use crate::json::Extra;
use crate::message::Malformed;
use crate::repair;
use crate::schema::Undecodable;

/// The tool with which the model asks the user. It comes as a permission request.
pub const QUESTION_TOOL: &str = "AskUserQuestion";

impl Machine {
    pub(super) fn control_request(&mut self, line: &Bytes, now: Duration) {
        match control::<CliControlRequest>(line) {
            Ok(request) => {
                if let Some(session) = text(&request.extra, "session_id") {
                    self.evidence.session_is(&session);
                }
                if self.takes_requests() && self.handshake.is_new(&request.request_id) {
                    self.asked(Box::new(request), line, now);
                }
            }
            Err(malformed) => self.undecodable_frame(line, malformed.reason),
        }
    }

    /// A frame that is a request by its type only.
    fn undecodable_frame(&mut self, line: &Bytes, reason: String) {
        let repaired = repair::repaired(line);
        let envelope = Envelope::read_fields(repaired.as_deref().unwrap_or(line));
        let envelope = envelope.unwrap_or_default();
        let Some(request_id) = envelope.request_id.as_deref().map(RequestId::from) else {
            let reason = "a control request without `request_id`";
            return self.out.warn(Notice::Malformed(Malformed::new(line.clone(), reason)));
        };
        if self.takes_requests() && self.handshake.is_new(&request_id) {
            self.unanswered(&request_id, &envelope, reason);
        }
    }

    pub(super) fn control_cancel(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else {
            let reason = "a cancel without `request_id`";
            return self.out.warn(Notice::Malformed(Malformed::new(line.clone(), reason)));
        };
        self.callbacks.cancelled(&id, now, &mut self.out);
    }

    /// A request of which only the two ends are left.
    pub(super) fn oversized_request(&mut self, envelope: &Envelope<'_>, size: u64) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else { return };
        if !self.takes_requests() || self.callbacks.is_open(&id) {
            return;
        }
        let reason = format!("a request of {size} bytes is longer than the host reads");
        if envelope.subtype.as_deref() == Some("hook_callback") {
            return self.failed(&id, &self.rule_without_a_hook(None), reason);
        }
        self.out.answer_error(&id, &reason);
    }

    /// Serves a request that has an id and was not served before.
    pub(super) fn asked(&mut self, request: Box<CliControlRequest>, line: &Bytes, now: Duration) {
        let id = request.request_id.clone();
        if self.callbacks.is_open(&id) {
            return;
        }
        let (rule, limit) = match &request.request {
            CliRequest::HookCallback(hook) => match self.hook(hook) {
                Ok(found) => found,
                Err((rule, reason)) => return self.failed(&id, &rule, reason),
            },
            CliRequest::CanUseTool(tool) => {
                let rule = FailRule::Permission { tool: tool.tool_name.clone() };
                if !self.plan.permissions {
                    let reason = "the host has no callback for permissions".to_owned();
                    return self.failed(&id, &rule, reason);
                }
                (rule, self.plan.permission_limit)
            }
            CliRequest::McpMessage(message) => {
                let rule = mcp_rule(message);
                if !self.plan.mcp_servers.contains(&message.server_name) {
                    return self.no_such_server(&id, message);
                }
                if let Some(rpc_id) = fail_rule::mcp_cancelled(&message.message) {
                    let server = &message.server_name;
                    self.callbacks.cancelled_mcp(server, &rpc_id, now, &mut self.out);
                }
                (rule, None)
            }
            CliRequest::Elicitation(_) if !self.plan.elicitation => return self.decline(&id),
            CliRequest::Elicitation(asked) => {
                let rule = FailRule::Elicitation { server: asked.mcp_server_name.clone() };
                (rule, self.plan.permission_limit)
            }
            CliRequest::RequestUserDialog(asked) if !self.plan.dialogs => {
                return self.leave_dialog(&asked.dialog_kind);
            }
            CliRequest::RequestUserDialog(asked) => {
                let rule = FailRule::Dialog { kind: asked.dialog_kind.clone() };
                (rule, self.plan.permission_limit)
            }
            CliRequest::Undecodable(undecodable) => return self.undecodable(&id, undecodable),
            CliRequest::Unknown(_) => {
                let what = request.request.kind().unwrap_or_default();
                let what = shorten(what, MAX_NAME_BYTES);
                let reason = format!("Unsupported control request subtype: {what}");
                return self.refuse_request(&id, what.into_owned(), reason);
            }
        };
        let (line, is_delivered) = (line.clone(), self.is_delivered(&request.request));
        let asked = Asked { request, line, rule, limit, is_delivered };
        self.callbacks.ask(asked, now, &mut self.out);
    }

    /// Whether a request is also delivered among the messages.
    fn is_delivered(&self, request: &CliRequest) -> bool {
        let CliRequest::CanUseTool(tool) = request else { return false };
        match self.plan.delivered_permissions {
            DeliveredPermissions::None => false,
            DeliveredPermissions::All => true,
            DeliveredPermissions::AllButQuestions => tool.tool_name != QUESTION_TOOL,
        }
    }

    /// How a hook is treated, or why it is not run.
    fn hook(
        &self,
        hook: &HookCallback,
    ) -> Result<(FailRule, Option<Duration>), (FailRule, String)> {
        let Some(plan) = self.plan.hooks.get(&hook.callback_id) else {
            let reason = format!("no hook is registered as {}", hook.callback_id);
            return Err((self.rule_without_a_hook(hook.input.kind()), reason));
        };
        match &hook.input {
            HookInput::Undecodable(input) => Err((rule_of(plan), input.reason.clone())),
            _ => Ok((rule_of(plan), Some(plan.limit))),
        }
    }

    /// The fail rule of a hook request whose callback cannot be identified: refused if it may have
    /// been for a fail-closed hook, which is one of its event, or any where the event is lost too.
    fn rule_without_a_hook(&self, event: Option<&str>) -> FailRule {
        let is_of = |hook: &&HookPlan| event.is_some_and(|event| *hook.event == *event);
        let hooks = self.plan.hooks.values();
        if let Some(HookPlan { event, .. }) = hooks.clone().find(is_of) {
            let closed = hooks.filter(is_of).any(|hook| hook.fail_closed);
            return FailRule::Hook { event: event.clone(), closed };
        }
        let closed = hooks.into_iter().any(|hook| hook.fail_closed);
        FailRule::Hook { event: "".into(), closed }
    }

    /// A request of a known kind that does not have its shape.
    fn undecodable(&mut self, id: &RequestId, undecodable: &Undecodable) {
        let reason = undecodable.reason.clone();
        let fields: Extra = undecodable.raw.deserialize().unwrap_or_default();
        match undecodable.kind.as_deref() {
            Some("hook_callback") => {
                let callback = text(&fields, "callback_id").map(CallbackId::from);
                let plan = callback.and_then(|callback| self.plan.hooks.get(&callback));
                let rule = plan.map_or_else(
                    || self.rule_without_a_hook(event_in(&fields).as_deref()),
                    rule_of,
                );
                self.failed(id, &rule, reason);
            }
            Some("can_use_tool") => {
                let tool = text(&fields, "tool_name").unwrap_or_default();
                self.failed(id, &FailRule::Permission { tool }, reason);
            }
            kind => self.refuse_request(id, kind.unwrap_or("a request").to_owned(), reason),
        }
    }

    /// A frame with an id that is not a request otherwise.
    fn unanswered(&mut self, id: &RequestId, envelope: &Envelope<'_>, reason: String) {
        // The CLI takes an error for the response of a hook that has nothing to say.
        if envelope.subtype.as_deref() == Some("hook_callback") {
            return self.failed(id, &self.rule_without_a_hook(None), reason);
        }
        let what = envelope.subtype.as_deref().unwrap_or("a request").to_owned();
        self.refuse_request(id, what, reason);
    }

    fn refuse_request(&mut self, id: &RequestId, what: String, mut reason: String) {
        truncate(&mut reason, MAX_REASON_BYTES);
        self.out.answer_error(id, &reason);
        self.out.warn(Notice::UnansweredRequest { what, reason });
    }

    /// Answers by the fail rule a request for which no callback is run.
    fn failed(&mut self, id: &RequestId, rule: &FailRule, mut reason: String) {
        truncate(&mut reason, MAX_REASON_BYTES);
        self.out.answer(id, &rule.answer(&reason));
        let (what, refused) = (rule.what(), rule.refuses());
        self.out.warn(Notice::CallbackFailed { what, reason, refused });
    }

    fn no_such_server(&mut self, id: &RequestId, message: &McpMessage) {
        let name = shorten(&message.server_name, MAX_NAME_BYTES);
        let reason = format!("the host has no MCP server named {name}");
        let answer = match fail_rule::mcp_id(&message.message) {
            Some(rpc_id) => fail_rule::mcp_error(&rpc_id, -32601, &reason),
            None => fail_rule::mcp_acknowledgement(),
        };
        self.out.answer(id, &answer);
        let what = mcp_rule(message).what();
        self.out.warn(Notice::UnansweredRequest { what, reason });
    }

    /// As the official SDKs do without a handler.
    fn decline(&mut self, id: &RequestId) {
        self.out.answer(id, &fail_rule::decline());
        let (what, reason) = ("elicitation".to_owned(), "declined".to_owned());
        self.out.warn(Notice::UnansweredRequest { what, reason });
    }

    /// As the official SDKs do without a handler: another client of the session may show it.
    fn leave_dialog(&mut self, kind: &str) {
        let what = format!("dialog {kind}");
        let reason = "nothing; another client of the session may show it".to_owned();
        self.out.warn(Notice::UnansweredRequest { what, reason });
    }

    /// Whether requests are served: not when nobody would read the answers any more, nor when the
    /// session is being stopped.
    fn takes_requests(&self) -> bool {
        self.out.is_open() && self.process.exited.is_none() && self.stop_reason.is_none()
    }
}

fn rule_of(plan: &HookPlan) -> FailRule {
    FailRule::Hook { event: plan.event.clone(), closed: plan.fail_closed }
}

fn mcp_rule(message: &McpMessage) -> FailRule {
    let server = message.server_name.clone();
    if fail_rule::is_mcp_answer(&message.message) {
        return FailRule::McpResponse { server };
    }
    FailRule::Mcp { server, id: fail_rule::mcp_id(&message.message) }
}

/// The event that the input of a hook request names.
fn event_in(request: &Extra) -> Option<String> {
    text(&request.get("input")?.deserialize().ok()?, "hook_event_name")
}

fn text(fields: &Extra, name: &str) -> Option<String> {
    fields.get(name)?.deserialize().ok()
}
