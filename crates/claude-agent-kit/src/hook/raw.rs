//! Hooks for events by name, with raw input and any response.

use std::time::Duration;

use claude_wire::control::{HookOutput, HookSpecificOutput};
use claude_wire::{Extra, Json};

use super::event::{self, DEFAULT_TIMEOUT, known};
use super::response::sealed::EncodedResponse;
use super::response::{self, milliseconds};
use super::{HookEvent, IntoHookResponse};

/// The input of a hook that is registered [by name](super::HookRegistration::named).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RawHookInput {
    /// The event.
    pub event: String,
    /// The input: an object with `hook_event_name` and the event's own fields.
    pub json: Json,
}

impl HookEvent for RawHookInput {}

impl event::sealed::Event for RawHookInput {
    const NAME: &'static str = "";
    const TIMEOUT: Duration = DEFAULT_TIMEOUT;
    type Specific = ();

    fn read(input: Json) -> Result<Self, String> {
        Ok(Self { event: event::name(&input), json: input })
    }
}

/// The response of a hook that is registered [by name](super::HookRegistration::named). An empty
/// response lets the CLI continue.
///
/// A field that is known to belong to other events only is left out with a warning, because the
/// CLI rejects the whole response for some of them. Unknown fields are passed on.
///
/// `RawHookResponse::from` creates a response from a JSON object, in which `hookEventName` may be
/// missing.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RawHookResponse {
    whole: Option<Json>,
    fields: Extra,
    specific: Extra,
    block: Option<String>,
}

impl RawHookResponse {
    /// Creates an empty response, which lets the CLI continue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field of the response: `systemMessage`, `suppressOutput` and so on.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Sets a field of the part that only this event has (`hookSpecificOutput`).
    pub fn specific(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.specific.set(name, value);
        self
    }

    /// Blocks or denies what the event is about, for this reason, in the form that the event has for
    /// it.
    pub fn block(mut self, reason: impl Into<String>) -> Self {
        self.block = Some(reason.into());
        self
    }

    /// Ends the turn, for this reason. A tool call, permission request or model switch is denied as
    /// well.
    pub fn stop(self, reason: impl AsRef<str>) -> Self {
        self.field("continue", boolean(false)).field("stopReason", reason.as_ref())
    }

    /// Creates a response that lets the CLI continue at once while the host handles the event for up
    /// to `timeout`. Ignored if the response has any other content.
    pub fn run_async(timeout: Duration) -> Self {
        let timeout = Json::from_serialize(&milliseconds(timeout)).unwrap_or_default();
        Self::new().field("async", boolean(true)).field("asyncTimeout", timeout)
    }
}

impl From<Json> for RawHookResponse {
    fn from(response: Json) -> Self {
        Self { whole: Some(response), ..Self::default() }
    }
}

impl From<serde_json::Value> for RawHookResponse {
    fn from(response: serde_json::Value) -> Self {
        Json::from(response).into()
    }
}

impl IntoHookResponse<RawHookInput> for RawHookResponse {}

impl response::sealed::Encode<RawHookInput> for RawHookResponse {
    fn encode(self, event: &str) -> Result<EncodedResponse, String> {
        let mut all = object(self.whole.as_ref())?;
        for (name, value) in self.fields.iter() {
            all.set(name, value.clone());
        }
        let mut specific = object(all.get(SPECIFIC))?;
        for (name, value) in self.specific.iter() {
            specific.set(name, value.clone());
        }
        if let Some(reason) = &self.block {
            block(event, reason, &mut all, &mut specific);
        }
        deny_if_stopped(event, &all, &mut specific);
        Ok(fitted(event, &all, &specific))
    }
}

const SPECIFIC: &str = "hookSpecificOutput";
const EVENT_NAME: &str = "hookEventName";

fn object(json: Option<&Json>) -> Result<Extra, String> {
    let Some(json) = json else { return Ok(Extra::default()) };
    json.deserialize().map_err(|_| "the response of the hook is not a JSON object".to_owned())
}

fn block(event: &str, reason: &str, all: &mut Extra, specific: &mut Extra) {
    let mut output = HookOutput::default();
    if output.deny(event, reason) {
        put_specific(&output, specific);
    } else {
        all.set("decision", "block");
        all.set("reason", reason);
    }
}

/// Ending the turn alone lets the tool run first, or the permission be asked for.
fn deny_if_stopped(event: &str, all: &Extra, specific: &mut Extra) {
    let mut output = HookOutput::default();
    output.continue_ = all.get("continue").and_then(|value| value.deserialize().ok());
    if output.continue_ != Some(false) {
        return;
    }
    output.stop_reason = all.get("stopReason").and_then(|reason| reason.deserialize().ok());
    if !specific.is_empty() {
        let mut own = specific.clone();
        own.set(EVENT_NAME, event);
        output.specific = Json::from(&own).deserialize().ok();
    }
    output.deny_if_stopped(event);
    put_specific(&output, specific);
}

fn put_specific(output: &HookOutput, specific: &mut Extra) {
    let own = output.specific.as_ref().and_then(|own| Json::from_serialize(own).ok());
    let own: Extra = own.and_then(|own| own.deserialize().ok()).unwrap_or_default();
    for (name, value) in own.iter().filter(|(name, _)| *name != EVENT_NAME) {
        specific.set(name, value.clone());
    }
}

fn boolean(value: bool) -> Json {
    Json::from_serialize(&value).unwrap_or_default()
}

/// Returns the response without what does not fit the event.
fn fitted(event: &str, all: &Extra, specific: &Extra) -> EncodedResponse {
    let known = known(event);
    let fields = HookSpecificOutput::fields_of(event);
    // The CLI reads nothing else of an asynchronous response: a denial beside it would be lost.
    let has_more = !specific.is_empty() || all.iter().any(|(name, _)| !is_async(name));
    let mut dropped = Vec::new();
    let mut response = Extra::default();
    for (name, value) in all.iter() {
        let does_not_fit = match name {
            "decision" | "reason" => known.as_ref().is_some_and(|known| !known.takes_decision),
            name => is_async(name) && has_more,
        };
        if does_not_fit {
            dropped.push(name.to_owned());
        } else if name != SPECIFIC {
            response.set(name, value.clone());
        }
    }
    let mut own = Extra::default();
    own.set(EVENT_NAME, event);
    for (name, value) in specific.iter().filter(|(name, _)| *name != EVENT_NAME) {
        if known.is_some() && !fields.contains(&name) && HookSpecificOutput::has_field(name) {
            dropped.push(format!("{SPECIFIC}.{name}"));
        } else {
            own.set(name, value.clone());
        }
    }
    if own.len() > 1 {
        response.set(SPECIFIC, &own);
    }
    EncodedResponse { json: Json::from(&response), dropped }
}

fn is_async(field: &str) -> bool {
    matches!(field, "async" | "asyncTimeout")
}
