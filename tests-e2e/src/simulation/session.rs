//! A host that talks with a session, from several tasks.

use std::time::Duration;

use claude_agent_kit::{ErrorKind, Events, Messages, Options, Prompt, Session, Turn};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::draw::Draw;
use super::fate::{Promise, Waiting};
use super::operations;
use super::reading::Reader;
use super::{HostContext, Kept};

/// An actor that takes longer waits for something that takes longer, which is told of.
const FOR_EVER: Duration = Duration::from_secs(24 * 3_600);

/// Opens a session, lets some actors at it and lets go of it.
pub(super) async fn play(context: &HostContext, options: Options, mut draw: Draw) {
    let waiting = &context.waiting;
    let Some(session) = Box::pin(open(waiting, options, &mut draw)).await else { return };
    let events = tokio::spawn(follow(session.events(), waiting.clone()));
    let mut actors = Vec::new();
    if draw.chance(50) {
        let reader = Reader::new(session.messages(), true, waiting);
        actors.push(tokio::spawn(read_all(reader, draw.branch())));
    }
    for number in 0..draw.between(1, 3) {
        let actor = Actor::new(number, &session, waiting, draw.branch());
        actors.push(tokio::spawn(actor.play()));
    }
    if draw.chance(30) {
        context.keep(Kept::Session(session.clone()));
    }
    let mut session = Some(session);
    if draw.chance(30) {
        waiting.record.count("handle dropped: session, before others");
        session = None;
    }
    for actor in actors {
        watch(actor, waiting, &mut draw).await;
    }
    if let Some(session) = session {
        end(session, waiting, &mut draw).await;
    }
    context.let_go();
    if waiting.patient("the last event", Promise::Kept, events).await.is_none_or(|end| end.is_err())
    {
        waiting.record.violation("the events did not come to their end");
    }
}

async fn open(waiting: &Waiting, options: Options, draw: &mut Draw) -> Option<Session> {
    let opened = if draw.chance(50) {
        waiting.mortal("open", Promise::Kept, draw, Box::pin(Session::open(options))).await?
    } else {
        waiting.mortal("start", Promise::Kept, draw, Box::pin(Session::start(options))).await?
    };
    if let Err(error) = &opened {
        waiting.record.count(format!("not opened: {:?}", error.kind()));
    }
    opened.ok()
}

/// Waits for the last event of a session; it does not keep the session alive.
async fn follow(mut events: Events, waiting: Waiting) {
    let mut last = None;
    while let Some(event) = events.next().await {
        waiting.record.note(format!("event {event:?}"));
        last = Some(event);
    }
    if events.next().await.is_some() {
        waiting.record.violation("an event came after the end of the events");
    }
    if !last.is_some_and(|event| event.is_final()) {
        waiting.record.violation("the events ended without a last one");
    }
}

async fn read_all(mut reader: Reader<Messages>, mut draw: Draw) {
    let items = draw.pick(&[0, 5, 30, 10_000, 10_000]);
    reader.read(items, &mut draw).await;
    // Held without being read.
    sleep(draw.moment()).await;
}

/// Waits for an actor, or ends it in the middle of what it does.
async fn watch(mut actor: JoinHandle<()>, waiting: &Waiting, draw: &mut Draw) {
    let patience = if draw.chance(20) { draw.moment() } else { FOR_EVER };
    let ended = if let Ok(ended) = timeout(patience, &mut actor).await {
        ended
    } else {
        waiting.record.count("actor ended in the middle");
        actor.abort();
        actor.await
    };
    if let Err(error) = ended
        && error.is_panic()
    {
        waiting.record.violation(format!("an actor panicked: {error}"));
    }
}

async fn end(session: Session, waiting: &Waiting, draw: &mut Draw) {
    match draw.between(0, 3) {
        0 => {
            waiting.record.count("handle dropped: session");
            drop(session);
        }
        1 => {
            drop(waiting.mortal("end_input", Promise::Kept, draw, session.end_input()).await);
            stop(&session, waiting, draw).await;
        }
        _ => {
            stop(&session, waiting, draw).await;
        }
    }
}

async fn stop(session: &Session, waiting: &Waiting, draw: &mut Draw) {
    match waiting.mortal("stop", Promise::Kept, draw, session.stop()).await {
        Some(Ok(_)) => waiting.record.count("stopped"),
        Some(Err(error)) => waiting.record.count(format!("stopped: {:?}", error.kind())),
        None => {}
    }
}

/// Somebody who uses the session.
struct Actor {
    number: usize,
    session: Session,
    waiting: Waiting,
    draw: Draw,
    turns: Vec<Reader<Turn>>,
    messages: Vec<Reader<Messages>>,
    sent: usize,
}

impl Actor {
    fn new(number: usize, session: &Session, waiting: &Waiting, draw: Draw) -> Self {
        let (turns, messages) = (Vec::new(), Vec::new());
        let (session, waiting) = (session.clone(), waiting.clone());
        Self { number, session, waiting, draw, turns, messages, sent: 0 }
    }

    async fn play(mut self) {
        for _ in 0..self.draw.between(1, 8) {
            sleep(self.draw.delay()).await;
            match self.draw.between(0, 39) {
                0..=9 => self.send().await,
                10..=18 => self.finish().await,
                19..=22 => self.read_turn().await,
                23..=29 => operations::ask(&self.session, &self.waiting, &mut self.draw).await,
                30..=32 => self.read_messages().await,
                33 => self.ready().await,
                34 | 35 => self.cancel().await,
                36 => self.let_go(),
                37 | 38 => self.events().await,
                _ => self.end().await,
            }
        }
        self.leave().await;
    }

    /// Lets go of everything, in any order, with time in between.
    async fn leave(self) {
        let Self { session, mut draw, turns, messages, .. } = self;
        let (mut session, mut turns, mut messages) = (Some(session), Some(turns), Some(messages));
        for _ in 0..6 {
            match draw.between(0, 2) {
                0 => session = None,
                1 => turns = None,
                _ => messages = None,
            }
            sleep(draw.delay()).await;
        }
        drop((session, turns, messages));
    }

    async fn send(&mut self) {
        for _ in 0..self.draw.pick(&[1, 1, 1, 3]) {
            // Sometimes one that was sent already.
            let again = self.sent > 0 && self.draw.chance(3);
            self.sent += usize::from(!again);
            let id = format!("{:08x}-0000-4000-8000-{:012x}", self.number, self.sent);
            if again {
                self.waiting.record.lock().repeated.insert(id.clone());
            }
            let prompt = Prompt::from(self.prompt());
            let sending = self.session.send(prompt.with_id(id.as_str()));
            let promise = Promise::IfHealthy;
            match self.waiting.mortal("send", promise, &mut self.draw, sending).await {
                Some(Ok(turn)) => {
                    self.waiting.record.count("sent");
                    self.waiting.record.lock().sent.push(id);
                    self.turns.push(Reader::new(turn, false, &self.waiting));
                }
                Some(Err(error)) => {
                    self.waiting.record.count(format!("not sent: {:?}", error.kind()));
                }
                None => {}
            }
        }
    }

    /// Something for the model, or a command that the CLI answers itself.
    fn prompt(&mut self) -> String {
        match self.draw.between(0, 9) {
            0 => "/cost".to_owned(),
            1 => "/compact".to_owned(),
            2 => self.draw.pick(&["/clear", "/no-such-command"]).to_owned(),
            _ => "go on ".repeat(self.draw.pick(&[1, 1, 1, 400])),
        }
    }

    fn take_turn(&mut self) -> Option<Reader<Turn>> {
        let last = self.turns.len().checked_sub(1)?;
        Some(self.turns.remove(self.draw.between(0, last)))
    }

    async fn finish(&mut self) {
        let Some(mut reader) = self.take_turn() else { return };
        let Some(turn) = reader.stream.take() else { return };
        let id = turn.message_id().as_str().to_owned();
        let finishing = turn.finish();
        match self.waiting.mortal("finish", Promise::IfHealthy, &mut self.draw, finishing).await {
            Some(Ok(outcome)) => {
                self.waiting.record.count("turn finished");
                if outcome.is_confirmed {
                    self.waiting.record.lock().finished.push(id);
                }
            }
            Some(Err(error)) if error.kind() == ErrorKind::UndecodableAnswer => {
                self.waiting.record.violation("the result of a turn is said to be unreadable");
            }
            Some(Err(error)) => {
                self.waiting.record.count(format!("turn failed: {:?}", error.kind()));
            }
            None => {}
        }
    }

    async fn read_turn(&mut self) {
        let Some(mut reader) = self.take_turn() else { return };
        let items = self.draw.pick(&[1, 5, 10_000]);
        reader.read(items, &mut self.draw).await;
        if self.draw.chance(50) {
            self.turns.push(reader);
        }
    }

    async fn read_messages(&mut self) {
        let mut reader = match self.messages.pop() {
            Some(reader) => reader,
            None => Reader::new(self.session.messages(), false, &self.waiting),
        };
        let items = self.draw.pick(&[0, 1, 5, 10_000]);
        reader.read(items, &mut self.draw).await;
        self.messages.push(reader);
    }

    async fn ready(&mut self) {
        let ready = self.session.ready();
        drop(self.waiting.mortal("ready", Promise::Kept, &mut self.draw, ready).await);
    }

    async fn cancel(&mut self) {
        let Some(reader) = self.take_turn() else { return };
        if let Some(turn) = &reader.stream {
            let cancelling = turn.cancel();
            let cancelled =
                self.waiting.mortal("cancel", Promise::Kept, &mut self.draw, cancelling).await;
            if let Some(Ok(true)) = cancelled {
                self.waiting.record.count("turn cancelled");
            }
        }
        self.turns.push(reader);
    }

    fn let_go(&mut self) {
        drop(self.take_turn());
        self.messages.pop();
    }

    async fn events(&mut self) {
        let mut events = self.session.events();
        for _ in 0..self.draw.between(1, 3) {
            // The next event may be hours away.
            let next = timeout(Duration::from_secs(5), events.next());
            drop(self.waiting.mortal("event", Promise::Kept, &mut self.draw, next).await);
        }
    }

    /// The end, while others still work.
    async fn end(&mut self) {
        if self.draw.chance(60) {
            stop(&self.session, &self.waiting, &mut self.draw).await;
        } else {
            let ending = self.session.end_input();
            drop(self.waiting.mortal("end_input", Promise::Kept, &mut self.draw, ending).await);
        }
    }
}
