//! In-process tools: Rust functions that the model calls.
//!
//! A tool is an async function or closure. Its argument is deserialized with `serde` and described to
//! the model by its [`JsonSchema`], including doc comments. An optional second argument is the
//! [`ToolContext`] of the call. The function returns any type that implements `serde::Serialize`: text
//! and numbers become text, and objects also become structured content. Use [`ToolResult`] for other
//! kinds of content. An error is sent to the model; `?` converts any error.
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
//! Calls run concurrently, each in its own task. The CLI sends concurrent calls only for tools that are
//! [read-only](Tool::read_only). To share state, clone an `Arc` into the closure. Use
//! `tokio::task::spawn_blocking` for blocking work.
//!
//! A call that the CLI cancels, for example after an interrupt, is dropped at its next `await`.

mod context;
mod definition;
mod function;
mod handle;
mod result;
mod schema;
mod serve;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use handle::SharedTools;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use context::{ToolContext, ToolProgress};
pub use definition::{NoArguments, Tool};
pub use function::ToolFunction;
pub use handle::ToolHandle;
pub use result::{ToolError, ToolOutput, ToolResult};

pub(crate) use schema::{deserialize, is_object, schema};

/// An in-process MCP server with tools.
///
/// One value can be used for many sessions. Its tools do not change, unless it is
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
    Shared(Arc<SharedTools>),
}

impl ToolServer {
    /// Creates a server without tools. Its name is set by [`Options::mcp`](crate::Options::mcp).
    pub fn new() -> Self {
        Self {
            version: "1.0.0".to_owned(),
            instructions: None,
            limit: None,
            tools: Tools::Fixed(Vec::new()),
        }
    }

    /// Sets the version that is reported to the CLI. Default: `1.0.0`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets instructions for the model about all tools of the server. Default: none.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the timeout of calls; when it expires, the call is dropped and fails with an error.
    /// Default: no timeout.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Adds a tool with a name, a description and a function. Use [`add`](Self::add) for a [`Tool`] with
    /// hints.
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
            Tools::Shared(shared) => shared.tools().push(tool),
        }
        self
    }

    /// Returns the server and a handle that changes its tools while sessions are running. The server
    /// keeps its current tools; clones of the returned server share the tools.
    pub fn changeable(mut self) -> (Self, ToolHandle) {
        let shared = match &mut self.tools {
            Tools::Fixed(tools) => Arc::new(SharedTools::new(std::mem::take(tools))),
            Tools::Shared(shared) => shared.clone(),
        };
        self.tools = Tools::Shared(shared.clone());
        (self, ToolHandle(shared))
    }

    fn with_tools<R>(&self, read: impl FnOnce(&[Tool]) -> R) -> R {
        match &self.tools {
            Tools::Fixed(tools) => read(tools),
            Tools::Shared(shared) => read(&shared.tools()),
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
            Self::Shared(shared) => shared.tools().fmt(f),
        }
    }
}
