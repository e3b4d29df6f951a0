//! Tools of this process: Rust functions that the model calls.
//!
//! A tool is a function or closure with one argument, whose type says what the model must give: it
//! is read with `serde`, and described to the model by its
//! [`JsonSchema`], comments included. What it returns can be anything that
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
//! let server = ToolServer::new("calc")
//!     .tool("add", "Adds two numbers", |args: Add| async move { Ok(args.a + args.b) })
//!     .with(
//!         Tool::new("parse", "Reads a number", |args: Parse| async move {
//!             Ok(args.text.trim().parse::<f64>()?)
//!         })
//!         .read_only(),
//!     );
//! let options = Options::new().tool_server(server).allowed_tools(["mcp__calc"]);
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
mod read;
mod result;
mod serve;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use changing::Changing;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use changing::ToolHandle;
pub use context::ToolContext;
pub use definition::{NoArguments, Tool};
pub use result::{ToolError, ToolOutput, ToolResult};

pub(crate) use read::{is_object, read, schema};

/// Tools of this process, under one name.
///
/// One value serves many sessions. Its tools stay the same, unless it is
/// [changeable](Self::changeable). See [the module](self) for an example.
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct ToolServer {
    name: String,
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
    /// A server of this name, with no tools yet. Names have 1 to 64 letters, digits, `_` and `-`;
    /// another name, or one that is taken, is refused when a session starts
    /// ([`InvalidOptions`](crate::ErrorKind::InvalidOptions)), and so is a tool whose name with the
    /// server's (`mcp__server__tool`) is longer than 128 characters. A name with `__`, or with `_`
    /// at its end, works; but a rule that allows the whole server has to be written
    /// `mcp__server__*` then.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
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

    /// Adds a tool. [`Tool::new`] and [`with`](Self::with) also take hints about it.
    pub fn tool<A, F, R, O>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: ToolOutput,
    {
        self.with(Tool::new(name, description, function))
    }

    /// Adds a tool whose function is also given the context of the call: the token that tells when
    /// it is withdrawn, and progress.
    ///
    /// ```
    /// use claude_agent_kit::ToolServer;
    /// use claude_agent_kit::tool::NoArguments;
    ///
    /// let server = ToolServer::new("files").tool_with_context(
    ///     "index",
    ///     "Indexes all files",
    ///     |_: NoArguments, ctx| async move {
    ///         for step in 1..=3 {
    ///             ctx.progress(f64::from(step), Some(3.0), None).await?;
    ///         }
    ///         Ok("done")
    ///     },
    /// );
    /// ```
    pub fn tool_with_context<A, F, R, O>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: ToolOutput,
    {
        self.with(Tool::with_context(name, description, function))
    }

    /// Adds a tool.
    pub fn with(mut self, tool: Tool) -> Self {
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
            Tools::Fixed(tools) => Arc::new(Changing::new(&self.name, std::mem::take(tools))),
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

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("name", &self.name)
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
