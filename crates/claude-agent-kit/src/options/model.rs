//! Options about the model and what it is told.

use claude_wire::Json;
use claude_wire::launch::{Secret, SystemPrompt};

use super::{Options, strings};

impl Options {
    /// The model, by name or alias (`--model`). Default: what the user's settings say.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.change_settings(|settings| settings.model = Some(model.into()))
    }

    /// The model to use while the first one is overloaded; several are separated by commas
    /// (`--fallback-model`). Default: none.
    pub fn fallback_model(self, model: impl Into<String>) -> Self {
        self.change_settings(|settings| settings.fallback_model = Some(model.into()))
    }

    /// How often the model may answer in one turn; the CLI then ends the turn with an error result
    /// (`--max-turns`). Default: no limit.
    pub fn max_turns(self, turns: u32) -> Self {
        self.change_settings(|settings| settings.max_turns = Some(turns))
    }

    /// What a run may cost in dollars; the CLI then ends the turn with an error result
    /// (`--max-budget-usd`). Default: no limit.
    pub fn max_budget_usd(self, dollars: f64) -> Self {
        self.change_settings(|settings| settings.max_budget_usd = Some(dollars))
    }

    /// The system prompt, instead of the CLI's own: a text, or [`SystemPrompt::File`]. A text
    /// travels in the handshake, so it may be long and does not show in the list of processes
    /// (print mode: `--system-prompt`). Default: the CLI's own.
    pub fn system_prompt(self, prompt: impl Into<SystemPrompt>) -> Self {
        self.change_settings(|settings| settings.system_prompt = Some(prompt.into()))
    }

    /// What is added to the system prompt, whichever it is. Travels as
    /// [`system_prompt`](Self::system_prompt) does (print mode: `--append-system-prompt`). Default:
    /// nothing.
    pub fn append_system_prompt(self, text: impl Into<String>) -> Self {
        self.change_settings(|settings| {
            settings.append_system_prompt = Some(Secret::from(text));
        })
    }

    /// Betas of the API to ask for (`--betas`). Default: none.
    pub fn betas(self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings(|settings| settings.betas = strings(betas))
    }

    /// Whether pieces of answers are sent as they come, as `stream_event` messages
    /// (`--include-partial-messages`). Default: no.
    pub fn include_partial_messages(self, include: bool) -> Self {
        self.change_settings(|settings| settings.include_partial_messages = include)
    }

    /// The JSON schema of the answer; the result then has `structured_output`. Travels in the
    /// handshake (print mode: `--json-schema`). Default: none.
    pub fn output_schema(self, schema: impl Into<Json>) -> Self {
        self.change_settings(|settings| settings.output_schema = Some(schema.into()))
    }
}
