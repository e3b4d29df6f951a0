//! Options about tools and permissions.

use claude_wire::control::PermissionMode;
use claude_wire::launch::ToolSet;
use claude_wire::settings::{PermissionPrompts, PreviewFormat};

use super::{Options, strings};

impl Options {
    /// Sets the built-in tools that the model is offered: a list of names, [`ToolSet::none`], or
    /// [`ToolSet::ClaudeCode`] for all. Sent as `--tools`. Default: all that the CLI has.
    ///
    /// This decides which tools there *are*; [`allowed_tools`](Self::allowed_tools) decides which
    /// of them run without asking.
    pub fn tools(self, tools: impl Into<ToolSet>) -> Self {
        self.change_settings("tools", |settings| settings.tools = Some(tools.into()))
    }

    /// Sets the tools that run without asking, by name or rule: `Read`, `Bash(git log:*)`. Sent as
    /// `--allowedTools`. Default: none besides those of the user's settings.
    pub fn allowed_tools(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("allowed_tools", |settings| settings.allowed_tools = strings(tools))
    }

    /// Sets the tools that never run, by name or rule. They take precedence over
    /// [`allowed_tools`](Self::allowed_tools). Sent as `--disallowedTools`. Default: none besides
    /// those of the user's settings.
    pub fn disallowed_tools(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("disallowed_tools", |settings| {
            settings.disallowed_tools = strings(tools);
        })
    }

    /// Sets other names under which the model may call tools, each with the tool that is meant. An
    /// alias of an alias is not followed. Not in print mode. Sent as `toolAliases` in the
    /// handshake. Default: none.
    pub fn tool_aliases(
        self,
        aliases: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let aliases = aliases.into_iter().map(|(name, tool)| (name.into(), tool.into()));
        self.change_settings("tool_aliases", |settings| settings.tool_aliases = aliases.collect())
    }

    /// Sets the format of the previews that the model shows with its questions to the user. Sent as
    /// the variable `CLAUDE_CODE_QUESTION_PREVIEW_FORMAT`. Default: no previews.
    pub fn question_preview(self, format: impl Into<PreviewFormat>) -> Self {
        self.change_settings("question_preview", |settings| {
            settings.question_preview = Some(format.into());
        })
    }

    /// Sets how permissions are decided. [`PermissionMode::Default`] is a mode too, and takes
    /// precedence over the user's settings. Sent as `--permission-mode`. Default: what the user's
    /// settings say.
    pub fn permission_mode(self, mode: impl Into<PermissionMode>) -> Self {
        self.change_settings("permission_mode", |settings| {
            settings.permission_mode = Some(mode.into());
        })
    }

    /// Allows the session to be switched to the mode that lets everything run, without switching to
    /// it. Sent as `--allow-dangerously-skip-permissions`. Default: no.
    pub fn allow_dangerously_skip_permissions(self, allow: bool) -> Self {
        self.change_settings("allow_dangerously_skip_permissions", |settings| {
            settings.allow_dangerously_skip_permissions = allow;
        })
    }

    /// Sets the tool of an MCP server that answers permission requests: `mcp__server__tool`. Cannot
    /// be combined with a permission callback. Sent as `--permission-prompt-tool`. Default: none,
    /// so what is not allowed is denied.
    pub fn permission_prompt_tool(self, tool: impl Into<String>) -> Self {
        self.change_settings("permission_prompt_tool", |settings| {
            settings.permission_prompt_tool = Some(tool.into());
        })
    }

    /// Sets who is asked about tools that nothing else decides about. With
    /// [`PermissionPrompts::None`] such tools do not run, and a permission callback is never
    /// called. Sent as `--permission-prompts`. Default: the host.
    pub fn permission_prompts(self, who: impl Into<PermissionPrompts>) -> Self {
        self.change_settings("permission_prompts", |settings| {
            settings.permission_prompts = Some(who.into());
        })
    }

    /// Keeps copies of changed files, so that they can be restored to their state at a message. Not
    /// in print mode. Sent as the variable `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING`. Default:
    /// no.
    pub fn file_checkpointing(self, keep: bool) -> Self {
        self.change_settings("file_checkpointing", |settings| settings.file_checkpointing = keep)
    }
}
