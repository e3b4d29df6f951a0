//! Typed answers.

use std::sync::Arc;

use claude_wire::id::SessionId;
use claude_wire::message::ResultMessage;
use claude_wire::{Body, Cost, Extra};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use crate::diagnose::{retry_delay, turn_failure};
use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::query::{no_result, query};
use crate::tool::{deserialize, is_object, schema};
use crate::turn::{Turn, TurnOutcome};
use crate::warning::Warning;
use claude_session_store::json_object::JsonObject;

/// A typed answer with its result and cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The answer.
    pub value: T,
    /// The result message with the answer.
    pub result: Arc<ResultMessage>,
    /// The cost of the answer.
    pub cost: Cost,
    /// The warnings of the run or turn.
    pub warnings: Vec<Warning>,
}

impl<T: Serialize> Serialize for Typed<T> {
    /// `{"type":"typed_answer","value":…,"result":{…},"cost":{…},"warnings":[…]}`; an empty list of
    /// warnings is left out.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "typed_answer")?;
        object.field("value", &self.value)?;
        object.field("result", &*self.result)?;
        object.field("cost", &self.cost)?;
        object.list("warnings", &self.warnings)?;
        object.end()
    }
}

impl<T> Typed<T> {
    /// Returns the ID of the session, for resuming the conversation.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.result.session_id.as_ref()
    }
}

/// Sends a prompt and returns the answer as a value of type `T`.
///
/// The CLI passes the schema of the type, with its doc comments, to the model and validates the answer.
/// The schema replaces [`output_schema`](Options::output_schema).
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
/// - Those of [`query`](query()), and the error that ended the run before its result.
/// - Those of [`Collected::into_result`](crate::Collected::into_result) when the run failed.
/// - [`NoStructuredOutput`](ErrorKind::NoStructuredOutput) when the result has no structured
///   output; [`Error::output`] has its text.
/// - [`StructuredOutputMismatch`](ErrorKind::StructuredOutputMismatch) when the value does not match
///   the type; [`Error::value`] has it.
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
    let (mut result, mut warnings, mut delay) = (None::<Arc<ResultMessage>>, Vec::new(), None);
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
            // The last result with a value counts: background work may add a turn.
            let has_value = |result: &ResultMessage| result.structured_output.is_some();
            if has_value(&last) || !result.as_deref().is_some_and(has_value) {
                result = Some(last);
            }
        }
    }
    let Some(result) = result else {
        return Err(no_result().with_cost(stream.cost()));
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
    /// Waits for the result and returns the answer as a value of type `T`. The session must have been
    /// started with [`Options::answer_as`].
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
    /// Dropping the future drops the turn; the session continues.
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
    /// Requests every answer as a value of type `T`: sets [`output_schema`](Self::output_schema) to its
    /// schema. [`Turn::finish_as`] returns the value.
    pub fn answer_as<T: DeserializeOwned + JsonSchema>(self) -> Self {
        let own = schema::<T>();
        // The CLI accepts schemas of objects only.
        let asked = if is_object(&own) { own } else { schema::<Wrapped<T>>() };
        self.output_schema(asked)
    }
}

/// The object around an answer that is not an object.
#[derive(JsonSchema)]
#[schemars(crate = "schemars")]
struct Wrapped<T> {
    #[expect(dead_code, reason = "only its schema is used")]
    value: T,
}

pub(crate) fn value_of<T: DeserializeOwned + JsonSchema>(result: &ResultMessage) -> Result<T> {
    let Some(output) = &result.structured_output else { return Err(missing(result)) };
    let inner = if is_object(&schema::<T>()) {
        Some(output.clone())
    } else {
        // A value that may be null may be omitted.
        let fields = output.deserialize::<Extra>().ok();
        fields.map(|fields| fields.get("value").cloned().unwrap_or_default())
    };
    deserialize(inner.as_ref().unwrap_or(output)).map_err(|unfit| {
        // The reason may quote the answer, which must not be part of a text that is logged.
        let place = unfit.path.map(|path| format!(" at `{path}`")).unwrap_or_default();
        let message = format!("the structured output does not match its type{place}");
        Error::new(ErrorKind::StructuredOutputMismatch, message)
            .with_hint(unfit.reason)
            .with_help("inspect `Error::value` and `Error::hint`")
            .with(|facts| facts.value = Some(output.clone()))
    })
}

fn missing(result: &ResultMessage) -> Error {
    let output = result.result.clone().unwrap_or_else(|| result.errors.as_slice().join("; "));
    Error::new(ErrorKind::NoStructuredOutput, "the result contains no structured output")
        .with_help("inspect `Error::output` for the answer of the model")
        .with(|facts| {
            facts.output = Some(output);
            facts.session_id.clone_from(&result.session_id);
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_answer_serializes_with_its_value() {
        let result = serde_json::from_str(r#"{"type":"result","subtype":"success"}"#).unwrap();
        let (cost, warnings) = (Cost::default(), Vec::new());
        let answer = Typed { value: vec![1, 2], result: Arc::new(result), cost, warnings };
        let json = serde_json::to_value(&answer).unwrap();
        assert_eq!(json["type"], "typed_answer");
        assert_eq!(json["value"], serde_json::json!([1, 2]));
        assert_eq!(json["result"]["subtype"], "success");
        assert!(json["cost"].is_object() && json.get("warnings").is_none(), "{json}");
    }
}
