//! Options that are not sent to the CLI.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use claude_agent_core::session::{QueryLimits, SessionLimits};
use claude_wire::frame::DEFAULT_MAX_LINE_BYTES;
use claude_wire::launch::{Needs, Secret};

use super::{Options, OsUser, strings};
use crate::backlog::BacklogLimits;
use crate::callback::Registry;
use crate::cli::{Runtime, VersionPolicy};
use crate::group::RunGroup;
use crate::store::StoreOptions;
use crate::transport::Transport;
use crate::warning::Warning;

/// The background work that a query waits for before it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Background {
    /// Agents and workflows, but not background shells.
    #[default]
    Agents,
    /// Agents, workflows and background shells.
    All,
}

/// Whether the version of the CLI is checked before it is started. `Required` and `Permissive` reject
/// versions that are too old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionCheck {
    /// Rejects a CLI of unknown version in print mode, and uses it with a warning otherwise, because
    /// the handshake follows.
    #[default]
    Required,
    /// Uses a CLI of unknown version with a warning, in print mode too.
    Permissive,
    /// Does not run `--version`.
    Skip,
}

/// The callback for warnings.
pub(crate) type OnWarning = Arc<dyn Fn(&Warning) + Send + Sync>;

/// The callback for lines of stderr.
pub(crate) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct HostOptions {
    pub(crate) cli_path: Option<PathBuf>,
    /// The program that runs the CLI if it is a script.
    pub(crate) runtime: Runtime,
    /// The user that the CLI runs as; `None` for the user of this process.
    pub(crate) user: Option<OsUser>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
    #[cfg(feature = "testing")]
    pub(crate) recorder: Option<crate::testing::Recorder>,
    pub(crate) print_mode: bool,
    pub(crate) version_check: VersionCheck,
    pub(crate) max_line_bytes: usize,
    /// `None` for the value of the environment or the default.
    pub(crate) initialize_timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) exit_grace: Duration,
    /// `None` for the value of the environment or the default, zero for no ceiling.
    pub(crate) background_ceiling: Option<Duration>,
    pub(crate) background: Background,
    pub(crate) strict_exit_status: bool,
    pub(crate) die_with_parent: bool,
    pub(crate) group: Option<RunGroup>,
    pub(crate) on_warning: Option<OnWarning>,
    pub(crate) on_stderr: Option<OnStderr>,
    pub(crate) max_unwritten_bytes: usize,
    /// Operations that are queued for the handshake.
    pub(crate) waiting_operations: usize,
    /// Operations in flight.
    pub(crate) pending_operations: usize,
    /// `None` for the default timeout of each operation.
    pub(crate) operation_timeout: Option<Duration>,
    /// Hook and permission callbacks that run at a time.
    pub(crate) running_callbacks: usize,
    /// Hook and permission callbacks that are queued.
    pub(crate) waiting_callbacks: usize,
    /// Bytes that are kept for a lagging reader.
    pub(crate) backlog: BacklogLimits,
    /// Why `isolated` cannot be applied.
    pub(crate) isolation: Option<&'static str>,
    pub(crate) callbacks: Registry,
    /// The store to which transcripts are mirrored.
    pub(crate) store: Option<StoreOptions>,
    /// What the callbacks and in-process servers require of the CLI.
    pub(crate) needs: Needs,
}

impl HostOptions {
    /// Returns how the version of the CLI is checked.
    pub(crate) fn version_policy(&self) -> VersionPolicy {
        VersionPolicy {
            print_mode: self.print_mode,
            permissive: self.version_check == VersionCheck::Permissive,
            skip: self.version_check == VersionCheck::Skip,
        }
    }
}

impl Default for HostOptions {
    /// The limits are those of the session machine and the backlog, so that each default is declared once.
    fn default() -> Self {
        let (session, query) = (SessionLimits::default(), QueryLimits::default());
        Self {
            cli_path: None,
            runtime: Runtime::default(),
            user: None,
            transport: None,
            #[cfg(feature = "testing")]
            recorder: None,
            print_mode: false,
            version_check: VersionCheck::Required,
            max_line_bytes: DEFAULT_MAX_LINE_BYTES,
            initialize_timeout: None,
            idle_timeout: query.idle_timeout,
            exit_grace: session.grace.exit,
            background_ceiling: None,
            background: Background::Agents,
            strict_exit_status: query.strict_exit_status,
            die_with_parent: true,
            group: None,
            on_warning: None,
            on_stderr: None,
            max_unwritten_bytes: session.unwritten_bytes,
            waiting_operations: session.waiting_operations,
            pending_operations: session.pending_operations,
            operation_timeout: None,
            running_callbacks: session.running_callbacks,
            waiting_callbacks: session.waiting_callbacks,
            backlog: BacklogLimits::default(),
            isolation: None,
            callbacks: Registry::default(),
            store: None,
            needs: Needs::default(),
        }
    }
}

impl Options {
    /// Sets the executable of the CLI. If it cannot be executed, the start fails; other locations are
    /// not searched. Default: `CLAUDE_CLI_PATH`, then `claude` on `PATH`, then the directories used by
    /// installers.
    pub fn cli_path(self, path: impl Into<PathBuf>) -> Self {
        self.change_host("cli_path", |host| host.cli_path = Some(path.into()))
    }

    /// Sets the program that runs the CLI if [`cli_path`](Self::cli_path) is a script (`.js`,
    /// `.mjs`, `.ts`, `.tsx`, `.jsx`), and its arguments before the script: `["bun", "--smol"]`. The
    /// program is a path, or a name on `PATH`. Replaces an earlier value. Default: `["node"]`.
    pub fn executable(self, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut command = strings(command).into_iter();
        let program = command.next().map(PathBuf::from);
        let arguments: Vec<Secret> = command.map(Secret::from).collect();
        self.change_host("executable", |host| host.runtime.executable = program)
            .change_host("executable_args", |host| host.runtime.arguments = arguments)
    }

    /// Runs the CLI as this operating-system user: a name, or [`OsUser::ids`]. Default: the user of
    /// this process, which must be allowed to become another one.
    ///
    /// The version probe runs as this user, too. The environment policy still applies, so set `HOME` with
    /// [`env`](Self::env). The supplementary groups of the user are not set.
    #[cfg(unix)]
    pub fn user(self, user: impl Into<OsUser>) -> Self {
        self.change_host("user", |host| host.user = Some(user.into()))
    }

    /// Sets the transport, which starts the CLI. With a transport, the SDK neither searches for an
    /// executable nor checks its version. Replaces an earlier transport. Default: a local process.
    pub fn transport(self, transport: impl Transport) -> Self {
        self.change(|host| host.transport = Some(Arc::new(transport)))
    }

    /// Sets how strictly the version of the CLI is checked. `--version` is run once for each executable
    /// and user in the lifetime of this process. Default: [`VersionCheck::Required`].
    pub fn version_check(self, check: VersionCheck) -> Self {
        self.change_host("version_check", |host| host.version_check = check)
    }

    /// Sets the background work that a query waits for. Default: [`Background::Agents`].
    pub fn wait_for_background(self, background: Background) -> Self {
        self.change_host("wait_for_background", |host| host.background = background)
    }

    /// Sets whether a non-zero exit status after a successful result is an error instead of a warning.
    /// Default: false.
    pub fn strict_exit_status(self, strict: bool) -> Self {
        self.change_host("strict_exit_status", |host| host.strict_exit_status = strict)
    }

    /// Sets whether the kernel sends SIGTERM to the CLI when this process dies without stopping it.
    /// Linux only. A CLI that ignores SIGTERM exits when it detects that its stdin is closed. Default:
    /// true.
    pub fn die_with_parent(self, die: bool) -> Self {
        self.change_host("die_with_parent", |host| host.die_with_parent = die)
    }

    /// Mirrors the transcripts of the session to a [store](crate::store), so that the conversation can be
    /// read elsewhere. Replaces an earlier store. Sent as `--session-mirror`. Default: no store.
    ///
    /// The CLI still writes its own files. Every entry is sent to the store in order, and a result is
    /// delivered when the store has all entries before it: [`TurnOutcome::stored`](crate::TurnOutcome::stored)
    /// and [`Collected::stored`](crate::Collected::stored) then are `true`. [`StoreOptions`] describes what
    /// happens when the store fails. If another host claims the session, the run is stopped with
    /// [`Superseded`](crate::ErrorKind::Superseded).
    ///
    /// A permission request that is delivered among the messages does not wait for the store: results before
    /// it that are not stored yet are delivered as not stored. The end of a run waits up to 10 seconds for
    /// the last entries. File checkpoints and the saved outputs of tools are not stored.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::store::{MemoryStore, StoreOptions};
    ///
    /// let store = std::sync::Arc::new(MemoryStore::new());
    /// let options = Options::new().store(StoreOptions::new("tenant-1", store.clone()));
    /// ```
    pub fn store(self, store: StoreOptions) -> Self {
        self.change(|host| {
            host.store = Some(store);
            host.needs.session_mirror = true;
        })
    }

    /// Adds every run with these options to `group`, so that they can be shut down together. Replaces
    /// an earlier group. Default: no group.
    pub fn group(self, group: &RunGroup) -> Self {
        self.change(|host| host.group = Some(group.clone()))
    }

    /// Sets a callback for all warnings, including those that are items of a stream. It must not block.
    /// Replaces an earlier callback. Default: none.
    pub fn on_warning(self, callback: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.change(|host| host.on_warning = Some(Arc::new(callback)))
    }

    /// Sets a callback for each line that the CLI writes to stderr, without its line break. It must not
    /// block. Replaces an earlier callback. Default: none; the last 64 KiB are kept for errors.
    pub fn on_stderr(self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.change(|host| host.on_stderr = Some(Arc::new(callback)))
    }
}

impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOptions")
            .field("cli_path", &self.cli_path)
            .field("runtime", &self.runtime)
            .field("user", &self.user)
            .field("transport", &self.transport.is_some())
            .field("print_mode", &self.print_mode)
            .field("version_check", &self.version_check)
            .field("max_line_bytes", &self.max_line_bytes)
            .field("initialize_timeout", &self.initialize_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("exit_grace", &self.exit_grace)
            .field("background_ceiling", &self.background_ceiling)
            .field("background", &self.background)
            .field("strict_exit_status", &self.strict_exit_status)
            .field("die_with_parent", &self.die_with_parent)
            .field("group", &self.group)
            .field("on_warning", &self.on_warning.is_some())
            .field("on_stderr", &self.on_stderr.is_some())
            .field("max_unwritten_bytes", &self.max_unwritten_bytes)
            .field("waiting_operations", &self.waiting_operations)
            .field("pending_operations", &self.pending_operations)
            .field("operation_timeout", &self.operation_timeout)
            .field("running_callbacks", &self.running_callbacks)
            .field("waiting_callbacks", &self.waiting_callbacks)
            .field("backlog", &self.backlog)
            .field("isolation", &self.isolation)
            .field("callbacks", &self.callbacks)
            .field("store", &self.store)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}
