//! Tokens and money.

use std::collections::BTreeMap;

use crate::json::{Json, Number, count, dollars};
use crate::session::Tokens;

wire_struct! {
    /// The tokens of one answer, or of one turn.
    #[derive(Default)]
    pub struct Usage {
        /// Tokens read.
        input_tokens: Option<Number>,
        /// Tokens written.
        output_tokens: Option<Number>,
        /// Tokens put into the prompt cache.
        cache_creation_input_tokens: Option<Number>,
        /// Tokens read from the prompt cache.
        cache_read_input_tokens: Option<Number>,
        /// What the tokens written are made of.
        output_tokens_details: Option<Json>,
        /// Calls of tools that the API runs.
        server_tool_use: Option<ServerToolUsage>,
        /// How fast the request was served.
        service_tier: Option<String>,
        /// How long what was cached stays.
        cache_creation: Option<CacheCreation>,
        /// Where the model ran.
        inference_geo: Option<String>,
        /// The steps of which the answer was made.
        iterations: Option<Json>,
        /// The speed that was asked for.
        speed: Option<String>,
        /// What a fallback to another model gave back.
        fallback_credit: Option<Json>,
    }
}

impl Usage {
    /// Returns the numbers of tokens; 0 for each that is absent.
    pub fn tokens(&self) -> Tokens {
        Tokens {
            input: count(self.input_tokens.as_ref()),
            output: count(self.output_tokens.as_ref()),
            cache_read: count(self.cache_read_input_tokens.as_ref()),
            cache_creation: count(self.cache_creation_input_tokens.as_ref()),
        }
    }
}

wire_struct! {
    /// How long the tokens put into the prompt cache stay.
    #[derive(Default)]
    pub struct CacheCreation {
        /// For an hour.
        ephemeral_1h_input_tokens: Option<Number>,
        /// For five minutes.
        ephemeral_5m_input_tokens: Option<Number>,
    }
}

wire_struct! {
    /// Calls of tools that the API runs.
    #[derive(Default)]
    pub struct ServerToolUsage {
        /// Searches.
        web_search_requests: Option<Number>,
        /// Pages fetched.
        web_fetch_requests: Option<Number>,
    }
}

/// The use of each model, by the model's name.
pub type ModelUsageMap = BTreeMap<String, ModelUsage>;

wire_struct! {
    /// What one model used.
    #[derive(Default)]
    pub struct ModelUsage {
        /// Tokens read.
        input_tokens: Option<Number> as "inputTokens",
        /// Tokens written.
        output_tokens: Option<Number> as "outputTokens",
        /// Tokens of thinking among those written.
        thinking_tokens: Option<Number> as "thinkingTokens",
        /// Tokens read from the prompt cache.
        cache_read_input_tokens: Option<Number> as "cacheReadInputTokens",
        /// Tokens put into the prompt cache.
        cache_creation_input_tokens: Option<Number> as "cacheCreationInputTokens",
        /// Of these, for five minutes.
        cache_creation_5m_input_tokens: Option<Number> as "cacheCreationEphemeral5mInputTokens",
        /// Of these, for an hour.
        cache_creation_1h_input_tokens: Option<Number> as "cacheCreationEphemeral1hInputTokens",
        /// Searches.
        web_search_requests: Option<Number> as "webSearchRequests",
        /// Dollars.
        cost_usd: Option<Number> as "costUSD",
        /// How much the model can read.
        context_window: Option<Number> as "contextWindow",
        /// How much it can write.
        max_output_tokens: Option<Number> as "maxOutputTokens",
        /// The model's full name.
        canonical_model: Option<String> as "canonicalModel",
        /// Who serves it.
        provider: Option<String>,
        /// What the dollars are computed from.
        cost_basis: Option<String> as "costBasis",
    }
}

impl ModelUsage {
    /// Returns the numbers of tokens; 0 for each that is absent.
    pub fn tokens(&self) -> Tokens {
        Tokens {
            input: count(self.input_tokens.as_ref()),
            output: count(self.output_tokens.as_ref()),
            cache_read: count(self.cache_read_input_tokens.as_ref()),
            cache_creation: count(self.cache_creation_input_tokens.as_ref()),
        }
    }

    /// Returns the cost in US dollars; 0 if it is absent or negative.
    pub fn dollars(&self) -> f64 {
        dollars(self.cost_usd.as_ref())
    }
}
