//! The context and usage reports in some messages of the model.

use crate::control::{ExtraUsage, SessionUsage};
use crate::json::{Json, List, Number};

wire_struct! {
    /// The usage of the context window.
    #[derive(Default)]
    pub struct ContextReport {
        /// The model.
        model: Option<String>,
        /// The used tokens.
        total_tokens: Option<Number>,
        /// The size of the context window in tokens.
        raw_max_tokens: Option<Number>,
        /// The used fraction of the context window in percent.
        percentage: Option<Number>,
        /// The excess over the limit.
        over_limit: Option<ContextOverLimit>,
        /// The usage by category.
        categories: List<ContextPart>,
        /// The tools of MCP servers.
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
    /// The excess over a context limit.
    #[derive(Default)]
    pub struct ContextOverLimit {
        /// The tokens.
        tokens_over: Option<Number>,
        /// `hard_limit` or `compaction_window`.
        kind: Option<String>,
    }
}

wire_struct! {
    /// An entry of the context usage; the fields depend on its category.
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
        /// The source.
        source: Option<String>,
        /// The plugin that provides it.
        plugin_name: Option<String>,
    }
}

wire_struct! {
    /// The usage so far.
    #[derive(Default)]
    pub struct UsageReport {
        /// The usage of this session.
        session: Option<SessionUsage>,
        /// The limits of the account.
        rate_limits: Option<ReportedLimits>,
    }
}

wire_struct! {
    /// The limits of an account.
    #[derive(Default)]
    pub struct ReportedLimits {
        /// The individual limits.
        limits: List<ReportedLimit>,
        /// The usage beyond the limits (overage).
        extra_usage: Option<ExtraUsage>,
    }
}

wire_struct! {
    /// A limit of an account.
    #[derive(Default)]
    pub struct ReportedLimit {
        /// Which.
        kind: Option<String>,
        /// The group of the limit.
        group: Option<String>,
        /// The used fraction in percent.
        percent: Option<Number>,
        /// The time when the limit resets.
        resets_at: Option<Json>,
        /// The description.
        scope: Option<LimitScope>,
        /// The severity.
        severity: Option<String>,
        /// Whether the limit is active.
        is_active: Option<bool>,
    }
}

wire_struct! {
    /// The scope of a limit.
    #[derive(Default)]
    pub struct LimitScope {
        /// The model.
        model: Option<Json>,
        /// The program.
        surface: Option<Json>,
    }
}
