//! Options about prompts and output.

use claude_wire::Json;
use claude_wire::launch::{Include, Secret, SystemPrompt};

use super::Options;

impl Options {
    /// Sets the system prompt: a text, or a [`SystemPrompt`] that is read from a file, has a cacheable
    /// part, or extends the system prompt of the CLI. Parts that the value does not set keep their
    /// earlier values. Texts in the handshake can be long and do not appear in the process list. Sent as
    /// `systemPrompt`, `appendSystemPrompt`, `excludeDynamicSections` and
    /// `systemPromptSnapshot` in the handshake, `--system-prompt`, `--append-system-prompt`,
    /// `--exclude-dynamic-system-prompt-sections` and `--system-prompt-snapshot` in print mode, and
    /// `--system-prompt-file` for a file. Default: the CLI's own.
    ///
    /// ```
    /// use claude_agent_kit::{Options, SystemPrompt};
    ///
    /// let terse = Options::new().system_prompt("You are terse.");
    /// let own = Options::new().system_prompt(SystemPrompt::claude_code().append("Answer in French."));
    /// ```
    pub fn system_prompt(self, prompt: impl Into<SystemPrompt>) -> Self {
        let SystemPrompt { base, append, exclude_dynamic_sections, snapshot, .. } = prompt.into();
        let mut options = self;
        if let Some(base) = base {
            options = options.change_settings("system_prompt", |settings| {
                settings.system_prompt = Some(base);
            });
        }
        if let Some(append) = append {
            options = options.change_settings("append_system_prompt", |settings| {
                settings.append_system_prompt = Some(append);
            });
        }
        if let Some(exclude) = exclude_dynamic_sections {
            options = options.change_settings("exclude_dynamic_sections", |settings| {
                settings.exclude_dynamic_sections = Some(exclude);
            });
        }
        if let Some(snapshot) = snapshot {
            options = options.change_settings("system_prompt_snapshot", |settings| {
                settings.system_prompt_snapshot = Some(snapshot);
            });
        }
        options
    }

    /// Replaces the instructions for the model in plan mode. Not supported in print mode. Sent as
    /// `planModeInstructions` in the handshake. Default: the instructions of the CLI.
    pub fn plan_mode_instructions(self, text: impl Into<String>) -> Self {
        self.change_settings("plan_mode_instructions", |settings| {
            settings.plan_mode_instructions = Some(Secret::from(text));
        })
    }

    /// Sets whether prompts are passed to the model verbatim, without interpreting slash commands and
    /// file mentions. Not supported in print mode. Sent as `client_composed` in each message. Default:
    /// false.
    pub fn verbatim_prompts(self, verbatim: bool) -> Self {
        self.change_settings("verbatim_prompts", |settings| settings.verbatim_prompts = verbatim)
    }

    /// Sets the JSON schema of the answer, which the result contains as `structured_output`. Sent as
    /// `jsonSchema` in the handshake, and `--json-schema` in print mode. Default: none.
    pub fn output_schema(self, schema: impl Into<Json>) -> Self {
        self.change_settings("output_schema", |settings| {
            settings.output_schema = Some(schema.into());
        })
    }

    /// Sets the optional messages that the CLI sends, such as partial messages. Replaces an earlier
    /// value. Sent as `--include-partial-messages`, `--include-hook-events`, and `forwardSubagentText`,
    /// `agentProgressSummaries` and `promptSuggestions` in the handshake. Default: none.
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
