//! Options with which nothing of the user's machine reaches a session.

use std::path::PathBuf;

use claude_wire::launch::EnvironmentPolicy;

use super::Options;

/// Where the system's own programs are; the user's are elsewhere.
#[cfg(unix)]
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Without these no program of Windows runs.
#[cfg(not(unix))]
const NEEDED: [&str; 5] = ["SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "PATH"];

impl Options {
    /// Options with which nothing of this machine's user reaches the session: no variables, no
    /// settings, hooks, agents, skills, plugins or MCP servers of the user or the project, no
    /// `CLAUDE.md`, no memory, no login.
    ///
    /// `directory` takes the place of the home: what the CLI writes, it writes there. It has to
    /// exist, and should belong to nobody else; it is also the working directory until
    /// [`cwd`](Self::cwd) names another. Whatever setters say after that is let in, beginning with
    /// the key.
    ///
    /// It cannot stop policies that an administrator set for the machine, nor what the model's
    /// tools read from the disk and the network: that takes a [`sandbox`](Self::sandbox) or a
    /// container. The [guide](crate::guide::options) has the list.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    ///
    /// let options = Options::isolated("/srv/agents/7").env("ANTHROPIC_API_KEY", "…");
    /// ```
    pub fn isolated(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let home = directory.to_string_lossy().into_owned();
        let config = directory.join(".claude").to_string_lossy().into_owned();
        let options = Self::new()
            .cwd(directory)
            .setting_sources([""; 0])
            .strict_mcp_config(true)
            .env("CLAUDE_CONFIG_DIR", config)
            .env("CLAUDE_CODE_TMPDIR", &home)
            .env("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1")
            .env("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1");
        options.with_home(home)
    }

    #[cfg(unix)]
    fn with_home(self, home: String) -> Self {
        self.environment(EnvironmentPolicy::Clean)
            .env("PATH", PATH)
            .env("TMPDIR", &home)
            .env("HOME", home)
    }

    #[cfg(not(unix))]
    fn with_home(self, home: String) -> Self {
        self.environment(EnvironmentPolicy::Only(NEEDED.map(str::to_owned).into()))
            .env("TEMP", &home)
            .env("TMP", &home)
            .env("APPDATA", &home)
            .env("LOCALAPPDATA", &home)
            .env("USERPROFILE", home)
    }
}
