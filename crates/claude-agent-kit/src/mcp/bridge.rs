//! Passes `mcp_message` requests of the CLI to in-process servers, and their replies back.
//!
//! The session machine limits how many messages are handled at a time. Each is passed to its server
//! with a timeout; a panic, an error or a cancellation ends it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use claude_wire::Map;
use claude_wire::control::McpMessage;
use claude_wire::id::SessionId;
use claude_wire::launch::{Problem, Settings};

use super::message::{INVALID_REQUEST, Kind};
use super::names::{self, NAME};
use super::{Incoming, McpClient, McpContext, Reply};
use crate::callback::{CallResult, CallbackRun, CancelToken};
use crate::commands::CommandSender;
use crate::list;

/// An in-process server, which serves any number of sessions.
pub(crate) trait Server: fmt::Debug + Send + Sync {
    /// Returns the timeout of a request.
    fn limit(&self) -> Option<Duration>;
    /// Returns the names of its tools, as far as they are known in advance.
    fn tools(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the problems of the server.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
    /// Creates the connection of one session. The client has the name of the server.
    fn connect(&self, client: &McpClient) -> Arc<dyn Connection>;
}

/// The connection of a server to one session.
pub(crate) trait Connection: Send + Sync {
    /// Handles a message. Called in the order in which the CLI sent the messages, on the driver task;
    /// code of the host runs in the returned future only.
    fn serve(&self, message: Incoming, context: McpContext) -> Serving;
}

/// The reply of a server to a message, or why there is none.
pub(crate) type Serving = Pin<Box<dyn Future<Output = Result<Reply, String>> + Send>>;

/// The in-process servers.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    /// The servers of the options, with unique names.
    offered: Vec<(String, Arc<dyn Server>)>,
    /// The connections of this session.
    connected: Map<Connected>,
}

#[derive(Clone)]
struct Connected {
    connection: Arc<dyn Connection>,
    client: McpClient,
    limit: Option<Duration>,
}

impl Servers {
    pub(crate) fn add(&mut self, name: String, server: Arc<dyn Server>) {
        self.offered.push((name, server));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.offered.retain(|(other, _)| other != name);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        list::map(&self.offered, &|(name, _)| name.clone())
    }

    /// Returns the problems of all servers.
    pub(crate) fn problems(&self, settings: &Settings) -> Vec<Problem> {
        let mut reasons = Vec::new();
        for (name, server) in &self.offered {
            if !names::is_name(name) {
                reasons.push(format!("{name:?} is not a valid server name; help: {NAME}"));
            } else if name == "__proto__" {
                reasons.push(format!(
                    "the CLI ignores a server named {name:?}; help: choose another name"
                ));
            }
            // A config file can configure an external server.
            if settings.mcp_servers.iter().any(|(other, _)| other == name) {
                reasons.push(format!("two servers are named {name:?}; help: rename one of them"));
            }
            for reason in server.problems() {
                reasons.push(format!("server {name:?}: {reason}"));
            }
        }
        reasons.append(&mut self.unreachable_tools());
        list::map(&reasons, &|reason| Problem::new(&["mcp"], reason.as_str()))
    }

    /// Returns the problems of tools that the model would not be offered, or whose names collide.
    fn unreachable_tools(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut taken: Map<&str> = Map::new();
        for (name, server) in &self.offered {
            for tool in server.tools() {
                if let Some(reason) = names::never_offered(name, &tool) {
                    reasons.push(format!("tool {tool:?} of server {name:?}: {reason}"));
                }
                let whole = names::whole(name, &tool);
                if let Some(other) = taken.insert(whole.as_str(), name)
                    && other != name
                {
                    reasons.push(format!(
                        "servers {other:?} and {name:?} both have a tool that the CLI names \
                         `{whole}`; help: rename one of them"
                    ));
                }
            }
        }
        reasons
    }

    /// Connects the servers to a session, whose driver receives these commands.
    pub(crate) fn connect(mut self, commands: &CommandSender) -> Self {
        for (name, server) in &self.offered {
            let client = McpClient::new(name, commands.clone());
            let connection = server.connect(&client);
            let connected = Connected { connection, client, limit: server.limit() };
            self.connected.insert(name.as_str(), connected);
        }
        self
    }

    /// Handles a message; `None` if there is no such server.
    pub(crate) fn call(
        &self,
        request: McpMessage,
        session_id: Option<SessionId>,
        cancel: CancelToken,
    ) -> Option<CallbackRun> {
        let server = self.connected.get(&request.server_name)?;
        let message = Incoming::read(request.message);
        let id = message.response_id();
        let context =
            McpContext { session_id, cancel: cancel.clone(), client: server.client.clone() };
        let serving = server.serve(message, context);
        let limit = server.limit.filter(|_| id.is_some());
        Some(CallbackRun::Async(Box::pin(guarded(serving, id, limit, cancel))))
    }
}

impl Connected {
    fn serve(&self, message: Incoming, context: McpContext) -> Serving {
        match &message.kind {
            Kind::Invalid { .. } => {
                let reason = "neither a request, nor a notification, nor a response";
                Box::pin(async move { Ok(Reply::error(INVALID_REQUEST, reason)) })
            }
            Kind::Response { id } if self.client.complete(id, &message.whole) => {
                Box::pin(async { Ok(Reply::Nothing) })
            }
            _ => self.connection.serve(message, context),
        }
    }
}

async fn guarded(
    serving: Serving,
    id: Option<claude_wire::Json>,
    limit: Option<Duration>,
    cancel: CancelToken,
) -> CallResult {
    let in_time = async {
        match limit {
            None => serving.await,
            Some(limit) => {
                if let Ok(reply) = tokio::time::timeout(limit, serving).await {
                    return reply;
                }
                // Also cancels work that the server has started elsewhere.
                cancel.cancel();
                Err(format!("timed out after {limit:?}"))
            }
        }
    };
    // Dropped at once: a cancelled call must have no further effects.
    let reply = cancel.clone().unless_cancelled(in_time).await;
    reply.unwrap_or_else(|| Err("the call was cancelled".to_owned()))?.encode(id)
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names().fmt(f)
    }
}
