//! The session, its context and its model.

use crate::control::HookPermission;
use crate::json::{List, Number};

hook_input! {
    /// A session starts.
    SessionStartInput = "SessionStart" {
        /// `startup`, `resume`, `clear`, `compact` or `fork`.
        source: Option<String>,
        /// The model.
        model: Option<String>,
        /// The session's title.
        session_title: Option<String>,
        /// The time since the last answer of the model in seconds.
        seconds_since_last_response: Option<Number>,
        /// The tokens in the context.
        context_tokens: Option<Number>,
        /// Whether the prompt cache has probably expired.
        prompt_cache_likely_expired: Option<bool>,
        /// The cost of filling it again in US dollars.
        estimated_cache_write_usd: Option<Number>,
    }
}

hook_output! {
    /// The output for a session that starts.
    SessionStartOutput = "SessionStart" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
        /// The first prompt.
        initial_user_message: Option<String> as "initialUserMessage",
        /// The session's title.
        session_title: Option<String> as "sessionTitle",
        /// The files to watch for changes.
        watch_paths: List<String> as "watchPaths",
        /// Whether to reload the skills.
        reload_skills: Option<bool> as "reloadSkills",
    }
}

hook_input! {
    /// A session ends.
    SessionEndInput = "SessionEnd" {
        /// The reason.
        reason: Option<String>,
    }
}

hook_input! {
    /// The CLI runs its setup.
    SetupInput = "Setup" {
        /// `init` or `maintenance`.
        trigger: Option<String>,
    }
}

hook_output! {
    /// The output for the setup.
    SetupOutput = "Setup" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// The conversation is about to be compacted.
    PreCompactInput = "PreCompact" {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// The instructions of the user for the summary.
        custom_instructions: Option<String>,
    }
}

hook_input! {
    /// The conversation was compacted.
    PostCompactInput = "PostCompact" {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// The summary.
        compact_summary: Option<String>,
    }
}

hook_input! {
    /// The model is about to change.
    PreModelSwitchInput = "PreModelSwitch" {
        /// The model before.
        from_model: Option<String>,
        /// The model after.
        to_model: Option<String>,
        /// The requested value.
        requested_model: Option<String>,
        /// The source of the request.
        source: Option<String>,
        /// The tokens in the context.
        context_tokens: Option<Number>,
        /// Whether the prompt cache is warm.
        prompt_cache_warm: Option<bool>,
        /// The lifetime of the cache.
        cache_ttl: Option<String>,
        /// The cost of filling it for the new model in US dollars.
        estimated_cache_write_usd: Option<Number>,
        /// The basis of the cost.
        pricing: Option<String>,
    }
}

hook_output! {
    /// The output for a model that is about to change.
    PreModelSwitchOutput = "PreModelSwitch" {
        /// The permission decision.
        permission_decision: Option<HookPermission> as "permissionDecision",
        /// The reason.
        permission_decision_reason: Option<String> as "permissionDecisionReason",
    }
}

hook_input! {
    /// The model changed.
    PostModelSwitchInput = "PostModelSwitch" {
        /// The model before.
        from_model: Option<String>,
        /// The model after.
        to_model: Option<String>,
        /// The requested value.
        requested_model: Option<String>,
        /// The source of the request.
        source: Option<String>,
        /// The tokens in the context.
        context_tokens: Option<Number>,
        /// Whether the prompt cache is warm.
        prompt_cache_warm: Option<bool>,
        /// The lifetime of the cache.
        cache_ttl: Option<String>,
        /// The cost of filling it for the new model in US dollars.
        estimated_cache_write_usd: Option<Number>,
        /// The basis of the cost.
        pricing: Option<String>,
    }
}

hook_output! {
    /// The output for a changed model.
    PostModelSwitchOutput = "PostModelSwitch" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}
