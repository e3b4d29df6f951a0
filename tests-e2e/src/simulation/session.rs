//! A host that uses a session from several tasks.

use std::time::Duration;

use claude_agent_kit::{ErrorKind, Events, Messages, Options, Prompt, Session, Turn};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::operations;
use super::reading::Reader;
use super::rng::Rng;
use super::watcher::{Completion, Watcher};
use super::{HeldHandle, HostContext};

/// Longer than an actor takes; hanging futures are reported by the watcher.
const ACTOR_LIMIT: Duration = Duration::from_secs(24 * 3_600);

/// Opens a session, runs some actors on it, and drops it.
pub(super) async fn run(context: &HostContext, options: Options, mut rng: Rng) {
    let watcher = &context.watcher;
    let Some(session) = Box::pin(open(watcher, options, &mut rng)).await else { return };
    let events = tokio::spawn(follow(session.events(), watcher.clone()));
    let mut actors = Vec::new();
    if rng.chance(50) {
        let reader = Reader::new(session.messages(), true, watcher);
        actors.push(tokio::spawn(read_all(reader, rng.branch())));
    }
    for number in 0..rng.between(1, 3) {
        let actor = Actor::new(number, &session, watcher, rng.branch());
        actors.push(tokio::spawn(actor.run()));
    }
    if rng.chance(30) {
        context.hold(HeldHandle::Session(session.clone()));
    }
    let mut session = Some(session);
    if rng.chance(30) {
        watcher.record.count("handle dropped: session, before others");
        session = None;
    }
    for actor in actors {
        watch(actor, watcher, &mut rng).await;
    }
    if let Some(session) = session {
        end(session, watcher, &mut rng).await;
    }
    context.drop_held();
    if watcher
        .run("the last event", Completion::Guaranteed, events)
        .await
        .is_none_or(|end| end.is_err())
    {
        watcher.record.violation("the event stream did not end");
    }
}

async fn open(watcher: &Watcher, options: Options, rng: &mut Rng) -> Option<Session> {
    let opened = if rng.chance(50) {
        watcher
            .run_or_drop("open", Completion::Guaranteed, rng, Box::pin(Session::open(options)))
            .await?
    } else {
        watcher
            .run_or_drop("start", Completion::Guaranteed, rng, Box::pin(Session::start(options)))
            .await?
    };
    if let Err(error) = &opened {
        watcher.record.count(format!("not opened: {:?}", error.kind()));
    }
    opened.ok()
}

/// Waits for the last event of a session, without keeping the session alive.
async fn follow(mut events: Events, watcher: Watcher) {
    let mut last = None;
    while let Some(event) = events.next().await {
        watcher.record.note(format!("event {event:?}"));
        last = Some(event);
    }
    if events.next().await.is_some() {
        watcher.record.violation("an event arrived after the end of the event stream");
    }
    if !last.is_some_and(|event| event.is_final()) {
        watcher.record.violation("the event stream ended without a final event");
    }
}

async fn read_all(mut reader: Reader<Messages>, mut rng: Rng) {
    let items = rng.pick(&[0, 5, 30, 10_000, 10_000]);
    reader.read(items, &mut rng).await;
    // Keeps the stream without reading it.
    sleep(rng.moment()).await;
}

/// Waits for an actor, or aborts it.
async fn watch(mut actor: JoinHandle<()>, watcher: &Watcher, rng: &mut Rng) {
    let limit = if rng.chance(20) { rng.moment() } else { ACTOR_LIMIT };
    let ended = if let Ok(ended) = timeout(limit, &mut actor).await {
        ended
    } else {
        watcher.record.count("actor aborted");
        actor.abort();
        actor.await
    };
    if let Err(error) = ended
        && error.is_panic()
    {
        watcher.record.violation(format!("an actor panicked: {error}"));
    }
}

async fn end(session: Session, watcher: &Watcher, rng: &mut Rng) {
    match rng.between(0, 3) {
        0 => {
            watcher.record.count("handle dropped: session");
            drop(session);
        }
        1 => {
            drop(
                watcher
                    .run_or_drop("end_input", Completion::Guaranteed, rng, session.end_input())
                    .await,
            );
            stop(&session, watcher, rng).await;
        }
        _ => {
            stop(&session, watcher, rng).await;
        }
    }
}

async fn stop(session: &Session, watcher: &Watcher, rng: &mut Rng) {
    match watcher.run_or_drop("stop", Completion::Guaranteed, rng, session.stop()).await {
        Some(Ok(_)) => watcher.record.count("stopped"),
        Some(Err(error)) => watcher.record.count(format!("stopped: {:?}", error.kind())),
        None => {}
    }
}

/// A task that uses the session.
struct Actor {
    number: usize,
    session: Session,
    watcher: Watcher,
    rng: Rng,
    turns: Vec<Reader<Turn>>,
    messages: Vec<Reader<Messages>>,
    sent: usize,
}

impl Actor {
    fn new(number: usize, session: &Session, watcher: &Watcher, rng: Rng) -> Self {
        let (turns, messages) = (Vec::new(), Vec::new());
        let (session, watcher) = (session.clone(), watcher.clone());
        Self { number, session, watcher, rng, turns, messages, sent: 0 }
    }

    async fn run(mut self) {
        for _ in 0..self.rng.between(1, 8) {
            sleep(self.rng.delay()).await;
            match self.rng.between(0, 39) {
                0..=9 => self.send().await,
                10..=18 => self.finish().await,
                19..=22 => self.read_turn().await,
                23..=29 => {
                    operations::send_random(&self.session, &self.watcher, &mut self.rng).await;
                }
                30..=32 => self.read_messages().await,
                33 => self.ready().await,
                34 | 35 => self.cancel().await,
                36 => self.drop_held(),
                37 | 38 => self.events().await,
                _ => self.end().await,
            }
        }
        self.leave().await;
    }

    /// Drops all handles in random order, with delays in between.
    async fn leave(self) {
        let Self { session, mut rng, turns, messages, .. } = self;
        let (mut session, mut turns, mut messages) = (Some(session), Some(turns), Some(messages));
        for _ in 0..6 {
            match rng.between(0, 2) {
                0 => session = None,
                1 => turns = None,
                _ => messages = None,
            }
            sleep(rng.delay()).await;
        }
        drop((session, turns, messages));
    }

    async fn send(&mut self) {
        for _ in 0..self.rng.pick(&[1, 1, 1, 3]) {
            // Sometimes sends the same ID again.
            let again = self.sent > 0 && self.rng.chance(3);
            self.sent += usize::from(!again);
            let id = format!("{:08x}-0000-4000-8000-{:012x}", self.number, self.sent);
            if again {
                self.watcher.record.lock().repeated.insert(id.clone());
            }
            let prompt = Prompt::from(self.prompt());
            let sending = self.session.send(prompt.with_id(id.as_str()));
            let completion = Completion::IfHealthy;
            match self.watcher.run_or_drop("send", completion, &mut self.rng, sending).await {
                Some(Ok(turn)) => {
                    self.watcher.record.count("sent");
                    self.watcher.record.lock().sent.push(id);
                    self.turns.push(Reader::new(turn, false, &self.watcher));
                }
                Some(Err(error)) => {
                    self.watcher.record.count(format!("not sent: {:?}", error.kind()));
                }
                None => {}
            }
        }
    }

    /// Returns a prompt for the model, or a command that the CLI handles itself.
    fn prompt(&mut self) -> String {
        match self.rng.between(0, 9) {
            0 => "/cost".to_owned(),
            1 => "/compact".to_owned(),
            2 => self.rng.pick(&["/clear", "/no-such-command"]).to_owned(),
            _ => "go on ".repeat(self.rng.pick(&[1, 1, 1, 400])),
        }
    }

    fn take_turn(&mut self) -> Option<Reader<Turn>> {
        let last = self.turns.len().checked_sub(1)?;
        Some(self.turns.remove(self.rng.between(0, last)))
    }

    async fn finish(&mut self) {
        let Some(mut reader) = self.take_turn() else { return };
        let Some(turn) = reader.stream.take() else { return };
        let id = turn.message_id().as_str().to_owned();
        let finishing = turn.finish();
        match self
            .watcher
            .run_or_drop("finish", Completion::IfHealthy, &mut self.rng, finishing)
            .await
        {
            Some(Ok(outcome)) => {
                self.watcher.record.count("turn finished");
                if outcome.is_confirmed {
                    self.watcher.record.lock().finished.push(id);
                }
            }
            Some(Err(error)) if error.kind() == ErrorKind::UndecodableResponse => {
                self.watcher.record.violation("the result of a turn could not be decoded");
            }
            Some(Err(error)) => {
                self.watcher.record.count(format!("turn failed: {:?}", error.kind()));
            }
            None => {}
        }
    }

    async fn read_turn(&mut self) {
        let Some(mut reader) = self.take_turn() else { return };
        let items = self.rng.pick(&[1, 5, 10_000]);
        reader.read(items, &mut self.rng).await;
        if self.rng.chance(50) {
            self.turns.push(reader);
        }
    }

    async fn read_messages(&mut self) {
        let mut reader = match self.messages.pop() {
            Some(reader) => reader,
            None => Reader::new(self.session.messages(), false, &self.watcher),
        };
        let items = self.rng.pick(&[0, 1, 5, 10_000]);
        reader.read(items, &mut self.rng).await;
        self.messages.push(reader);
    }

    async fn ready(&mut self) {
        let ready = self.session.ready();
        drop(self.watcher.run_or_drop("ready", Completion::Guaranteed, &mut self.rng, ready).await);
    }

    async fn cancel(&mut self) {
        let Some(reader) = self.take_turn() else { return };
        if let Some(turn) = &reader.stream {
            let cancelling = turn.cancel();
            let cancelled = self
                .watcher
                .run_or_drop("cancel", Completion::Guaranteed, &mut self.rng, cancelling)
                .await;
            if let Some(Ok(true)) = cancelled {
                self.watcher.record.count("turn cancelled");
            }
        }
        self.turns.push(reader);
    }

    fn drop_held(&mut self) {
        drop(self.take_turn());
        self.messages.pop();
    }

    async fn events(&mut self) {
        let mut events = self.session.events();
        for _ in 0..self.rng.between(1, 3) {
            // The next event may be hours away.
            let next = timeout(Duration::from_secs(5), events.next());
            drop(
                self.watcher
                    .run_or_drop("event", Completion::Guaranteed, &mut self.rng, next)
                    .await,
            );
        }
    }

    /// Ends the session while other actors still use it.
    async fn end(&mut self) {
        if self.rng.chance(60) {
            stop(&self.session, &self.watcher, &mut self.rng).await;
        } else {
            let ending = self.session.end_input();
            drop(
                self.watcher
                    .run_or_drop("end_input", Completion::Guaranteed, &mut self.rng, ending)
                    .await,
            );
        }
    }
}
