//! From options to a driver that runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use claude_wire::id::MessageId;
use claude_wire::session::{Event, Machine, Outgoing, Plan, Run};
use tokio::runtime::Handle;
use tracing::Instrument as _;

use super::calls::Calls;
use super::{Driver, Parts, StderrReader, WarningSink, limits};
use crate::cli::{self, Chosen, CliVersion};
use crate::cost::Ledger;
use crate::diagnose::{self, Evidence};
use crate::error::{Error, ErrorKind, Result};
use crate::feed::Feed;
use crate::mailbox::Mailbox;
use crate::mask::Mask;
use crate::options::{Options, Prepared, prepare};
use crate::process::{Patience, Process};
use crate::prompt::Prompt;
use crate::reader::Reader;
use crate::session::events::EventLog;
use crate::transport::{Connection, Launch, Local, Transport};

/// What is to be run.
pub(crate) enum Task {
    Query(Prompt),
    Session,
}

/// What is left in the hands of the host.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) feed: Arc<Feed>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) warnings: WarningSink,
    pub(crate) events: Arc<EventLog>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    /// The process, to end it when the driver does not run; none if it is elsewhere.
    pub(crate) process: Option<Process>,
    pub(crate) pid: Option<u32>,
}

impl Handles {
    /// A reader of everything from now on; the first misses nothing.
    pub(crate) fn reader(&self) -> Reader {
        let (subscriber, first) = self.feed.subscribe();
        Reader::new(self.feed.clone(), self.warnings.clone(), subscriber).beginning_with(first)
    }

    /// The costs that results have reported.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the CLI end. Its driver does it; where that does not run any more, the reaper
    /// thread does.
    pub(crate) fn release(&mut self) {
        // A driver that is gone has ended its CLI.
        let _ = self.mailbox.tell(Event::Stop);
        if let Some(process) = self.process.take() {
            process.end_patiently();
        }
    }
}

/// Starts a CLI and the task that drives it.
pub(crate) async fn start(options: &Options, task: Task) -> Result<Handles> {
    let runtime = require_runtime()?;
    let prompt = match &task {
        Task::Query(prompt) => Some(prompt),
        Task::Session => None,
    };
    let mut prepared = prepare(options, prompt)?;
    let plan = plan(options, &prepared, prompt)?;
    let mut warnings = std::mem::take(&mut prepared.warnings);
    let launch = launch(options, &prepared).await?;
    let reached = reach(options, launch).await?;
    warnings.extend(reached.warnings.iter().cloned());
    let handles = Handles {
        feed: Arc::new(Feed::new(limits::backlog(options))),
        mailbox: Arc::new(Mailbox::default()),
        warnings: WarningSink::new(options.host.on_warning.clone()),
        events: Arc::new(EventLog::new()),
        ledger: Arc::new(Mutex::new(Ledger::new(resumes(&prepared)))),
        process: reached.connection.child.process(),
        pid: reached.connection.child.pid(),
    };
    for warning in &warnings {
        handles.warnings.tell(warning);
    }
    handles.feed.start_with(warnings);
    // In a box: a future holds what it is made of more than once.
    let mut driver = Box::new(driver(options, &prepared, plan, reached, &handles, &runtime));
    let span = tracing::debug_span!("claude_run", pid = handles.pid);
    let began = Instant::now();
    let run = async move {
        driver.run().await;
        drop(driver);
        tracing::debug!(took = ?began.elapsed(), "the run is over");
    };
    drop(runtime.spawn(run.instrument(span)));
    Ok(handles)
}

/// Describes the process of a run with these options: arguments, environment, working directory and
/// user.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`] when the options name a user that does not exist.
pub(crate) async fn launch(options: &Options, prepared: &Prepared) -> Result<Launch> {
    let launch = Launch::new(
        prepared.command.clone(),
        options.settings.cwd.clone(),
        options.host.die_with_parent,
        patience(options, prepared),
    );
    match (&options.host.user, &options.host.transport) {
        (Some(user), None) => Ok(launch.run_by(user.ids().await?)),
        // A custom transport chooses the user itself.
        _ => Ok(launch),
    }
}

fn driver(
    options: &Options,
    prepared: &Prepared,
    plan: Plan,
    reached: Reached,
    handles: &Handles,
    runtime: &Handle,
) -> Driver {
    let mask = mask(prepared);
    let evidence = Evidence {
        extra_flags: extra_flags(options),
        cli_version: reached.version,
        cli_path: reached.path,
        cwd: options.settings.cwd.clone(),
        mask: mask.clone(),
        ..Evidence::default()
    };
    let mut connection = reached.connection;
    let errors = connection.errors.take();
    let stderr = StderrReader::start(errors, mask, options.host.on_stderr.clone());
    let registry = options.host.callbacks.clone();
    let Handles { feed, mailbox, warnings, events, ledger, .. } = handles;
    let calls =
        Calls::new(registry, runtime.clone(), mailbox.clone(), feed.clone(), warnings.clone());
    Driver::new(Parts {
        machine: Machine::new(plan),
        max_line_bytes: options.host.max_line_bytes,
        connection,
        feed: feed.clone(),
        mailbox: mailbox.clone(),
        warnings: warnings.clone(),
        events: events.clone(),
        calls,
        ledger: ledger.clone(),
        stderr,
        evidence,
    })
}

/// Whether the CLI continues an earlier conversation, also where `extra_args` say so.
fn resumes(prepared: &Prepared) -> bool {
    let flags = ["--resume", "-r", "--continue", "-c"];
    let flag = |argument: &String| argument.split('=').next().is_some_and(|it| flags.contains(&it));
    prepared.command.arguments.iter().any(flag)
}

/// A CLI that was reached, and what was found out on the way.
struct Reached {
    connection: Connection,
    version: Option<CliVersion>,
    path: Option<PathBuf>,
    warnings: Vec<crate::Warning>,
}

async fn reach(options: &Options, launch: Launch) -> Result<Reached> {
    let directory = options.settings.cwd.clone();
    if let Some(transport) = &options.host.transport {
        let connection =
            transport.connect(launch).await.map_err(|error| transport_failed(&error))?;
        return Ok(Reached { connection, version: None, path: None, warnings: Vec::new() });
    }
    let program = cli::find_program(options)?;
    let policy = options.host.version_policy();
    let Chosen { program, version, warnings } = policy.check(program, &launch).await?;
    let path = program.path().to_owned();
    let connection = Local::new(program)
        .connect(launch)
        .await
        .map_err(|error| diagnose::spawn_failed(&error, &path, directory.as_deref()))?;
    let path = Some(path);
    Ok(Reached { connection, version, path, warnings })
}

fn plan(options: &Options, prepared: &Prepared, prompt: Option<&Prompt>) -> Result<Plan> {
    let run = match prompt {
        Some(prompt) => {
            let verbatim = options.settings.verbatim_prompts;
            let told = !options.host.print_mode;
            let prompt = told.then(|| outgoing(prompt, verbatim)).transpose()?;
            Run::Query { prompt, limits: limits::query(options, prepared) }
        }
        None => Run::Session,
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
    plan.mcp_servers = options.host.callbacks.servers.names().collect();
    plan.permissions = options.host.callbacks.has_permission();
    plan.relies_on_default_mode =
        options.host.callbacks.has_can_use_tool() && options.settings.permission_mode.is_none();
    plan.elicitation = options.host.callbacks.user.has_elicitation();
    plan.dialogs = options.host.callbacks.user.has_dialog();
    plan.permission_limit = hooks.permission_limit;
    plan.limits = limits::session(options, prepared);
    if let Some(most) = options.host.callbacks.running_mcp {
        plan.limits.running_mcp = most;
    }
    plan.limits.cancel_grace = hooks.cancel_grace;
    plan.file_checkpointing = options.settings.file_checkpointing;
    plan.id_suffix = crate::random::suffix();
    Ok(plan)
}

fn outgoing(prompt: &Prompt, verbatim: bool) -> Result<Outgoing> {
    let id = prompt.id().cloned().unwrap_or_else(|| MessageId::from(crate::random::uuid()));
    let line = prompt.line(&id, None, verbatim)?;
    Ok(Outgoing::new(id, line, prompt.id().is_some()))
}

fn mask(prepared: &Prepared) -> Mask {
    let mask = Mask::of_environment(std::env::vars_os());
    mask.learn(prepared.secrets.iter().cloned());
    mask
}

fn patience(options: &Options, prepared: &Prepared) -> Patience {
    let limits = limits::session(options, prepared);
    // A driver that does not run cannot interrupt; the time for it is given all the same.
    Patience {
        before_terminate: limits.grace.interrupt.saturating_add(limits.grace.exit),
        before_kill: limits.grace.terminate,
    }
}

fn extra_flags(options: &Options) -> Vec<String> {
    let names = options.settings.extra_args.iter().map(|(name, _)| name);
    names.map(|name| name.trim_start_matches('-').to_owned()).collect()
}

fn transport_failed(error: &std::io::Error) -> Error {
    let message = format!("the transport could not start the CLI ({error})");
    Error::new(ErrorKind::SpawnFailed, message)
}

/// Returns the Tokio runtime that this is called on.
///
/// # Errors
/// [`ErrorKind::NoRuntime`].
pub(crate) fn require_runtime() -> Result<Handle> {
    Handle::try_current().map_err(|_| {
        Error::new(ErrorKind::NoRuntime, "there is no Tokio runtime here")
            .remedy("call it from an async function that Tokio runs, such as `#[tokio::main]`")
    })
}
