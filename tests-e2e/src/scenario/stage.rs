//! Where a scenario is played: a backend, a fresh world, and how to start a CLI in it.

use std::{collections::BTreeMap, fmt, fs, sync::Arc};

use claude_agent_testkit::{
    mock_api::{Reply, Script},
    recorder::RecordingWriter,
    recording::Header,
};

use super::{
    Failure,
    backend::{Backend, Launch},
    cli::Cli,
    ids::Ids,
};
use crate::{real_cli::World, stage::processes::eventually};

/// The arguments of a session, as every SDK gives them.
const SESSION: &[&str] =
    &["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

/// A backend and a fresh world.
pub struct Stage {
    backend: Arc<dyn Backend>,
    world: Arc<World>,
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

impl Stage {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        name: &'static str,
        about: &'static str,
        date: &str,
    ) -> Result<Self, Failure> {
        let world = Arc::new(World::new()?);
        Ok(Self { backend, world, name, about, date: date.to_owned(), ids: Ids::new(name) })
    }

    /// The directories of this scenario.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Puts a file into the project.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.world.project().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(path, text)?)
    }

    /// The text of a file in the project, if it exists.
    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.world.project().join(name)).ok()
    }

    /// The absolute path of a file in the project.
    pub(super) fn path(&self, name: &str) -> String {
        self.world.project().join(name).to_string_lossy().into_owned()
    }

    /// Waits until a file exists in the project, which a process makes that says nothing else.
    pub(super) async fn appears(&self, name: &str) {
        let file = self.world.project().join(name);
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
            world: Arc::clone(&self.world),
            arguments: plan.arguments,
            variables: plan.variables,
            script: plan.script,
        };
        let running = self.backend.launch(launch).await?;
        Ok(Cli::new(running, RecordingWriter::new(header), self.ids.clone()))
    }
}

impl Plan {
    /// A session in which the model answers by this script.
    pub(super) fn session(script: Script) -> Self {
        Self::bare(script).args(SESSION)
    }

    /// A session in which the model answers `Hello.` to everything.
    pub(super) fn hello() -> Self {
        Self::session(Script::new().otherwise([Reply::text("Hello.")]))
    }

    /// No arguments but those that are added; the variables that the SDK always sets.
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

    /// Tool calls that are not allowed by a rule are asked over the wire.
    pub(super) fn asking(self) -> Self {
        self.args(&["--permission-prompt-tool", "stdio"])
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}
