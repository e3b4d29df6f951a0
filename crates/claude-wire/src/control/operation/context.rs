//! The usage of the context window.

use crate::json::{Json, List, Number};

request! {
    /// Returns the usage of the context window.
    GetContextUsage = "get_context_usage" {
        /// `summary` or `full`.
        detail: Option<String>,
    }
}

wire_struct! {
    /// The usage of the context window.
    #[derive(Default)]
    pub struct ContextUsage {
        /// The usage by category.
        categories: List<ContextCategory>,
        /// The used tokens.
        total_tokens: Option<Number> as "totalTokens",
        /// The tokens at which the context is compacted.
        max_tokens: Option<Number> as "maxTokens",
        /// The size of the context window in tokens.
        raw_max_tokens: Option<Number> as "rawMaxTokens",
        /// The used fraction of the context window in percent.
        percentage: Option<Number>,
        /// The model.
        model: Option<String>,
        /// A grid for display.
        grid_rows: Option<Json> as "gridRows",
        /// Memory files.
        memory_files: List<ContextFile> as "memoryFiles",
        /// The tools of MCP servers.
        mcp_tools: List<ContextTool> as "mcpTools",
        /// The instructions of MCP servers.
        mcp_instructions: List<ContextTool> as "mcpInstructions",
        /// The deferred built-in tools.
        deferred_builtin_tools: List<ContextTool> as "deferredBuiltinTools",
        /// The built-in tools.
        system_tools: List<ContextTool> as "systemTools",
        /// The parts of the system prompt.
        system_prompt_sections: List<ContextTool> as "systemPromptSections",
        /// Agents.
        agents: List<ContextAgent>,
        /// Commands.
        slash_commands: Option<ContextCommands> as "slashCommands",
        /// Skills.
        skills: Option<ContextSkills>,
        /// The threshold of automatic compaction.
        auto_compact_threshold: Option<Number> as "autoCompactThreshold",
        /// Whether automatic compaction is enabled.
        is_auto_compact_enabled: Option<bool> as "isAutoCompactEnabled",
        /// The source of the setting.
        autocompact_source: Option<String> as "autocompactSource",
        /// The breakdown of the messages.
        message_breakdown: Option<ContextMessages> as "messageBreakdown",
        /// The token counts of the last API response.
        api_usage: Option<ContextApiUsage> as "apiUsage",
    }
}

wire_struct! {
    /// A category of the context usage.
    #[derive(Default)]
    pub struct ContextCategory {
        /// Its id.
        id: Option<String>,
        /// The display name.
        name: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
        /// The color.
        color: Option<String>,
        /// `used`, `free`, `buffer` or `deferred`.
        kind: Option<String>,
        /// Whether it is deferred.
        is_deferred: Option<bool> as "isDeferred",
    }
}

wire_struct! {
    /// A memory file in the context.
    #[derive(Default)]
    pub struct ContextFile {
        /// The file.
        path: Option<String>,
        /// The scope of the memory.
        kind: Option<String> as "type",
        /// Its tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// A named entry of the context: a tool, instructions of a server, a section of the prompt.
    #[derive(Default)]
    pub struct ContextTool {
        /// Its name.
        name: Option<String>,
        /// The MCP server.
        server_name: Option<String> as "serverName",
        /// Its tokens.
        tokens: Option<Number>,
        /// Whether it is loaded.
        is_loaded: Option<bool> as "isLoaded",
    }
}

wire_struct! {
    /// An agent in the context.
    #[derive(Default)]
    pub struct ContextAgent {
        /// The agent.
        agent_type: Option<String> as "agentType",
        /// The source.
        source: Option<String>,
        /// The plugin that provides it.
        plugin_id: Option<String> as "pluginId",
        /// The file that defines it.
        path: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// The commands in the context.
    #[derive(Default)]
    pub struct ContextCommands {
        /// The total number.
        total_commands: Option<Number> as "totalCommands",
        /// The number in the context.
        included_commands: Option<Number> as "includedCommands",
        /// Their tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// The skills in the context.
    #[derive(Default)]
    pub struct ContextSkills {
        /// The total number.
        total_skills: Option<Number> as "totalSkills",
        /// The number in the context.
        included_skills: Option<Number> as "includedSkills",
        /// Their tokens.
        tokens: Option<Number>,
        /// The individual limits.
        skill_frontmatter: List<ContextSkill> as "skillFrontmatter",
    }
}

wire_struct! {
    /// A skill in the context.
    #[derive(Default)]
    pub struct ContextSkill {
        /// Its name.
        name: Option<String>,
        /// The source.
        source: Option<String>,
        /// The plugin that provides it.
        plugin_name: Option<String> as "pluginName",
        /// That plugin's id.
        plugin_id: Option<String> as "pluginId",
        /// The file that defines it.
        path: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// The messages in the context, in tokens by kind.
    #[derive(Default)]
    pub struct ContextMessages {
        /// The tool calls.
        tool_call_tokens: Option<Number> as "toolCallTokens",
        /// Their results.
        tool_result_tokens: Option<Number> as "toolResultTokens",
        /// Attachments.
        attachment_tokens: Option<Number> as "attachmentTokens",
        /// The messages of the model.
        assistant_message_tokens: Option<Number> as "assistantMessageTokens",
        /// The messages of the user.
        user_message_tokens: Option<Number> as "userMessageTokens",
        /// The redirected context.
        redirected_context_tokens: Option<Number> as "redirectedContextTokens",
        /// The unattributed rest.
        unattributed_tokens: Option<Number> as "unattributedTokens",
        /// The calls and results by tool.
        tool_calls_by_type: Option<Json> as "toolCallsByType",
        /// Attachments by kind.
        attachments_by_type: Option<Json> as "attachmentsByType",
    }
}

wire_struct! {
    /// The token counts of the API.
    #[derive(Default)]
    pub struct ContextApiUsage {
        /// The input tokens.
        input_tokens: Option<Number>,
        /// The output tokens.
        output_tokens: Option<Number>,
        /// The input tokens written to the prompt cache.
        cache_creation_input_tokens: Option<Number>,
        /// The input tokens read from the prompt cache.
        cache_read_input_tokens: Option<Number>,
    }
}
