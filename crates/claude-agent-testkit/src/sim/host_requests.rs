//! Control requests to the host, and its responses.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::engine::Engine;
use super::json::{Object, text};
use super::state::{CancelToken, HostResponse, PendingKind, PendingRequest};

/// A control request that was sent.
pub(super) struct HostRequest {
    pub(super) id: String,
    response: oneshot::Receiver<HostResponse>,
}

/// How the wait for a response ended.
#[derive(Debug)]
pub(super) enum ResponseOutcome {
    Response(HostResponse),
    TimedOut,
    Cancelled,
}

impl Engine {
    /// Sends a control request; `request` contains its fields, starting with `subtype`.
    pub(super) async fn send_request(
        &self,
        subtype: &str,
        request: Object,
        kind: PendingKind,
    ) -> HostRequest {
        let id = self.ids.uuid();
        let (sender, response) = oneshot::channel();
        let request = request.done();
        let line =
            Object::typed("control_request").str("request_id", &id).raw("request", &request).done();
        let pending = PendingRequest { id: id.clone(), kind, response: sender };
        let can_send = {
            let mut state = self.state();
            // After EOF on stdin no response can arrive, so no request is sent.
            if state.stdin_closed {
                drop(pending.response.send(HostResponse::Closed));
                false
            } else {
                state.pending.push(pending);
                true
            }
        };
        if can_send {
            self.write(&format!("control_request/{subtype}"), &line).await;
        }
        HostRequest { id, response }
    }

    /// Waits for the response to a request. After a timeout the request is still pending.
    pub(super) async fn wait_for_response(
        &self,
        request: &mut HostRequest,
        cancel: Option<&CancelToken>,
        time_limit: Option<Duration>,
    ) -> ResponseOutcome {
        let response = async { (&mut request.response).await.unwrap_or(HostResponse::Closed) };
        let response = async {
            match time_limit {
                Some(time_limit) => timeout(time_limit, response)
                    .await
                    .map_or(ResponseOutcome::TimedOut, ResponseOutcome::Response),
                None => ResponseOutcome::Response(response.await),
            }
        };
        let reply = tokio::select! {
            biased;
            () = cancelled(cancel) => ResponseOutcome::Cancelled,
            reply = response => reply,
        };
        if matches!(reply, ResponseOutcome::Cancelled) {
            self.remove_pending(&request.id);
        }
        reply
    }

    /// Sends `control_cancel_request` and discards the pending request.
    pub(super) async fn cancel_request(&self, id: &str) {
        self.remove_pending(id);
        let line = Object::typed("control_cancel_request").str("request_id", id).done();
        self.write("control_cancel_request", &line).await;
    }

    fn remove_pending(&self, id: &str) {
        self.state().pending.retain(|pending| pending.id != id);
    }

    fn resolve_request(&self, id: &str, response: HostResponse) {
        let mut state = self.state();
        let Some(at) = state.pending.iter().position(|pending| pending.id == id) else { return };
        let pending = state.pending.remove(at);
        // The receiver may no longer be waiting.
        drop(pending.response.send(response));
    }

    /// Delivers a response of the host to the pending request; other responses are discarded.
    pub(super) fn handle_response(&self, response: &Value) {
        let outcome = match text(&response["subtype"]) {
            "success" => HostResponse::Success(response["response"].clone()),
            _ => HostResponse::Error(text(&response["error"]).to_owned()),
        };
        self.resolve_request(text(&response["request_id"]), outcome);
    }

    /// Resolves all pending requests: after EOF on stdin no response can arrive.
    pub(super) fn close_stdin(&self) {
        let pending = {
            let mut state = self.state();
            state.stdin_closed = true;
            std::mem::take(&mut state.pending)
        };
        for pending in pending {
            drop(pending.response.send(HostResponse::Closed));
        }
    }

    /// Cancels all pending requests of the running turn.
    pub(super) async fn cancel_turn_requests(&self) {
        let open: Vec<(String, PendingKind)> = {
            let state = self.state();
            let open = state.pending.iter().filter(|pending| pending.kind != PendingKind::Session);
            open.map(|pending| (pending.id.clone(), pending.kind.clone())).collect()
        };
        for (id, kind) in open {
            match kind {
                PendingKind::McpCall { server, rpc_id } => {
                    self.detach_from_turn(&id);
                    self.cancel_mcp_call(&server, rpc_id).await;
                }
                // The waiting future ends with the turn, so the request stays pending until then.
                _ => self.send_cancel(&id).await,
            }
        }
    }

    async fn send_cancel(&self, id: &str) {
        let line = Object::typed("control_cancel_request").str("request_id", id).done();
        self.write("control_cancel_request", &line).await;
    }

    /// Detaches a request from the turn, so that it is not cancelled again.
    fn detach_from_turn(&self, id: &str) {
        let mut state = self.state();
        if let Some(pending) = state.pending.iter_mut().find(|pending| pending.id == id) {
            pending.kind = PendingKind::Session;
        }
    }
}

async fn cancelled(cancel: Option<&CancelToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}
