//! Streams the answer to a question as server-sent events.

use axum::Router;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use claude_agent_kit::{Item, Options, Result, query};
use futures_util::StreamExt;

fn event(item: Result<Item>) -> std::result::Result<Event, axum::Error> {
    match item {
        Ok(item) => Event::default().json_data(item),
        Err(error) => Event::default().json_data(error),
    }
}

async fn ask(prompt: String) -> Response {
    match query(prompt, Options::new().allowed_tools(["Read", "Grep"])).await {
        Ok(items) => Sse::new(items.map(event)).into_response(),
        Err(error) => axum::Json(error).into_response(),
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, Router::new().route("/ask", post(ask))).await
}
