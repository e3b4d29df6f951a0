//! Typed answers.

use claude_wire::id::SessionId;
use claude_wire::message::ResultMessage;
use claude_wire::session::Cost;
use claude_wire::{Body, Extra};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::diagnose::{retry_delay, turn_failure};
use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::query::query;
use crate::tool::{deserialize, is_object, schema};
use crate::turn::{Turn, TurnOutcome};
use crate::warning::Warning;

/// A typed answer with its result, cost and warnings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The answer.
    pub value: T,
    /// The result that contains the answer, with the session ID, the usage and the duration.
    pub result: Box<ResultMessage>,
    /// The cost of the answer.
    pub cost: Cost,
    /// The warnings of the run or turn.
    pub warnings: Vec<Warning>,
}

impl<T> Typed<T> {
    /// Returns the session ID, with which the conversation can be resumed.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.result.session_id.as_ref()
    }
}

/// Runs a query and returns the answer as a value of the type `T`.
///
/// The CLI makes the model follow the JSON schema of the type, which includes its doc comments. The
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
/// let plan = query_as::<Plan>("Plan the release", Options::new()).await?;
/// println!("{} steps for {}", plan.value.steps.len(), plan.cost);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// - The errors of [`query`](query()), and the error that ended the run before its result.
/// - The errors of [`Collected::into_result`](crate::Collected::into_result) if the run failed.
/// - [`NoStructuredOutput`](ErrorKind::NoStructuredOutput) if the result contains no value;
///   [`Error::output`] returns its text.
/// - [`StructuredOutputMismatch`](ErrorKind::StructuredOutputMismatch) if the value cannot be
///   deserialized; [`Error::value`] returns it.
///
/// # Cancel safety
/// If the future is dropped, the CLI is ended.
///
/// # Panics
/// Panics if the I/O or time driver of the Tokio runtime is not enabled.
pub async fn query_as<T: DeserializeOwned + JsonSchema>(
    prompt: impl Into<Prompt>,
    options: impl Into<Options>,
) -> Result<Typed<T>> {
    let mut stream = query(prompt, options.into().answer_as::<T>()).await?;
    let (mut result, mut warnings, mut delay) = (None::<Box<ResultMessage>>, Vec::new(), None);
    while let Some(item) = stream.next().await {
        let message = match item? {
            Item::Message(message) => message,
            Item::Warning(warning) => {
                warnings.push(warning);
                continue;
            }
            Item::PermissionRequest(_) => continue,
        };
        delay = retry_delay(&message.body).or(delay);
        if let Body::Result(last) = message.body {
            // Uses the last result with a value: background work may add turns without one.
            let has_value = |result: &ResultMessage| result.structured_output.is_some();
            if has_value(&last) || !result.as_deref().is_some_and(has_value) {
                result = Some(last);
            }
        }
    }
    let Some(result) = result else {
        let error = Error::new(ErrorKind::NoResult, "the CLI exited without a result");
        return Err(error.with_cost(stream.cost()));
    };
    let value = match value_of(&result) {
        Err(error) => {
            let failure = turn_failure(&result, stream.mask(), delay).unwrap_or(error);
            return Err(failure.with_cost(stream.cost()));
        }
        Ok(value) => value,
    };
    Ok(Typed { value, cost: stream.cost(), result, warnings })
}

impl Turn {
    /// Waits for the result and returns the answer as a value of the type `T`. The session must have
    /// been started with [`Options::answer_as`] for the same type.
    ///
    /// # Errors
    /// - The errors of [`Self::next`], and those of
    ///   [`TurnOutcome::into_result`](crate::TurnOutcome::into_result) if the turn failed.
    /// - [`NoStructuredOutput`](ErrorKind::NoStructuredOutput) if the result contains no value;
    ///   [`Error::output`] returns its text.
    /// - [`StructuredOutputMismatch`](ErrorKind::StructuredOutputMismatch) if the value cannot be
    ///   deserialized; [`Error::value`] returns it.
    ///
    /// # Cancel safety
    /// If the future is dropped, the turn is dropped; the session continues.
    pub async fn finish_as<T: DeserializeOwned + JsonSchema>(self) -> Result<Typed<T>> {
        let outcome = self.finish().await?;
        match value_of(&outcome.result) {
            Ok(value) => {
                let TurnOutcome { result, cost, warnings, .. } = outcome;
                Ok(Typed { value, result, cost, warnings })
            }
            Err(error) => {
                let cost = outcome.cost;
                Err(outcome.into_result().err().unwrap_or(error).with_cost(cost))
            }
        }
    }
}

impl Options {
    /// Requests every answer as a value of the type `T`: sets [`output_schema`](Self::output_schema) to
    /// the schema of the type. [`Turn::finish_as`] returns the value.
    pub fn answer_as<T: DeserializeOwned + JsonSchema>(self) -> Self {
        let own = schema::<T>();
        // The CLI supports only schemas of objects.
        let asked = if is_object(&own) { own } else { schema::<Wrapped<T>>() };
        self.output_schema(asked)
    }
}

/// The object that wraps an answer that is not an object itself.
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
        // An optional value may be omitted.
        let fields = output.deserialize::<Extra>().ok();
        fields.map(|fields| fields.get("value").cloned().unwrap_or_default())
    };
    deserialize(inner.as_ref().unwrap_or(output)).map_err(|error| {
        // The reason may quote the answer, which must not appear in the text of the error.
        let place = error.path.map(|path| format!(" at `{path}`")).unwrap_or_default();
        let message = format!("the answer does not fit its type{place}");
        Error::new(ErrorKind::StructuredOutputMismatch, message)
            .with_hint(error.reason)
            .with_help("look at its `value` and `hint`")
            .with(|facts| facts.value = Some(output.clone()))
    })
}

fn missing(result: &ResultMessage) -> Error {
    let said = result.result.clone().unwrap_or_else(|| result.errors.as_slice().join("; "));
    Error::new(ErrorKind::NoStructuredOutput, "the result has no structured output")
        .with_help("see its `output` for what the model said instead")
        .with(|facts| {
            facts.output = Some(said);
            facts.session_id.clone_from(&result.session_id);
        })
}
