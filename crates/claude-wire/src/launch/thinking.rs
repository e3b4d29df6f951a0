//! Thinking and effort.

open_enum! {
    /// The effort level of the model.
    pub enum Effort {
        /// The lowest level.
        Low = "low",
        /// The medium level.
        Medium = "medium",
        /// The high level.
        High = "high",
        /// The level above high.
        ExtraHigh = "xhigh",
        /// The highest level.
        Max = "max",
    }
}

open_enum! {
    /// The form in which the host receives the thinking of the model.
    pub enum ThinkingDisplay {
        /// A summary.
        Summarized = "summarized",
        /// Nothing.
        Omitted = "omitted",
    }
}

/// Whether the model thinks before it answers, and the form in which the host receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinking {
    pub(super) mode: Mode,
    pub(super) display: Option<ThinkingDisplay>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Adaptive,
    Budget(u32),
    Disabled,
}

impl Thinking {
    /// Lets the model decide how much to think.
    pub fn adaptive() -> Self {
        Self { mode: Mode::Adaptive, display: None }
    }

    /// Sets a budget in tokens, for models without adaptive thinking.
    pub fn budget(tokens: u32) -> Self {
        Self { mode: Mode::Budget(tokens), display: None }
    }

    /// Disables thinking.
    pub fn disabled() -> Self {
        Self { mode: Mode::Disabled, display: None }
    }

    /// Sets the form in which the host receives the thinking. Default: that of the CLI and the model.
    #[must_use]
    pub fn display(mut self, display: impl Into<ThinkingDisplay>) -> Self {
        self.display = Some(display.into());
        self
    }
}
