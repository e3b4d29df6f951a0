//! Protocol differences between versions of the CLI.
//!
//! The simulated CLI implements the newest version. For an older version, everything that was added
//! later is omitted. `docs/cli-versions.md` lists the same differences, as observed in released
//! CLIs.

use serde_json::{Map, Value};

/// Additions to the protocol: the part, the name, and the number after `2.1.` of the first version
/// that has it.
const ADDED: &[(ProtocolPart, &str, u32)] = &[
    (ProtocolPart::Handshake, "capabilities", 286),
    (ProtocolPart::Handshake, "claude_code_version", 301),
    (ProtocolPart::Handshake, "feedback_mode", 284),
    (ProtocolPart::Handshake, "hook_on_failure_supported", 317),
    (ProtocolPart::Handshake, "hooks_when_unanswered_kept", 326),
    (ProtocolPart::Handshake, "mcp_servers_applied", 326),
    (ProtocolPart::Handshake, "other_hook_ask_outranks_host", 321),
    (ProtocolPart::Handshake, "remote_control_auto_connect_default", 269),
    (ProtocolPart::Handshake, "user_output_styles_dir", 268),
    (ProtocolPart::Init, "additional_directories", 301),
    (ProtocolPart::Init, "original_cwd", 301),
    (ProtocolPart::Init, "per_turn_effort_active", 281),
    (ProtocolPart::Init, "ultrathink_available", 316),
    (ProtocolPart::Init, "ultrathink_typed_raises", 317),
    (ProtocolPart::Init, "user_message_uuids", 301),
    (ProtocolPart::Init, "view_mode", 281),
    (ProtocolPart::Message, "system/session_state_changed", 284),
    (ProtocolPart::Operation, "get_hooks_listing", 269),
    (ProtocolPart::Operation, "get_task_output", 287),
    (ProtocolPart::Operation, "list_permission_rules", 269),
    (ProtocolPart::Operation, "mcp_read_resource", 280),
    (ProtocolPart::Operation, "set_has_subscribers", 319),
    (ProtocolPart::Result, "api_error_type", 325),
    (ProtocolPart::Result, "first_request_cache_read_input_tokens", 321),
    (ProtocolPart::Result, "first_request_input_tokens", 286),
    (ProtocolPart::Result, "local_command", 268),
    (ProtocolPart::Result, "model_usage_since_last_result", 309),
    (ProtocolPart::Result, "result_index", 268),
    (ProtocolPart::Result, "safety_stops", 292),
];

/// A part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolPart {
    Handshake,
    Init,
    Message,
    Operation,
    Result,
}

/// The protocol of a version.
#[derive(Debug, Clone, Copy)]
pub(super) struct CliVersion {
    /// The number after `2.1.`.
    patch: u32,
}

impl Default for CliVersion {
    /// Returns the newest version.
    fn default() -> Self {
        Self { patch: u32::MAX }
    }
}

impl CliVersion {
    /// Parses a version. Anything other than 2.1.x counts as the newest version.
    pub(super) fn parse(version: &str) -> Self {
        let patch = version.strip_prefix("2.1.").and_then(|patch| patch.parse().ok());
        patch.map_or_else(Self::default, |patch| Self { patch })
    }

    pub(super) fn has(self, part: ProtocolPart, name: &str) -> bool {
        let added = ADDED.iter().find(|added| (added.0, added.1) == (part, name));
        added.is_none_or(|(_, _, since)| self.patch >= *since)
    }

    /// Returns whether every result names its messages, including local results, deferred calls and
    /// turns that the CLI started.
    pub(super) fn names_messages_in_every_result(self) -> bool {
        self.patch >= 265
    }

    /// Returns whether the CLI responds to unknown commands itself. Later versions pass them to the
    /// model.
    pub(super) fn answers_unknown_commands(self) -> bool {
        self.patch < 265
    }

    /// Returns whether the costs include responses that were interrupted or cut, with estimated output.
    pub(super) fn estimates_incomplete_output(self) -> bool {
        self.patch >= 326
    }

    /// Returns whether the JSON-RPC IDs for servers of the host are strings.
    pub(super) fn has_textual_rpc_ids(self) -> bool {
        self.patch >= 326
    }

    /// Returns whether the response to `cancel_async_message` names the message.
    pub(super) fn names_cancelled_message(self) -> bool {
        self.patch >= 326
    }

    /// Returns whether the totals of a resumed conversation are restored.
    pub(super) fn restores_totals(self) -> bool {
        self.patch >= 280
    }

    /// Returns whether a conversation of one turn can be compacted.
    pub(super) fn compacts_one_turn(self) -> bool {
        self.patch >= 269
    }

    /// Returns the default permission mode.
    pub(super) fn default_mode(self) -> &'static str {
        if self.starts_in_auto_mode() { "auto" } else { "default" }
    }

    /// Returns whether the default mode is `auto`, in which calls run without a permission request.
    pub(super) fn starts_in_auto_mode(self) -> bool {
        (285..=301).contains(&self.patch)
    }

    /// Returns a line as this version writes it; `None` if this version does not have the message.
    pub(super) fn render_line(self, kind: &str, json: &str) -> Option<String> {
        if !self.has(ProtocolPart::Message, kind) {
            return None;
        }
        let part = match kind {
            "result" => ProtocolPart::Result,
            "system/init" => ProtocolPart::Init,
            "control_response/initialize" => ProtocolPart::Handshake,
            _ => return Some(json.to_owned()),
        };
        let Ok(Value::Object(mut line)) = serde_json::from_str::<Value>(json) else {
            return Some(json.to_owned());
        };
        let fields = match part {
            ProtocolPart::Handshake => {
                line.get_mut("response").and_then(|it| it.get_mut("response"))
            }
            _ => None,
        };
        match fields.and_then(Value::as_object_mut) {
            Some(fields) => self.strip(part, fields),
            None => self.strip(part, &mut line),
        }
        Some(Value::Object(line).to_string())
    }

    fn strip(self, part: ProtocolPart, fields: &mut Map<String, Value>) {
        fields.retain(|name, _| self.has(part, name));
    }

    /// Returns whether nothing has to be omitted.
    pub(super) fn is_newest(self) -> bool {
        ADDED.iter().all(|(_, _, since)| self.patch >= *since)
    }
}
