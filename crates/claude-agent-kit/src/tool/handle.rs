//! Changes the tools of a server while sessions are running.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use claude_wire::launch::Problem;
use tokio::task::JoinSet;

use super::Tool;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::mcp::{McpClient, names};
use crate::options::prepare::enumerated;
use crate::{list, sort};

/// Changes the tools of a [`ToolServer`](super::ToolServer) while sessions are running. Clones change
/// the same server.
///
/// Each change notifies the CLI of every session with the server, and completes when all have
/// acknowledged it. The CLIs list the tools again soon after. A running call continues when its tool is
/// removed. The CLI may still offer a removed tool to the model, as it did in earlier turns; a call of
/// it fails.
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
    /// Each until its session has ended.
    clients: Mutex<Vec<Weak<McpClient>>>,
}

impl ToolHandle {
    /// Adds a tool.
    ///
    /// # Errors
    /// - [`InvalidOptions`](ErrorKind::InvalidOptions) when the name of the tool is invalid, already
    ///   used or, together with the name of the server in a session, too long for the CLI, or when its
    ///   arguments are not an object. The tool is not added then.
    /// - Those of [`McpClient::notify`] when a session could not be notified. The tool is added then.
    ///
    /// # Cancel safety
    /// Once polled, the tool is added; dropping the future may leave sessions without the notification.
    pub async fn add(&self, tool: Tool) -> Result<()> {
        self.0.change(|tools| tools.push(tool))?;
        self.0.notify().await
    }

    /// Removes the tool of this name. Returns whether there was one.
    ///
    /// # Errors
    /// Those of [`McpClient::notify`] when a session could not be notified. The tool is removed then.
    ///
    /// # Cancel safety
    /// Once polled, the tool is removed; dropping the future may leave sessions without the notification.
    pub async fn remove(&self, name: &str) -> Result<bool> {
        let removed = self.0.remove(name);
        if removed {
            self.0.notify().await?;
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
        self.0.notify().await
    }

    /// Returns the names of the tools, in the order in which they were added.
    pub fn names(&self) -> Vec<String> {
        list::map(&self.0.tools(), &|tool| tool.name.clone())
    }
}

impl SharedTools {
    pub(super) fn new(tools: Vec<Tool>) -> Self {
        Self { tools: Mutex::new(tools), clients: Mutex::default() }
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, Vec<Tool>> {
        lock(&self.tools)
    }

    /// Notifies this client of changes, until it is dropped.
    pub(super) fn subscribe(&self, client: &Arc<McpClient>) {
        let mut clients = lock(&self.clients);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }

    /// Changes the tools, if the changed tools are valid.
    fn change(&self, change: impl FnOnce(&mut Vec<Tool>)) -> Result<()> {
        let mut tools = self.tools();
        let mut changed = tools.clone();
        change(&mut changed);
        let mut problems = problems(&changed);
        for server in self.servers() {
            for tool in &changed {
                if let Some(reason) = names::never_offered(&server, &tool.name) {
                    problems.push(format!("tool {:?}: {reason}", tool.name));
                }
            }
        }
        if !problems.is_empty() {
            return Err(invalid(&problems));
        }
        *tools = changed;
        Ok(())
    }

    /// Returns the names of the server in its sessions.
    fn servers(&self) -> Vec<String> {
        let mut servers = Vec::new();
        for client in self.clients() {
            if !servers.iter().any(|server| server == client.server()) {
                servers.push(client.server().to_owned());
            }
        }
        sort::sort_by(&mut servers, String::cmp);
        servers
    }

    /// Returns the clients that are still in use.
    fn clients(&self) -> Vec<Arc<McpClient>> {
        let mut clients = Vec::new();
        for client in &*lock(&self.clients) {
            if let Some(client) = client.upgrade() {
                clients.push(client);
            }
        }
        clients
    }

    /// Removes a tool; returns whether there was one.
    fn remove(&self, name: &str) -> bool {
        let mut tools = self.tools();
        let before = tools.len();
        tools.retain(|tool| tool.name != name);
        tools.len() < before
    }

    /// Notifies every session concurrently.
    async fn notify(&self) -> Result<()> {
        let mut notifications = JoinSet::new();
        for client in self.clients() {
            notifications.spawn(async move { client.tools_changed().await });
        }
        let mut result = Ok(());
        while let Some(ended) = notifications.join_next().await {
            // A session that has ended needs no notification.
            if let Ok(Err(error)) = ended
                && error.kind() != ErrorKind::SessionStopped
            {
                result = Err(error);
            }
        }
        result
    }
}

/// Returns the problems of these tools.
pub(super) fn problems(tools: &[Tool]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        problems.append(&mut tool.problems());
        if tools.iter().take(index).any(|other| other.name == tool.name) {
            problems.push(format!("two tools are named {:?}; help: rename one of them", tool.name));
        }
    }
    problems
}

fn invalid(problems: &[String]) -> Error {
    let message = format!("invalid tools: {}", enumerated(problems));
    let problems = list::map(problems, &|reason| Problem::new(&["mcp"], reason.as_str()));
    Error::new(ErrorKind::InvalidOptions, message).with(|facts| facts.problems = problems)
}

impl fmt::Debug for ToolHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolHandle").field("tools", &self.names()).finish_non_exhaustive()
    }
}
