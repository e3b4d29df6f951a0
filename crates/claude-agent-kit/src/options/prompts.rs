//! Options about prompts and what comes back.

use claude_wire::Json;
use claude_wire::launch::{Include, Secret, SystemPrompt};

use super::Options;

impl Options {
    /// Sets the system prompt: a text, or a [`SystemPrompt`] that is read from a file, has a part that
    /// is the same in every conversation, or adds to the CLI's own. Texts in the handshake may be long
    /// and do not appear in the process list. A part that the value does not name keeps what was set
    /// before. Sent as `systemPrompt`, `appendSystemPrompt`, `excludeDynamicSections` and
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
