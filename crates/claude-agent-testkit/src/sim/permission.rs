//! Decides whether a tool call may run: by rules, permission mode, hooks and the host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::engine::Engine;
use super::hooks::{HookCall, HookDecision, HookOutcome};
use super::host_requests::{HostRequest, ResponseOutcome};
use super::json::{Object, array, text};
use super::permission_rule::PermissionRule;
use super::scope::{Scope, ToolCall};
use super::state::{HostResponse, PendingKind, SessionState, SessionStatus};

/// The time after which a `Notification` hook reminds the user of a pending permission request.
const REMINDER: Duration = Duration::from_secs(6);

/// The decision on a tool call. `meta` contains fields of `tool_result_meta`.
pub(super) enum PermissionVerdict {
    Run(String),
    Deny {
        text: String,
        meta: String,
    },
    /// Ends the turn.
    Interrupt,
    /// Hands the call over to the host.
    Defer,
}

/// The decision of the rules and the permission mode.
enum RuleDecision {
    Allow(Option<&'static str>),
    Deny(String),
    Ask,
    /// The mode is `auto`, whose classifier is not available here.
    Unavailable,
}

impl Engine {
    /// Decides on a call. The response of the host may change its input.
    pub(super) async fn check_permission(
        self: &Arc<Self>,
        scope: &Scope,
        call: &mut ToolCall,
        hook_outcome: &HookOutcome,
    ) -> PermissionVerdict {
        match &hook_outcome.decision {
            Some(HookDecision::Deny(reason)) => {
                scope.record_denial(call);
                let text = format!("PreToolUse:{} hook error: {reason}", call.name);
                let meta = reject_meta("permission-rule", "hook", Some("hook"));
                return PermissionVerdict::Deny { text, meta };
            }
            Some(HookDecision::Defer) => return PermissionVerdict::Defer,
            Some(HookDecision::Allow) => {
                return PermissionVerdict::Run(accept_meta("hook", Some("hook")));
            }
            Some(HookDecision::Ask) => return self.ask_or_deny(scope, call).await,
            None => {}
        }
        let rule_decision = self.rule_decision(call);
        match rule_decision {
            RuleDecision::Allow(reason) => PermissionVerdict::Run(accept_meta("config", reason)),
            RuleDecision::Deny(text) => {
                scope.record_denial(call);
                PermissionVerdict::Deny {
                    text,
                    meta: reject_meta("permission-rule", "config", Some("rule")),
                }
            }
            RuleDecision::Ask => self.ask_or_deny(scope, call).await,
            RuleDecision::Unavailable => self.auto_unavailable(scope, call).await,
        }
    }

    fn rule_decision(&self, call: &ToolCall) -> RuleDecision {
        let state = self.state();
        let covers = |rules: &[PermissionRule]| {
            rules.iter().any(|rule| rule.covers(&call.name, &call.input))
        };
        if covers(&state.deny) {
            return RuleDecision::Deny(format!("A rule denies this use of {}.", call.name));
        }
        if always_asks(&call.name) {
            return RuleDecision::Ask;
        }
        if state.mode == "bypassPermissions" {
            return RuleDecision::Allow(Some("mode"));
        }
        if covers(&state.allow) {
            return RuleDecision::Allow(Some("rule"));
        }
        if is_always_allowed(&call.name) {
            return RuleDecision::Allow(None);
        }
        let inside = self.is_inside(&state, call);
        match (call.name.as_str(), state.mode.as_str()) {
            ("Read" | "Glob" | "Grep", _) if inside => return RuleDecision::Allow(Some("mode")),
            ("Write" | "Edit" | "NotebookEdit", "acceptEdits") if inside => {
                return RuleDecision::Allow(Some("mode"));
            }
            ("Bash", _) if is_read_only_command(text(&call.input["command"])) => {
                return RuleDecision::Allow(Some("other"));
            }
            (_, "dontAsk") => {
                return RuleDecision::Deny(format!(
                    "{} is not allowed in this permission mode.",
                    call.name
                ));
            }
            (_, "auto") if self.launch.cli_version.starts_in_auto_mode() => {
                return RuleDecision::Allow(None);
            }
            (_, "auto") => return RuleDecision::Unavailable,
            _ => {}
        }
        RuleDecision::Ask
    }

    /// Returns whether the path of a file tool is inside the directories of the session.
    fn is_inside(&self, state: &SessionState, call: &ToolCall) -> bool {
        let path = self.resolve(text(&call.input["file_path"]), state);
        let own = self.launch.cwd.clone();
        let others = state.directories.iter().map(std::path::PathBuf::from);
        std::iter::once(own).chain(others).any(|directory| path.starts_with(directory))
    }

    /// Sends a permission request to the host, or denies the call if the host does not handle them.
    async fn ask_or_deny(
        self: &Arc<Self>,
        scope: &Scope,
        call: &mut ToolCall,
    ) -> PermissionVerdict {
        if self.launch.ask_host {
            return self.ask_host(scope, call).await;
        }
        scope.record_denial(call);
        let text = format!("{} needs approval, and nobody is there to be asked.", call.name);
        let fields = Object::new()
            .str("tool_name", &call.name)
            .str("tool_use_id", &call.id)
            .str("message", &text);
        self.emit_system("permission_denied", fields).await;
        PermissionVerdict::Deny { text, meta: reject_meta("user-rejected", "config", None) }
    }

    async fn auto_unavailable(&self, scope: &Scope, call: &ToolCall) -> PermissionVerdict {
        scope.record_denial(call);
        let notice = "The automatic mode has nothing to check actions with here.";
        let line = Object::typed("system")
            .str("subtype", "informational")
            .str("content", notice)
            .plain("isMeta", false)
            .str("timestamp", &super::ids::timestamp())
            .str("uuid", &self.ids.uuid())
            .str("level", "warning")
            .str("tag", "auto_mode_no_server_check")
            .str("session_id", &self.session_id());
        self.emit("system/informational", line).await;
        let text = format!("The automatic mode cannot check {}, so it was not run.", call.name);
        let fields = Object::new()
            .str("tool_name", &call.name)
            .str("tool_use_id", &call.id)
            .str("decision_reason_type", "classifier")
            .str("decision_reason_code", "auto_mode_no_check_in_session")
            .str("decision_reason", "Classifier unavailable")
            .str("message", &text);
        self.emit_system("permission_denied", fields).await;
        let input = Object::new()
            .str("tool_name", &call.name)
            .value("tool_input", &call.input)
            .str("tool_use_id", &call.id)
            .str("reason", "Classifier unavailable");
        self.run_hooks(scope, HookCall::for_tool("PermissionDenied", call, input)).await;
        PermissionVerdict::Deny {
            text,
            meta: reject_meta("automode-unavailable", "config", Some("classifier")),
        }
    }

    async fn ask_host(self: &Arc<Self>, scope: &Scope, call: &mut ToolCall) -> PermissionVerdict {
        self.set_status(SessionStatus::RequiresAction).await;
        let suggestions = self.suggestions(call);
        let request = self.permission_request(scope, call, suggestions.as_deref());
        let mut pending = self.send_request("can_use_tool", request, PendingKind::Turn).await;
        let verdict = self.await_permission(scope, call, &mut pending, suggestions).await;
        scope.wait_for_answer().await;
        self.set_status(SessionStatus::Running).await;
        verdict
    }

    async fn await_permission(
        self: &Arc<Self>,
        scope: &Scope,
        call: &mut ToolCall,
        pending: &mut HostRequest,
        suggestions: Option<String>,
    ) -> PermissionVerdict {
        let mut input = Object::new().str("tool_name", &call.name).value("tool_input", &call.input);
        if let Some(suggestions) = &suggestions {
            input = input.raw("permission_suggestions", suggestions);
        }
        let hook =
            self.run_hooks(scope, HookCall::for_tool("PermissionRequest", call, input)).await;
        let decided = hook.outputs.iter().find(|output| output["decision"].is_object());
        if let Some(output) = decided {
            self.cancel_request(&pending.id).await;
            return self.apply_decision(scope, call, &output["decision"], true);
        }
        let first = self.wait_for_response(pending, Some(&scope.cancel), self.reminder()).await;
        let reply = match first {
            ResponseOutcome::TimedOut => {
                self.remind(scope, call).await;
                self.wait_for_response(pending, Some(&scope.cancel), None).await
            }
            reply => reply,
        };
        match reply {
            ResponseOutcome::Response(HostResponse::Success(answer)) => {
                self.apply_decision(scope, call, &answer, false)
            }
            ResponseOutcome::Response(HostResponse::Error(reason)) => {
                let text = format!("Tool permission request failed: Error: {reason}");
                deny(scope, call, text)
            }
            ResponseOutcome::Response(HostResponse::Closed) | ResponseOutcome::TimedOut => {
                let text = "Tool permission request failed: stdin was closed before an answer";
                deny(scope, call, text.to_owned())
            }
            ResponseOutcome::Cancelled => {
                scope.record_denial(call);
                PermissionVerdict::Interrupt
            }
        }
    }

    /// Returns the time until the reminder, if a hook is registered for it.
    fn reminder(&self) -> Option<Duration> {
        self.state().hooks.has_hooks_for("Notification").then_some(REMINDER)
    }

    async fn remind(&self, scope: &Scope, call: &ToolCall) {
        let input = Object::new()
            .str("message", &format!("{} waits for your permission", call.name))
            .str("notification_type", "permission_prompt");
        let hook = HookCall::new("Notification", input).with_subject("permission_prompt");
        self.run_hooks(scope, hook).await;
    }

    /// Applies the decision of the host or a hook.
    fn apply_decision(
        &self,
        scope: &Scope,
        call: &mut ToolCall,
        answer: &Value,
        by_hook: bool,
    ) -> PermissionVerdict {
        let source = if by_hook { "hook" } else { "user_temporary" };
        match text(&answer["behavior"]) {
            "allow" => {
                if answer["updatedInput"].is_object() && call.name != "ExitPlanMode" {
                    call.input = answer["updatedInput"].clone();
                }
                self.update_permissions(&answer["updatedPermissions"]);
                PermissionVerdict::Run(accept_meta(source, None))
            }
            "deny" if answer["message"].is_string() || by_hook => {
                scope.record_denial(call);
                if answer["interrupt"] == true {
                    self.cancel_turn();
                    return PermissionVerdict::Interrupt;
                }
                let text = answer["message"].as_str().unwrap_or("denied by a hook").to_owned();
                let source = if by_hook { "hook" } else { "user_reject" };
                PermissionVerdict::Deny { text, meta: reject_meta("permission-rule", source, None) }
            }
            _ => {
                let text = "The answer to the permission request is not valid: it needs the \
                            behavior `allow`, or `deny` and a message.";
                deny(scope, call, text.to_owned())
            }
        }
    }

    /// Ends the running turn, as an interrupt does.
    pub(super) fn cancel_turn(&self) {
        if let Some(turn) = &self.state().turn {
            turn.cancel.send_replace(true);
        }
    }

    /// Applies permission updates: rules, directories and the mode.
    pub(super) fn update_permissions(&self, updates: &Value) {
        let mut state = self.state();
        for update in updates.as_array().into_iter().flatten() {
            let rules: Vec<PermissionRule> = update["rules"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(PermissionRule::from_update)
                .collect();
            let denies = update["behavior"] == "deny";
            let list = if denies { &mut state.deny } else { &mut state.allow };
            match text(&update["type"]) {
                "addRules" if update["behavior"] != "ask" => list.extend(rules),
                "replaceRules" => *list = rules,
                "removeRules" => list.retain(|rule| !rules.contains(rule)),
                "setMode" => text(&update["mode"]).clone_into(&mut state.mode),
                "addDirectories" => {
                    let added = update["directories"].as_array().into_iter().flatten();
                    let added: Vec<String> = added.map(|path| text(path).to_owned()).collect();
                    state.directories.extend(added);
                }
                _ => {}
            }
        }
    }

    fn permission_request(
        &self,
        scope: &Scope,
        call: &ToolCall,
        suggestions: Option<&str>,
    ) -> Object {
        let input =
            if call.name == "ExitPlanMode" { "{}".to_owned() } else { call.input.to_string() };
        let mut request = Object::new()
            .str("subtype", "can_use_tool")
            .str("tool_name", &call.name)
            .str("display_name", &call.name)
            .raw("input", &input)
            .some_str("description", call.input["description"].as_str());
        if let Some(suggestions) = suggestions {
            request = request.raw("permission_suggestions", suggestions);
        }
        request = request
            .some_str("blocked_path", self.blocked_path(call).as_deref())
            .str("tool_use_id", &call.id)
            .some_str("agent_id", scope.agent.as_ref().map(|agent| agent.id.as_str()));
        if always_asks(&call.name) {
            request = request.plain("requires_user_interaction", true);
        }
        request
    }

    /// Returns the path that the call affects, if it can be determined.
    fn blocked_path(&self, call: &ToolCall) -> Option<String> {
        let state = self.state();
        let path = match call.name.as_str() {
            "Bash" => {
                let mut words = text(&call.input["command"]).split_whitespace();
                let changes = ["touch", "rm", "mkdir", "cp", "mv"];
                words.next().filter(|word| changes.contains(word))?;
                words.find(|word| !word.starts_with('-'))?
            }
            "Write" | "Edit" | "Read" => call.input["file_path"].as_str()?,
            _ => return None,
        };
        Some(self.resolve(path, &state).to_string_lossy().into_owned())
    }

    fn suggestions(&self, call: &ToolCall) -> Option<String> {
        if always_asks(&call.name) {
            return None;
        }
        let content = call.input["command"].as_str().map(|command| format!("{command} *"));
        let rule = Object::new()
            .str("toolName", &call.name)
            .some_str("ruleContent", content.as_deref())
            .done();
        let rules = Object::typed("addRules")
            .raw("rules", &array([rule]))
            .str("behavior", "allow")
            .str("destination", "localSettings")
            .done();
        let mut suggestions = vec![rules];
        if self.blocked_path(call).is_some() {
            let cwd = self.launch.cwd.to_string_lossy().into_owned();
            suggestions.push(
                Object::typed("addDirectories")
                    .strings("directories", &[cwd])
                    .str("destination", "session")
                    .done(),
            );
            suggestions.push(
                Object::typed("setMode")
                    .str("mode", "acceptEdits")
                    .str("destination", "session")
                    .done(),
            );
        }
        Some(array(suggestions))
    }
}

fn accept_meta(source: &str, reason: Option<&str>) -> String {
    let decision = Object::new()
        .str("decision", "accept")
        .str("source", source)
        .some_str("reason_type", reason);
    format!(r#""permission_decision":{}"#, decision.done())
}

fn reject_meta(kind: &str, source: &str, reason: Option<&str>) -> String {
    let decision = Object::new()
        .str("decision", "reject")
        .str("source", source)
        .some_str("reason_type", reason);
    format!(r#""non_execution_kind":"{kind}","permission_decision":{}"#, decision.done())
}

/// Returns whether the tool always asks the user.
fn always_asks(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode")
}

/// Returns whether the tool has no effect on files or the system of the user.
fn is_always_allowed(tool: &str) -> bool {
    matches!(
        tool,
        "Agent"
            | "Task"
            | "TaskCreate"
            | "TaskUpdate"
            | "TaskList"
            | "TaskGet"
            | "TaskStop"
            | "StructuredOutput"
            | "ToolSearch"
            | "ListAgents"
            | "EnterPlanMode"
            | "TodoWrite"
    )
}

/// Returns whether the command is known to be read-only and contains no shell operators.
fn is_read_only_command(command: &str) -> bool {
    const READ_ONLY: [&str; 12] = [
        "echo", "ls", "cat", "pwd", "true", "head", "tail", "wc", "date", "whoami", "uname",
        "which",
    ];
    let first = command.split_whitespace().next().unwrap_or_default();
    READ_ONLY.contains(&first) && !command.contains(['|', '&', ';', '>', '<', '`', '$', '\n'])
}

fn deny(scope: &Scope, call: &ToolCall, text: String) -> PermissionVerdict {
    scope.record_denial(call);
    PermissionVerdict::Deny { text, meta: reject_meta("permission-rule", "config", Some("other")) }
}
