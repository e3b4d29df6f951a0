//! Options about the model and its budgets.

use claude_wire::launch::{Effort, Thinking};

use super::{Options, strings};

impl Options {
    /// Sets the model, by name or alias. Sent as `--model`. Default: the model of the user's settings.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.change_settings("model", |settings| settings.model = Some(model.into()))
    }

    /// Sets the model to use while the main model is overloaded; separate several models with commas.
    /// Sent as `--fallback-model`. Default: none.
    pub fn fallback_model(self, model: impl Into<String>) -> Self {
        self.change_settings("fallback_model", |settings| {
            settings.fallback_model = Some(model.into());
        })
    }

    /// Sets whether the model uses extended thinking, and how its thinking is shown. Sent as
    /// `--thinking`, `--max-thinking-tokens` and `--thinking-display`. Default: that of the user's
    /// settings.
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

    /// Sets the effort level of the model: an [`Effort`] or its name. Sent as `--effort`. Default: that
    /// of the user's settings or of the model.
    pub fn effort(self, effort: impl Into<Effort>) -> Self {
        self.change_settings("effort", |settings| settings.effort = Some(effort.into()))
    }

    /// Enables beta features of the API. Replaces earlier ones. Sent as `--betas`. Default: none.
    pub fn betas(self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("betas", |settings| settings.betas = strings(betas))
    }

    /// Limits the number of model responses in one turn; beyond the limit, the CLI ends the turn with
    /// an error result. Sent as `--max-turns`. Default: no limit.
    pub fn max_turns(self, turns: u32) -> Self {
        self.change_settings("max_turns", |settings| settings.max_turns = Some(turns))
    }

    /// Limits the cost of a run, in US dollars; beyond the limit, the CLI ends the turn with an error
    /// result. Sent as `--max-budget-usd`. Default: no limit.
    ///
    /// The CLI counts per process: a resumed conversation starts at zero, with the whole budget again. For a budget per
    /// conversation, add up the [`cost`](crate::TurnOutcome::cost) of its turns, and pass what is left.
    pub fn max_budget_usd(self, dollars: f64) -> Self {
        self.change_settings("max_budget_usd", |settings| settings.max_budget_usd = Some(dollars))
    }

    /// Informs the model how many tokens it may use for its task, so that it can pace itself. Requires
    /// the task budget beta of the API. Sent as `--task-budget`. Default: no budget.
    pub fn task_budget(self, tokens: u64) -> Self {
        self.change_settings("task_budget", |settings| settings.task_budget = Some(tokens))
    }
}
