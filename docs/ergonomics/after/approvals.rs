//! Asks in a web page before a tool runs.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use claude_agent_kit::{Options, Permission, PermissionInbox, Session, ToolRequest};

async fn list(State(inbox): State<PermissionInbox>) -> Json<Vec<ToolRequest>> {
    Json(inbox.pending())
}

async fn answer(
    State(inbox): State<PermissionInbox>,
    Path(id): Path<String>,
    Json(denial): Json<Option<String>>,
) -> Result<(), (StatusCode, String)> {
    let permission = denial.map_or_else(Permission::allow, Permission::deny);
    inbox.answer(id, permission).map_err(|error| (StatusCode::NOT_FOUND, error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inbox = PermissionInbox::new();
    let session = Session::start(Options::new().can_use_tool(inbox.callback())).await?;
    let _turn = session.send("Tidy up the working directory.").await?;
    let routes = Router::new()
        .route("/approvals", get(list))
        .route("/approvals/{id}", post(answer))
        .with_state(inbox);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, routes).await?)
}
