//! The configuration of external servers.

use std::fmt;
use std::time::Duration;

use claude_wire::{Extra, Json};

use crate::list;

/// An MCP server that the CLI starts as a process and communicates with over stdin and stdout.
///
/// ```
/// use claude_agent_kit::Options;
/// use claude_agent_kit::mcp::StdioServer;
///
/// let files = StdioServer::new("files-server").args(["--root", "/srv"]).env("FILES_KEY", "…");
/// let options = Options::new().mcp("files", files).allowed_tools(["mcp__files"]);
/// ```
#[derive(Clone, PartialEq)]
#[must_use = "a server does nothing until options have it"]
pub struct StdioServer {
    command: String,
    args: Vec<String>,
    env: Extra,
    more: Extra,
}

impl StdioServer {
    /// Creates a server that runs this program.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Extra::default(),
            more: Extra::default(),
        }
    }

    /// Sets the arguments. Replaces earlier ones. They are on the command line of the program, which all
    /// users of the machine can read: use [`env`](Self::env) for secrets.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets an environment variable of the program. `${NAME}` in a value is replaced by that variable of
    /// the CLI. Use it for secrets if the CLI may be older than 2.1.326 or in print mode, because then the
    /// value is on a command line, which all users of the machine can read.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.set(name, value.into().as_str());
        self
    }
}

/// An MCP server that the CLI connects to over HTTP.
///
/// ```
/// use claude_agent_kit::Options;
/// use claude_agent_kit::mcp::RemoteServer;
///
/// let tracker = RemoteServer::http("https://tracker.example/mcp")
///     .header("Authorization", "Bearer ${TRACKER_TOKEN}");
/// let options = Options::new().env("TRACKER_TOKEN", "…").mcp("tracker", tracker);
/// ```
#[derive(Clone, PartialEq)]
#[must_use = "a server does nothing until options have it"]
pub struct RemoteServer {
    transport: &'static str,
    url: String,
    headers: Extra,
    policies: Vec<(String, ToolPolicy)>,
    more: Extra,
}

impl RemoteServer {
    /// Creates a server with the streamable HTTP transport.
    pub fn http(url: impl Into<String>) -> Self {
        Self::new("http", url.into())
    }

    /// Creates a server with the older transport, server-sent events.
    pub fn sse(url: impl Into<String>) -> Self {
        Self::new("sse", url.into())
    }

    fn new(transport: &'static str, url: String) -> Self {
        let (headers, more) = (Extra::default(), Extra::default());
        Self { transport, url, headers, policies: Vec::new(), more }
    }

    /// Sets a header of every request. `${NAME}` in a value is replaced by that variable of the CLI. Use
    /// it for secrets if the CLI may be older than 2.1.326 or in print mode, because then the value is on a
    /// command line, which all users of the machine can read.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.set(name, value.into().as_str());
        self
    }

    /// Sets the permission policy of one tool, which takes precedence over the rules. CLI 2.1.326
    /// applies it to servers of [`McpHandle::set_servers`](crate::mcp::McpHandle::set_servers), but not
    /// to those of [`Options::mcp`](crate::Options::mcp).
    pub fn tool_policy(mut self, tool: impl Into<String>, policy: ToolPolicy) -> Self {
        self.policies.push((tool.into(), policy));
        self
    }
}

/// The permission policy of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolPolicy {
    /// Calls run without permission.
    AlwaysAllow,
    /// The host decides about each call.
    AlwaysAsk,
    /// The tool is not offered to the model.
    AlwaysDeny,
}

impl ToolPolicy {
    fn as_str(self) -> &'static str {
        match self {
            Self::AlwaysAllow => "always_allow",
            Self::AlwaysAsk => "always_ask",
            Self::AlwaysDeny => "always_deny",
        }
    }
}

/// Setters of all external servers.
macro_rules! shared_setters {
    ($type:ty) => {
        impl $type {
            /// Sets the timeout of tool calls, at least 1 s. Default: the variable
            /// `MCP_TOOL_TIMEOUT` of the CLI, or no timeout.
            pub fn timeout(self, limit: Duration) -> Self {
                let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let milliseconds = milliseconds.clamp(1_000, LONGEST_TIMEOUT);
                self.set("timeout", Json::from_serialize(&milliseconds).unwrap_or_default())
            }

            /// Sets whether all tools are loaded at the start, even if the CLI would make the model
            /// search for them. The first turn then waits at most 5 s for the server. Default: false.
            pub fn always_load(self, always: bool) -> Self {
                self.set("alwaysLoad", Json::from_serialize(&always).unwrap_or_default())
            }

            /// Sets any other field of the configuration.
            pub fn set(mut self, field: impl Into<String>, value: impl Into<Json>) -> Self {
                self.more.set(field, value);
                self
            }
        }
    };
}

shared_setters!(StdioServer);
shared_setters!(RemoteServer);

/// JavaScript timers with more milliseconds fire immediately.
const LONGEST_TIMEOUT: u64 = 2_147_483_647;

impl From<StdioServer> for Json {
    fn from(server: StdioServer) -> Self {
        let mut config = Extra::default();
        config.set("type", "stdio");
        config.set("command", server.command.as_str());
        // Required even if empty by servers that are set while a session is running.
        config.set("args", Self::from_serialize(&server.args).unwrap_or_default());
        if !server.env.is_empty() {
            config.set("env", &server.env);
        }
        with(config, &server.more)
    }
}

impl From<RemoteServer> for Json {
    fn from(server: RemoteServer) -> Self {
        let mut config = Extra::default();
        config.set("type", server.transport);
        config.set("url", server.url.as_str());
        if !server.headers.is_empty() {
            config.set("headers", &server.headers);
        }
        if !server.policies.is_empty() {
            let policies = list::map(&server.policies, &policy);
            config.set("tools", Self::from_serialize(&policies).unwrap_or_default());
        }
        with(config, &server.more)
    }
}

fn policy((tool, policy): &(String, ToolPolicy)) -> Json {
    let mut entry = Extra::default();
    entry.set("name", tool.as_str());
    entry.set("permission_policy", policy.as_str());
    Json::from(&entry)
}

fn with(mut config: Extra, more: &Extra) -> Json {
    for (field, value) in more.iter() {
        config.set(field, value.clone());
    }
    Json::from(&config)
}

impl fmt::Debug for StdioServer {
    /// Omits arguments and values of variables, which may contain keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &names(&self.env))
            .field("more", &names(&self.more))
            .finish()
    }
}

impl fmt::Debug for RemoteServer {
    /// Omits the URL and values of headers, which may contain keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteServer")
            .field("transport", &self.transport)
            .field("headers", &names(&self.headers))
            .field("policies", &self.policies)
            .field("more", &names(&self.more))
            .finish_non_exhaustive()
    }
}

fn names(fields: &Extra) -> Vec<&str> {
    let mut names = Vec::new();
    for (name, _) in fields.iter() {
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: impl Into<Json>, expected: &str) {
        assert_eq!(config.into().text(), expected);
    }

    #[test]
    fn each_server_is_configured_as_the_cli_wants_it() {
        check(StdioServer::new("s"), r#"{"type":"stdio","command":"s","args":[]}"#);
        check(
            StdioServer::new("s")
                .args(["a", "b", "c d"])
                .env("K", "v")
                .env("L", "w")
                .env("K", "x")
                .timeout(Duration::from_millis(1_500))
                .always_load(true)
                .set("later", "x"),
            r#"{"type":"stdio","command":"s","args":["a","b","c d"],"env":{"K":"x","L":"w"},"timeout":1500,"alwaysLoad":true,"later":"x"}"#,
        );
        check(RemoteServer::sse("http://h/"), r#"{"type":"sse","url":"http://h/"}"#);
        check(
            RemoteServer::http("https://h/m")
                .header("A", "b")
                .header("C", "d\"e")
                .tool_policy("x", ToolPolicy::AlwaysAllow)
                .tool_policy("y", ToolPolicy::AlwaysAsk)
                .tool_policy("z", ToolPolicy::AlwaysDeny)
                .always_load(false),
            r#"{"type":"http","url":"https://h/m","headers":{"A":"b","C":"d\"e"},"tools":[{"name":"x","permission_policy":"always_allow"},{"name":"y","permission_policy":"always_ask"},{"name":"z","permission_policy":"always_deny"}],"alwaysLoad":false}"#,
        );
    }

    #[test]
    fn timeouts_are_clamped_to_the_range_of_the_cli() {
        for (limit, expected) in [
            (Duration::ZERO, "1000"),
            (Duration::from_millis(999), "1000"),
            (Duration::from_secs(60), "60000"),
            (Duration::MAX, "2147483647"),
        ] {
            let config: Extra =
                Json::from(StdioServer::new("s").timeout(limit)).deserialize().unwrap();
            assert_eq!(config.get("timeout").unwrap().text(), expected, "{limit:?}");
        }
    }

    #[test]
    fn printing_a_server_shows_names_and_no_values() {
        const MARK: &str = "s3cr3t";
        let stdio = StdioServer::new("program").args([MARK]).env("KEY", MARK).set("more", MARK);
        let remote =
            RemoteServer::http(format!("http://h/?{MARK}")).header("X-Key", MARK).set("more", MARK);
        let text = format!("{stdio:?} {remote:#?}");
        assert!(!text.contains(MARK), "{text}");
        for name in ["program", "KEY", "X-Key", "http", "more"] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
