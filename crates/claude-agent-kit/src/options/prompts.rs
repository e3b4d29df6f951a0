//! Options about prompts and what comes back.

use claude_wire::Json;
use claude_wire::launch::{Include, Secret, SystemPrompt};

use super::Options;

impl Options {
    /// Replaces the CLI's system prompt: a text, [`SystemPrompt::File`], or
    /// [`SystemPrompt::cached`] for one of which a part is the same in every conversation. Texts in
    /// the handshake may be long and do not appear in the process list. Sent as `systemPrompt` in
    /// the handshake, `--system-prompt` in print mode, and `--system-prompt-file` for a file.
    /// Default: the CLI's own.
    pub fn system_prompt(self, prompt: impl Into<SystemPrompt>) -> Self {
        self.change_settings("system_prompt", |settings| {
            settings.system_prompt = Some(prompt.into());
        })
    }

    /// Appends a text to the system prompt, whichever it is. Sent as `appendSystemPrompt` in the
    /// handshake, and `--append-system-prompt` in print mode. Default: nothing.
    pub fn append_system_prompt(self, text: impl Into<String>) -> Self {
        self.change_settings("append_system_prompt", |settings| {
            settings.append_system_prompt = Some(Secret::from(text));
        })
    }

    /// Moves what differs between machines (directory, platform, memory) from the CLI's system
    /// prompt to the first message, so that machines share the cache of the prompt. Sent as
    /// `excludeDynamicSections` in the handshake, and `--exclude-dynamic-system-prompt-sections` in
    /// print mode. Default: no.
    pub fn exclude_dynamic_sections(self, exclude: bool) -> Self {
        self.change_settings("exclude_dynamic_sections", |settings| {
            settings.exclude_dynamic_sections = Some(exclude);
        })
    }

    /// Records the system prompt with the first request of a conversation and sends that text from
    /// then on, whatever a later run says. Sent as `systemPromptSnapshot` in the handshake, and
    /// `--system-prompt-snapshot` in print mode. Default: what the CLI does by itself.
    pub fn system_prompt_snapshot(self, snapshot: bool) -> Self {
        self.change_settings("system_prompt_snapshot", |settings| {
            settings.system_prompt_snapshot = Some(snapshot);
        })
    }

    /// Replaces what the CLI tells the model in plan mode. Not in print mode. Sent as
    /// `planModeInstructions` in the handshake. Default: the CLI's own text.
    pub fn plan_mode_instructions(self, text: impl Into<String>) -> Self {
        self.change_settings("plan_mode_instructions", |settings| {
            settings.plan_mode_instructions = Some(Secret::from(text));
        })
    }

    /// Passes prompts to the model unchanged: nothing in them is a command of the CLI or the
    /// mention of a file. Not in print mode. Sent as `client_composed` in each message. Default:
    /// no.
    pub fn verbatim_prompts(self, verbatim: bool) -> Self {
        self.change_settings("verbatim_prompts", |settings| settings.verbatim_prompts = verbatim)
    }

    /// Sets the JSON schema of the answer; the result then has `structured_output`. Sent as
    /// `jsonSchema` in the handshake, and `--json-schema` in print mode. Default: none.
    pub fn output_schema(self, schema: impl Into<Json>) -> Self {
        self.change_settings("output_schema", |settings| {
            settings.output_schema = Some(schema.into());
        })
    }

    /// Sets the messages that the CLI sends on request only, such as the pieces of answers as they
    /// come. Replaces an earlier value. Sent as `--include-partial-messages`, `--include-hook-events`,
    /// and `forwardSubagentText`, `agentProgressSummaries` and `promptSuggestions` in the handshake.
    /// Default: none of them.
    ///
    /// ```
    /// use claude_agent_kit::{Include, Options};
    ///
    /// let options = Options::new().include(Include::PARTIAL_MESSAGES | Include::HOOK_EVENTS);
    /// ```
    pub fn include(self, messages: Include) -> Self {
        self.change_settings("include", |settings| settings.include = messages)
    }
}
