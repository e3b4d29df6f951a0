//! The messages that the CLI writes, with the key order of the real CLI.

use serde_json::Value;

use super::engine::Engine;
use super::ids::timestamp;
use super::json::{Object, array};
use super::scope::Scope;
use super::state::SessionStatus;

impl Engine {
    /// Writes a message, if the output format is `stream-json`.
    pub(super) async fn emit(&self, kind: &str, line: Object) {
        if self.writes_stream_json() {
            self.write(kind, &line.done()).await;
        }
    }

    pub(super) fn session_id(&self) -> String {
        self.state().session_id.clone()
    }

    /// Returns `uuid` and `session_id`, with which most messages end.
    pub(super) fn uuid_and_session(&self) -> Object {
        Object::new().str("uuid", &self.ids.uuid()).str("session_id", &self.session_id())
    }

    /// Writes a system message that ends with `uuid` and `session_id`.
    pub(super) async fn emit_system(&self, subtype: &str, fields: Object) {
        let line = Object::typed("system").str("subtype", subtype).fields(&fields);
        let line = line.fields(&self.uuid_and_session());
        self.emit(&format!("system/{subtype}"), line).await;
    }

    /// Writes a system message with `session_id` before `uuid`, followed by `then`.
    pub(super) async fn emit_system_with(&self, subtype: &str, fields: Object, then: Object) {
        let line = Object::typed("system")
            .str("subtype", subtype)
            .fields(&fields)
            .str("session_id", &self.session_id())
            .str("uuid", &self.ids.uuid())
            .fields(&then);
        self.emit(&format!("system/{subtype}"), line).await;
    }

    /// Sets the status of the session, and reports it if it changed.
    pub(super) async fn set_status(&self, status: SessionStatus) {
        {
            let mut state = self.state();
            if state.status == status {
                return;
            }
            state.status = status;
        }
        self.emit_status().await;
    }

    /// Reports the status of the session, if the host has enabled that.
    pub(super) async fn emit_status(&self) {
        if !self.launch.is_enabled("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
            return;
        }
        let status = self.state().status;
        let fields = Object::new().str("state", status.name()).plain("sdk_host_only", true);
        self.emit_system("session_state_changed", fields).await;
    }

    pub(super) async fn emit_lifecycle(&self, uuid: &str, state: &str) {
        let line = Object::typed("command_lifecycle")
            .str("command_uuid", uuid)
            .str("state", state)
            .fields(&self.uuid_and_session());
        self.emit("command_lifecycle", line).await;
    }

    pub(super) async fn emit_informational(&self, content: &str, level: &str, fields: Object) {
        let fields = Object::new().str("content", content).str("level", level).fields(&fields);
        self.emit_system("informational", fields).await;
    }

    /// Writes a user message of the CLI. `content` is JSON; `fields` are added at the end.
    pub(super) async fn emit_user_line(&self, scope: &Scope, content: &str, fields: Object) {
        let message = Object::new().str("role", "user").raw("content", content).done();
        let line = Object::typed("user")
            .raw("message", &message)
            .fields(&scope.parent_fields())
            .str("session_id", &self.session_id())
            .str("uuid", &self.ids.uuid())
            .str("timestamp", &timestamp())
            .fields(&fields)
            .fields(&scope.agent_fields());
        self.emit("user", line).await;
    }

    /// Writes a user message with one text and adds it to the conversation.
    pub(super) async fn emit_user_text(&self, scope: &Scope, text: &str, fields: Object) {
        super::state::lock(&scope.conversation).user_text(text);
        scope.count_user_message();
        let block = Object::typed("text").str("text", text).done();
        self.emit_user_line(scope, &array([block]), fields).await;
    }

    /// Echoes a message of the host.
    pub(super) async fn emit_replay(&self, content: &Value, uuid: &str) {
        let message = Object::new().str("role", "user").value("content", content).done();
        let line = Object::typed("user")
            .raw("message", &message)
            .str("session_id", &self.session_id())
            .null("parent_tool_use_id")
            .str("uuid", uuid)
            .str("timestamp", &timestamp())
            .plain("isReplay", true);
        self.emit("user", line).await;
    }

    /// Writes the output of a local command.
    pub(super) async fn emit_local_output(&self, text: &str) {
        let content = format!("<local-command-stdout>{text}</local-command-stdout>");
        let uuid = self.ids.uuid();
        self.emit_replay(&content.into(), &uuid).await;
    }

    /// Writes an assistant message with one block.
    pub(super) async fn emit_assistant(
        &self,
        scope: &Scope,
        message: &MessageHead<'_>,
        block: &str,
        fields: Object,
    ) {
        let body = Object::new()
            .str("id", message.id)
            .str("type", "message")
            .str("role", "assistant")
            .str("model", message.model)
            .raw("content", &array([block]))
            .null("stop_reason")
            .null("stop_sequence")
            .raw("usage", &crate::mock_api::message::usage_json(message.input_tokens, 0))
            .null("context_management")
            .done();
        self.emit_assistant_line(scope, &body, message.uuid, fields).await;
    }

    /// Writes an assistant message that does not come from the model.
    pub(super) async fn emit_synthetic(
        &self,
        scope: &Scope,
        text: &str,
        stop: StopReason,
        fields: Object,
    ) {
        let block = Object::typed("text").str("text", text).done();
        let body = Object::new()
            .null("diagnostics")
            .str("id", &self.ids.uuid())
            .null("container")
            .str("model", "<synthetic>")
            .str("role", "assistant")
            .null("stop_details")
            .str("stop_reason", stop.reason())
            .raw("stop_sequence", stop.sequence())
            .str("type", "message")
            .raw("usage", SYNTHETIC_USAGE)
            .raw("content", &array([block]))
            .null("context_management")
            .done();
        let uuid = self.ids.uuid();
        self.emit_assistant_line(scope, &body, &uuid, fields).await;
    }

    async fn emit_assistant_line(&self, scope: &Scope, body: &str, uuid: &str, fields: Object) {
        if scope.agent.as_ref().is_some_and(|agent| agent.background) {
            drop(self.result_lock.lock().await);
        }
        let line = Object::typed("assistant")
            .raw("message", body)
            .fields(&scope.parent_fields())
            .str("session_id", &self.session_id())
            .str("uuid", uuid)
            .str("timestamp", &timestamp())
            .fields(&fields)
            .fields(&scope.name_prompts())
            .fields(&scope.agent_fields());
        self.emit("assistant", line).await;
    }
}

/// The common fields of the blocks of one assistant message.
pub(super) struct MessageHead<'a> {
    pub(super) id: &'a str,
    pub(super) model: &'a str,
    pub(super) input_tokens: u64,
    /// The UUID of the line.
    pub(super) uuid: &'a str,
}

/// The stop reason of a message that does not come from the model.
#[derive(Debug, Clone, Copy)]
pub(super) enum StopReason {
    EndTurn,
    Sequence,
    OperationError,
}

impl StopReason {
    fn reason(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::Sequence => "stop_sequence",
            Self::OperationError => "refusal",
        }
    }

    fn sequence(self) -> &'static str {
        match self {
            Self::EndTurn => "null",
            Self::Sequence | Self::OperationError => "\"\"",
        }
    }
}

const SYNTHETIC_USAGE: &str = r#"{"output_tokens_details":null,"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":null,"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0},"inference_geo":null,"iterations":null,"speed":null,"fallback_credit":null}"#;
