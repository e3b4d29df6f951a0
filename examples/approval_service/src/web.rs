//! The HTTP interface. Data is sent as JSON only; the page inserts it as text.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Json, Router};
use claude_agent_kit::approval::{ApprovalId, DecideError, Decision};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::service::{Busy, Service};

const PAGE: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

/// Nothing but the files of this service: no inline script, no frame, no other host.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long a request may take until its response begins.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum size of a request.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// A user who may start tasks and decide, with the secret that the requests of this user have.
#[derive(Clone)]
pub(crate) struct Approver {
    pub(crate) name: String,
    pub(crate) token: String,
}

impl Approver {
    pub(crate) fn new(name: String) -> Self {
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self { name, token }
    }
}

pub(crate) fn router(service: Arc<Service>, approvers: Vec<Approver>) -> Router {
    let approvers: Arc<[Approver]> = approvers.into();
    Router::new()
        .route("/events", get(events))
        .route("/tasks", post(start))
        .route("/approvals/{id}", post(decide))
        // A page of another origin cannot set this header, so it cannot send requests in the name of a user.
        .layer(middleware::from_fn_with_state(approvers, authenticate))
        // These contain no data.
        .route("/", file(PAGE, "text/html; charset=utf-8"))
        .route("/page.js", file(SCRIPT, "text/javascript; charset=utf-8"))
        .route("/page.css", file(STYLE, "text/css; charset=utf-8"))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::map_response(add_headers))
        .with_state(service)
}

fn file(text: &'static str, kind: &'static str) -> MethodRouter<Arc<Service>> {
    get(move || ready(([(CONTENT_TYPE, kind)], text)))
}

async fn add_headers(mut response: Response) -> Response {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        // One request for each connection: the time for the head of a request starts with the connection.
        (CONNECTION, "close"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Refuses requests without a valid token, and passes the user on.
async fn authenticate(
    State(approvers): State<Arc<[Approver]>>,
    mut request: Request,
    next: Next,
) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let approver = approvers.iter().find(|approver| is_equal(&approver.token, token));
    let Some(approver) = approver.cloned() else {
        return Refused::new(
            StatusCode::UNAUTHORIZED,
            "open the URL in the file that the service named",
        )
        .into_response();
    };
    request.extensions_mut().insert(approver);
    let late = || Refused::new(StatusCode::REQUEST_TIMEOUT, "the request took too long");
    let response = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    response.unwrap_or_else(|_| late().into_response())
}

/// Compares secrets in a time that does not depend on where they differ.
fn is_equal(secret: &str, other: &str) -> bool {
    let pairs = secret.bytes().zip(other.bytes());
    secret.len() == other.len() && pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// An error as JSON.
struct Refused {
    status: StatusCode,
    message: String,
}

impl Refused {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl From<Busy> for Refused {
    fn from(_: Busy) -> Self {
        let message = "too many tasks are running; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }
}

impl From<DecideError> for Refused {
    fn from(error: DecideError) -> Self {
        let status = match &error {
            DecideError::NotFound(_) => StatusCode::NOT_FOUND,
            DecideError::Refused(_) => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(json!({"error": self.message}))).into_response()
    }
}

/// Sends what the page shows: now, and after each change.
async fn events(
    State(service): State<Arc<Service>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut snapshots = service.subscribe();
    snapshots.mark_changed();
    let events = stream::unfold(snapshots, |mut snapshots| async move {
        snapshots.changed().await.ok()?;
        let snapshot = snapshots.borrow_and_update().clone()?;
        Some((Ok(Event::default().data(snapshot)), snapshots))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

#[derive(Deserialize)]
struct TaskBody {
    prompt: String,
}

async fn start(
    State(service): State<Arc<Service>>,
    body: Result<Json<TaskBody>, JsonRejection>,
) -> Result<Response, Refused> {
    let Json(TaskBody { prompt }) = body?;
    if prompt.trim().is_empty() {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "the prompt is empty"));
    }
    let session = service.start(prompt)?;
    Ok((StatusCode::ACCEPTED, Json(json!({"session": session}))).into_response())
}

#[derive(Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
enum DecisionBody {
    Allow,
    Deny { message: String },
}

/// Decides. The approver is the one of the token, not one that the request names.
async fn decide(
    State(service): State<Arc<Service>>,
    Extension(approver): Extension<Approver>,
    Path(id): Path<String>,
    body: Result<Json<DecisionBody>, JsonRejection>,
) -> Result<Response, Refused> {
    let id = ApprovalId::parse(&id)
        .map_err(|error| Refused::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let decision = match body?.0 {
        DecisionBody::Allow => Decision::allow(approver.name),
        DecisionBody::Deny { message } => Decision::deny(approver.name, message),
    };
    let approval = service.approvals.decide(&id, decision).await?;
    service.notify();
    Ok(Json(approval).into_response())
}
