//! Whether a tool may run: rules, modes, hooks, the host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::engine::Engine;
use super::hooks::{Decision, Heard, HookCall};
use super::host::{Asked, Heard as HostHeard};
use super::json::{Object, array, text};
use super::rules::Rule;
use super::scope::{Call, Scope};
use super::state::{Answer, PendingKind, State, Told};

/// After this long the user is reminded that a question is open.
const REMINDER: Duration = Duration::from_secs(6);

/// What becomes of a call. `meta` holds fields of `tool_result_meta`.
pub(super) enum Verdict {
    Run(String),
    Refuse {
        text: String,
        meta: String,
    },
    /// The whole turn ends.
    Interrupt,
    /// The host takes the call over.
    Defer,
}

/// What the rules and the mode say.
enum Policy {
    Allow(Option<&'static str>),
    Deny(String),
    Ask,
    /// The automatic mode, which has nobody to ask here.
    Unavailable,
}

impl Engine {
    /// Decides about a call; an answer of the host may change its input.
    pub(super) async fn permit(
        self: &Arc<Self>,
        scope: &Scope,
        call: &mut Call,
        gate: &Heard,
    ) -> Verdict {
        match &gate.decision {
            Some(Decision::Deny(reason)) => {
                scope.note_denial(call);
                let text = format!("PreToolUse:{} hook error: {reason}", call.name);
                let meta = rejected("permission-rule", "hook", Some("hook"));
                return Verdict::Refuse { text, meta };
            }
            Some(Decision::Defer) => return Verdict::Defer,
            Some(Decision::Allow) => return Verdict::Run(accepted("hook", Some("hook"))),
            Some(Decision::Ask) => return self.ask_or_deny(scope, call).await,
            None => {}
        }
        let policy = self.policy(call);
        match policy {
            Policy::Allow(reason) => Verdict::Run(accepted("config", reason)),
            Policy::Deny(text) => {
                scope.note_denial(call);
                Verdict::Refuse { text, meta: rejected("permission-rule", "config", Some("rule")) }
            }
            Policy::Ask => self.ask_or_deny(scope, call).await,
            Policy::Unavailable => self.auto_unavailable(scope, call).await,
        }
    }

    fn policy(&self, call: &Call) -> Policy {
        let state = self.state();
        let covers = |rules: &[Rule]| rules.iter().any(|rule| rule.covers(&call.name, &call.input));
        if covers(&state.deny) {
            return Policy::Deny(format!("A rule denies this use of {}.", call.name));
        }
        if asks_always(&call.name) {
            return Policy::Ask;
        }
        if state.mode == "bypassPermissions" {
            return Policy::Allow(Some("mode"));
        }
        if covers(&state.allow) {
            return Policy::Allow(Some("rule"));
        }
        if needs_nothing(&call.name) {
            return Policy::Allow(None);
        }
        let inside = self.is_inside(&state, call);
        match (call.name.as_str(), state.mode.as_str()) {
            ("Read" | "Glob" | "Grep", _) if inside => return Policy::Allow(Some("mode")),
            ("Write" | "Edit" | "NotebookEdit", "acceptEdits") if inside => {
                return Policy::Allow(Some("mode"));
            }
            ("Bash", _) if only_looks(text(&call.input["command"])) => {
                return Policy::Allow(Some("other"));
            }
            (_, "dontAsk") => {
                return Policy::Deny(format!("{} is not allowed, and nobody is asked.", call.name));
            }
            (_, "auto") if self.launch.dialect.starts_in_auto_mode() => {
                return Policy::Allow(None);
            }
            (_, "auto") => return Policy::Unavailable,
            _ => {}
        }
        Policy::Ask
    }

    /// Whether a file tool stays in the directories of the session.
    fn is_inside(&self, state: &State, call: &Call) -> bool {
        let path = self.resolve(text(&call.input["file_path"]), state);
        let own = self.launch.cwd.clone();
        let others = state.directories.iter().map(std::path::PathBuf::from);
        std::iter::once(own).chain(others).any(|directory| path.starts_with(directory))
    }

    /// Asks the host, or refuses where nobody can be asked.
    async fn ask_or_deny(self: &Arc<Self>, scope: &Scope, call: &mut Call) -> Verdict {
        if self.launch.ask_host {
            return self.ask_host(scope, call).await;
        }
        scope.note_denial(call);
        let text = format!("{} needs approval, and nobody is there to be asked.", call.name);
        let fields = Object::new()
            .str("tool_name", &call.name)
            .str("tool_use_id", &call.id)
            .str("message", &text);
        self.system("permission_denied", fields).await;
        Verdict::Refuse { text, meta: rejected("user-rejected", "config", None) }
    }

    async fn auto_unavailable(&self, scope: &Scope, call: &Call) -> Verdict {
        scope.note_denial(call);
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
        self.say("system/informational", line).await;
        let text = format!("The automatic mode cannot check {}, so it was not run.", call.name);
        let fields = Object::new()
            .str("tool_name", &call.name)
            .str("tool_use_id", &call.id)
            .str("decision_reason_type", "classifier")
            .str("decision_reason_code", "auto_mode_no_check_in_session")
            .str("decision_reason", "Classifier unavailable")
            .str("message", &text);
        self.system("permission_denied", fields).await;
        let input = Object::new()
            .str("tool_name", &call.name)
            .value("tool_input", &call.input)
            .str("tool_use_id", &call.id)
            .str("reason", "Classifier unavailable");
        self.hook(scope, HookCall::tool("PermissionDenied", call, input)).await;
        Verdict::Refuse {
            text,
            meta: rejected("automode-unavailable", "config", Some("classifier")),
        }
    }

    async fn ask_host(self: &Arc<Self>, scope: &Scope, call: &mut Call) -> Verdict {
        self.tell_state(Told::RequiresAction).await;
        let suggestions = self.suggestions(call);
        let request = self.permission_request(scope, call, suggestions.as_deref());
        let mut asked = self.ask("can_use_tool", request, PendingKind::Turn).await;
        let verdict = self.await_permission(scope, call, &mut asked, suggestions).await;
        scope.rest_of_answer().await;
        self.tell_state(Told::Running).await;
        verdict
    }

    async fn await_permission(
        self: &Arc<Self>,
        scope: &Scope,
        call: &mut Call,
        asked: &mut Asked,
        suggestions: Option<String>,
    ) -> Verdict {
        let mut input = Object::new().str("tool_name", &call.name).value("tool_input", &call.input);
        if let Some(suggestions) = &suggestions {
            input = input.raw("permission_suggestions", suggestions);
        }
        let hook = self.hook(scope, HookCall::tool("PermissionRequest", call, input)).await;
        let decided = hook.outputs.iter().find(|output| output["decision"].is_object());
        if let Some(output) = decided {
            self.withdraw(&asked.id).await;
            return self.obey(scope, call, &output["decision"], true);
        }
        let first = self.hear(asked, Some(&scope.cancel), self.reminder()).await;
        let heard = match first {
            HostHeard::TimedOut => {
                self.remind(scope, call).await;
                self.hear(asked, Some(&scope.cancel), None).await
            }
            heard => heard,
        };
        match heard {
            HostHeard::Answer(Answer::Success(answer)) => self.obey(scope, call, &answer, false),
            HostHeard::Answer(Answer::Error(reason)) => {
                let text = format!("Tool permission request failed: Error: {reason}");
                refuse(scope, call, text)
            }
            HostHeard::Answer(Answer::Gone) | HostHeard::TimedOut => {
                let text = "Tool permission request failed: stdin was closed before an answer";
                refuse(scope, call, text.to_owned())
            }
            HostHeard::Cancelled => {
                scope.note_denial(call);
                Verdict::Interrupt
            }
        }
    }

    /// When to remind the user of an open question, if somebody wants to hear of it.
    fn reminder(&self) -> Option<Duration> {
        self.state().hooks.listens("Notification").then_some(REMINDER)
    }

    async fn remind(&self, scope: &Scope, call: &Call) {
        let input = Object::new()
            .str("message", &format!("{} waits for your permission", call.name))
            .str("notification_type", "permission_prompt");
        let hook = HookCall::new("Notification", input).about("permission_prompt");
        self.hook(scope, hook).await;
    }

    /// Does what the host, or a hook, has decided.
    fn obey(&self, scope: &Scope, call: &mut Call, answer: &Value, by_hook: bool) -> Verdict {
        let source = if by_hook { "hook" } else { "user_temporary" };
        match text(&answer["behavior"]) {
            "allow" => {
                if answer["updatedInput"].is_object() && call.name != "ExitPlanMode" {
                    call.input = answer["updatedInput"].clone();
                }
                self.update_permissions(&answer["updatedPermissions"]);
                Verdict::Run(accepted(source, None))
            }
            "deny" if answer["message"].is_string() || by_hook => {
                scope.note_denial(call);
                if answer["interrupt"] == true {
                    self.cancel_turn();
                    return Verdict::Interrupt;
                }
                let text = answer["message"].as_str().unwrap_or("denied by a hook").to_owned();
                let source = if by_hook { "hook" } else { "user_reject" };
                Verdict::Refuse { text, meta: rejected("permission-rule", source, None) }
            }
            _ => {
                let text = "The answer to the permission request is not valid: it needs the \
                            behavior `allow`, or `deny` and a message.";
                refuse(scope, call, text.to_owned())
            }
        }
    }

    /// Ends the running turn, as an interrupt does.
    pub(super) fn cancel_turn(&self) {
        if let Some(turn) = &self.state().turn {
            turn.cancel.send_replace(true);
        }
    }

    /// Takes updates of rules, directories and the mode over.
    pub(super) fn update_permissions(&self, updates: &Value) {
        let mut state = self.state();
        for update in updates.as_array().into_iter().flatten() {
            let rules: Vec<Rule> = update["rules"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Rule::from_update)
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

    fn permission_request(&self, scope: &Scope, call: &Call, suggestions: Option<&str>) -> Object {
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
        if asks_always(&call.name) {
            request = request.plain("requires_user_interaction", true);
        }
        request
    }

    /// The path that the call is about, as far as one can see.
    fn blocked_path(&self, call: &Call) -> Option<String> {
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

    fn suggestions(&self, call: &Call) -> Option<String> {
        if asks_always(&call.name) {
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

fn accepted(source: &str, reason: Option<&str>) -> String {
    let decision = Object::new()
        .str("decision", "accept")
        .str("source", source)
        .some_str("reason_type", reason);
    format!(r#""permission_decision":{}"#, decision.done())
}

fn rejected(kind: &str, source: &str, reason: Option<&str>) -> String {
    let decision = Object::new()
        .str("decision", "reject")
        .str("source", source)
        .some_str("reason_type", reason);
    format!(r#""non_execution_kind":"{kind}","permission_decision":{}"#, decision.done())
}

/// Tools that are a question to the user.
fn asks_always(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode")
}

/// Tools that touch nothing of the user's.
fn needs_nothing(tool: &str) -> bool {
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

/// Commands that only look, without anything that could make more of them.
fn only_looks(command: &str) -> bool {
    const LOOKS: [&str; 12] = [
        "echo", "ls", "cat", "pwd", "true", "head", "tail", "wc", "date", "whoami", "uname",
        "which",
    ];
    let first = command.split_whitespace().next().unwrap_or_default();
    LOOKS.contains(&first) && !command.contains(['|', '&', ';', '>', '<', '`', '$', '\n'])
}

fn refuse(scope: &Scope, call: &Call, text: String) -> Verdict {
    scope.note_denial(call);
    Verdict::Refuse { text, meta: rejected("permission-rule", "config", Some("other")) }
}
