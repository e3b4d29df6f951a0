//! Waiting for MCP servers.

use std::time::Duration;

use claude_wire::control::{McpServerInfo, McpStatusResponse};
use claude_wire::message::McpServerStatus;
use tokio::time::Instant;

use super::McpHandle;
#[cfg(doc)]
use super::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// The first and the longest interval between two status requests.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The shortest timeouts of the first status request and of later ones.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
const LATER_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a server that the CLI does not list is not connected.
pub(crate) const UNKNOWN_SERVER: &str = "the CLI does not know the server";

impl McpHandle<'_> {
    /// Waits until every MCP server that is not disabled is connected, and returns the connected
    /// servers. Includes servers of the options that the CLI does not list yet.
    ///
    /// The CLI connects to servers while it already works on the first prompt: without waiting, the
    /// first turn may lack some of their tools. A CLI that does not respond at all has five seconds,
    /// even if `timeout` is shorter.
    ///
    /// # Errors
    /// - [`McpServerFailed`](ErrorKind::McpServerFailed) when a server cannot be connected;
    ///   [`Error::server`] names it.
    /// - [`McpTimeout`](ErrorKind::McpTimeout) when a server is still not connected after `timeout`.
    /// - Those of [`Session::request`].
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn wait(self, timeout: Duration) -> Result<Vec<McpServerInfo>> {
        self.wait_for_servers(&self.session.shared.servers, true, timeout).await
    }

    /// Waits like [`wait`](Self::wait) for the servers with these names, all of which must exist.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait). A disabled server, and one that the CLI does not know after
    /// `timeout`, counts as failed.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn wait_for(
        self,
        names: impl IntoIterator<Item = impl Into<String>>,
        timeout: Duration,
    ) -> Result<Vec<McpServerInfo>> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.wait_for_servers(&names, false, timeout).await
    }

    async fn wait_for_servers(
        self,
        names: &[String],
        all: bool,
        timeout: Duration,
    ) -> Result<Vec<McpServerInfo>> {
        let deadline = Instant::now().checked_add(timeout);
        let mut pause = FIRST_INTERVAL;
        let mut last: Option<Error> = None;
        loop {
            let at_least = if last.is_none() { FIRST_TIMEOUT } else { LATER_TIMEOUT };
            let status = match (self.status_until(deadline, at_least).await, last.take()) {
                (Ok(status), _) => status,
                // The deadline has passed; the last known state counts.
                (Err((_, true)), Some(last)) => return Err(last),
                (Err((error, _)), _) => return Err(error),
            };
            let mut servers = status.mcp_servers.into_vec();
            servers.retain(|server| all || names.iter().any(|name| is(server, name)));
            let pending = match pending(&servers, all)? {
                Some(name) => Some(late(name, timeout)),
                None => names
                    .iter()
                    .find(|name| !servers.iter().any(|server| is(server, name)))
                    .map(|name| failed(name, UNKNOWN_SERVER)),
            };
            let Some(pending) = pending else {
                servers.retain(|server| server.status == Some(McpServerStatus::Connected));
                return Ok(servers);
            };
            // The last request is sent at the deadline.
            let left = deadline.map_or(pause, |deadline| deadline - Instant::now());
            if left.is_zero() {
                return Err(pending);
            }
            last = Some(pending);
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(MAX_INTERVAL);
        }
    }

    /// Requests the status, with at least `at_least` for the response. An error comes with whether only the
    /// deadline caused it.
    async fn status_until(
        self,
        deadline: Option<Instant>,
        at_least: Duration,
    ) -> std::result::Result<McpStatusResponse, (Error, bool)> {
        let left = deadline.map(|deadline| (deadline - Instant::now()).max(at_least));
        let own = self.session.timeout.filter(|own| left.is_none_or(|left| *own < left));
        let response = match own.or(left) {
            Some(timeout) => self.session.with_timeout(timeout).mcp().status().await,
            None => self.status().await,
        };
        response.map_err(|error| {
            let is_late = own.is_none() && error.kind() == ErrorKind::ControlTimeout;
            (error, is_late)
        })
    }
}

/// Returns the servers of the options, in-process and external.
pub(super) fn servers_of(options: &Options) -> Vec<String> {
    let mut servers = options.host.callbacks.servers.names();
    for (name, _) in options.settings.mcp_servers.iter() {
        servers.push(name.to_owned());
    }
    servers
}

/// Returns a server that is still connecting, if there is one; an error if one cannot connect.
pub(crate) fn pending(servers: &[McpServerInfo], all: bool) -> Result<Option<String>> {
    let mut pending = None;
    for server in servers {
        let name = server.name.clone().unwrap_or_default();
        match &server.status {
            Some(McpServerStatus::Connected) => {}
            Some(McpServerStatus::Disabled) if all => {}
            Some(McpServerStatus::Disabled) => return Err(failed(&name, "the server is disabled")),
            Some(McpServerStatus::NeedsAuth) => {
                return Err(failed(&name, "the server requires a login"));
            }
            Some(McpServerStatus::Failed) => {
                return Err(failed(
                    &name,
                    server.error.as_deref().unwrap_or("the connection failed"),
                ));
            }
            _ => pending = Some(name),
        }
    }
    Ok(pending)
}

fn is(server: &McpServerInfo, name: &str) -> bool {
    server.name.as_deref() == Some(name)
}

pub(crate) fn failed(name: &str, reason: &str) -> Error {
    let message = format!("MCP server {name:?} is not connected: {reason}");
    Error::new(ErrorKind::McpServerFailed, message)
        .with_help("check the configuration of the server, or remove it")
        .with(|facts| facts.server = Some(name.to_owned()))
}

pub(crate) fn late(name: String, timeout: Duration) -> Error {
    let message = format!("MCP server {name:?} did not connect within {timeout:?}");
    Error::new(ErrorKind::McpTimeout, message)
        .with_help("increase the timeout, or remove the server")
        .with(|facts| {
            facts.server = Some(name);
            facts.limit = Some(timeout);
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_ready_pending_or_failed() {
        let state = |status: &str, all: bool| {
            let text = format!(r#"{{"name":"s","status":"{status}"}}"#);
            let server: McpServerInfo = serde_json::from_str(&text).unwrap();
            match pending(&[server], all) {
                Ok(None) => "ready",
                Ok(Some(_)) => "pending",
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::McpServerFailed);
                    assert_eq!(error.server(), Some("s"));
                    "failed"
                }
            }
        };
        for (status, one_of_all, named) in [
            ("connected", "ready", "ready"),
            ("pending", "pending", "pending"),
            ("something-new", "pending", "pending"),
            ("disabled", "ready", "failed"),
            ("needs-auth", "failed", "failed"),
            ("failed", "failed", "failed"),
        ] {
            assert_eq!(state(status, true), one_of_all, "{status}");
            assert_eq!(state(status, false), named, "{status}");
        }
    }
}
