//! Requests to the host, and its answers.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::engine::Engine;
use super::json::{Object, text};
use super::state::{Answer, Cancel, Pending, PendingKind};

/// A request that was sent.
pub(super) struct Asked {
    pub(super) id: String,
    answer: oneshot::Receiver<Answer>,
}

/// How the wait for an answer ended.
#[derive(Debug)]
pub(super) enum Heard {
    Answer(Answer),
    TimedOut,
    Cancelled,
}

impl Engine {
    /// Sends a request; `request` holds its fields, `subtype` first.
    pub(super) async fn ask(&self, subtype: &str, request: Object, kind: PendingKind) -> Asked {
        let id = self.ids.uuid();
        let (sender, answer) = oneshot::channel();
        let request = request.done();
        let line =
            Object::typed("control_request").str("request_id", &id).raw("request", &request).done();
        let pending = Pending { id: id.clone(), kind, answer: sender };
        let asks = {
            let mut state = self.state();
            // Nobody is left to answer what is asked after the end of stdin, so it is not.
            if state.stdin_closed {
                drop(pending.answer.send(Answer::Gone));
                false
            } else {
                state.pending.push(pending);
                true
            }
        };
        if asks {
            self.write(&format!("control_request/{subtype}"), &line).await;
        }
        Asked { id, answer }
    }

    /// Waits for the answer to a request. After the limit it is still open.
    pub(super) async fn hear(
        &self,
        asked: &mut Asked,
        cancel: Option<&Cancel>,
        limit: Option<Duration>,
    ) -> Heard {
        let answer = async { (&mut asked.answer).await.unwrap_or(Answer::Gone) };
        let answer = async {
            match limit {
                Some(limit) => timeout(limit, answer).await.map_or(Heard::TimedOut, Heard::Answer),
                None => Heard::Answer(answer.await),
            }
        };
        let heard = tokio::select! {
            biased;
            () = cancelled(cancel) => Heard::Cancelled,
            heard = answer => heard,
        };
        if matches!(heard, Heard::Cancelled) {
            self.forget(&asked.id);
        }
        heard
    }

    /// Tells the host that a request is withdrawn.
    pub(super) async fn withdraw(&self, id: &str) {
        self.forget(id);
        let line = Object::typed("control_cancel_request").str("request_id", id).done();
        self.write("control_cancel_request", &line).await;
    }

    fn forget(&self, id: &str) {
        self.state().pending.retain(|pending| pending.id != id);
    }

    fn answered(&self, id: &str, answer: Answer) {
        let mut state = self.state();
        let Some(at) = state.pending.iter().position(|pending| pending.id == id) else { return };
        let pending = state.pending.remove(at);
        // Whoever asked may have gone on without it.
        drop(pending.answer.send(answer));
    }

    /// Hands an answer of the host to whoever waits for it; one that nobody waits for is dropped.
    pub(super) fn take_answer(&self, response: &Value) {
        let answer = match text(&response["subtype"]) {
            "success" => Answer::Success(response["response"].clone()),
            _ => Answer::Error(text(&response["error"]).to_owned()),
        };
        self.answered(text(&response["request_id"]), answer);
    }

    /// After the end of stdin no answer comes any more.
    pub(super) fn close_stdin(&self) {
        let pending = {
            let mut state = self.state();
            state.stdin_closed = true;
            std::mem::take(&mut state.pending)
        };
        for pending in pending {
            drop(pending.answer.send(Answer::Gone));
        }
    }

    /// Withdraws everything that the running turn has asked.
    pub(super) async fn withdraw_turn(&self) {
        let open: Vec<(String, PendingKind)> = {
            let state = self.state();
            let open = state.pending.iter().filter(|pending| pending.kind != PendingKind::Session);
            open.map(|pending| (pending.id.clone(), pending.kind.clone())).collect()
        };
        for (id, kind) in open {
            match kind {
                PendingKind::McpCall { server, rpc_id } => {
                    self.forget_quietly(&id);
                    self.cancel_mcp_call(&server, rpc_id).await;
                }
                // The waiter ends with the turn; its place is kept so that it notices.
                _ => self.tell_withdrawn(&id).await,
            }
        }
    }

    async fn tell_withdrawn(&self, id: &str) {
        let line = Object::typed("control_cancel_request").str("request_id", id).done();
        self.write("control_cancel_request", &line).await;
    }

    /// An answer that still comes is not waited for; the waiter itself ends with the turn.
    fn forget_quietly(&self, id: &str) {
        let mut state = self.state();
        if let Some(pending) = state.pending.iter_mut().find(|pending| pending.id == id) {
            pending.kind = PendingKind::Session;
        }
    }
}

async fn cancelled(cancel: Option<&Cancel>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}
