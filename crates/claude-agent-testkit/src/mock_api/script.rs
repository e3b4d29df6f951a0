//! Selects the reply to a request.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::answered::AnsweredPrompts;
use super::request::Position;
use super::{ApiRequest, Reply};

/// Decides what the model answers: a list of rules, and a fallback.
///
/// A rule answers its own prompt: the latest prompt of the conversation, if that contains the text of
/// the rule. If several rules match one prompt, the rule that was added first answers. A prompt that
/// matches no rule is answered by [`otherwise`](Self::otherwise), never by the rule of an earlier
/// prompt, unless that rule was added with [`since`](Self::since).
///
/// Texts are searched for in prompts, in reminders of the CLI and in messages that joined a running
/// turn; not in tool results. Texts that the CLI sends to the model on its own are prompts too: the
/// feedback of a `Stop` hook, the end of a background task, the request for a structured output.
///
/// A request for which the script has no reply is answered with status 400 and the prompt, which the
/// CLI reports immediately, so that a gap in a script shows.
///
/// # Sharing
///
/// Clones share their state: a clone that is used by another simulated CLI or mock API continues
/// the counts of [`when_attempts`](Self::when_attempts). So a test of a retry uses one script for
/// both runs:
///
/// ```
/// use claude_agent_testkit::mock_api::{Reply, Script};
///
/// let script = Script::new().when_attempts("Summarize", [
///     Reply::error(529, "overloaded_error", "Overloaded").no_retry(),
///     Reply::text("Done."),
/// ]);
/// let first_run = script.clone();
/// let second_run = script;
/// # drop((first_run, second_run));
/// ```
#[must_use]
#[derive(Clone, Default)]
pub struct Script {
    rules: Vec<ScriptRule>,
    fallback: Fallback,
    answered: Arc<Mutex<AnsweredPrompts>>,
}

impl Script {
    /// Creates a script without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a script that calls `respond` for every reply.
    ///
    /// Rules that are added to the script take precedence; `respond` then gets the requests that
    /// match none.
    pub fn respond_with(respond: impl Fn(&ApiRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self { fallback: Fallback::Closure(Arc::new(respond)), ..Self::default() }
    }

    /// Answers a prompt that contains `needle`.
    ///
    /// The first reply answers the prompt itself. Every assistant message that follows the prompt
    /// in the request moves on by one, so rounds of tool calls walk through the replies, and a
    /// retried request gets the same reply again. The last reply repeats.
    pub fn when(self, needle: impl Into<String>, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.with_rule(needle, Progress::Conversation, Reach::OwnPrompt, replies)
    }

    /// Answers a prompt that contains `needle`, one reply per request.
    ///
    /// Unlike with [`when`](Self::when) the step is the number of requests that the rule has
    /// answered, in all clones of the script, so a retry moves on: first an error, then an answer.
    /// The last reply repeats.
    pub fn when_attempts(
        self,
        needle: impl Into<String>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        self.with_rule(needle, Progress::Attempts(Arc::default()), Reach::OwnPrompt, replies)
    }

    /// Answers a prompt that contains `needle`, and all later prompts of the conversation that match
    /// no rule.
    ///
    /// Steps are counted from the prompt that contains `needle`, so every later prompt moves on by
    /// one too. The last reply repeats.
    pub fn since(
        self,
        needle: impl Into<String>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        self.with_rule(needle, Progress::Conversation, Reach::LaterPrompts, replies)
    }

    /// Answers prompts that match no rule; steps are counted from the last prompt as in
    /// [`when`](Self::when). Replaces earlier replies for such prompts.
    pub fn otherwise(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.fallback = Fallback::Replies(replies.into_iter().collect());
        self
    }

    pub(crate) fn reply_to(&self, request: &ApiRequest) -> Reply {
        let current = lock(&self.answered).start_of_prompt(request);
        let own = self.latest_rule(request, |_, position| position >= current);
        let earlier = || self.latest_rule(request, |rule, _| rule.reach == Reach::LaterPrompts);
        match own.or_else(earlier) {
            Some((position, rule)) => rule.next_reply(request.assistant_turns_after(position)),
            None => self.fallback.reply_to(request),
        }
    }

    /// Returns the rule whose text is the latest one in the conversation, of those that `counts`
    /// accepts, and its position.
    fn latest_rule(
        &self,
        request: &ApiRequest,
        counts: impl Fn(&ScriptRule, Position) -> bool,
    ) -> Option<(Position, &ScriptRule)> {
        let mut chosen = None;
        for rule in &self.rules {
            let Some(position) = request.last_position_of(&rule.needle) else { continue };
            // Strictly later: on a tie the rule that was added first stays.
            if counts(rule, position) && chosen.is_none_or(|(latest, _)| position > latest) {
                chosen = Some((position, rule));
            }
        }
        chosen
    }

    fn with_rule(
        mut self,
        needle: impl Into<String>,
        progress: Progress,
        reach: Reach,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        let (needle, replies) = (needle.into(), replies.into_iter().collect());
        self.rules.push(ScriptRule { needle, progress, reach, replies });
        self
    }
}

/// Locks state that no panic can leave half-changed.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("rules", &self.rules)
            .field("fallback", &self.fallback)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct ScriptRule {
    needle: String,
    progress: Progress,
    reach: Reach,
    replies: Arc<[Reply]>,
}

impl ScriptRule {
    fn next_reply(&self, turns: usize) -> Reply {
        let step = match &self.progress {
            Progress::Conversation => turns,
            Progress::Attempts(answered) => answered.fetch_add(1, Ordering::Relaxed),
        };
        reply_at(&self.replies, step)
    }
}

/// What moves a rule on to its next reply.
#[derive(Debug, Clone)]
enum Progress {
    Conversation,
    Attempts(Arc<AtomicUsize>),
}

/// Which prompts a rule answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    OwnPrompt,
    LaterPrompts,
}

#[derive(Clone, Default)]
enum Fallback {
    #[default]
    Missing,
    Replies(Arc<[Reply]>),
    Closure(Arc<dyn Fn(&ApiRequest) -> Reply + Send + Sync>),
}

impl Fallback {
    fn reply_to(&self, request: &ApiRequest) -> Reply {
        match self {
            Self::Missing => gap_reply(&no_rule_for(request)),
            Self::Replies(replies) => {
                reply_at(replies, request.assistant_turns_after_last_prompt())
            }
            // A panic would close the connection, which the CLI takes for a network fault and
            // retries for minutes. The panic itself has been reported by the panic hook.
            Self::Closure(respond) => catch_unwind(AssertUnwindSafe(|| respond(request)))
                .unwrap_or_else(|_| gap_reply("the closure of the script panicked")),
        }
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("Missing"),
            Self::Replies(replies) => f.debug_tuple("Replies").field(replies).finish(),
            Self::Closure(_) => f.write_str("Closure"),
        }
    }
}

fn no_rule_for(request: &ApiRequest) -> String {
    const SHOWN: usize = 200;
    let prompt: String = request.last_prompt().unwrap_or_default().chars().take(SHOWN).collect();
    format!("no rule of the script matches the prompt {prompt:?}; help: add `when` or `otherwise`")
}

fn reply_at(replies: &[Reply], step: usize) -> Reply {
    match replies.get(step).or(replies.last()) {
        Some(reply) => reply.clone(),
        None => gap_reply("the matching rule of the script has no replies"),
    }
}

/// Returns the reply for a gap in the script: an error that the CLI does not retry.
fn gap_reply(reason: &str) -> Reply {
    Reply::error(400, "invalid_request_error", &format!("mock: {reason}"))
}
