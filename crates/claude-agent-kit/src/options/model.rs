//! Options about the model and what it may use.

use claude_wire::launch::{Effort, Thinking};

use super::{Options, strings};

impl Options {
    /// Sets the model, by name or alias. Sent as `--model`. Default: what the user's settings say.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.change_settings("model", |settings| settings.model = Some(model.into()))
    }

    /// Sets the model to use while the first one is overloaded; separate several with commas. Sent
    /// as `--fallback-model`. Default: none.
    pub fn fallback_model(self, model: impl Into<String>) -> Self {
        self.change_settings("fallback_model", |settings| {
            settings.fallback_model = Some(model.into());
        })
    }

    /// Sets whether the model thinks before it answers, and what is shown of its thinking. Sent as
    /// `--thinking`, `--max-thinking-tokens` and `--thinking-display`. Default: what the user's
    /// settings say.
    ///
    /// ```
    /// use claude_agent_kit::{Options, Thinking};
    /// use claude_agent_kit::settings::ThinkingDisplay;
    ///
    /// let options =
    ///     Options::new().thinking(Thinking::adaptive().display(ThinkingDisplay::Summarized));
    /// ```
    pub fn thinking(self, thinking: Thinking) -> Self {
        self.change_settings("thinking", |settings| settings.thinking = Some(thinking))
    }

    /// Sets how much effort the model makes: an [`Effort`] or its name. Sent as `--effort`.
    /// Default: what the user's settings or the model say.
    pub fn effort(self, effort: impl Into<Effort>) -> Self {
        self.change_settings("effort", |settings| settings.effort = Some(effort.into()))
    }

    /// Requests betas of the API. Sent as `--betas`. Default: none.
    pub fn betas(self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("betas", |settings| settings.betas = strings(betas))
    }

    /// Limits how often the model may answer in one turn; the CLI then ends the turn with an error
    /// result. Sent as `--max-turns`. Default: no limit.
    pub fn max_turns(self, turns: u32) -> Self {
        self.change_settings("max_turns", |settings| settings.max_turns = Some(turns))
    }

    /// Limits the cost of a run, in dollars; the CLI then ends the turn with an error result. Sent
    /// as `--max-budget-usd`. Default: no limit.
    pub fn max_budget_usd(self, dollars: f64) -> Self {
        self.change_settings("max_budget_usd", |settings| settings.max_budget_usd = Some(dollars))
    }

    /// Tells the model how many tokens it may use for its task, so that it paces itself. Needs the
    /// API's beta of task budgets. Sent as `--task-budget`. Default: no budget.
    pub fn task_budget(self, tokens: u64) -> Self {
        self.change_settings("task_budget", |settings| settings.task_budget = Some(tokens))
    }
}
