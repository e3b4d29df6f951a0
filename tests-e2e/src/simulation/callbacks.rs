//! Callbacks that respond immediately, late or never, fail or panic, and a record of their outcomes.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claude_agent_kit::hook::{
    HookResponse, PostToolUse, PreToolUse, Stop, UserPromptSubmit, input::UserPromptSubmitInput,
};
use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{
    Answers, Json, Limits, Options, Permission, Timeouts, ToolError, ToolServer,
};
use serde::Deserialize;
use tokio::time::sleep;

use super::record::{CallbackOutcome, Record};
use super::rng::Rng;

/// What a tool is called with.
#[derive(Debug, Deserialize, JsonSchema)]
struct Work {
    /// The number of the call.
    call: u64,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a callback does.
#[derive(Clone, Copy, Debug)]
enum Behavior {
    AtOnce,
    Late(Duration),
    Never,
    Fails,
    Panics,
}

/// The callbacks of a run. Each call picks a behavior.
#[derive(Clone)]
struct Callbacks {
    rng: Arc<Mutex<Rng>>,
    record: Record,
}

/// Adds random callbacks. Returns whether all of them have timeouts.
pub(super) fn add(
    options: Options,
    mut rng: Rng,
    record: &Record,
    healthy: bool,
) -> (Options, bool) {
    let limit = |rng: &mut Rng| Duration::from_millis(rng.between(500, 20_000) as u64);
    let mut options = options
        .timeouts(
            Timeouts::new()
                .hook(limit(&mut rng))
                .cancel_grace(rng.pick(&[Duration::ZERO, Duration::from_secs(1)])),
        )
        .hooks_fail_closed(rng.chance(50));
    let limited = healthy || rng.chance(80);
    if limited {
        options = options.timeouts(Timeouts::new().permission(limit(&mut rng)));
    }
    if rng.chance(10) {
        record.count("options: low callback limits");
        options =
            options.limits(Limits::new().running_callbacks(1).waiting_callbacks(rng.between(0, 2)));
    }
    if rng.chance(10) {
        options = options.limits(Limits::new().running_mcp_messages(1));
    }
    let (hooks, permission, questions) = (rng.chance(40), rng.chance(75), rng.chance(30));
    let limit = limit(&mut rng);
    let callbacks = Callbacks { rng: Arc::new(Mutex::new(rng)), record: record.clone() };
    options = callbacks.clone().tools(options, limit);
    if hooks {
        options = callbacks.clone().hooks(options);
    }
    if questions {
        options = callbacks.clone().questions(options);
    }
    let options = if permission { callbacks.permission(options) } else { options };
    (options, limited)
}

impl Callbacks {
    fn with_rng<T>(&self, decide: impl FnOnce(&mut Rng) -> T) -> T {
        decide(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn behavior(&self, what: &str) -> Behavior {
        let behavior = self.with_rng(|rng| match rng.between(0, 19) {
            0..=10 => Behavior::AtOnce,
            11..=15 => Behavior::Late(rng.moment()),
            16 => Behavior::Never,
            17 => Behavior::Fails,
            _ => Behavior::Panics,
        });
        let name = match behavior {
            Behavior::AtOnce => "immediate",
            Behavior::Late(_) => "late",
            Behavior::Never => "never",
            Behavior::Fails => "fails",
            Behavior::Panics => "panics",
        };
        self.record.count(format!("callback: {what} {name}"));
        behavior
    }

    fn record_outcome(&self, id: &str, answer: CallbackOutcome) {
        let now = self.record.now();
        self.record.lock().answers.insert(id.to_owned(), (now, answer));
    }

    /// Waits as the behavior requires, or fails. Records whether the future was dropped meanwhile.
    async fn behave(&self, what: &'static str, id: &str) -> Result<(), Failure> {
        let behavior = self.behavior(what);
        self.record_outcome(id, CallbackOutcome::Running);
        let probe = DropProbe { what, record: &self.record, done: false };
        match behavior {
            Behavior::AtOnce => {}
            Behavior::Late(delay) => sleep(delay).await,
            Behavior::Never => pending().await,
            Behavior::Fails => {
                self.record_outcome(id, CallbackOutcome::Failed);
                probe.leave();
                return Err("drawn to fail".into());
            }
            Behavior::Panics => {
                self.record_outcome(id, CallbackOutcome::Failed);
                probe.leave();
                // Without the panic hook: there are thousands of panics.
                resume_unwind(Box::new("drawn to panic"))
            }
        }
        probe.leave();
        Ok(())
    }

    fn permission(self, options: Options) -> Options {
        options.can_use_tool(move |request, context| {
            let callbacks = self.clone();
            async move {
                let id = context.request_id.as_str().to_owned();
                callbacks.behave("permission", &id).await?;
                let (approved, answer) = callbacks.with_rng(|rng| match rng.between(0, 9) {
                    0..=6 => (true, Permission::allow()),
                    7 | 8 => (false, Permission::deny("no")),
                    _ => (false, Permission::deny("no").and_interrupt()),
                });
                callbacks.decided(&id, approved, &request.input);
                Ok::<_, Failure>(answer)
            }
        })
    }

    fn questions(self, options: Options) -> Options {
        options.ask_user(move |questions, context| {
            let callbacks = self.clone();
            async move {
                let id = context.request_id.as_str().to_owned();
                callbacks.behave("question", &id).await?;
                let declines = callbacks.with_rng(|rng| rng.chance(20));
                // Answers are sent as an approval of the tool that asks the questions.
                callbacks.record_outcome(
                    &id,
                    if declines { CallbackOutcome::Other } else { CallbackOutcome::Approved },
                );
                let choose = |answers: Answers, question| answers.answer(question, "yes");
                Ok::<_, Failure>(if declines {
                    Answers::decline("not now")
                } else {
                    questions.questions.iter().fold(Answers::new(), choose)
                })
            }
        })
    }

    /// Records the decision about a tool call before it is returned.
    fn decided(&self, id: &str, approved: bool, input: &Json) {
        self.record_outcome(
            id,
            if approved { CallbackOutcome::Approved } else { CallbackOutcome::Other },
        );
        let call = input.deserialize::<Work>().map(|work| work.call);
        if let (true, Ok(call)) = (approved, call) {
            self.record.lock().approved.push(call);
        }
    }

    fn hooks(self, options: Options) -> Options {
        let (before, after, prompt, stop) = (self.clone(), self.clone(), self.clone(), self);
        options
            .on(PreToolUse, move |input, context| {
                let callbacks = before.clone();
                async move {
                    let id = context.request_id.as_str().to_owned();
                    callbacks.behave("hook", &id).await?;
                    let (approved, answer) = callbacks.with_rng(|rng| match rng.between(0, 4) {
                        0 => (true, HookResponse::allow()),
                        1 => (false, HookResponse::deny("no")),
                        2 => (false, HookResponse::ask("why not")),
                        _ => (false, HookResponse::new()),
                    });
                    callbacks.decided(&id, approved, &input.input.unwrap_or_default());
                    Ok::<_, Failure>(answer)
                }
            })
            .on(PostToolUse, move |_, context| after.clone().plain(context))
            .on(UserPromptSubmit, move |_, context| prompt.clone().prompt(context))
            .on(Stop, move |_, context| stop.clone().plain(context))
    }

    async fn prompt(
        self,
        context: claude_agent_kit::CallbackContext,
    ) -> Result<HookResponse<UserPromptSubmitInput>, Failure> {
        let blocks = self.with_rng(|rng| rng.chance(20));
        self.plain(context).await?;
        let answer = HookResponse::new();
        Ok(if blocks { HookResponse::block("drawn to block") } else { answer })
    }

    async fn plain(self, context: claude_agent_kit::CallbackContext) -> Result<(), Failure> {
        let id = context.request_id.as_str().to_owned();
        self.behave("hook", &id).await?;
        self.record_outcome(&id, CallbackOutcome::Other);
        Ok(())
    }

    fn tools(self, options: Options, limit: Duration) -> Options {
        let (work, look) = (self.clone(), self);
        let server = ToolServer::new()
            .timeout(limit)
            .tool("work", "Works", move |input: Work| work.clone().work(input))
            .tool("look", "Looks", move |input: Work| look.clone().work(input));
        options.mcp("sim", server)
    }

    async fn work(self, input: Work) -> Result<String, ToolError> {
        self.record.lock().ran.push(input.call);
        // Tool calls have no request ID of their own.
        let id = format!("call {}", input.call);
        self.behave("tool", &id).await.map_err(|error| ToolError::new(error.to_string()))?;
        Ok("done".to_owned())
    }
}

/// Records whether a callback was dropped while it was running.
struct DropProbe<'a> {
    what: &'static str,
    record: &'a Record,
    done: bool,
}

impl DropProbe<'_> {
    fn leave(mut self) {
        self.done = true;
    }
}

impl Drop for DropProbe<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.record.count(format!("callback: {} dropped", self.what));
        }
    }
}
