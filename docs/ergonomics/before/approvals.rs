//! Asks in a web page before a tool runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use claude_agent_kit::{CancelToken, Options, Permission, Session, ToolRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// A request as the page shows it.
#[derive(Clone, Serialize)]
struct Request {
    id: u64,
    session_id: Option<String>,
    tool: String,
    input: Box<RawValue>,
    title: Option<String>,
    description: Option<String>,
    reason: Option<String>,
    blocked_path: Option<String>,
}

impl Request {
    fn new(id: u64, request: &ToolRequest) -> Self {
        Self {
            id,
            session_id: request.session_id.as_ref().map(ToString::to_string),
            tool: request.tool_name.clone(),
            input: RawValue::from_string(request.input.as_str().to_owned()).unwrap_or_default(),
            title: request.title.clone(),
            description: request.description.clone(),
            reason: request.decision_reason.clone(),
            blocked_path: request.blocked_path.clone(),
        }
    }
}

struct Pending {
    request: Request,
    answer: oneshot::Sender<Permission>,
}

#[derive(Clone, Default)]
struct Approvals {
    next: Arc<AtomicU64>,
    pending: Arc<Mutex<HashMap<u64, Pending>>>,
}

/// Takes the entry away when the request is over, however it ends.
struct Entry {
    id: u64,
    approvals: Approvals,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.approvals.lock().remove(&self.id);
    }
}

impl Approvals {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(self, request: ToolRequest, cancel: CancelToken) -> Permission {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let request = Request::new(id, &request);
        self.lock().insert(id, Pending { request, answer });
        let _entry = Entry { id, approvals: self };
        tokio::select! {
            answer = answered => answer.unwrap_or_else(|_| Permission::deny("The service is ending.")),
            () = cancel.cancelled() => Permission::deny("The request was withdrawn."),
        }
    }

    fn list(&self) -> Vec<Request> {
        let mut all: Vec<_> = self.lock().values().map(|pending| pending.request.clone()).collect();
        all.sort_by_key(|request| request.id);
        all
    }

    fn answer(&self, id: u64, permission: Permission) -> bool {
        let Some(pending) = self.lock().remove(&id) else { return false };
        pending.answer.send(permission).is_ok()
    }
}

#[derive(Deserialize)]
struct Decision {
    allow: bool,
    reason: Option<String>,
}

async fn list(State(approvals): State<Approvals>) -> Json<Vec<Request>> {
    Json(approvals.list())
}

async fn answer(
    State(approvals): State<Approvals>,
    Path(id): Path<u64>,
    Json(decision): Json<Decision>,
) -> Result<(), StatusCode> {
    let permission = if decision.allow {
        Permission::allow()
    } else {
        Permission::deny(decision.reason.unwrap_or_default())
    };
    if approvals.answer(id, permission) { Ok(()) } else { Err(StatusCode::NOT_FOUND) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let approvals = Approvals::default();
    let asked = approvals.clone();
    let options = Options::new()
        .can_use_tool(move |request, context| asked.clone().ask(request, context.cancel));
    let session = Session::start(options).await?;
    let _turn = session.send("Tidy up the working directory.").await?;
    let routes = Router::new()
        .route("/approvals", get(list))
        .route("/approvals/{id}", post(answer))
        .with_state(approvals);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, routes).await?)
}
