//! Ids, each its own type.

string_id! {
    /// A session, as the CLI names it (a UUID).
    SessionId,
    /// A message on the wire, `uuid` there. For a user message it is also what `rewind_files` and
    /// `cancel_async_message` take.
    MessageId,
    /// A control request and its answer.
    RequestId,
    /// A tool call of the model.
    ToolUseId,
    /// A background task of the CLI.
    TaskId,
    /// A subagent.
    AgentId,
    /// A hook callback, as the host registered it.
    CallbackId,
}
