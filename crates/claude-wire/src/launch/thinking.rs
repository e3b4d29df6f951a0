//! How much the model thinks.

open_enum! {
    /// How much effort the model makes.
    pub enum Effort {
        /// The least.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More than that.
        ExtraHigh = "xhigh",
        /// The most.
        Max = "max",
    }
}

open_enum! {
    /// What the host sees of the model's thinking.
    pub enum ThinkingDisplay {
        /// A summary.
        Summarized = "summarized",
        /// Nothing.
        Omitted = "omitted",
    }
}

/// Whether the model thinks before it answers, and what the host sees of it.
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
    /// The model decides how much.
    pub fn adaptive() -> Self {
        Self { mode: Mode::Adaptive, display: None }
    }

    /// At most this many tokens, for models that do not decide it themselves.
    pub fn budget(tokens: u32) -> Self {
        Self { mode: Mode::Budget(tokens), display: None }
    }

    /// Not at all.
    pub fn disabled() -> Self {
        Self { mode: Mode::Disabled, display: None }
    }

    /// What the host sees of it. Default: what the CLI and the model think right.
    #[must_use]
    pub fn display(mut self, display: impl Into<ThinkingDisplay>) -> Self {
        self.display = Some(display.into());
        self
    }
}
