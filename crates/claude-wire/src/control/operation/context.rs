//! What fills the context.

use crate::json::{Json, List, Number};

request! {
    /// What fills the context?
    GetContextUsage = "get_context_usage" {
        /// `summary` or `full`.
        detail: Option<String>,
    }
}

wire_struct! {
    /// What fills the context.
    #[derive(Default)]
    pub struct ContextUsage {
        /// By kind.
        categories: List<ContextCategory>,
        /// Tokens used.
        total_tokens: Option<Number> as "totalTokens",
        /// Tokens before the context is made smaller.
        max_tokens: Option<Number> as "maxTokens",
        /// Tokens that the model can read.
        raw_max_tokens: Option<Number> as "rawMaxTokens",
        /// Used of the tokens that there are, in percent.
        percentage: Option<Number>,
        /// The model.
        model: Option<String>,
        /// A picture of it.
        grid_rows: Option<Json> as "gridRows",
        /// Memory files.
        memory_files: List<ContextFile> as "memoryFiles",
        /// Tools of MCP servers.
        mcp_tools: List<ContextTool> as "mcpTools",
        /// What MCP servers say of themselves.
        mcp_instructions: List<ContextTool> as "mcpInstructions",
        /// Tools of the CLI that are loaded only when needed.
        deferred_builtin_tools: List<ContextTool> as "deferredBuiltinTools",
        /// Tools of the CLI.
        system_tools: List<ContextTool> as "systemTools",
        /// The parts of the system prompt.
        system_prompt_sections: List<ContextTool> as "systemPromptSections",
        /// Agents.
        agents: List<ContextAgent>,
        /// Commands.
        slash_commands: Option<ContextCommands> as "slashCommands",
        /// Skills.
        skills: Option<ContextSkills>,
        /// Where the context is made smaller by itself.
        auto_compact_threshold: Option<Number> as "autoCompactThreshold",
        /// Whether it is.
        is_auto_compact_enabled: Option<bool> as "isAutoCompactEnabled",
        /// Who says so.
        autocompact_source: Option<String> as "autocompactSource",
        /// The messages by kind.
        message_breakdown: Option<ContextMessages> as "messageBreakdown",
        /// What the API counted last.
        api_usage: Option<ContextApiUsage> as "apiUsage",
    }
}

wire_struct! {
    /// One kind of thing that fills the context.
    #[derive(Default)]
    pub struct ContextCategory {
        /// Its id.
        id: Option<String>,
        /// Its name for people.
        name: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
        /// Its colour.
        color: Option<String>,
        /// `used`, `free`, `buffer` or `deferred`.
        kind: Option<String>,
        /// Whether it is loaded only when needed.
        is_deferred: Option<bool> as "isDeferred",
    }
}

wire_struct! {
    /// A memory file in the context.
    #[derive(Default)]
    pub struct ContextFile {
        /// The file.
        path: Option<String>,
        /// Whose it is.
        kind: Option<String> as "type",
        /// Its tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// Something with a name in the context: a tool, what a server says, a part of the prompt.
    #[derive(Default)]
    pub struct ContextTool {
        /// Its name.
        name: Option<String>,
        /// The MCP server.
        server_name: Option<String> as "serverName",
        /// Its tokens.
        tokens: Option<Number>,
        /// Whether it is in the context now.
        is_loaded: Option<bool> as "isLoaded",
    }
}

wire_struct! {
    /// An agent in the context.
    #[derive(Default)]
    pub struct ContextAgent {
        /// The agent.
        agent_type: Option<String> as "agentType",
        /// Where it comes from.
        source: Option<String>,
        /// The plugin that it comes from.
        plugin_id: Option<String> as "pluginId",
        /// The file that it comes from.
        path: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// The commands in the context.
    #[derive(Default)]
    pub struct ContextCommands {
        /// How many there are.
        total_commands: Option<Number> as "totalCommands",
        /// How many are in the context.
        included_commands: Option<Number> as "includedCommands",
        /// Their tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// The skills in the context.
    #[derive(Default)]
    pub struct ContextSkills {
        /// How many there are.
        total_skills: Option<Number> as "totalSkills",
        /// How many are in the context.
        included_skills: Option<Number> as "includedSkills",
        /// Their tokens.
        tokens: Option<Number>,
        /// Each of them.
        skill_frontmatter: List<ContextSkill> as "skillFrontmatter",
    }
}

wire_struct! {
    /// A skill in the context.
    #[derive(Default)]
    pub struct ContextSkill {
        /// Its name.
        name: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// The plugin that it comes from.
        plugin_name: Option<String> as "pluginName",
        /// That plugin's id.
        plugin_id: Option<String> as "pluginId",
        /// The file that it comes from.
        path: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
    }
}

wire_struct! {
    /// The messages in the context, in tokens by kind.
    #[derive(Default)]
    pub struct ContextMessages {
        /// Tool calls.
        tool_call_tokens: Option<Number> as "toolCallTokens",
        /// Their results.
        tool_result_tokens: Option<Number> as "toolResultTokens",
        /// Attachments.
        attachment_tokens: Option<Number> as "attachmentTokens",
        /// What the model said.
        assistant_message_tokens: Option<Number> as "assistantMessageTokens",
        /// What it was told.
        user_message_tokens: Option<Number> as "userMessageTokens",
        /// What came from elsewhere.
        redirected_context_tokens: Option<Number> as "redirectedContextTokens",
        /// What is left.
        unattributed_tokens: Option<Number> as "unattributedTokens",
        /// Calls and results by tool.
        tool_calls_by_type: Option<Json> as "toolCallsByType",
        /// Attachments by kind.
        attachments_by_type: Option<Json> as "attachmentsByType",
    }
}

wire_struct! {
    /// What the API counted.
    #[derive(Default)]
    pub struct ContextApiUsage {
        /// Tokens read.
        input_tokens: Option<Number>,
        /// Tokens written.
        output_tokens: Option<Number>,
        /// Tokens put into the prompt cache.
        cache_creation_input_tokens: Option<Number>,
        /// Tokens read from the prompt cache.
        cache_read_input_tokens: Option<Number>,
    }
}
