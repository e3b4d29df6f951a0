//! The session, its context and its model.

use crate::json::Number;

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
