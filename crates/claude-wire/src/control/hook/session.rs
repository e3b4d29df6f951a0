//! The session, its context and its model.

use crate::control::HookPermission;
use crate::json::{List, Number};

hook_input! {
    /// A session begins.
    SessionStartInput = "SessionStart" {
        /// `startup`, `resume`, `clear`, `compact` or `fork`.
        source: Option<String>,
        /// The model.
        model: Option<String>,
        /// The session's title.
        session_title: Option<String>,
        /// Seconds since the model last answered.
        seconds_since_last_response: Option<Number>,
        /// Tokens in the context.
        context_tokens: Option<Number>,
        /// Whether the prompt cache is probably gone.
        prompt_cache_likely_expired: Option<bool>,
        /// Dollars to fill it again.
        estimated_cache_write_usd: Option<Number>,
    }
}

hook_output! {
    /// For a session that begins.
    SessionStartOutput = "SessionStart" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// The first prompt.
        initial_user_message: Option<String> as "initialUserMessage",
        /// The session's title.
        session_title: Option<String> as "sessionTitle",
        /// Files whose changes are told.
        watch_paths: List<String> as "watchPaths",
        /// Whether the skills are read anew.
        reload_skills: Option<bool> as "reloadSkills",
    }
}

hook_input! {
    /// A session ends.
    SessionEndInput = "SessionEnd" {
        /// Why.
        reason: Option<String>,
    }
}

hook_input! {
    /// The CLI sets itself up.
    SetupInput = "Setup" {
        /// `init` or `maintenance`.
        trigger: Option<String>,
    }
}

hook_output! {
    /// For the CLI's setting itself up.
    SetupOutput = "Setup" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// The context is about to be made smaller.
    PreCompactInput = "PreCompact" {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// What the user asked to keep.
        custom_instructions: Option<String>,
    }
}

hook_input! {
    /// The context was made smaller.
    PostCompactInput = "PostCompact" {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// What was kept.
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
        /// What was asked for.
        requested_model: Option<String>,
        /// Who asked.
        source: Option<String>,
        /// Tokens in the context.
        context_tokens: Option<Number>,
        /// Whether the prompt cache is filled.
        prompt_cache_warm: Option<bool>,
        /// How long it stays.
        cache_ttl: Option<String>,
        /// Dollars to fill it for the new model.
        estimated_cache_write_usd: Option<Number>,
        /// What the dollars are computed from.
        pricing: Option<String>,
    }
}

hook_output! {
    /// For a model that is about to change.
    PreModelSwitchOutput = "PreModelSwitch" {
        /// Whether it may.
        permission_decision: Option<HookPermission> as "permissionDecision",
        /// Why.
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
        /// What was asked for.
        requested_model: Option<String>,
        /// Who asked.
        source: Option<String>,
        /// Tokens in the context.
        context_tokens: Option<Number>,
        /// Whether the prompt cache is filled.
        prompt_cache_warm: Option<bool>,
        /// How long it stays.
        cache_ttl: Option<String>,
        /// Dollars to fill it for the new model.
        estimated_cache_write_usd: Option<Number>,
        /// What the dollars are computed from.
        pricing: Option<String>,
    }
}

hook_output! {
    /// For a model that changed.
    PostModelSwitchOutput = "PostModelSwitch" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}
