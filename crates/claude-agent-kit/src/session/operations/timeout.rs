//! Default timeouts of operations.

use std::time::Duration;

use claude_wire::Number;
use claude_wire::control::HostRequest;

/// The timeout of an operation, counted from when its request is written.
pub(crate) const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of an operation that connects to servers or writes files, and of the tool
/// in `McpHandle::call`.
const LONG_OPERATION_TIMEOUT: Duration = Duration::from_secs(120);

/// How long the CLI itself waits for a server to connect before it calls a tool of it.
const SERVER_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the timeout of an operation for which the host has set none.
pub(super) fn default_timeout(request: &HostRequest) -> Duration {
    match request {
        HostRequest::McpReconnect(_)
        | HostRequest::McpSetServers(_)
        | HostRequest::ReloadPlugins(_)
        | HostRequest::RewindFiles(_) => LONG_OPERATION_TIMEOUT,
        HostRequest::McpCall(call) => {
            let tool = call.timeout_ms.as_ref().and_then(Number::as_u64);
            let tool = tool.map_or(LONG_OPERATION_TIMEOUT, Duration::from_millis);
            OPERATION_TIMEOUT + SERVER_CONNECT_TIMEOUT + tool
        }
        _ => OPERATION_TIMEOUT,
    }
}
