//! Options with which nothing of the user's machine reaches a session.

use std::path::{self, Path, PathBuf};

use claude_wire::settings::EnvironmentPolicy;

use super::{Options, SettingSources};

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
    /// [`cwd`](Self::cwd) names another. A relative one is below the working directory of this
    /// process as it is now. One that is empty or no UTF-8 cannot be handed on, and makes the start
    /// fail with [`InvalidOptions`](crate::ErrorKind::InvalidOptions). Whatever setters say after
    /// that is let in, beginning with the key.
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
        let options = Self::new()
            .setting_sources(SettingSources::none())
            .mcp_strict(true)
            .env("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1")
            .env("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1");
        match home(&directory.into()) {
            Ok((home, config)) => options
                .cwd(&home)
                .env("CLAUDE_CONFIG_DIR", config)
                .env("CLAUDE_CODE_TMPDIR", &home)
                .with_home(home),
            // Nothing starts with this; setters cannot take it back.
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

/// The directory as the CLI is told of it, whatever its working directory, and that of its own files.
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
    fn a_relative_directory_is_that_below_the_working_directory_of_this_process() {
        let options = Options::isolated("agents/7").cwd("/elsewhere");
        let expected = std::env::current_dir().unwrap().join("agents").join("7");
        let below = ["HOME", "USERPROFILE", "TMPDIR", "TEMP", "CLAUDE_CODE_TMPDIR"];
        let env = &options.settings.env;
        let found: Vec<&str> =
            below.iter().filter_map(|name| env.get(*name)).map(Secret::expose).collect();
        assert_eq!(found, [expected.to_str().unwrap(); 3]);
        assert_eq!(env["CLAUDE_CONFIG_DIR"].expose(), expected.join(".claude").to_str().unwrap());
        assert_eq!(Options::isolated("agents/7").settings.cwd, Some(expected));
    }

    #[test]
    fn a_directory_that_cannot_be_handed_on_is_refused() {
        let refused = |directory: &Path| {
            // What is let in afterwards does not help.
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
