//! Runs callbacks, each in its own task or on its own blocking thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use claude_agent_core::session::{CallbackKey, CallbackOutcome, Event};
use claude_wire::control::{CliControlRequest, CliRequest};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{Handles, WarningSink};
use crate::callback::{Call, CallResult, CallbackRun, CancelToken, IgnoredFields, Registry};
use crate::commands::CommandSender;
use crate::feed::{Feed, Piece};
use crate::id_map::IdMap;
use crate::panics::{self, CALLBACK_PANICKED};
use crate::permission::PermissionOrigin;
use crate::session::SessionLink;
use crate::tasks;
use crate::warning::{Warning, WarningCode};

/// A callback that holds its thread for longer than this is reported.
const BLOCKED: Duration = Duration::from_secs(1);

/// Why a run ends whose approvals belong to another host.
pub(crate) const APPROVALS_CLAIMED: &str = "another host has claimed its approvals";

/// The registered callbacks of a run, and the running ones.
pub(crate) struct CallbackTasks {
    registry: Registry,
    runtime: Handle,
    commands: CommandSender,
    session: SessionLink,
    reporter: Reporter,
    /// Ordered by key: callbacks are dropped in the order of their requests, so that runs are reproducible.
    running: IdMap<RunningCallback>,
}

/// A running callback, and the means to cancel it.
struct RunningCallback {
    cancel: CancelToken,
    /// `None` on a blocking thread, which cannot be aborted; cancellation reaches it through its token.
    task: Option<AbortHandle>,
}

impl CallbackTasks {
    pub(crate) fn new(
        registry: Registry,
        runtime: Handle,
        handles: &Handles,
        session: SessionLink,
    ) -> Self {
        let (feed, warnings) = (handles.feed.clone(), handles.warnings.clone());
        let reporter = Reporter { feed, warnings };
        let for_ignored_fields = reporter.clone();
        let registry = registry.on_ignored_fields(move |IgnoredFields { event, fields }| {
            for_ignored_fields.warn(unsupported_fields(&event, &fields));
        });
        let commands = handles.commands.clone();
        let registry = registry.connect_servers(&commands);
        Self { registry, runtime, commands, session, reporter, running: IdMap::default() }
    }

    /// Runs the callback for a request. Its outcome arrives as an event, exactly once.
    pub(super) fn run(
        &mut self,
        key: CallbackKey,
        request: Box<CliControlRequest>,
        line: Bytes,
        origin: PermissionOrigin,
    ) {
        let what = kind_of(&request.request);
        let (commands, is_superseded) = (self.commands.clone(), self.registry.is_superseded());
        let report = CompletionGuard { key, commands, is_superseded, is_done: false };
        let cancel = CancelToken::new();
        let session = self.session.clone();
        let call = Call { request, line, origin, session, cancel: cancel.clone() };
        let task = match self.registry.call(call) {
            Some(CallbackRun::Async(future)) => {
                let span = tracing::debug_span!("claude_callback", what);
                let reporter = self.reporter.clone();
                let task = CallbackTask {
                    future,
                    report: Some(report),
                    what,
                    reporter,
                    began: Instant::now(),
                };
                Some(tasks::spawn(&self.runtime, span, Box::pin(task)).abort_handle())
            }
            Some(CallbackRun::Blocking(function)) => {
                let token = cancel.clone();
                let work = move || block(function, report, &token);
                drop(tasks::spawn_blocking(&self.runtime, work));
                None
            }
            None => {
                let reason = "no callback is registered for this request".to_owned();
                return report.finish(CallbackOutcome::Failed(reason));
            }
        };
        self.running.insert(key.0, RunningCallback { cancel, task });
    }

    pub(super) fn cancel(&self, key: CallbackKey) {
        if let Some(running) = self.running.get(key.0) {
            running.cancel.cancel();
        }
    }

    pub(super) fn abort(&self, key: CallbackKey) {
        if let Some(task) = self.running.get(key.0).and_then(|running| running.task.as_ref()) {
            task.abort();
        }
    }

    pub(super) fn forget(&mut self, key: CallbackKey) {
        self.running.remove(key.0);
    }
}

impl Drop for CallbackTasks {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.cancel.cancel();
            if let Some(task) = &running.task {
                task.abort();
            }
        }
    }
}

/// Reports warnings to the host from outside the driver.
#[derive(Clone)]
struct Reporter {
    feed: Arc<Feed>,
    warnings: WarningSink,
}

impl Reporter {
    fn warn(&self, warning: Warning) {
        self.warnings.tell(&warning);
        self.feed.push(&mut vec![Piece::Warning(warning)], true);
    }
}

/// Runs a callback as a task and reports its outcome.
struct CallbackTask {
    future: Pin<Box<dyn Future<Output = CallResult> + Send>>,
    report: Option<CompletionGuard>,
    what: &'static str,
    reporter: Reporter,
    began: Instant,
}

impl Future for CallbackTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let polled_at = Instant::now();
        let polled = panics::catch(|| self.future.as_mut().poll(context));
        self.warn_if_blocked(polled_at.elapsed());
        let outcome = match polled {
            Ok(polled) => outcome(ready!(polled)),
            Err(_) => CallbackOutcome::Failed(CALLBACK_PANICKED.to_owned()),
        };
        tracing::debug!(took = ?self.began.elapsed(), "the callback ended");
        if let Some(report) = self.report.take() {
            report.finish(outcome);
        }
        Poll::Ready(())
    }
}

impl CallbackTask {
    fn warn_if_blocked(&self, held: Duration) {
        if held > BLOCKED {
            self.reporter.warn(blocked(self.what, held));
        }
    }
}

pub(crate) fn unsupported_fields(event: &str, fields: &[String]) -> Warning {
    let message = format!(
        "the response to the `{event}` hook contained fields that the event does not support; they \
         were not sent: {}; help: remove these fields",
        fields.join(", ")
    );
    Warning::new(WarningCode::HookFieldIgnored, message)
}

pub(crate) fn blocked(what: &str, held: Duration) -> Warning {
    let message = format!(
        "a callback blocked its thread for {held:?} ({what}); help: register blocking callbacks with \
         `on_blocking`"
    );
    Warning::new(WarningCode::CallbackBlocked, message)
}

fn block(
    function: Box<dyn FnOnce() -> CallResult + Send>,
    report: CompletionGuard,
    token: &CancelToken,
) {
    // The request may have been cancelled while the callback waited for a thread.
    if token.is_cancelled() {
        panics::discard(function);
        return report.finish(CallbackOutcome::Aborted);
    }
    let result = panics::catch(function);
    report.finish(match result {
        Ok(result) => outcome(result),
        Err(_) => CallbackOutcome::Failed(CALLBACK_PANICKED.to_owned()),
    });
}

/// Returns the name of a request type, for logs.
fn kind_of(request: &CliRequest) -> &'static str {
    match request {
        CliRequest::HookCallback(_) => "hook_callback",
        CliRequest::CanUseTool(_) => "can_use_tool",
        CliRequest::McpMessage(_) => "mcp_message",
        _ => "request",
    }
}

fn outcome(result: CallResult) -> CallbackOutcome {
    match result {
        Ok(answer) => CallbackOutcome::Response(answer),
        Err(reason) => CallbackOutcome::Failed(reason),
    }
}

/// Reports the outcome of a callback exactly once, even if its task is dropped.
struct CompletionGuard {
    key: CallbackKey,
    commands: CommandSender,
    /// Whether a callback found that another host owns the session.
    is_superseded: Arc<AtomicBool>,
    is_done: bool,
}

impl CompletionGuard {
    fn finish(mut self, outcome: CallbackOutcome) {
        self.report(outcome);
    }

    fn report(&mut self, outcome: CallbackOutcome) {
        self.is_done = true;
        // Without a driver there is no one to respond to the CLI.
        let _ = self.commands.send(Event::CallbackDone { key: self.key, outcome });
        // After the response, which denies the call.
        if self.is_superseded.load(Ordering::Relaxed) {
            let _ = self.commands.send(Event::Superseded(APPROVALS_CLAIMED.to_owned()));
        }
    }
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        if !self.is_done {
            self.report(CallbackOutcome::Aborted);
        }
    }
}
