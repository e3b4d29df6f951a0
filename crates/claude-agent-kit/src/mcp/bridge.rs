//! From `mcp_message` requests of the CLI to servers of this process, and back.
//!
//! The machine has decided that a message is served, and how many are at a time. Here it is given
//! to its server, under a guard: a server that panics, fails, takes too long or is told to stop is
//! done with, whatever it does.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use claude_wire::control::McpMessage;
use claude_wire::id::SessionId;
use claude_wire::launch::{Problem, Settings};

use super::message::{INVALID_REQUEST, Kind};
use super::names::{self, NAME};
use super::{Incoming, McpClient, McpContext, Reply};
use crate::callback::{CallResult, CallbackRun, CancelToken};
use crate::commands::CommandSender;

/// A server as options hold it: it serves many sessions.
pub(crate) trait Server: fmt::Debug + Send + Sync {
    /// How long a request may take.
    fn limit(&self) -> Option<Duration>;
    /// The names of its tools, as far as they are known before somebody asks for them.
    fn tools(&self) -> Vec<String> {
        Vec::new()
    }
    /// Everything that is wrong with it.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
    /// The server of one session. The client knows its name.
    fn connect(&self, client: &McpClient) -> Arc<dyn Connection>;
}

/// A server of one session.
pub(crate) trait Connection: Send + Sync {
    /// Takes a message. Called in the order in which the CLI sent them, on the driver's task, so
    /// code of the host runs in what it gives back only.
    fn serve(&self, message: Incoming, context: McpContext) -> Serving;
}

/// What a server says to a message, or why it says nothing.
pub(crate) type Serving = Pin<Box<dyn Future<Output = Result<Reply, String>> + Send>>;

/// The servers of this process.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    /// By name, each once.
    offered: Vec<(String, Arc<dyn Server>)>,
    /// Those of this session.
    connected: BTreeMap<String, Connected>,
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

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.offered.iter().map(|(name, _)| name.clone())
    }

    /// Everything that is wrong with them.
    pub(crate) fn problems(&self, settings: &Settings) -> Vec<Problem> {
        let mut reasons = Vec::new();
        for (name, server) in &self.offered {
            if !names::is_name(name) {
                reasons.push(format!("{name:?} is no name of a server; {NAME}"));
            } else if name == "__proto__" {
                reasons.push(format!("the CLI does not see a server of the name `{name}`"));
            }
            // A config file can name one outside.
            if settings.mcp_servers.iter().any(|(other, _)| other == name) {
                reasons.push(format!("there are two servers named {name:?}"));
            }
            let own = server.problems().into_iter();
            reasons.extend(own.map(|reason| format!("the server {name:?}: {reason}")));
        }
        reasons.extend(self.tools_that_cannot_be_reached());
        reasons.into_iter().map(|reason| Problem::new(&["mcp"], reason)).collect()
    }

    /// Tools that the model would not be offered, or of which a call would reach another one.
    fn tools_that_cannot_be_reached(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut taken: BTreeMap<String, &str> = BTreeMap::new();
        for (name, server) in &self.offered {
            for tool in server.tools() {
                if let Some(reason) = names::never_offered(name, &tool) {
                    reasons.push(format!("the tool {tool:?} of the server {name:?}: {reason}"));
                }
                let whole = names::whole(name, &tool);
                if let Some(other) = taken.insert(whole.clone(), name)
                    && other != name
                {
                    let reason = "have a tool that the CLI would call";
                    reasons.push(format!("the servers {other:?} and {name:?} {reason} `{whole}`"));
                }
            }
        }
        reasons
    }

    /// The same servers for one session, whose driver takes these commands.
    pub(crate) fn connect(mut self, commands: &CommandSender) -> Self {
        for (name, server) in &self.offered {
            let client = McpClient::new(name, commands.clone());
            let connection = server.connect(&client);
            let connected = Connected { connection, client, limit: server.limit() };
            self.connected.insert(name.clone(), connected);
        }
        self
    }

    /// Serves a message; none if there is no such server.
    pub(crate) fn call(
        &self,
        asked: McpMessage,
        session_id: Option<SessionId>,
        cancel: CancelToken,
    ) -> Option<CallbackRun> {
        let server = self.connected.get(&asked.server_name)?;
        let message = Incoming::read(asked.message);
        let id = message.answer_to();
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
            Kind::Response { id } if self.client.answered(id, &message.whole) => {
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
                // For what it has started elsewhere.
                cancel.cancel();
                Err(format!("it took longer than {limit:?}"))
            }
        }
    };
    // Dropped at once: a call that is not wanted must not go on changing things.
    let reply = cancel.clone().unless_cancelled(in_time).await;
    reply.unwrap_or_else(|| Err("it is not wanted any more".to_owned()))?.encode(id)
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
