//! Changing the tools of a server while sessions are running.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use claude_wire::launch::Problem;
use tokio::task::JoinSet;

use super::Tool;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::mcp::{McpClient, names};

/// Changes the tools of a [`ToolServer`](super::ToolServer) while sessions are running. Clones refer to
/// the same server.
///
/// Each change notifies the CLIs of all sessions that use the server, and completes when all of them
/// have acknowledged it. The CLIs then list the tools again. Running calls of a removed tool continue.
/// The CLI may still offer a removed tool to the model for a while; calls of it fail.
///
/// ```
/// use claude_agent_kit::NoArguments;
/// use claude_agent_kit::{Options, Session, Tool, ToolServer};
///
/// # async fn example() -> claude_agent_kit::Result<()> {
/// let (server, tools) = ToolServer::new().changeable();
/// let session = Session::start(Options::new().mcp("lab", server)).await?;
/// let measure = Tool::new("measure", "Measures", |_: NoArguments| async { Ok(7) });
/// tools.add(measure).await?;
/// assert!(tools.remove("measure").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolHandle(pub(super) Arc<SharedTools>);

/// The tools of a changeable server.
pub(super) struct SharedTools {
    tools: Mutex<Vec<Tool>>,
    /// The clients of running sessions.
    clients: Mutex<Vec<Weak<McpClient>>>,
}

impl ToolHandle {
    /// Adds a tool.
    ///
    /// # Errors
    /// - [`InvalidOptions`](ErrorKind::InvalidOptions) if the name of the tool is invalid or already in
    ///   use, if the full name (with the name of the server) is too long for the CLI, or if the
    ///   arguments are not an object. Nothing is changed.
    /// - The errors of [`McpClient::notify`] if a session could not be notified. The tool is added.
    ///
    /// # Cancel safety
    /// The tool is added when the future is first polled. If the future is dropped, sessions may not be
    /// notified.
    pub async fn add(&self, tool: Tool) -> Result<()> {
        self.0.change(|tools| tools.push(tool))?;
        self.0.notify_sessions().await
    }

    /// Removes the tool with this name, and returns whether it existed.
    ///
    /// # Errors
    /// Returns the errors of [`McpClient::notify`] if a session could not be notified. The tool is
    /// removed.
    ///
    /// # Cancel safety
    /// The tool is removed when the future is first polled. If the future is dropped, sessions may not
    /// be notified.
    pub async fn remove(&self, name: &str) -> Result<bool> {
        let removed = self.0.remove(name);
        if removed {
            self.0.notify_sessions().await?;
        }
        Ok(removed)
    }

    /// Replaces all tools.
    ///
    /// # Errors
    /// Returns the errors of [`Self::add`].
    ///
    /// # Cancel safety
    /// Same as [`Self::add`].
    pub async fn replace(&self, tools: impl IntoIterator<Item = Tool>) -> Result<()> {
        let new: Vec<Tool> = tools.into_iter().collect();
        self.0.change(|tools| *tools = new)?;
        self.0.notify_sessions().await
    }

    /// Returns the names of the tools, in the order in which they were added.
    pub fn names(&self) -> Vec<String> {
        self.0.tools().iter().map(|tool| tool.name.clone()).collect()
    }
}

impl SharedTools {
    pub(super) fn new(tools: Vec<Tool>) -> Self {
        Self { tools: Mutex::new(tools), clients: Mutex::default() }
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, Vec<Tool>> {
        lock(&self.tools)
    }

    /// Registers a client for notifications until it is dropped.
    pub(super) fn subscribe(&self, client: &Arc<McpClient>) {
        let mut clients = lock(&self.clients);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }

    /// Changes the tools, unless the new list is invalid.
    fn change(&self, change: impl FnOnce(&mut Vec<Tool>)) -> Result<()> {
        let mut tools = self.tools();
        let mut changed = tools.clone();
        change(&mut changed);
        let mut problems = problems(&changed);
        for server in self.servers() {
            problems.extend(changed.iter().filter_map(|tool| {
                let reason = names::never_offered(&server, &tool.name)?;
                Some(format!("tool {:?}: {reason}", tool.name))
            }));
        }
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        *tools = changed;
        Ok(())
    }

    /// Returns the names that sessions use for the server.
    fn servers(&self) -> BTreeSet<String> {
        let clients = lock(&self.clients);
        clients.iter().filter_map(Weak::upgrade).map(|client| client.server().to_owned()).collect()
    }

    fn remove(&self, name: &str) -> bool {
        let mut tools = self.tools();
        let before = tools.len();
        tools.retain(|tool| tool.name != name);
        tools.len() < before
    }

    /// Notifies all sessions concurrently.
    async fn notify_sessions(&self) -> Result<()> {
        let clients: Vec<_> = lock(&self.clients).iter().filter_map(Weak::upgrade).collect();
        let mut notifications = JoinSet::new();
        for client in clients {
            notifications.spawn(async move { client.tools_changed().await });
        }
        let mut result = Ok(());
        while let Some(ended) = notifications.join_next().await {
            // A session that has ended does not need the notification.
            if let Ok(Err(error)) = ended
                && error.kind() != ErrorKind::SessionStopped
            {
                result = Err(error);
            }
        }
        result
    }
}

/// Returns all problems of these tools.
pub(super) fn problems(tools: &[Tool]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        problems.extend(tool.problems());
        if tools.iter().take(index).any(|other| other.name == tool.name) {
            problems.push(format!("two tools are named {:?}; help: rename one of them", tool.name));
        }
    }
    problems
}

fn invalid(problems: Vec<String>) -> Error {
    let message = format!("the tools cannot be used: {}", problems.join("; "));
    let problems = problems.into_iter().map(|reason| Problem::new(&["mcp"], reason));
    Error::new(ErrorKind::InvalidOptions, message).with(|facts| facts.problems = problems.collect())
}

impl fmt::Debug for ToolHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolHandle").field("tools", &self.names()).finish_non_exhaustive()
    }
}
