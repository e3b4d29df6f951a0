//! Which reply a request gets.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ApiRequest, Reply};

/// What the mock answers: rules, tried against every request, and a fallback.
///
/// The rule whose needle stands in the latest prompt of the conversation answers; if one prompt
/// holds the needles of several rules, the rule that was added first does. Needles are looked for
/// in every text of a user entry (prompts, reminders of the CLI) and in messages that joined a
/// running turn; not in tool results.
///
/// A prompt that matches no rule is answered by [`otherwise`](Self::otherwise). In a script without
/// it the rule of the prompt before stays chosen. What the CLI says to the model on its own counts
/// as a prompt too: the feedback of a `Stop` hook, the end of a background task, the demand for a
/// structured output.
///
/// A request for which the script has no reply is answered with status 400, which the CLI reports
/// at once, so that a gap in a script shows.
#[must_use]
#[derive(Default)]
pub struct Script {
    rules: Vec<Rule>,
    fallback: Fallback,
}

impl Script {
    /// A script without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// A script that asks `respond` for every reply.
    ///
    /// Rules that are added to it come first; `respond` then sees the requests that match none.
    pub fn respond_with(respond: impl Fn(&ApiRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self { rules: Vec::new(), fallback: Fallback::Closure(Box::new(respond)) }
    }

    /// Answers prompts that contain `needle`.
    ///
    /// The first reply answers the prompt itself. Every assistant message that follows the prompt
    /// in the request moves on by one, so rounds of tool calls walk through the replies, and a
    /// retried request gets the same reply again. The last reply repeats.
    pub fn when(self, needle: impl Into<String>, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.with_rule(needle.into(), Progress::Conversation, replies)
    }

    /// Answers prompts that contain `needle`, one reply per request.
    ///
    /// Unlike with [`when`](Self::when) the step is the number of requests that the rule has
    /// answered, so a retry moves on: first an error, then an answer. The last reply repeats.
    pub fn when_attempts(
        self,
        needle: impl Into<String>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        self.with_rule(needle.into(), Progress::Attempts(AtomicUsize::new(0)), replies)
    }

    /// Answers prompts that match no rule; steps are counted from the last prompt as in
    /// [`when`](Self::when).
    pub fn otherwise(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.fallback = Fallback::Replies(replies.into_iter().collect());
        self
    }

    pub(crate) fn answer(&self, request: &ApiRequest) -> Reply {
        let mut chosen = None;
        for rule in &self.rules {
            let Some(position) = request.last_position_of(&rule.needle) else { continue };
            // Strictly later: on a tie the rule that was added first stays.
            if chosen.is_none_or(|(latest, _)| position > latest) {
                chosen = Some((position, rule));
            }
        }
        let has_fallback = !matches!(self.fallback, Fallback::Missing);
        match chosen.filter(|(position, _)| !has_fallback || request.is_latest(*position)) {
            Some((position, rule)) => rule.answer(request.assistant_turns_after(position)),
            None => self.fallback.answer(request),
        }
    }

    fn with_rule(
        mut self,
        needle: String,
        progress: Progress,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        self.rules.push(Rule { needle, progress, replies: replies.into_iter().collect() });
        self
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("rules", &self.rules)
            .field("fallback", &self.fallback)
            .finish()
    }
}

#[derive(Debug)]
struct Rule {
    needle: String,
    progress: Progress,
    replies: Vec<Reply>,
}

impl Rule {
    fn answer(&self, turns: usize) -> Reply {
        let step = match &self.progress {
            Progress::Conversation => turns,
            Progress::Attempts(answered) => answered.fetch_add(1, Ordering::Relaxed),
        };
        reply_at(&self.replies, step)
    }
}

#[derive(Debug)]
enum Progress {
    Conversation,
    Attempts(AtomicUsize),
}

#[derive(Default)]
enum Fallback {
    #[default]
    Missing,
    Replies(Vec<Reply>),
    Closure(Box<dyn Fn(&ApiRequest) -> Reply + Send + Sync>),
}

impl Fallback {
    fn answer(&self, request: &ApiRequest) -> Reply {
        match self {
            Self::Missing => gap("no rule of the script matches the request"),
            Self::Replies(replies) => {
                reply_at(replies, request.assistant_turns_after_last_prompt())
            }
            // A panic would close the connection, which the CLI takes for a network fault and
            // retries for minutes. The panic itself has been reported by the panic hook.
            Self::Closure(respond) => catch_unwind(AssertUnwindSafe(|| respond(request)))
                .unwrap_or_else(|_| gap("the closure of the script panicked")),
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

fn reply_at(replies: &[Reply], step: usize) -> Reply {
    match replies.get(step).or(replies.last()) {
        Some(reply) => reply.clone(),
        None => gap("the matching rule of the script has no replies"),
    }
}

/// The answer where the script has none: a status that the CLI does not wait on to retry.
fn gap(reason: &str) -> Reply {
    Reply::error(400, "invalid_request_error", &format!("mock: {reason}"))
}
