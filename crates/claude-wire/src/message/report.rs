//! How full the context is and what was used, as some answers of the model tell.

use crate::control::{ExtraUsage, SessionUsage};
use crate::json::{Json, List, Number};

wire_struct! {
    /// How full the context is.
    #[derive(Default)]
    pub struct ContextReport {
        /// The model.
        model: Option<String>,
        /// Tokens used.
        total_tokens: Option<Number>,
        /// Tokens that the model can read.
        raw_max_tokens: Option<Number>,
        /// Used of the tokens that there are, in percent.
        percentage: Option<Number>,
        /// By how much it is too full.
        over_limit: Option<ContextOverLimit>,
        /// By kind.
        categories: List<ContextPart>,
        /// Tools of MCP servers.
        mcp_tools: List<ContextPart>,
        /// Memory files.
        memory_files: List<ContextPart>,
        /// Agents.
        agents: List<ContextPart>,
        /// Skills.
        skills: List<ContextPart>,
    }
}

wire_struct! {
    /// By how much the context is too full.
    #[derive(Default)]
    pub struct ContextOverLimit {
        /// Tokens.
        tokens_over: Option<Number>,
        /// `hard_limit` or `compaction_window`.
        kind: Option<String>,
    }
}

wire_struct! {
    /// Something that fills the context; which fields it has depends on what it is.
    #[derive(Default)]
    pub struct ContextPart {
        /// Its name.
        name: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
        /// `used`, `free`, `buffer` or `deferred`.
        kind: Option<String>,
        /// The MCP server of a tool.
        server_name: Option<String>,
        /// The file.
        path: Option<String>,
        /// The kind of file.
        file_type: Option<String> as "type",
        /// The agent.
        agent_type: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// The plugin that it comes from.
        plugin_name: Option<String>,
    }
}

wire_struct! {
    /// What was used so far.
    #[derive(Default)]
    pub struct UsageReport {
        /// By this session.
        session: Option<SessionUsage>,
        /// The limits of the account.
        rate_limits: Option<ReportedLimits>,
    }
}

wire_struct! {
    /// The limits of an account.
    #[derive(Default)]
    pub struct ReportedLimits {
        /// Each of them.
        limits: List<ReportedLimit>,
        /// Beyond the limits.
        extra_usage: Option<ExtraUsage>,
    }
}

wire_struct! {
    /// A limit of an account.
    #[derive(Default)]
    pub struct ReportedLimit {
        /// Which.
        kind: Option<String>,
        /// Those that it belongs to.
        group: Option<String>,
        /// The part that is used, in percent.
        percent: Option<Number>,
        /// When it begins anew.
        resets_at: Option<Json>,
        /// What it is for.
        scope: Option<LimitScope>,
        /// How near it is.
        severity: Option<String>,
        /// Whether it counts now.
        is_active: Option<bool>,
    }
}

wire_struct! {
    /// What a limit is for.
    #[derive(Default)]
    pub struct LimitScope {
        /// The model.
        model: Option<Json>,
        /// The program.
        surface: Option<Json>,
    }
}
