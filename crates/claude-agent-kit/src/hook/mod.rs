//! Hooks: callbacks that the CLI calls at points of its work, and whose responses it follows.
//!
//! A hook is registered with [`Options::on`](crate::Options::on). Each event is a constant of this
//! module, such as [`PreToolUse`] or [`Stop`]: a [`HookRegistration`] that can be narrowed with
//! [`matching`](HookRegistration::matching), [`timeout`](HookRegistration::timeout) and
//! [`fail_closed`](HookRegistration::fail_closed). The callback receives the event's input, such as
//! [`input::PreToolUseInput`], and returns nothing or a [`HookResponse`].
//!
//! ```
//! use claude_agent_kit::Options;
//! use claude_agent_kit::hook::{HookResponse, PreToolUse};
//!
//! let options = Options::new().on(PreToolUse.matching("Bash").fail_closed(), |_call, _ctx| async {
//!     HookResponse::deny("this agent does not use a shell")
//! });
//! ```

mod capability;
mod check;
mod event;
#[cfg(test)]
mod every_event;
mod pattern;
mod raw;
mod registration;
mod response;
#[cfg(test)]
mod tests;

/// The inputs of the events, such as [`PreToolUseInput`](input::PreToolUseInput).
pub use claude_wire::hook_input as input;

pub use capability::{
    CanAddContext, CanAnswerElicitation, CanAsk, CanBlock, CanDeny, CanSetTitle, CanSuppressPrompt,
    CanUpdateInput, CanWatchPaths,
};
pub use event::*;
pub use raw::{RawHookInput, RawHookResponse};
pub use registration::HookRegistration;
pub use response::{HookResponse, IntoHookResponse};

pub(crate) use check::problem;
pub(crate) use registration::HookTarget;
