//! The definition of a tool: its name, function and hints.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use claude_wire::{Extra, Json};
use schemars::JsonSchema;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny};

use super::{ToolContext, ToolError, ToolFunction, ToolResult, deserialize, is_object, schema};
use crate::mcp::names::{self, NAME};

type Run = Arc<
    dyn Fn(Json, ToolContext) -> Pin<Box<dyn Future<Output = ToolResult> + Send>> + Send + Sync,
>;

/// A function that the model can call.
///
/// The CLI does not verify the hints. It may ask for fewer permissions, or run calls concurrently,
/// because of them.
#[derive(Clone)]
#[must_use = "a tool does nothing until a server has it"]
pub struct Tool {
    pub(super) name: String,
    description: String,
    input: Json,
    output: Option<Json>,
    annotations: Extra,
    meta: Extra,
    run: Run,
}

/// The arguments of a tool without arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct NoArguments {}

impl<'de> Deserialize<'de> for NoArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IgnoredAny).map(|_| Self {})
    }
}

impl Tool {
    /// Creates a tool with a name, a description for the model and a function.
    pub fn new<A, M>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl ToolFunction<A, M>,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let function = Arc::new(function);
        let run: Run = Arc::new(move |arguments, context| {
            let function = function.clone();
            Box::pin(async move {
                match deserialize::<A>(&arguments) {
                    Ok(arguments) => function.call(arguments, context).await,
                    Err(error) => invalid(&error.to_string()).into(),
                }
            })
        });
        Self {
            name: name.into(),
            description: description.into(),
            input: schema::<A>(),
            output: None,
            annotations: Extra::default(),
            meta: Extra::default(),
            run,
        }
    }

    /// Marks the tool as read-only. The CLI may then send concurrent calls.
    pub fn read_only(self) -> Self {
        self.annotate("readOnlyHint", true)
    }

    /// Sets whether the tool may perform destructive updates, and not only additive ones.
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate("destructiveHint", destructive)
    }

    /// Marks the tool as idempotent: a second call with the same arguments has no additional effect.
    pub fn idempotent(self) -> Self {
        self.annotate("idempotentHint", true)
    }

    /// Sets whether the tool interacts with external entities, such as the web.
    pub fn open_world(self, open: bool) -> Self {
        self.annotate("openWorldHint", open)
    }

    /// Sets a title for users.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.annotations.set("title", title.into().as_str());
        self
    }

    /// Sets the type of the structured content, whose schema is sent to the CLI.
    pub fn returns<T: JsonSchema>(mut self) -> Self {
        self.output = Some(schema::<T>());
        self
    }

    /// Sets keywords by which the model finds the tool when the CLI does not load all tools.
    pub fn search_hint(mut self, hint: impl Into<String>) -> Self {
        self.meta.set("anthropic/searchHint", hint.into().as_str());
        self
    }

    /// Always loads the tool, so that the model does not have to search for it.
    pub fn always_load(mut self) -> Self {
        self.meta.set("anthropic/alwaysLoad", true_or_false(true));
        self
    }

    /// Sets the maximum length of a result, in characters. The CLI does not send longer results to the
    /// model.
    pub fn max_result_size(mut self, characters: u64) -> Self {
        let characters = Json::from_serialize(&characters).unwrap_or_default();
        self.meta.set("anthropic/maxResultSizeChars", characters);
        self
    }

    fn annotate(mut self, name: &str, hint: bool) -> Self {
        self.annotations.set(name, true_or_false(hint));
        self
    }

    pub(super) fn call(
        &self,
        arguments: Json,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send>> {
        (self.run)(arguments, context)
    }

    /// Returns the entry of the tool in the response to `tools/list`.
    pub(super) fn definition(&self) -> Json {
        let mut definition = Extra::default();
        definition.set("name", self.name.as_str());
        definition.set("description", self.description.as_str());
        definition.set("inputSchema", self.input.clone());
        if let Some(output) = &self.output {
            definition.set("outputSchema", output.clone());
        }
        if !self.annotations.is_empty() {
            definition.set("annotations", &self.annotations);
        }
        if !self.meta.is_empty() {
            definition.set("_meta", &self.meta);
        }
        Json::from(&definition)
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let name = &self.name;
        let mut problems = Vec::new();
        if !names::is_name(name) {
            problems.push(format!("{name:?} is not a valid tool name; help: {NAME}"));
        }
        if !is_object(&self.input) {
            problems.push(format!(
                "the argument of tool {name:?} is not an object; help: use a struct"
            ));
        }
        if self.output.as_ref().is_some_and(|output| !is_object(output)) {
            problems
                .push(format!("the output of tool {name:?} is not an object; help: use a struct"));
        }
        problems
    }
}

fn invalid(reason: &str) -> ToolError {
    ToolError::new(format!("Invalid arguments: {reason}"))
}

fn true_or_false(value: bool) -> Json {
    Json::from_serialize(&value).unwrap_or_default()
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
