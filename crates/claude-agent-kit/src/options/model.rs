//! Options about the model and what it is told.

use claude_wire::Json;
use claude_wire::launch::{Effort, Secret, SystemPrompt, Thinking};

use super::{Options, strings};

impl Options {
    /// The model, by name or alias (`--model`). Default: what the user's settings say.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.change_settings("model", |settings| settings.model = Some(model.into()))
    }

    /// The model to use while the first one is overloaded; several are separated by commas
    /// (`--fallback-model`). Default: none.
    pub fn fallback_model(self, model: impl Into<String>) -> Self {
        self.change_settings("fallback_model", |settings| {
            settings.fallback_model = Some(model.into());
        })
    }

    /// How often the model may answer in one turn; the CLI then ends the turn with an error result
    /// (`--max-turns`). Default: no limit.
    pub fn max_turns(self, turns: u32) -> Self {
        self.change_settings("max_turns", |settings| settings.max_turns = Some(turns))
    }

    /// What a run may cost in dollars; the CLI then ends the turn with an error result
    /// (`--max-budget-usd`). Default: no limit.
    pub fn max_budget_usd(self, dollars: f64) -> Self {
        self.change_settings("max_budget_usd", |settings| settings.max_budget_usd = Some(dollars))
    }

    /// How many tokens the model is told that it may use for its task, so that it paces itself
    /// (`--task-budget`; the API's beta of task budgets). Default: it is told nothing.
    pub fn task_budget(self, tokens: u64) -> Self {
        self.change_settings("task_budget", |settings| settings.task_budget = Some(tokens))
    }

    /// Whether the model thinks before it answers, and what is shown of it (`--thinking`,
    /// `--max-thinking-tokens`, `--thinking-display`). Default: what the user's settings say.
    ///
    /// ```
    /// use claude_agent_kit::{Options, Thinking, ThinkingDisplay};
    ///
    /// let options =
    ///     Options::new().thinking(Thinking::adaptive().display(ThinkingDisplay::Summarized));
    /// ```
    pub fn thinking(self, thinking: Thinking) -> Self {
        self.change_settings("thinking", |settings| settings.thinking = Some(thinking))
    }

    /// How many tokens the model may think; zero is not at all (`--max-thinking-tokens`). The older
    /// way to say it: [`thinking`](Self::thinking) beats it, with a warning. Default: what the
    /// user's settings say.
    pub fn max_thinking_tokens(self, tokens: u32) -> Self {
        self.change_settings("max_thinking_tokens", |settings| {
            settings.max_thinking_tokens = Some(tokens);
        })
    }

    /// How much effort the model makes: an [`Effort`] or its name (`--effort`). Default: what the
    /// user's settings or the model say.
    pub fn effort(self, effort: impl Into<Effort>) -> Self {
        self.change_settings("effort", |settings| settings.effort = Some(effort.into()))
    }

    /// The system prompt, instead of the CLI's own: a text, [`SystemPrompt::File`], or
    /// [`SystemPrompt::cached`] for one of which a part is the same in every conversation. Texts
    /// travel in the handshake, so they may be long and do not show in the list of processes
    /// (print mode: `--system-prompt`; a file: `--system-prompt-file`). Default: the CLI's own.
    pub fn system_prompt(self, prompt: impl Into<SystemPrompt>) -> Self {
        self.change_settings("system_prompt", |settings| {
            settings.system_prompt = Some(prompt.into());
        })
    }

    /// What is added to the system prompt, whichever it is. Travels as
    /// [`system_prompt`](Self::system_prompt) does (print mode: `--append-system-prompt`). Default:
    /// nothing.
    pub fn append_system_prompt(self, text: impl Into<String>) -> Self {
        self.change_settings("append_system_prompt", |settings| {
            settings.append_system_prompt = Some(Secret::from(text));
        })
    }

    /// Whether what changes from machine to machine (directory, platform, memory) stands in the
    /// first message and not in the CLI's own system prompt, so that machines share the cache of
    /// the prompt. Travels in the handshake (print mode: `--exclude-dynamic-system-prompt-sections`).
    /// Default: no.
    pub fn exclude_dynamic_sections(self, exclude: bool) -> Self {
        self.change_settings("exclude_dynamic_sections", |settings| {
            settings.exclude_dynamic_sections = Some(exclude);
        })
    }

    /// Whether the system prompt is recorded with the first request of a conversation and sent as
    /// it was from then on, whatever a later run says. Travels in the handshake (print mode:
    /// `--system-prompt-snapshot`). Default: what the CLI does by itself.
    pub fn system_prompt_snapshot(self, snapshot: bool) -> Self {
        self.change_settings("system_prompt_snapshot", |settings| {
            settings.system_prompt_snapshot = Some(snapshot);
        })
    }

    /// What the model is told in plan mode, instead of the CLI's own text. Travels in the handshake.
    /// Not in print mode. Default: the CLI's own.
    pub fn plan_mode_instructions(self, text: impl Into<String>) -> Self {
        self.change_settings("plan_mode_instructions", |settings| {
            settings.plan_mode_instructions = Some(Secret::from(text));
        })
    }

    /// Whether prompts reach the model as they are: nothing in them is taken for a command of the
    /// CLI or the mention of a file (`client_composed` in each message). Not in print mode. Default: no.
    pub fn verbatim_prompts(self, verbatim: bool) -> Self {
        self.change_settings("verbatim_prompts", |settings| settings.verbatim_prompts = verbatim)
    }

    /// Whether the CLI suggests the next prompt after each turn, as a `prompt_suggestion` message.
    /// Travels in the handshake (print mode: `--prompt-suggestions`). Default: no.
    pub fn prompt_suggestions(self, suggest: bool) -> Self {
        self.change_settings("prompt_suggestions", |settings| {
            settings.prompt_suggestions = Some(suggest);
        })
    }

    /// Betas of the API to ask for (`--betas`). Default: none.
    pub fn betas(self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("betas", |settings| settings.betas = strings(betas))
    }

    /// Whether pieces of answers are sent as they come, as `stream_event` messages
    /// (`--include-partial-messages`). Default: no.
    pub fn include_partial_messages(self, include: bool) -> Self {
        self.change_settings("include_partial_messages", |settings| {
            settings.include_partial_messages = include;
        })
    }

    /// The JSON schema of the answer; the result then has `structured_output`. Travels in the
    /// handshake (print mode: `--json-schema`). Default: none.
    pub fn output_schema(self, schema: impl Into<Json>) -> Self {
        self.change_settings("output_schema", |settings| {
            settings.output_schema = Some(schema.into());
        })
    }
}
