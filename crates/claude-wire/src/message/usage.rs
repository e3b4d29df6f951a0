//! Tokens and cost.

use crate::Tokens;
use crate::json::{Json, Map, Number, count, dollars};

wire_struct! {
    /// The tokens of one answer, or of one turn.
    #[derive(Default)]
    pub struct Usage {
        /// The input tokens.
        input_tokens: Option<Number>,
        /// The output tokens.
        output_tokens: Option<Number>,
        /// The input tokens written to the prompt cache.
        cache_creation_input_tokens: Option<Number>,
        /// The input tokens read from the prompt cache.
        cache_read_input_tokens: Option<Number>,
        /// Details of the output tokens.
        output_tokens_details: Option<Json>,
        /// The calls of server-side tools.
        server_tool_use: Option<ServerToolUsage>,
        /// The service tier.
        service_tier: Option<String>,
        /// The lifetime of the cache entries.
        cache_creation: Option<CacheCreation>,
        /// The region in which the model ran.
        inference_geo: Option<String>,
        /// The iterations of the answer.
        iterations: Option<Json>,
        /// The requested speed.
        speed: Option<String>,
        /// The credit for a fallback to another model.
        fallback_credit: Option<Json>,
    }
}

impl Usage {
    /// Returns the token counts; 0 for each absent one.
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
    /// The lifetimes of the tokens written to the prompt cache.
    #[derive(Default)]
    pub struct CacheCreation {
        /// The tokens cached for one hour.
        ephemeral_1h_input_tokens: Option<Number>,
        /// The tokens cached for five minutes.
        ephemeral_5m_input_tokens: Option<Number>,
    }
}

wire_struct! {
    /// The calls of server-side tools.
    #[derive(Default)]
    pub struct ServerToolUsage {
        /// The number of web searches.
        web_search_requests: Option<Number>,
        /// The number of fetched pages.
        web_fetch_requests: Option<Number>,
    }
}

/// The usage by model name.
pub type ModelUsageMap = Map<ModelUsage>;

wire_struct! {
    /// The usage of one model.
    #[derive(Default)]
    pub struct ModelUsage {
        /// The input tokens.
        input_tokens: Option<Number> as "inputTokens",
        /// The output tokens.
        output_tokens: Option<Number> as "outputTokens",
        /// The thinking tokens among the output tokens.
        thinking_tokens: Option<Number> as "thinkingTokens",
        /// The input tokens read from the prompt cache.
        cache_read_input_tokens: Option<Number> as "cacheReadInputTokens",
        /// The input tokens written to the prompt cache.
        cache_creation_input_tokens: Option<Number> as "cacheCreationInputTokens",
        /// The part cached for five minutes.
        cache_creation_5m_input_tokens: Option<Number> as "cacheCreationEphemeral5mInputTokens",
        /// The part cached for one hour.
        cache_creation_1h_input_tokens: Option<Number> as "cacheCreationEphemeral1hInputTokens",
        /// The number of web searches.
        web_search_requests: Option<Number> as "webSearchRequests",
        /// The cost in US dollars.
        cost_usd: Option<Number> as "costUSD",
        /// The size of the context window in tokens.
        context_window: Option<Number> as "contextWindow",
        /// The maximum number of output tokens.
        max_output_tokens: Option<Number> as "maxOutputTokens",
        /// The model's full name.
        canonical_model: Option<String> as "canonicalModel",
        /// The API provider.
        provider: Option<String>,
        /// The basis of the cost.
        cost_basis: Option<String> as "costBasis",
    }
}

impl ModelUsage {
    /// Returns the token counts; 0 for each absent one.
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
