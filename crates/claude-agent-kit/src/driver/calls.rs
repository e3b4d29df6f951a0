//! Callbacks that run, each in a task of its own unless that is of no use.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use claude_wire::control::{CliControlRequest, CliRequest};
use claude_wire::id::SessionId;
use claude_wire::session::{CallKey, CallOutcome, Event};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::AbortHandle;
use tracing::{Instrument as _, Span};

use super::WarningSink;
use crate::callback::{Call, CallResult, CancelToken, Misfit, Registry, Running};
use crate::feed::{Feed, Piece};
use crate::mailbox::Mailbox;
use crate::panics;
use crate::warning::{Warning, WarningCode};

/// A callback that holds its thread for longer than this is told of.
const BLOCKED: Duration = Duration::from_secs(1);

/// The callbacks of a run and those of them that run now.
pub(crate) struct Calls {
    registry: Registry,
    runtime: Handle,
    mailbox: Arc<Mailbox>,
    feed: Arc<Feed>,
    warnings: WarningSink,
    running: Vec<Started>,
    /// Those that have not begun.
    fresh: Vec<Fresh>,
    /// Whether all tasks share one thread. A callback that blocks then holds up everything whichever
    /// task it is in, so that nothing is lost where the driver itself begins with it.
    one_thread: bool,
}

/// A callback that is to begin.
struct Fresh {
    key: CallKey,
    cancel: CancelToken,
    task: CallTask,
    span: Span,
}

/// A callback that runs, and how it is told to end.
struct Started {
    key: CallKey,
    cancel: CancelToken,
    /// None on a blocking thread, where it cannot be ended; its token tells it.
    task: Option<AbortHandle>,
}

impl Calls {
    pub(crate) fn new(
        registry: Registry,
        runtime: Handle,
        mailbox: Arc<Mailbox>,
        feed: Arc<Feed>,
        warnings: WarningSink,
    ) -> Self {
        let (their_feed, their_warnings) = (feed.clone(), warnings.clone());
        let registry = registry.on_misfit(move |Misfit { event, fields }| {
            let message = format!(
                "an answer to the hook {event} had fields that do not fit it and were left out: {}",
                fields.join(", ")
            );
            let warning = Warning::new(WarningCode::HookFieldIgnored, message);
            warn(&their_feed, &their_warnings, warning);
        });
        let registry = registry.connect_servers(&mailbox);
        let one_thread = runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        let (running, fresh) = (Vec::new(), Vec::new());
        Self { registry, runtime, mailbox, feed, warnings, running, fresh, one_thread }
    }

    pub(super) fn run(
        &mut self,
        key: CallKey,
        request: Box<CliControlRequest>,
        line: Bytes,
        session_id: Option<SessionId>,
    ) {
        let what = name_of(&request.request);
        let report = Report { key, what, mailbox: self.mailbox.clone(), done: false };
        let cancel = CancelToken::new();
        let call = Call { request, line, session_id, cancel: cancel.clone() };
        match self.registry.call(call) {
            Some(Running::Async(future)) => {
                let span = tracing::debug_span!("claude_callback", what);
                let began = (!span.is_disabled()).then(Instant::now);
                let (feed, warnings) = (self.feed.clone(), self.warnings.clone());
                let task = CallTask { future, report: Some(report), feed, warnings, began };
                let fresh = Fresh { key, cancel, task, span };
                if self.one_thread {
                    self.fresh.push(fresh);
                } else {
                    self.spawn(fresh);
                }
            }
            Some(Running::Blocking(function)) => {
                let token = cancel.clone();
                drop(self.runtime.spawn_blocking(move || block(function, report, &token)));
                self.running.push(Started { key, cancel, task: None });
            }
            None => {
                report.finish(CallOutcome::Failed("no callback is registered for it".to_owned()));
            }
        }
    }

    fn spawn(&mut self, fresh: Fresh) {
        let Fresh { key, cancel, task, span } = fresh;
        let task = Some(self.runtime.spawn(task.instrument(span)).abort_handle());
        self.running.push(Started { key, cancel, task });
    }

    /// Whether some have not begun.
    pub(super) fn any_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Begins with one that is alone. Often it ends at once: a task for it would cost more than it
    /// does.
    pub(super) fn begin(&mut self, context: &mut Context<'_>) -> Option<(CallKey, CallOutcome)> {
        if self.fresh.len() != 1 {
            return None;
        }
        let mut alone = self.fresh.pop()?;
        let Fresh { key, task, span, .. } = &mut alone;
        if let Poll::Ready(outcome) = span.in_scope(|| task.poll_outcome(context)) {
            task.is_told();
            let key = *key;
            // What is left of the callback is the host's, and this is the driver's task.
            panics::discard(alone);
            return Some((key, outcome));
        }
        self.spawn(alone);
        None
    }

    /// Gives those that have not begun their tasks.
    pub(super) fn spawn_fresh(&mut self) {
        for fresh in std::mem::take(&mut self.fresh) {
            self.spawn(fresh);
        }
    }

    pub(super) fn cancel(&mut self, key: CallKey) {
        if let Some(at) = self.find(key) {
            self.running[at].cancel.cancel();
        } else if let Some(fresh) = self.fresh.iter().find(|fresh| fresh.key == key) {
            fresh.cancel.cancel();
        }
    }

    pub(super) fn abort(&mut self, key: CallKey) {
        if let Some(at) = self.find(key)
            && let Some(task) = &self.running[at].task
        {
            task.abort();
        }
        // One that has not begun is dropped, and tells that itself.
        self.fresh.extract_if(.., |fresh| fresh.key == key).for_each(panics::discard);
    }

    pub(super) fn forget(&mut self, key: CallKey) {
        if let Some(at) = self.find(key) {
            self.running.swap_remove(at);
        }
    }

    fn find(&self, key: CallKey) -> Option<usize> {
        self.running.iter().position(|started| started.key == key)
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.fresh.drain(..).for_each(panics::discard);
        // In the order of the requests, for whoever wants every run to be the same.
        self.running.sort_by_key(|started| started.key);
        for started in &self.running {
            started.cancel.cancel();
            if let Some(task) = &started.task {
                task.abort();
            }
        }
    }
}

/// A callback as a task: reports its end, whatever it is.
pub(crate) struct CallTask {
    future: Pin<Box<dyn Future<Output = CallResult> + Send>>,
    report: Option<Report>,
    feed: Arc<Feed>,
    warnings: WarningSink,
    /// When it was started, if anybody wants to know.
    began: Option<Instant>,
}

impl Future for CallTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let outcome = ready!(self.poll_outcome(context));
        if let Some(report) = self.report.take() {
            report.finish(outcome);
        }
        Poll::Ready(())
    }
}

impl CallTask {
    fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let began = Instant::now();
        let polled = panics::catch(|| self.future.as_mut().poll(context));
        let held = began.elapsed();
        if held > BLOCKED {
            self.warn_blocked(held);
        }
        let outcome = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => outcome(result),
            Err(_) => CallOutcome::Failed("it panicked".to_owned()),
        };
        if let Some(began) = self.began {
            tracing::debug!(took = ?began.elapsed(), "the callback ended");
        }
        Poll::Ready(outcome)
    }

    /// Whoever polled it tells how it ended.
    fn is_told(&mut self) {
        if let Some(report) = &mut self.report {
            report.done = true;
        }
    }

    fn warn_blocked(&self, held: Duration) {
        let what = self.report.as_ref().map_or("", |report| report.what);
        let warning = Warning::new(
            WarningCode::CallbackBlocked,
            format!(
                "a callback for {what} held its thread for {held:?}; give one that blocks to \
                 `on_blocking`"
            ),
        );
        warn(&self.feed, &self.warnings, warning);
    }
}

fn warn(feed: &Feed, warnings: &WarningSink, warning: Warning) {
    warnings.tell(&warning);
    feed.push(&mut vec![Piece::Warning(warning)], true);
}

fn block(function: Box<dyn FnOnce() -> CallResult + Send>, report: Report, token: &CancelToken) {
    // It may have waited long for its thread, and its request may be closed.
    if token.is_cancelled() {
        panics::discard(function);
        return report.finish(CallOutcome::Gone);
    }
    let result = panics::catch(function);
    report.finish(match result {
        Ok(result) => outcome(result),
        Err(_) => CallOutcome::Failed("it panicked".to_owned()),
    });
}

/// The kind of a request that is answered by callbacks.
fn name_of(request: &CliRequest) -> &'static str {
    match request {
        CliRequest::HookCallback(_) => "hook_callback",
        CliRequest::CanUseTool(_) => "can_use_tool",
        CliRequest::McpMessage(_) => "mcp_message",
        _ => "request",
    }
}

fn outcome(result: CallResult) -> CallOutcome {
    match result {
        Ok(answer) => CallOutcome::Answer(answer),
        Err(reason) => CallOutcome::Failed(reason),
    }
}

/// Tells the machine how a callback ended, once; also when its task is dropped.
struct Report {
    key: CallKey,
    what: &'static str,
    mailbox: Arc<Mailbox>,
    done: bool,
}

impl Report {
    fn finish(mut self, outcome: CallOutcome) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: CallOutcome) {
        self.done = true;
        // A driver that is gone answers nobody.
        let _ = self.mailbox.tell(Event::CallbackDone { key: self.key, outcome });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.done {
            self.tell(CallOutcome::Gone);
        }
    }
}
