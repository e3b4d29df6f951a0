//! Tools that come and go while sessions run.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use claude_wire::launch::Problem;
use tokio::task::JoinSet;

use super::Tool;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::mcp::{McpClient, names};

/// Changes the tools of a [`ToolServer`](super::ToolServer) while sessions run. Copies change the
/// same server.
///
/// Each change tells the CLI of every session that has the server, and is over when all know of it.
/// They ask for the tools soon after. A call that runs goes on when its tool is removed. The CLI
/// may still offer a removed tool to the model, as it did in earlier turns; a call of it fails.
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
pub struct ToolHandle(pub(super) Arc<Changing>);

/// The tools of a server that change.
pub(super) struct Changing {
    tools: Mutex<Vec<Tool>>,
    /// Each until its session is over.
    clients: Mutex<Vec<Weak<McpClient>>>,
}

impl ToolHandle {
    /// Adds a tool.
    ///
    /// # Errors
    /// - [`InvalidOptions`](ErrorKind::InvalidOptions) when the tool has no proper name, or one that
    ///   is taken or, with the name that a session has for the server, too long for the CLI, or
    ///   arguments that are no object. Then nothing has changed.
    /// - Those of [`McpClient::notify`] when a session could not be told. The tool is added then.
    ///
    /// # Cancel safety
    /// Once polled, the tool is added; dropping the future may leave sessions untold.
    pub async fn add(&self, tool: Tool) -> Result<()> {
        self.0.change(|tools| tools.push(tool))?;
        self.0.tell().await
    }

    /// Removes the tool of this name, and says whether there was one.
    ///
    /// # Errors
    /// Those of [`McpClient::notify`] when a session could not be told. The tool is removed then.
    ///
    /// # Cancel safety
    /// Once polled, the tool is removed; dropping the future may leave sessions untold.
    pub async fn remove(&self, name: &str) -> Result<bool> {
        let removed = self.0.take(name);
        if removed {
            self.0.tell().await?;
        }
        Ok(removed)
    }

    /// Puts these tools in the place of all.
    ///
    /// # Errors
    /// Those of [`Self::add`].
    ///
    /// # Cancel safety
    /// That of [`Self::add`].
    pub async fn replace(&self, tools: impl IntoIterator<Item = Tool>) -> Result<()> {
        let new: Vec<Tool> = tools.into_iter().collect();
        self.0.change(|tools| *tools = new)?;
        self.0.tell().await
    }

    /// The names of the tools, in the order in which they were added.
    pub fn names(&self) -> Vec<String> {
        self.0.tools().iter().map(|tool| tool.name.clone()).collect()
    }
}

impl Changing {
    pub(super) fn new(tools: Vec<Tool>) -> Self {
        Self { tools: Mutex::new(tools), clients: Mutex::default() }
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, Vec<Tool>> {
        lock(&self.tools)
    }

    /// Tells this client of changes, for as long as it is kept.
    pub(super) fn listen(&self, client: &Arc<McpClient>) {
        let mut clients = lock(&self.clients);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }

    /// Changes the tools, unless something is wrong with what comes of it.
    fn change(&self, change: impl FnOnce(&mut Vec<Tool>)) -> Result<()> {
        let mut tools = self.tools();
        let mut changed = tools.clone();
        change(&mut changed);
        let mut problems = problems(&changed);
        for server in self.servers() {
            problems.extend(changed.iter().filter_map(|tool| {
                let reason = names::never_offered(&server, &tool.name)?;
                Some(format!("the tool {:?}: {reason}", tool.name))
            }));
        }
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        *tools = changed;
        Ok(())
    }

    /// The names that sessions know the server by.
    fn servers(&self) -> BTreeSet<String> {
        let clients = lock(&self.clients);
        clients.iter().filter_map(Weak::upgrade).map(|client| client.server().to_owned()).collect()
    }

    /// Whether there was a tool of this name.
    fn take(&self, name: &str) -> bool {
        let mut tools = self.tools();
        let before = tools.len();
        tools.retain(|tool| tool.name != name);
        tools.len() < before
    }

    /// Tells every session, each in its own time.
    async fn tell(&self) -> Result<()> {
        let clients: Vec<_> = lock(&self.clients).iter().filter_map(Weak::upgrade).collect();
        let mut told = JoinSet::new();
        for client in clients {
            told.spawn(async move { client.tools_changed().await });
        }
        let mut result = Ok(());
        while let Some(ended) = told.join_next().await {
            // A session that is over needs not be told.
            if let Ok(Err(error)) = ended
                && error.kind() != ErrorKind::SessionStopped
            {
                result = Err(error);
            }
        }
        result
    }
}

/// Everything that is wrong with these tools.
pub(super) fn problems(tools: &[Tool]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        problems.extend(tool.problems());
        if tools.iter().take(index).any(|other| other.name == tool.name) {
            problems.push(format!("there are two tools named {:?}", tool.name));
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
