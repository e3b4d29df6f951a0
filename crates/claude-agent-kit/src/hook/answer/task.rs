//! Subagents, tasks and teammates.

use claude_wire::control::{SubagentStartOutput, SubagentStopOutput};

use super::Nothing;

specific!(SubagentStartOutput, SubagentStopOutput);

answer! {
    /// What a hook for [`SubagentStart`](crate::hook::SubagentStart) answers.
    SubagentStart(SubagentStartInput) => SubagentStartAnswer(SubagentStartOutput) {
        /// What the subagent is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`SubagentStop`](crate::hook::SubagentStop) answers. `block` makes the subagent
    /// go on.
    SubagentStop(SubagentStopInput) => SubagentStopAnswer(SubagentStopOutput) [block] {
        /// What the subagent is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`TaskCreated`](crate::hook::TaskCreated) answers.
    TaskCreated(TaskCreatedInput) => TaskCreatedAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`TaskCompleted`](crate::hook::TaskCompleted) answers.
    TaskCompleted(TaskCompletedInput) => TaskCompletedAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`TeammateIdle`](crate::hook::TeammateIdle) answers.
    TeammateIdle(TeammateIdleInput) => TeammateIdleAnswer(Nothing) {}
}
