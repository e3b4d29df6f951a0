//! IDs, each with its own type.

string_id! {
    /// The ID of a session, a UUID.
    SessionId,
    /// The ID of a message, `uuid` on the wire. The ID of a user message is also the argument of
    /// `rewind_files` and `cancel_async_message`.
    MessageId,
    /// The ID of a control request and its response.
    RequestId,
    /// The ID of a tool call.
    ToolUseId,
    /// The ID of a background task of the CLI.
    TaskId,
    /// The ID of a subagent.
    AgentId,
    /// The ID of a hook callback, chosen by the host.
    CallbackId,
}
