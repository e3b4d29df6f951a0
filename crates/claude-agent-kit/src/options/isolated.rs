//! Options that isolate a session from the configuration of the user.

use std::path::{self, Path, PathBuf};

use claude_wire::settings::EnvironmentPolicy;

use super::{Options, SettingSources};

/// The directories of system programs, without those of the user.
#[cfg(unix)]
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that Windows programs require.
#[cfg(not(unix))]
const NEEDED: [&str; 5] = ["SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "PATH"];

impl Options {
    /// Creates options that exclude the configuration of the user: no environment variables of this
    /// process, no settings, hooks, agents, skills, plugins or MCP servers of the user or the project,
    /// no `CLAUDE.md`, no memory, no login, and no network traffic besides that of the API, of tools and of MCP servers
    /// (no telemetry, no update check).
    ///
    /// `directory` is the home directory of the CLI, to which the CLI writes its files. It must exist
    /// and should not be accessible to other users. It is also the working directory, unless
    /// [`cwd`](Self::cwd) sets another one. A relative path is resolved against the current working
    /// directory of this process. With a path that is empty or not valid UTF-8, the start fails with
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions). Options that are set afterwards, such as
    /// the API key, apply as usual.
    ///
    /// Isolation does not cover policies of an administrator, nor files and network resources that tools
    /// access; use a [`sandbox`](Self::sandbox) or a container for these. The
    /// [guide](crate::guide::options) contains the complete list.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    ///
    /// let options = Options::isolated("/srv/agents/7").env("ANTHROPIC_API_KEY", "…");
    /// ```
    pub fn isolated(directory: impl Into<PathBuf>) -> Self {
        let options = Self::new()
            .setting_sources(SettingSources::none())
            .mcp_strict(true)
            .env("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1")
            .env("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        match home(&directory.into()) {
            Ok((home, config)) => options
                .cwd(&home)
                .env("CLAUDE_CONFIG_DIR", config)
                .env("CLAUDE_CODE_TMPDIR", &home)
                .with_home(home),
            // The start fails with this reason, whatever setters are called later.
            Err(reason) => options
                .environment(EnvironmentPolicy::Clean)
                .change(|host| host.isolation = Some(reason)),
        }
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

/// Returns the absolute paths of the home directory and of the CLI's configuration directory.
fn home(directory: &Path) -> Result<(String, String), &'static str> {
    if directory.as_os_str().is_empty() {
        return Err("the directory is empty; help: pass a path");
    }
    let directory = path::absolute(directory)
        .map_err(|_| "the directory is relative, and the working directory no longer exists; help: pass an absolute path")?;
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or("the directory is not valid UTF-8, which environment variables require; help: pass another path")
    };
    Ok((text(&directory)?, text(&directory.join(".claude"))?))
}

#[cfg(test)]
mod tests {
    use claude_wire::launch::Secret;

    use super::*;
    use crate::options::prepare;
    use crate::{ErrorKind, Prompt};

    #[test]
    fn a_relative_directory_is_resolved_against_the_working_directory() {
        let options = Options::isolated("agents/7").cwd("/elsewhere");
        let expected = std::env::current_dir().unwrap().join("agents").join("7");
        let below = ["HOME", "USERPROFILE", "TMPDIR", "TEMP", "CLAUDE_CODE_TMPDIR"];
        let env = &options.settings.env;
        let found: Vec<&str> =
            below.iter().filter_map(|name| env.get(name)).map(Secret::expose).collect();
        assert_eq!(found, [expected.to_str().unwrap(); 3]);
        assert_eq!(env["CLAUDE_CONFIG_DIR"].expose(), expected.join(".claude").to_str().unwrap());
        assert_eq!(Options::isolated("agents/7").settings.cwd, Some(expected));
    }

    #[test]
    fn telemetry_memory_and_instructions_are_disabled() {
        let options = Options::isolated("/srv/agents/7");
        for name in [
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        ] {
            let value = options.settings.env.get(name).map(Secret::expose);
            assert_eq!(value, Some("1"), "{name}");
        }
    }

    #[test]
    fn an_invalid_directory_is_rejected() {
        let refused = |directory: &Path| {
            // Setters that are called afterwards do not help.
            let options = Options::isolated(directory).cwd("/").env("HOME", "/");
            let error = prepare(&options, Some(&Prompt::from("hello"))).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert_eq!(error.problems()[0].options, ["isolated"]);
            let under = Options::layered().under(options).unwrap();
            assert!(prepare(&under, None).is_err(), "layers do not lose it");
            error.to_string()
        };
        assert!(refused(Path::new("")).contains("empty"));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt as _;
            let path = Path::new(std::ffi::OsStr::from_bytes(b"/srv/\xff"));
            assert!(refused(path).contains("not valid UTF-8"));
        }
        assert!(prepare(&Options::isolated("/srv/agents/7"), None).is_ok());
    }
}
