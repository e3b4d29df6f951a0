//! The fixture of a scenario: a backend and a fresh sandbox directory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::Arc;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recorder::RecordingWriter;
use claude_agent_testkit::recording::Header;

use super::Failure;
use super::backend::{Backend, Launch};
use super::cli::Cli;
use super::ids::Ids;
use crate::harness::processes::eventually;
use crate::real_cli::SandboxDir;

/// The arguments of a session that every SDK passes.
const SESSION: &[&str] =
    &["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

/// A backend and a fresh sandbox directory.
pub struct Fixture {
    backend: Arc<dyn Backend>,
    sandbox: Arc<SandboxDir>,
    name: &'static str,
    about: &'static str,
    date: String,
    ids: Ids,
}

/// How to start the CLI in a scenario.
pub struct Plan {
    arguments: Vec<String>,
    variables: BTreeMap<String, Option<String>>,
    script: Script,
}

impl Fixture {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        name: &'static str,
        about: &'static str,
        date: &str,
    ) -> Result<Self, Failure> {
        let sandbox = Arc::new(SandboxDir::new()?);
        Ok(Self { backend, sandbox, name, about, date: date.to_owned(), ids: Ids::new(name) })
    }

    /// Returns the sandbox directory.
    pub fn sandbox(&self) -> &Arc<SandboxDir> {
        &self.sandbox
    }

    /// Writes a file into the project.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.sandbox.project().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(path, text)?)
    }

    /// Returns the contents of a file in the project, if it exists.
    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.sandbox.project().join(name)).ok()
    }

    /// Returns the absolute path of a file in the project.
    pub(super) fn path(&self, name: &str) -> String {
        self.sandbox.project().join(name).to_string_lossy().into_owned()
    }

    /// Waits until a process has created a file in the project.
    pub(super) async fn appears(&self, name: &str) {
        let file = self.sandbox.project().join(name);
        eventually(|| file.exists()).await;
    }

    /// Starts the CLI.
    pub(super) async fn start(&self, plan: Plan) -> Result<Cli, Failure> {
        let mut header = Header::new(self.name);
        self.about.clone_into(&mut header.about);
        self.backend.version().clone_into(&mut header.cli_version);
        header.date.clone_from(&self.date);
        header.argv.clone_from(&plan.arguments);
        header.env = plan
            .variables
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
            .collect();
        let launch = Launch {
            sandbox: Arc::clone(&self.sandbox),
            arguments: plan.arguments,
            variables: plan.variables,
            script: plan.script,
        };
        let running = self.backend.launch(launch).await?;
        Ok(Cli::new(running, RecordingWriter::new(header), self.ids.clone()))
    }
}

impl Plan {
    /// Plans a session with this script of the model.
    pub(super) fn session(script: Script) -> Self {
        Self::bare(script).args(SESSION)
    }

    /// Plans a session in which the model always answers `Hello.`
    pub(super) fn hello() -> Self {
        Self::session(Script::new().otherwise([Reply::text("Hello.")]))
    }

    /// Plans a run without arguments, with the environment variables that the SDK always sets.
    pub(super) fn bare(script: Script) -> Self {
        Self { arguments: Vec::new(), variables: BTreeMap::new(), script }
            .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
            .env("CLAUDE_CODE_ENTRYPOINT", "sdk-rust")
    }

    pub(super) fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), Some(value.to_owned()));
        self
    }

    pub(super) fn without_env(mut self, name: &str) -> Self {
        self.variables.insert(name.to_owned(), None);
        self
    }

    /// Sends permission requests for tool calls that no rule allows.
    pub(super) fn with_permission_prompts(self) -> Self {
        self.args(&["--permission-prompt-tool", "stdio"])
    }
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}
