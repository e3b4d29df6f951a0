//! Options about tools and permissions.

use claude_wire::control::PermissionMode;
use claude_wire::launch::ToolSet;
use claude_wire::settings::{PermissionPrompts, PreviewFormat};

use super::{Options, strings};

impl Options {
    /// Sets the built-in tools that are offered to the model: a list of names, [`ToolSet::none`], or
    /// [`ToolSet::ClaudeCode`] for all. Sent as `--tools`. Default: all built-in tools.
    ///
    /// This option sets which tools *exist*; [`allowed_tools`](Self::allowed_tools) sets which of them
    /// run without permission.
    pub fn tools(self, tools: impl Into<ToolSet>) -> Self {
        self.change_settings("tools", |settings| settings.tools = Some(tools.into()))
    }

    /// Sets the tools that run without permission, by name or rule: `Read`, `Bash(git log:*)`. Replaces
    /// earlier ones; rules of the user's settings also apply. Sent as `--allowedTools`. Default: none.
    pub fn allowed_tools(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("allowed_tools", |settings| settings.allowed_tools = strings(tools))
    }

    /// Sets the tools that never run, by name or rule. They take precedence over
    /// [`allowed_tools`](Self::allowed_tools). Replaces earlier ones; rules of the user's settings also
    /// apply. Sent as `--disallowedTools`. Default: none.
    pub fn disallowed_tools(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("disallowed_tools", |settings| {
            settings.disallowed_tools = strings(tools);
        })
    }

    /// Sets additional names under which the model can call tools, as pairs of alias and tool. Aliases
    /// of aliases are not resolved. Not supported in print mode. Sent as `toolAliases` in the handshake.
    /// Default: none.
    pub fn tool_aliases(
        self,
        aliases: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let aliases = aliases.into_iter().map(|(name, tool)| (name.into(), tool.into()));
        self.change_settings("tool_aliases", |settings| {
            settings.tool_aliases.clear();
            settings.tool_aliases.extend(aliases);
        })
    }

    /// Sets the format of the previews that the model shows with its questions to the user. Sent as
    /// the variable `CLAUDE_CODE_QUESTION_PREVIEW_FORMAT`. Default: no previews.
    pub fn question_preview(self, format: impl Into<PreviewFormat>) -> Self {
        self.change_settings("question_preview", |settings| {
            settings.question_preview = Some(format.into());
        })
    }

    /// Sets the permission mode. [`PermissionMode::Default`] overrides the mode of the user's settings
    /// like any other mode. Sent as `--permission-mode`. Default: the mode of the user's settings.
    pub fn permission_mode(self, mode: impl Into<PermissionMode>) -> Self {
        self.change_settings("permission_mode", |settings| {
            settings.permission_mode = Some(mode.into());
        })
    }

    /// Sets whether the session can later be switched to [`PermissionMode::BypassPermissions`]. Sent as
    /// `--allow-dangerously-skip-permissions`. Default: false.
    pub fn allow_dangerously_skip_permissions(self, allow: bool) -> Self {
        self.change_settings("allow_dangerously_skip_permissions", |settings| {
            settings.allow_dangerously_skip_permissions = allow;
        })
    }

    /// Sets the tool of an MCP server that decides permission requests: `mcp__server__tool`. Cannot be
    /// combined with a permission callback. Sent as `--permission-prompt-tool`. Default: none, so calls
    /// that no rule allows are denied.
    pub fn permission_prompt_tool(self, tool: impl Into<String>) -> Self {
        self.change_settings("permission_prompt_tool", |settings| {
            settings.permission_prompt_tool = Some(tool.into());
        })
    }

    /// Sets who decides about tool calls that no rule decides. With [`PermissionPrompts::None`] such
    /// calls are denied, and the permission callback is never called. Sent as `--permission-prompts`.
    /// Default: the host.
    pub fn permission_prompts(self, who: impl Into<PermissionPrompts>) -> Self {
        self.change_settings("permission_prompts", |settings| {
            settings.permission_prompts = Some(who.into());
        })
    }

    /// Sets whether the CLI keeps copies of changed files, so that they can be restored to their state
    /// before a message. Not supported in print mode. Sent as the variable
    /// `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING`. Default: false.
    pub fn file_checkpointing(self, keep: bool) -> Self {
        self.change_settings("file_checkpointing", |settings| settings.file_checkpointing = keep)
    }
}
