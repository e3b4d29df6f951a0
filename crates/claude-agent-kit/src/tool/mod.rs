//! Tools of this process: Rust functions that the model calls.
//!
//! A tool is an async function or closure. The type of its argument says what the model must give: it
//! is read with `serde`, and described to the model by its [`JsonSchema`], comments included. A
//! second argument gets the [`ToolContext`] of the call. What it returns can be anything that
//! `serde` can write: text and numbers become text, an object is structured content too. Content of
//! other kinds is a [`ToolResult`]. An error tells the model what went wrong; `?` makes one of
//! every error.
//!
//! ```
//! use claude_agent_kit::{Options, Tool, ToolServer};
//! use claude_agent_kit::schemars::{self, JsonSchema};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: f64,
//!     b: f64,
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Parse {
//!     text: String,
//! }
//!
//! let server = ToolServer::new()
//!     .tool("add", "Adds two numbers", |args: Add| async move { Ok(args.a + args.b) })
//!     .add(
//!         Tool::new("parse", "Reads a number", |args: Parse| async move {
//!             Ok(args.text.trim().parse::<f64>()?)
//!         })
//!         .read_only(),
//!     );
//! let options = Options::new().mcp("calc", server).allowed_tools(["mcp__calc"]);
//! ```
//!
//! Calls run at the same time, each in a task of its own. The CLI makes several at once only of
//! tools that are [read-only](Tool::read_only). State is shared by capture: clone an `Arc` into the
//! closure. A function that blocks its thread belongs into `tokio::task::spawn_blocking`.
//!
//! A call that the CLI withdraws, on an interrupt say, is dropped at its next `await`.

mod changing;
mod context;
mod definition;
mod function;
mod read;
mod result;
mod serve;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use changing::Changing;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use changing::ToolHandle;
pub use context::{ToolContext, ToolProgress};
pub use definition::{NoArguments, Tool};
pub use function::ToolFunction;
pub use result::{ToolError, ToolOutput, ToolResult};

pub(crate) use read::{is_object, read, schema};

/// Tools of this process, under one name.
///
/// One value serves many sessions. Its tools stay the same, unless it is
/// [changeable](Self::changeable). See [the guide](crate::guide::tools) for an example.
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct ToolServer {
    version: String,
    instructions: Option<String>,
    limit: Option<Duration>,
    tools: Tools,
}

#[derive(Clone)]
enum Tools {
    Fixed(Vec<Tool>),
    Changing(Arc<Changing>),
}

impl ToolServer {
    /// Makes a server without tools. Its name is given to [`Options::mcp`](crate::Options::mcp).
    pub fn new() -> Self {
        Self {
            version: "1.0.0".to_owned(),
            instructions: None,
            limit: None,
            tools: Tools::Fixed(Vec::new()),
        }
    }

    /// The version that the CLI is told. Default: `1.0.0`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// What the model is told about the tools as a whole. Default: nothing.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// How long a call may take; then it is dropped and answered with an error. Default: as long as
    /// it likes.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Adds a tool, as [`Tool::new`] makes it. [`add`](Self::add) takes a [`Tool`] with hints.
    pub fn tool<A, M>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl ToolFunction<A, M>,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
    {
        self.add(Tool::new(name, description, function))
    }

    /// Adds a tool.
    #[expect(clippy::should_implement_trait, reason = "it adds a tool to a server")]
    pub fn add(mut self, tool: Tool) -> Self {
        match &mut self.tools {
            Tools::Fixed(tools) => tools.push(tool),
            Tools::Changing(changing) => changing.tools().push(tool),
        }
        self
    }

    /// Makes it a server whose tools can be changed while sessions run, with the handle that does
    /// so. The tools that it has so far are the first; copies of it have the same tools from now on.
    pub fn changeable(mut self) -> (Self, ToolHandle) {
        let changing = match &mut self.tools {
            Tools::Fixed(tools) => Arc::new(Changing::new(std::mem::take(tools))),
            Tools::Changing(changing) => changing.clone(),
        };
        self.tools = Tools::Changing(changing.clone());
        (self, ToolHandle(changing))
    }

    /// What comes of looking at its tools.
    fn look<R>(&self, look: impl FnOnce(&[Tool]) -> R) -> R {
        match &self.tools {
            Tools::Fixed(tools) => look(tools),
            Tools::Changing(changing) => look(&changing.tools()),
        }
    }
}

impl Default for ToolServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("version", &self.version)
            .field("limit", &self.limit)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(tools) => tools.fmt(f),
            Self::Changing(changing) => changing.tools().fmt(f),
        }
    }
}
