//! Starts a CLI and its driver from options.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claude_agent_core::session::{Event, Machine, OutgoingMessage, Plan, RunCost, RunMode};
use claude_wire::Framer;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::launch::Origin;
use claude_wire::message::ResultMessage;
use claude_wire::settings::McpDelivery;
use tokio::runtime::Handle;

use super::callback_tasks::CallbackTasks;
use super::connect::{Connected, FoundCli, connect};
use super::exit_watch::ExitWatch;
use super::mirror::MirrorTasks;
use super::run_clock::RunClock;
use super::stdin::Stdin;
use super::timer::Timer;
use super::turns::Turns;
use super::{Driver, StderrReader, WarningSink, limits};
use crate::approval::Gate;
use crate::approval::settle::Settled;
use crate::commands::{self, CommandReceiver, CommandSender};
use crate::diagnose::Evidence;
use crate::error::{Error, ErrorKind, Result};
use crate::feed::{Feed, LineMarks};
use crate::group::Memberships;
use crate::id_map::IdMap;
use crate::list;
use crate::lock::lock;
use crate::mask::Mask;
use crate::options::{Options, Prepared, mcp_delivery, prepare};
use crate::panics;
use crate::process::Process;
use crate::prompt::Prompt;
use crate::reader::Reader;
use crate::session::events::{EventLog, Events, SessionState};
use crate::session::{ReplayedTurn, SessionLink};
use crate::store::write_session::failed_in;
use crate::store::{MirrorStart, StoreError, StoreOptions, restore};
use crate::tasks;
use crate::tasks::BoxFuture;
use crate::transport::{Connection, Launch};

/// The kind of run.
pub(crate) enum RunKind {
    Query(Prompt),
    Session,
}

/// The host's handles to a run.
#[derive(Clone, Debug)]
pub(crate) struct Handles {
    pub(crate) feed: Arc<Feed>,
    pub(crate) commands: CommandSender,
    pub(crate) warnings: WarningSink,
    pub(crate) events: Arc<EventLog>,
    pub(crate) replay: Arc<ReplayedTurn>,
    cost: Arc<Mutex<RunCost>>,
    stored: Arc<Mutex<Option<bool>>>,
    /// Masks secrets in errors.
    pub(crate) mask: Mask,
    pub(crate) pid: Option<u32>,
    /// Holds tool calls that need approval.
    gate: Option<Arc<Gate>>,
    /// The maximum time that agents in the background delay the end of a query, or of a resume after an approval.
    pub(crate) background_ceiling: Option<Duration>,
    origin: Origin,
}

/// Keeps a run alive. Dropping the guard stops the run in the background: through the driver, or through
/// the reaper thread if the driver is no longer polled.
#[derive(Debug)]
pub(crate) struct RunGuard {
    commands: CommandSender,
    /// The process, to end it if the driver does not; `None` for a custom transport.
    process: Option<Process>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        // A dropped driver has left its process to the reaper thread.
        let _ = self.commands.send(Event::Stop);
        if let Some(process) = self.process.take() {
            process.arm_watchdog();
        }
    }
}

/// A started CLI without a driver task.
pub(crate) struct Started {
    pub(crate) handles: Handles,
    /// Gives callbacks access to the session, once it is set.
    pub(crate) link: SessionLink,
    guard: RunGuard,
    driver: Box<Driver>,
    runtime: Handle,
    memberships: Memberships,
}

impl Started {
    /// Spawns the task that drives the CLI.
    pub(crate) fn run(self) -> RunGuard {
        let Self { handles, guard, mut driver, runtime, memberships, .. } = self;
        let span = tracing::debug_span!("claude_run", pid = handles.pid);
        let began = Instant::now();
        let run = Box::pin(async move {
            driver.run().await;
            drop(driver);
            drop(memberships);
            tracing::debug!(took = ?began.elapsed(), "the run ended");
        });
        drop(tasks::spawn(&runtime, span, run));
        guard
    }
}

impl Handles {
    /// Returns a reader of all messages from now on; the first reader also gets the earlier ones.
    pub(crate) fn reader(&self) -> Reader {
        let (subscriber, first) = self.feed.subscribe();
        Reader::new(self.feed.clone(), self.warnings.clone(), subscriber).beginning_with(first)
    }

    /// Returns whether the run continues an earlier conversation; `None` if unknown.
    pub(crate) fn is_resumed(&self) -> Option<bool> {
        match self.origin {
            Origin::New => Some(false),
            // The CLI completes the handshake only if it has found the conversation.
            Origin::Session(_) => self.events.info().map(|_| true),
            _ => None,
        }
    }

    /// Waits for the handshake to complete.
    pub(crate) fn ready(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let events = Events::new(self.events.clone());
            match poll_fn(|context| events.poll_ready(context)).await {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
    }

    /// Records the end of a turn with the gate, and returns what the turn left behind.
    pub(crate) fn settle<'a>(
        &'a self,
        result: Option<&'a ResultMessage>,
    ) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let Some(gate) = &self.gate else { return Settled::default() };
            let session = self.events.session_id();
            let is_stopping = match self.feed.over() {
                // A query has ended before its approvals are settled.
                Some(over) => over.stopped || over.error.is_some(),
                None => !matches!(self.events.state(), SessionState::Running),
            };
            gate.settle(session.as_ref(), result, is_stopping).await
        })
    }

    /// Waits until the CLI is idle, so that no agent works in the background, or the run ends.
    pub(crate) fn idle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let events = Events::new(self.events.clone());
            poll_fn(|context| events.poll_idle(context)).await;
        })
    }

    /// Returns whether approvals may have changed since a turn was settled.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.is_unsettled())
    }

    /// Returns whether a decision about a tool call is available that no call has used.
    pub(crate) async fn has_unused_decision(&self) -> Result<bool> {
        let (Some(gate), Some(session)) = (&self.gate, self.events.session_id()) else {
            return Ok(false);
        };
        gate.has_unused_decision(&session).await.map_err(approvals_failed)
    }

    /// Returns the cost reported by the results so far.
    pub(crate) fn cost(&self) -> RunCost {
        *lock(&self.cost)
    }

    /// Returns whether everything before the last result is stored.
    pub(crate) fn is_stored(&self) -> Option<bool> {
        *lock(&self.stored)
    }
}

/// Starts a CLI.
pub(crate) fn start(options: &Options, kind: RunKind) -> BoxFuture<'_, Result<Started>> {
    Box::pin(async move {
        let runtime = require_timers()?;
        let memberships = Memberships::new(options.host.group.as_ref())?;
        let prompt = match &kind {
            RunKind::Query(prompt) => Some(prompt),
            RunKind::Session => None,
        };
        let mut options = with_session_id(options);
        let mut prepared = prepare(&options, prompt)?;
        let cli = FoundCli::of(&options, &launch(&options, &prepared).await?).await?;
        if mcp_delivery(&options, cli.version)? == McpDelivery::Arguments {
            options.settings.mcp_delivery = McpDelivery::Arguments;
            prepared = prepare(&options, prompt)?;
        }
        let (mut mirror, mut found) = (None, Vec::new());
        // After the checks: a start with problems must not change anything, or claim the session.
        if let Some(restored) = restore(&options).await? {
            options = with_session_id(&restored.options);
            prepared = prepare(&options, prompt)?;
            (mirror, found) = (Some(restored.mirror), restored.warnings);
        }
        let gate = open_gate(&mut options, &prepared, mirror.as_ref());
        let options = &options;
        let plan = plan(options, &prepared, prompt)?;
        let mut warnings = std::mem::take(&mut prepared.warnings);
        warnings.extend(found);
        let launch = launch(options, &prepared).await?;
        if let Some(gate) = gate.as_ref().filter(|_| resumes(&prepared)) {
            gate.claim(options.settings.start.session_id()).await;
        }
        let connected = connect(options, launch, cli).await?;
        warnings.extend_from_slice(&connected.warnings);
        let (sender, receiver) = commands::channel();
        memberships.join(&sender)?;
        let process = connected.connection.child.process();
        let handles = Handles {
            feed: Arc::new(Feed::new(limits::backlog(options))),
            commands: sender,
            warnings: WarningSink::new(options.host.on_warning.clone()),
            events: Arc::new(EventLog::new(options.settings.start.session_id().cloned())),
            replay: Arc::new(ReplayedTurn::new(resumes(&prepared))),
            cost: Arc::default(),
            stored: Arc::default(),
            mask: mask(&prepared),
            pid: connected.connection.child.pid(),
            gate,
            background_ceiling: prepared.background_ceiling,
            origin: options.settings.start.origin.clone(),
        };
        for warning in &warnings {
            handles.warnings.tell(warning);
        }
        handles.feed.start_with(warnings);
        let link = SessionLink::default();
        // Boxed: a future may hold its parts more than once.
        let mirror = mirror.map(|start| MirrorTasks::new(start, &runtime, &handles.commands));
        let mut driver =
            Box::new(driver(options, plan, connected, receiver, &handles, &link, &runtime));
        driver.mirror = mirror;
        let guard = RunGuard { commands: handles.commands.clone(), process };
        Ok(Started { handles, link, guard, driver, runtime, memberships })
    })
}

/// Chooses the session ID of a new conversation, so that it is known from the start.
fn with_session_id(options: &Options) -> Options {
    let mut options = options.clone();
    let start = &mut options.settings.start;
    let makes_one = start.session_id().is_none() && (start.fork || start.origin == Origin::New);
    // The old CLIs that print mode supports may not know the flag, and extra arguments may contradict it.
    let flags =
        ["session-id", "resume", "r", "continue", "c", "fork-session", "teleport", "from-pr"];
    let names_a_session = |(name, _): &(String, _)| flags.contains(&name.trim_start_matches('-'));
    if makes_one
        && !options.host.print_mode
        && !options.settings.extra_args.iter().any(names_a_session)
    {
        options.settings.start.id = Some(SessionId::from(crate::random::uuid()));
    }
    options
}

/// Describes the process of a run with these options: arguments, environment, working directory and
/// user.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] when the options name a user that does not exist.
pub(crate) fn launch<'a>(
    options: &'a Options,
    prepared: &'a Prepared,
) -> BoxFuture<'a, Result<Launch>> {
    Box::pin(async move {
        let launch = Launch::new(
            prepared.command.clone(),
            options.settings.cwd.clone(),
            options.host.die_with_parent,
            limits::session(options, prepared).grace,
        );
        match (&options.host.user, &options.host.transport) {
            (Some(user), None) => Ok(launch.run_by(user.resolve().await?)),
            // A custom transport chooses the user itself.
            _ => Ok(launch),
        }
    })
}

fn driver(
    options: &Options,
    plan: Plan,
    connected: Connected,
    commands: CommandReceiver,
    handles: &Handles,
    link: &SessionLink,
    runtime: &Handle,
) -> Driver {
    let mask = handles.mask.clone();
    let evidence = Evidence {
        extra_flags: extra_flags(options),
        cli_version: connected.version,
        cli_path: connected.path,
        command: connected.command,
        cwd: options.settings.cwd.clone(),
        mask: mask.clone(),
        ..Evidence::default()
    };
    let Connection { input, output, errors, child } = connected.connection;
    let callbacks =
        CallbackTasks::new(options.host.callbacks.clone(), runtime.clone(), handles, link.clone());
    Driver {
        run: plan.id_suffix,
        machine: Machine::new(plan),
        commands,
        stdin: Stdin::new(input),
        stdout: Some(output),
        framer: Framer::new(options.host.max_line_bytes),
        stderr: StderrReader::start(errors, mask, options.host.on_stderr.clone()),
        child,
        exit_watch: ExitWatch::default(),
        exit: None,
        clock: RunClock::start(),
        timer: Timer::default(),
        callbacks,
        turns: Turns::default(),
        replies: IdMap::default(),
        batch: Vec::new(),
        marks: LineMarks::default(),
        feed: handles.feed.clone(),
        events: handles.events.clone(),
        warnings: handles.warnings.clone(),
        replay: Arc::downgrade(&handles.replay),
        cost: handles.cost.clone(),
        stored: handles.stored.clone(),
        mirror: None,
        gate: handles.gate.clone(),
        evidence,
    }
}

fn open_gate(
    options: &mut Options,
    prepared: &Prepared,
    mirror: Option<&MirrorStart>,
) -> Option<Arc<Gate>> {
    let project = mirror.and_then(|start| start.target.project.clone());
    let sessions = mirror.map(MirrorStart::claims).unwrap_or_default();
    options.host.callbacks.open_gate(project, sessions, resumes(prepared))
}

/// Returns whether the CLI continues an earlier conversation, by its options or extra arguments.
fn resumes(prepared: &Prepared) -> bool {
    let flags = ["--resume", "-r", "--continue", "-c"];
    let flag = |argument: &String| argument.split('=').next().is_some_and(|it| flags.contains(&it));
    prepared.command.arguments.iter().any(flag)
}

fn plan(options: &Options, prepared: &Prepared, prompt: Option<&Prompt>) -> Result<Plan> {
    let run = match prompt {
        Some(prompt) => {
            let verbatim = options.settings.verbatim_prompts;
            let uses_stdin = !options.host.print_mode;
            let prompt = uses_stdin.then(|| outgoing(prompt, verbatim)).transpose()?;
            RunMode::Query { prompt, limits: limits::query(options, prepared) }
        }
        None => RunMode::Session,
    };
    let hooks = options.host.callbacks.plan();
    let mut plan = Plan::new(run);
    plan.initialize.clone_from(&prepared.initialize);
    if let Some(initialize) = &mut plan.initialize {
        initialize.hooks = hooks.matchers;
        let user = &options.host.callbacks.user;
        if user.has_dialog() {
            initialize.supported_dialog_kinds = user.dialog_kinds().to_vec().into();
        }
    }
    plan.hooks = hooks.plans;
    plan.mcp_servers = options.host.callbacks.servers.names();
    plan.permissions = options.host.callbacks.has_permission();
    plan.delivered_permissions = options.host.callbacks.delivered_permissions();
    plan.relies_on_default_mode =
        options.host.callbacks.has_can_use_tool() && options.settings.permission_mode.is_none();
    plan.elicitation = options.host.callbacks.user.has_elicitation();
    plan.dialogs = options.host.callbacks.user.has_dialog();
    plan.permission_timeout = hooks.permission_timeout;
    plan.limits = limits::session(options, prepared);
    plan.file_checkpointing = options.settings.file_checkpointing;
    plan.resumes = resumes(prepared);
    plan.id_suffix = crate::random::suffix();
    plan.mirror = options.host.store.as_ref().map(StoreOptions::policy);
    Ok(plan)
}

fn outgoing(prompt: &Prompt, verbatim: bool) -> Result<OutgoingMessage> {
    let id = prompt.id().cloned().unwrap_or_else(|| MessageId::from(crate::random::uuid()));
    let line = prompt.line(&id, None, verbatim)?;
    Ok(OutgoingMessage::new(id, line, prompt.id().is_some()))
}

fn mask(prepared: &Prepared) -> Mask {
    let mask = Mask::of_environment(std::env::vars_os());
    mask.learn(prepared.secrets.iter().cloned());
    mask
}

fn extra_flags(options: &Options) -> Vec<String> {
    list::map(&options.settings.extra_args, &|(name, _)| name.trim_start_matches('-').to_owned())
}

pub(crate) fn approvals_failed(error: StoreError) -> Error {
    failed_in("approval store", "cannot read the approvals of the session", error)
}

/// Returns the current Tokio runtime.
///
/// # Errors
/// [`ErrorKind::NoRuntime`].
pub(crate) fn require_runtime() -> Result<Handle> {
    Handle::try_current().map_err(|_| {
        Error::new(ErrorKind::NoRuntime, "no Tokio runtime is active on this thread").with_help(
            "call the function from async code that Tokio runs, such as `#[tokio::main]`",
        )
    })
}

/// Returns the current Tokio runtime if it has timers, which every run needs.
///
/// # Errors
/// [`ErrorKind::NoRuntime`].
pub(crate) fn require_timers() -> Result<Handle> {
    let runtime = require_runtime()?;
    // Tokio has no other way to find out, and the driver would panic instead.
    match panics::catch(|| drop(tokio::time::sleep(Duration::ZERO))) {
        Ok(()) => Ok(runtime),
        Err(_) => Err(incomplete_runtime("timers")),
    }
}

/// Returns the error for a runtime that was built without a part.
pub(crate) fn incomplete_runtime(part: &str) -> Error {
    Error::new(ErrorKind::NoRuntime, format!("the Tokio runtime on this thread has no {part}"))
        .with_help("call `enable_all` on the `tokio::runtime::Builder`")
}
