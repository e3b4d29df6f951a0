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

/// The first and the longest pause between two status requests.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The minimum timeout of the first status request, without which nothing is known, and of the others.
const FIRST_STATUS_TIMEOUT: Duration = Duration::from_secs(5);
const LATER_STATUS_TIMEOUT: Duration = Duration::from_secs(1);

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
        let mut pause = MIN_INTERVAL;
        let mut last: Option<Error> = None;
        loop {
            let at_least = if last.is_none() { FIRST_STATUS_TIMEOUT } else { LATER_STATUS_TIMEOUT };
            let status = match (self.status_until(deadline, at_least).await, last.take()) {
                (Ok(status), _) => status,
                // After the deadline, the last status counts.
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
                    .map(|name| failed(name, "the CLI does not know it")),
            };
            let Some(pending) = pending else {
                servers.retain(|server| server.status == Some(McpServerStatus::Connected));
                return Ok(servers);
            };
            // The last status request is sent at the deadline.
            let left = deadline.map_or(pause, |deadline| deadline - Instant::now());
            if left.is_zero() {
                return Err(pending);
            }
            last = Some(pending);
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(MAX_INTERVAL);
        }
    }

    /// Requests the status, with a timeout of `at_least` even if the deadline is near. An error
    /// comes with whether it is only due to the deadline.
    async fn status_until(
        self,
        deadline: Option<Instant>,
        at_least: Duration,
    ) -> std::result::Result<McpStatusResponse, (Error, bool)> {
        let left = deadline.map(|deadline| (deadline - Instant::now()).max(at_least));
        let own = self.session.timeout.filter(|own| left.is_none_or(|left| *own < left));
        let status = match own.or(left) {
            Some(timeout) => self.session.with_timeout(timeout).mcp().status().await,
            None => self.status().await,
        };
        status.map_err(|error| {
            let is_late = own.is_none() && error.kind() == ErrorKind::ControlTimeout;
            (error, is_late)
        })
    }
}

/// Returns the names of the in-process and external servers of the options.
pub(super) fn servers_of(options: &Options) -> Vec<String> {
    let outside = options.settings.mcp_servers.iter().map(|(name, _)| name.to_owned());
    options.host.callbacks.servers.names().chain(outside).collect()
}

/// Returns a server that is not connected yet; an error if one will not connect.
fn pending(servers: &[McpServerInfo], all: bool) -> Result<Option<String>> {
    let mut pending = None;
    for server in servers {
        let name = server.name.clone().unwrap_or_default();
        match &server.status {
            Some(McpServerStatus::Connected) => {}
            Some(McpServerStatus::Disabled) if all => {}
            Some(McpServerStatus::Disabled) => return Err(failed(&name, "it is disabled")),
            Some(McpServerStatus::NeedsAuth) => {
                return Err(failed(&name, "it requires authentication"));
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

fn failed(name: &str, reason: &str) -> Error {
    let message = format!("the MCP server {name:?} is not connected: {reason}");
    Error::new(ErrorKind::McpServerFailed, message)
        .with_help("check the configuration of the server, or disable it")
        .with(|facts| facts.server = Some(name.to_owned()))
}

fn late(name: String, timeout: Duration) -> Error {
    let message = format!("the MCP server {name:?} is still not connected after {timeout:?}");
    Error::new(ErrorKind::McpTimeout, message)
        .with_help("increase the timeout, or disable the server")
        .with(|facts| {
            facts.server = Some(name);
            facts.limit = Some(timeout);
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_decides_whether_to_wait_for_a_server() {
        let decision = |status: &str, all: bool| {
            let text = format!(r#"{{"name":"s","status":"{status}"}}"#);
            let server: McpServerInfo = serde_json::from_str(&text).unwrap();
            match pending(&[server], all) {
                Ok(None) => "connected",
                Ok(Some(_)) => "waited for",
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::McpServerFailed);
                    assert_eq!(error.server(), Some("s"));
                    "failed"
                }
            }
        };
        for (status, one_of_all, named) in [
            ("connected", "connected", "connected"),
            ("pending", "waited for", "waited for"),
            ("something-new", "waited for", "waited for"),
            ("disabled", "connected", "failed"),
            ("needs-auth", "failed", "failed"),
            ("failed", "failed", "failed"),
        ] {
            assert_eq!(decision(status, true), one_of_all, "{status}");
            assert_eq!(decision(status, false), named, "{status}");
        }
    }
}
