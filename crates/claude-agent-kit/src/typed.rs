//! Answers as Rust types.

use claude_wire::message::ResultMessage;
use claude_wire::{Body, Extra, Json};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::query::query;
use crate::tool::{is_object, read, schema};
use crate::turn::Turn;

/// Asks, and gives the answer as a value of this type.
///
/// The model is told the schema of the type, comments included, and held to it by the CLI. The
/// schema replaces [`output_schema`](Options::output_schema).
///
/// ```no_run
/// use claude_agent_kit::schemars::{self, JsonSchema};
/// use claude_agent_kit::{Options, query_as};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Plan {
///     /// What to do, in order.
///     steps: Vec<String>,
/// }
///
/// # async fn example() -> claude_agent_kit::Result<()> {
/// let plan: Plan = query_as("Plan the release", Options::new()).await?;
/// println!("{} steps", plan.steps.len());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// - Those of [`query`](query()), and what ended the run before its result.
/// - [`NoStructuredOutput`](ErrorKind::NoStructuredOutput) when the result has no value; it says
///   with what the run ended instead ([`Error::output`]).
/// - [`StructuredOutputMismatch`](ErrorKind::StructuredOutputMismatch) when the value does not fit
///   the type; [`Error::value`] has it.
///
/// # Cancel safety
/// Dropping the future ends the CLI.
///
/// # Panics
/// On a Tokio runtime whose I/O or time driver is not enabled.
pub async fn query_as<T: DeserializeOwned + JsonSchema>(
    prompt: impl Into<Prompt>,
    options: impl Into<Options>,
) -> Result<T> {
    let mut stream = query(prompt, options.into().answer_as::<T>()).await?;
    let mut result = None;
    while let Some(item) = stream.next().await {
        if let Item::Message(message) = item?
            && let Body::Result(last) = message.body
        {
            // The last one that has a value counts: work in the background may add a turn.
            let has_value = |result: &ResultMessage| result.structured_output.is_some();
            if last.structured_output.is_some() || !result.as_deref().is_some_and(has_value) {
                result = Some(last);
            }
        }
    }
    match result {
        Some(result) => value_of(&result),
        None => Err(Error::new(ErrorKind::NoStructuredOutput, "the run ended without a result")),
    }
}

impl Turn {
    /// Waits for the result, and gives the answer as a value of this type. The session must have
    /// been started for it ([`Options::answer_as`]).
    ///
    /// # Errors
    /// - As for [`Self::next`].
    /// - [`NoStructuredOutput`](ErrorKind::NoStructuredOutput) when the result has no value; it
    ///   says with what the turn ended instead ([`Error::output`]).
    /// - [`StructuredOutputMismatch`](ErrorKind::StructuredOutputMismatch) when the value does not
    ///   fit the type; [`Error::value`] has it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the turn; the session goes on.
    pub async fn finish_as<T: DeserializeOwned + JsonSchema>(self) -> Result<T> {
        value_of(&self.finish().await?.result)
    }
}

impl Options {
    /// Has every answer come as a value of this type: sets
    /// [`output_schema`](Self::output_schema) to its schema. [`Turn::finish_as`] gives the value.
    pub fn answer_as<T: DeserializeOwned + JsonSchema>(self) -> Self {
        let own = schema::<T>();
        // Models can only be held to objects.
        let asked = if is_object(&own) { own } else { schema::<Wrapped<T>>() };
        self.output_schema(asked)
    }
}

/// What an answer that is no object is asked for in.
#[derive(JsonSchema)]
#[schemars(crate = "schemars")]
struct Wrapped<T> {
    #[expect(dead_code, reason = "only its schema is used")]
    value: T,
}

fn value_of<T: DeserializeOwned + JsonSchema>(result: &ResultMessage) -> Result<T> {
    let Some(output) = &result.structured_output else { return Err(missing(result)) };
    let inner = if is_object(&schema::<T>()) {
        Some(output.clone())
    } else {
        // A value that may be null may be left out.
        let fields = output.parse::<Extra>().ok();
        fields.map(|fields| fields.get("value").cloned().unwrap_or_default())
    };
    read(inner.as_ref().unwrap_or(output)).map_err(|unfit| {
        // The reason may quote the answer, which is not for texts that are printed.
        let place = unfit.path.map(|path| format!(" at `{path}`")).unwrap_or_default();
        let message = format!("the answer does not fit its type{place}");
        Error::new(ErrorKind::StructuredOutputMismatch, message)
            .hint_at(unfit.reason)
            .remedy("look at its `value` and `hint`")
            .with(|facts| facts.value = Some(output.clone()))
    })
}

fn missing(result: &ResultMessage) -> Error {
    let kind = Json::of(&result.subtype).ok().and_then(|kind| kind.parse::<String>().ok());
    let kind = kind.unwrap_or_else(|| "none".to_owned());
    let message = format!("the result ({kind}) has no structured output");
    let said = result.result.clone().unwrap_or_else(|| result.errors.as_slice().join("; "));
    Error::new(ErrorKind::NoStructuredOutput, message)
        .remedy("see its `output` for what the run ended with")
        .with(|facts| facts.output = Some(said))
}
