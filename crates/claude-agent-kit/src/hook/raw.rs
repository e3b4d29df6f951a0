//! Hooks for events that have no types here: any name, the input as it came, an answer in any
//! shape.

use std::time::Duration;

use claude_wire::control::{HookInput, HookOutput as WireOutput, HookSpecificOutput};
use claude_wire::id::SessionId;
use claude_wire::{Extra, Json};

use super::answer::milliseconds;
use super::event::known;
use super::{Asked, Encoded, HookAnswer, HookEvent, HookOutput, Matching, USUAL_LIMIT, sealed};
use crate::callback::BoxError;

/// An event by its name, for those that have no type here: new ones, and old ones in their raw
/// form.
///
/// ```
/// use claude_agent_kit::Options;
/// use claude_agent_kit::hook::{AnyEvent, RawAnswer};
///
/// let options = Options::new().on(AnyEvent::named("SessionTidied"), |input, _ctx| async move {
///     println!("{}: {}", input.event, input.json);
///     RawAnswer::new().specific("additionalContext", "It is tidy now.")
/// });
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AnyEvent;

impl AnyEvent {
    /// The event of this name.
    pub fn named(name: impl Into<String>) -> Matching<Self> {
        let name = name.into();
        let limit = known(&name).map_or(USUAL_LIMIT, |known| known.limit);
        Matching::new(name, limit)
    }
}

impl sealed::Event for AnyEvent {}

impl HookEvent for AnyEvent {
    const NAME: &'static str = "";
    const DEFAULT_LIMIT: Duration = USUAL_LIMIT;
    type Input = RawHookInput;
    type Output = RawAnswer;

    fn read(asked: Asked) -> Result<RawHookInput, String> {
        let event = asked.input.kind().unwrap_or_default().to_owned();
        let json = match text_of_input(&asked.line) {
            Some(json) => json,
            None => encoded(&asked.input)?,
        };
        Ok(RawHookInput { event, json })
    }
}

/// The input as it stands in the line.
fn text_of_input(line: &[u8]) -> Option<Json> {
    let line = Json::from_text(str::from_utf8(line).ok()?).ok()?;
    let request = line.deserialize::<Extra>().ok()?.get("request")?.deserialize::<Extra>().ok()?;
    request.get("input").cloned()
}

/// The session that a line's input names.
pub(crate) fn session_of(line: &[u8]) -> Option<SessionId> {
    let input = text_of_input(line)?.deserialize::<Extra>().ok()?;
    input.get("session_id")?.deserialize().ok()
}

/// The input of a line with broken characters, which were mended when it was read.
fn encoded(input: &HookInput) -> Result<Json, String> {
    Json::from_serialize(input).map_err(|error| error.to_string())
}

/// What a hook for [`AnyEvent`] is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawHookInput {
    /// The event.
    pub event: String,
    /// What the CLI told, as it came: an object with `hook_event_name` and the event's own fields.
    pub json: Json,
}

/// What a hook for [`AnyEvent`] answers. Empty, it lets everything go on.
///
/// A field that is known to belong to other events only is left out with a warning, because the
/// CLI refuses the whole answer for some of them. Fields that nobody knows are passed on.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RawAnswer {
    whole: Option<Json>,
    fields: Extra,
    specific: Extra,
    block: Option<String>,
}

impl RawAnswer {
    /// An answer that lets everything go on.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer given as the object that is sent. `hookEventName` need not stand in it.
    pub fn json(answer: impl Into<Json>) -> Self {
        Self { whole: Some(answer.into()), ..Self::default() }
    }

    /// Sets a field of the answer: `systemMessage`, `suppressOutput` and so on.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.fields.set(name, value);
        self
    }

    /// Sets a field of the part that only this event has (`hookSpecificOutput`).
    pub fn specific(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.specific.set(name, value);
        self
    }

    /// Blocks what happened, for this reason, in the form that the event has for that.
    pub fn block(mut self, reason: impl Into<String>) -> Self {
        self.block = Some(reason.into());
        self
    }

    /// Ends the turn, for this reason. What could still run because of that is denied besides.
    pub fn stop(self, reason: impl AsRef<str>) -> Self {
        self.field("continue", boolean(false)).field("stopReason", reason.as_ref())
    }

    /// Lets everything go on at once, and says that the host is busy with it for so long.
    /// Whatever else the answer says wins over this.
    pub fn run_async(limit: Duration) -> Self {
        let limit = Json::from_serialize(&milliseconds(limit)).unwrap_or_default();
        Self::new().field("async", boolean(true)).field("asyncTimeout", limit)
    }
}

impl From<Json> for RawAnswer {
    fn from(answer: Json) -> Self {
        Self::json(answer)
    }
}

impl sealed::Answer for RawAnswer {}

impl HookAnswer<AnyEvent> for RawAnswer {
    fn into_output(self) -> Result<RawAnswer, BoxError> {
        Ok(self)
    }
}

impl HookOutput for RawAnswer {
    fn encode(self, event: &str) -> Result<Encoded, String> {
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
    json.deserialize().map_err(|_| "the answer of the hook is no JSON object".to_owned())
}

fn block(event: &str, reason: &str, all: &mut Extra, specific: &mut Extra) {
    let mut output = WireOutput::default();
    if output.deny(event, reason) {
        put_specific(&output, specific);
    } else {
        all.set("decision", "block");
        all.set("reason", reason);
    }
}

/// Ending the turn alone lets the tool run first, or the permission be asked for.
fn deny_if_stopped(event: &str, all: &Extra, specific: &mut Extra) {
    let mut output = WireOutput::default();
    output.go_on = all.get("continue").and_then(|go_on| go_on.deserialize().ok());
    if output.go_on != Some(false) {
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

fn put_specific(output: &WireOutput, specific: &mut Extra) {
    let own = output.specific.as_ref().and_then(|own| Json::from_serialize(own).ok());
    let own: Extra = own.and_then(|own| own.deserialize().ok()).unwrap_or_default();
    for (name, value) in own.iter().filter(|(name, _)| *name != EVENT_NAME) {
        specific.set(name, value.clone());
    }
}

fn boolean(value: bool) -> Json {
    Json::from_serialize(&value).unwrap_or_default()
}

/// The answer without what does not fit the event.
fn fitted(event: &str, all: &Extra, specific: &Extra) -> Encoded {
    let known = known(event);
    let fields = HookSpecificOutput::fields_of(event);
    // The CLI looks at nothing else of an asynchronous answer: a denial beside it would be lost.
    let says_more = !specific.is_empty() || all.iter().any(|(name, _)| !is_async(name));
    let mut dropped = Vec::new();
    let mut answer = Extra::default();
    for (name, value) in all.iter() {
        let misfit = match name {
            "decision" | "reason" => known.as_ref().is_some_and(|known| !known.takes_decision),
            name => is_async(name) && says_more,
        };
        if misfit {
            dropped.push(name.to_owned());
        } else if name != SPECIFIC {
            answer.set(name, value.clone());
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
        answer.set(SPECIFIC, &own);
    }
    Encoded { json: Json::from(&answer), dropped }
}

fn is_async(field: &str) -> bool {
    matches!(field, "async" | "asyncTimeout")
}
