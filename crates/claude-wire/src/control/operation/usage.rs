//! What was used, and what is left.

use crate::json::{Json, List, Number};
use crate::message::ModelUsageMap;

request! {
    /// What did the session cost, for people?
    GetSessionCost = "get_session_cost" {}
}

wire_struct! {
    /// What the session cost, for people.
    #[derive(Default)]
    pub struct SessionCost {
        /// Some lines of text.
        text: Option<String>,
    }
}

request! {
    /// What was used, and what is left?
    GetUsage = "get_usage" {
        /// Whether to leave out what the account was used for.
        skip_behaviors: Option<bool>,
    }
}

wire_struct! {
    /// What was used, and what is left.
    #[derive(Default)]
    pub struct UsageResponse {
        /// By this session.
        session: Option<SessionUsage>,
        /// The subscription.
        subscription_type: Option<String>,
        /// Whether there are limits to tell of.
        rate_limits_available: Option<bool>,
        /// The limits.
        rate_limits: Option<UsageLimits>,
        /// What the account was used for.
        behaviors: Option<UsageBehaviors>,
    }
}

wire_struct! {
    /// What a session used.
    #[derive(Default)]
    pub struct SessionUsage {
        /// Dollars.
        total_cost_usd: Option<Number>,
        /// Milliseconds of waiting for the API.
        total_api_duration_ms: Option<Number>,
        /// Milliseconds in all.
        total_duration_ms: Option<Number>,
        /// Lines added.
        total_lines_added: Option<Number>,
        /// Lines removed.
        total_lines_removed: Option<Number>,
        /// Tokens and dollars by model.
        model_usage: Option<ModelUsageMap>,
    }
}

wire_struct! {
    /// The limits of an account.
    #[derive(Default)]
    pub struct UsageLimits {
        /// Of five hours.
        five_hour: Option<UsageWindow>,
        /// Of seven days.
        seven_day: Option<UsageWindow>,
        /// Of seven days, for other programs with this login.
        seven_day_oauth_apps: Option<UsageWindow>,
        /// Of seven days, for Opus.
        seven_day_opus: Option<UsageWindow>,
        /// Of seven days, for Sonnet.
        seven_day_sonnet: Option<UsageWindow>,
        /// For single models.
        model_scoped: List<UsageWindow>,
        /// Beyond the limits.
        extra_usage: Option<ExtraUsage>,
    }
}

wire_struct! {
    /// How much of a limit is used.
    #[derive(Default)]
    pub struct UsageWindow {
        /// The model, of a limit for one.
        display_name: Option<String>,
        /// The part that is used, in percent.
        utilization: Option<Number>,
        /// When it begins anew.
        resets_at: Option<Json>,
    }
}

wire_struct! {
    /// What is used beyond the limits.
    #[derive(Default)]
    pub struct ExtraUsage {
        /// Whether that is allowed.
        is_enabled: Option<bool>,
        /// How much it may cost in a month.
        monthly_limit: Option<Number>,
        /// How much it has cost.
        used_credits: Option<Number>,
        /// The part that is used, in percent.
        utilization: Option<Number>,
        /// The currency.
        currency: Option<String>,
    }
}

wire_struct! {
    /// What the account was used for.
    #[derive(Default)]
    pub struct UsageBehaviors {
        /// In a day.
        day: Option<UsagePeriod>,
        /// In a week.
        week: Option<UsagePeriod>,
    }
}

wire_struct! {
    /// What the account was used for in some time.
    #[derive(Default)]
    pub struct UsagePeriod {
        /// Requests.
        request_count: Option<Number>,
        /// Sessions.
        session_count: Option<Number>,
        /// What was done.
        behaviors: List<UsageBehavior>,
        /// What could be done better.
        recommendations: Option<Json>,
        /// How.
        fix: Option<Json>,
        /// By agent.
        agents: List<Json>,
        /// By skill.
        skills: List<Json>,
        /// By plugin.
        plugins: List<Json>,
        /// By MCP server.
        mcp_servers: List<Json>,
    }
}

wire_struct! {
    /// Something that the account was used for.
    #[derive(Default)]
    pub struct UsageBehavior {
        /// What.
        key: Option<String>,
        /// The part of all, in percent.
        pct: Option<Number>,
        /// How often.
        count: Option<Number>,
    }
}
