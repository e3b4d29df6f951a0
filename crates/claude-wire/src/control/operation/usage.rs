//! The usage and the limits of the account.

use crate::json::{Json, List, Number};
use crate::message::ModelUsageMap;

request! {
    /// Returns the cost of the session as text.
    GetSessionCost = "get_session_cost" {}
}

wire_struct! {
    /// The cost of the session as text.
    #[derive(Default)]
    pub struct SessionCost {
        /// The text.
        text: Option<String>,
    }
}

request! {
    /// Returns the usage and the limits of the account.
    GetUsage = "get_usage" {
        /// Whether to leave out the activity of the account.
        skip_behaviors: Option<bool>,
    }
}

wire_struct! {
    /// The usage and the limits of the account.
    #[derive(Default)]
    pub struct UsageResponse {
        /// The usage of this session.
        session: Option<SessionUsage>,
        /// The subscription.
        subscription_type: Option<String>,
        /// Whether limits are available.
        rate_limits_available: Option<bool>,
        /// The limits.
        rate_limits: Option<UsageLimits>,
        /// The activity of the account.
        behaviors: Option<UsageBehaviors>,
    }
}

wire_struct! {
    /// The usage of a session.
    #[derive(Default)]
    pub struct SessionUsage {
        /// The cost in US dollars.
        total_cost_usd: Option<Number>,
        /// The time of API requests in milliseconds.
        total_api_duration_ms: Option<Number>,
        /// The total duration in milliseconds.
        total_duration_ms: Option<Number>,
        /// Lines added.
        total_lines_added: Option<Number>,
        /// Lines removed.
        total_lines_removed: Option<Number>,
        /// The tokens and the cost by model.
        model_usage: Option<ModelUsageMap>,
    }
}

wire_struct! {
    /// The limits of an account.
    #[derive(Default)]
    pub struct UsageLimits {
        /// The five-hour limit.
        five_hour: Option<UsageWindow>,
        /// The seven-day limit.
        seven_day: Option<UsageWindow>,
        /// The seven-day limit of other programs with this login.
        seven_day_oauth_apps: Option<UsageWindow>,
        /// The seven-day limit for Opus.
        seven_day_opus: Option<UsageWindow>,
        /// The seven-day limit for Sonnet.
        seven_day_sonnet: Option<UsageWindow>,
        /// The limits of single models.
        model_scoped: List<UsageWindow>,
        /// The usage beyond the limits (overage).
        extra_usage: Option<ExtraUsage>,
    }
}

wire_struct! {
    /// The usage of a limit.
    #[derive(Default)]
    pub struct UsageWindow {
        /// The model, if the limit is for one model.
        display_name: Option<String>,
        /// The used fraction in percent.
        utilization: Option<Number>,
        /// The time when the limit resets.
        resets_at: Option<Json>,
    }
}

wire_struct! {
    /// The usage beyond the limits (overage).
    #[derive(Default)]
    pub struct ExtraUsage {
        /// Whether overage is enabled.
        is_enabled: Option<bool>,
        /// The monthly limit.
        monthly_limit: Option<Number>,
        /// The used amount.
        used_credits: Option<Number>,
        /// The used fraction in percent.
        utilization: Option<Number>,
        /// The currency.
        currency: Option<String>,
    }
}

wire_struct! {
    /// The activity of the account.
    #[derive(Default)]
    pub struct UsageBehaviors {
        /// The last day.
        day: Option<UsagePeriod>,
        /// The last week.
        week: Option<UsagePeriod>,
    }
}

wire_struct! {
    /// The activity of the account in a period.
    #[derive(Default)]
    pub struct UsagePeriod {
        /// Requests.
        request_count: Option<Number>,
        /// Sessions.
        session_count: Option<Number>,
        /// The activities.
        behaviors: List<UsageBehavior>,
        /// The suggestions.
        recommendations: Option<Json>,
        /// The details of the suggestions.
        fix: Option<Json>,
        /// The activity by agent.
        agents: List<Json>,
        /// The activity by skill.
        skills: List<Json>,
        /// The activity by plugin.
        plugins: List<Json>,
        /// The activity by MCP server.
        mcp_servers: List<Json>,
    }
}

wire_struct! {
    /// An entry of the activity.
    #[derive(Default)]
    pub struct UsageBehavior {
        /// The name.
        key: Option<String>,
        /// The fraction in percent.
        pct: Option<Number>,
        /// The count.
        count: Option<Number>,
    }
}
