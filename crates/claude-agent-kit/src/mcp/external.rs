//! Servers outside this process, as the CLI wants them configured.

use std::fmt;
use std::time::Duration;

use claude_wire::{Extra, Json};

/// An MCP server that the CLI starts as a process and speaks to over its pipes.
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
    /// A server that is this program.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Extra::default(),
            more: Extra::default(),
        }
    }

    /// Sets the arguments. Replaces earlier ones.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a variable of the program. `${NAME}` in a value is replaced by the CLI's own variable,
    /// which keeps a secret from the CLI's command line, where everybody on the machine can read it.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.set(name, value.into().as_str());
        self
    }
}

/// An MCP server that the CLI reaches over HTTP.
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
    /// A server at this address that speaks streamable HTTP.
    pub fn http(url: impl Into<String>) -> Self {
        Self::new("http", url.into())
    }

    /// A server at this address that speaks the older form, with server-sent events.
    pub fn sse(url: impl Into<String>) -> Self {
        Self::new("sse", url.into())
    }

    fn new(transport: &'static str, url: String) -> Self {
        let (headers, more) = (Extra::default(), Extra::default());
        Self { transport, url, headers, policies: Vec::new(), more }
    }

    /// Sets a header of every request. `${NAME}` in a value is replaced by the CLI's own variable,
    /// which keeps a secret from the CLI's command line, where everybody on the machine can read it.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.set(name, value.into().as_str());
        self
    }

    /// Says how calls of one tool are decided, whatever the rules say about the server. The CLI
    /// obeys it for servers of [`McpHandle::set_servers`](crate::mcp::McpHandle::set_servers), and
    /// not (2.1.325) for those of [`Options::mcp`](crate::Options::mcp).
    pub fn tool_policy(mut self, tool: impl Into<String>, policy: ToolPolicy) -> Self {
        self.policies.push((tool.into(), policy));
        self
    }
}

/// How calls of a tool are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolPolicy {
    /// They run.
    AlwaysAllow,
    /// The host is asked.
    AlwaysAsk,
    /// They do not run; the model is not offered the tool.
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

/// What all servers outside can be told.
macro_rules! shared_setters {
    ($type:ty) => {
        impl $type {
            /// How long a call of a tool may take; the CLI knows nothing shorter than a second.
            /// Default: as long as it likes, unless the variable `MCP_TOOL_TIMEOUT` of the CLI says
            /// otherwise.
            pub fn timeout(self, limit: Duration) -> Self {
                let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let milliseconds = milliseconds.clamp(1_000, LONGEST_TIMEOUT);
                self.set("timeout", Json::from_serialize(&milliseconds).unwrap_or_default())
            }

            /// Whether all its tools are loaded from the beginning, where the CLI would let the
            /// model search for them; the first turn then waits for the server, 5 s at most.
            /// Default: no.
            pub fn always_load(self, always: bool) -> Self {
                self.set("alwaysLoad", Json::from_serialize(&always).unwrap_or_default())
            }

            /// Sets any other field of its configuration.
            pub fn set(mut self, field: impl Into<String>, value: impl Into<Json>) -> Self {
                self.more.set(field, value);
                self
            }
        }
    };
}

shared_setters!(StdioServer);
shared_setters!(RemoteServer);

/// Timers of JavaScript that are set for longer fire at once.
const LONGEST_TIMEOUT: u64 = 2_147_483_647;

impl From<StdioServer> for Json {
    fn from(server: StdioServer) -> Self {
        let mut config = Extra::default();
        config.set("type", "stdio");
        config.set("command", server.command.as_str());
        // Always: the CLI cannot start a server without that is set while a session runs.
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
            let policies: Vec<Self> = server.policies.iter().map(policy).collect();
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
    /// Without arguments and values of variables: keys stand in them.
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
    /// Without the address and values of headers: keys stand in them.
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
    fields.iter().map(|(name, _)| name).collect()
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
    fn a_limit_is_one_that_the_cli_obeys() {
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
