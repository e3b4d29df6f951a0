//! Callbacks that answer, late or never, fail, and panic; and a record of what they said.

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

use super::draw::Draw;
use super::record::{Answer, Record};

/// What a tool is called with.
#[derive(Debug, Deserialize, JsonSchema)]
struct Work {
    /// The number of the call.
    call: u64,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a callback does. The first drawn number decides.
#[derive(Clone, Copy, Debug)]
enum Manner {
    AtOnce,
    Late(Duration),
    Never,
    Fails,
    Panics,
}

/// The callbacks of a run: each call draws.
#[derive(Clone)]
struct Callbacks {
    draw: Arc<Mutex<Draw>>,
    record: Record,
}

/// Adds callbacks, drawn like everything else. Says whether all of them have limits.
pub(super) fn add(
    options: Options,
    mut draw: Draw,
    record: &Record,
    healthy: bool,
) -> (Options, bool) {
    let limit = |draw: &mut Draw| Duration::from_millis(draw.between(500, 20_000) as u64);
    let mut options = options
        .timeouts(
            Timeouts::new()
                .hook(limit(&mut draw))
                .cancel_grace(draw.pick(&[Duration::ZERO, Duration::from_secs(1)])),
        )
        .hooks_fail_closed(draw.chance(50));
    let limited = healthy || draw.chance(80);
    if limited {
        options = options.timeouts(Timeouts::new().permission(limit(&mut draw)));
    }
    if draw.chance(10) {
        record.count("options: few places for callbacks");
        options = options
            .limits(Limits::new().running_callbacks(1).waiting_callbacks(draw.between(0, 2)));
    }
    if draw.chance(10) {
        options = options.limits(Limits::new().running_mcp_messages(1));
    }
    let (hooks, permission, questions) = (draw.chance(40), draw.chance(75), draw.chance(30));
    let limit = limit(&mut draw);
    let callbacks = Callbacks { draw: Arc::new(Mutex::new(draw)), record: record.clone() };
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
    fn with_draw<T>(&self, decide: impl FnOnce(&mut Draw) -> T) -> T {
        decide(&mut self.draw.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn manner(&self, what: &str) -> Manner {
        let manner = self.with_draw(|draw| match draw.between(0, 19) {
            0..=10 => Manner::AtOnce,
            11..=15 => Manner::Late(draw.moment()),
            16 => Manner::Never,
            17 => Manner::Fails,
            _ => Manner::Panics,
        });
        let name = match manner {
            Manner::AtOnce => "at once",
            Manner::Late(_) => "late",
            Manner::Never => "never",
            Manner::Fails => "fails",
            Manner::Panics => "panics",
        };
        self.record.count(format!("callback: {what} {name}"));
        manner
    }

    fn told(&self, id: &str, answer: Answer) {
        let now = self.record.now();
        self.record.lock().answers.insert(id.to_owned(), (now, answer));
    }

    /// Waits as drawn; an error if the callback is to fail. What is dropped meanwhile is noted.
    async fn behave(&self, what: &'static str, id: &str) -> Result<(), Failure> {
        let manner = self.manner(what);
        self.told(id, Answer::Running);
        let here = Here { what, record: &self.record, done: false };
        match manner {
            Manner::AtOnce => {}
            Manner::Late(delay) => sleep(delay).await,
            Manner::Never => pending().await,
            Manner::Fails => {
                self.told(id, Answer::Failed);
                here.leave();
                return Err("drawn to fail".into());
            }
            Manner::Panics => {
                self.told(id, Answer::Failed);
                here.leave();
                // Without the report of a panic: thousands of them are wanted.
                resume_unwind(Box::new("drawn to panic"))
            }
        }
        here.leave();
        Ok(())
    }

    fn permission(self, options: Options) -> Options {
        options.can_use_tool(move |request, context| {
            let callbacks = self.clone();
            async move {
                let id = context.request_id.as_str().to_owned();
                callbacks.behave("permission", &id).await?;
                let (approved, answer) = callbacks.with_draw(|draw| match draw.between(0, 9) {
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
                let declines = callbacks.with_draw(|draw| draw.chance(20));
                // Answers travel as an approval of the tool with which the model asks.
                callbacks.told(&id, if declines { Answer::Other } else { Answer::Approved });
                let choose = |answers: Answers, question| answers.choose(question, "yes");
                Ok::<_, Failure>(if declines {
                    Answers::decline("not now")
                } else {
                    questions.questions.iter().fold(Answers::new(), choose)
                })
            }
        })
    }

    /// Notes what was decided about a tool call, before anybody hears of it.
    fn decided(&self, id: &str, approved: bool, input: &Json) {
        self.told(id, if approved { Answer::Approved } else { Answer::Other });
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
                    let (approved, answer) = callbacks.with_draw(|draw| match draw.between(0, 4) {
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
        let blocks = self.with_draw(|draw| draw.chance(20));
        self.plain(context).await?;
        let answer = HookResponse::new();
        Ok(if blocks { HookResponse::block("drawn to block") } else { answer })
    }

    async fn plain(self, context: claude_agent_kit::CallbackContext) -> Result<(), Failure> {
        let id = context.request_id.as_str().to_owned();
        self.behave("hook", &id).await?;
        self.told(&id, Answer::Other);
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
        // Tools are no requests of their own: nothing is noted by an id.
        let id = format!("call {}", input.call);
        self.behave("tool", &id).await.map_err(|error| ToolError::new(error.to_string()))?;
        Ok("done".to_owned())
    }
}

/// Somebody inside a callback.
struct Here<'a> {
    what: &'static str,
    record: &'a Record,
    done: bool,
}

impl Here<'_> {
    fn leave(mut self) {
        self.done = true;
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.record.count(format!("callback: {} dropped", self.what));
        }
    }
}
