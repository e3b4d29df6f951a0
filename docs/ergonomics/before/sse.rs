//! Streams the answer to a question as server-sent events.

use std::convert::Infallible;

use axum::Router;
use axum::response::sse::{Event, Sse};
use axum::routing::post;
use claude_agent_kit::wire::Number;
use claude_agent_kit::wire::content::ContentBlock;
use claude_agent_kit::wire::message::SystemMessage;
use claude_agent_kit::{Body, Error, Item, Message, Options, Warning, query};
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Update {
    Started { session_id: Option<String>, model: Option<String> },
    Text { text: String, parent: Option<String> },
    Thinking { text: String },
    ToolCall { id: String, name: String, input: Box<RawValue>, parent: Option<String> },
    ToolResult { id: String, is_error: bool, text: String },
    Retry { attempt: u64, delay_ms: u64 },
    Result { is_error: bool, text: String, turns: u64, duration_ms: u64, cost_usd: Option<f64> },
    Warning { code: String, text: String },
    Error { kind: String, text: String, hint: Option<String>, session_id: Option<String> },
    Other { message: Box<RawValue> },
}

fn number(value: Option<&Number>) -> u64 {
    value.map_or(0, |number| number.as_f64() as u64)
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}

fn of_block(block: &ContentBlock, parent: Option<&str>) -> Option<Update> {
    let parent = parent.map(str::to_owned);
    match block {
        ContentBlock::Text(text) => Some(Update::Text { text: text.text.clone(), parent }),
        ContentBlock::Thinking(thinking) => {
            Some(Update::Thinking { text: thinking.thinking.clone() })
        }
        ContentBlock::ToolUse(call) => Some(Update::ToolCall {
            id: call.id.to_string(),
            name: call.name.clone(),
            input: raw(call.input.as_str()),
            parent,
        }),
        ContentBlock::ToolResult(result) => Some(Update::ToolResult {
            id: result.tool_use_id.to_string(),
            is_error: result.is_error.unwrap_or(false),
            text: result.content.as_ref().map(|content| content.to_text()).unwrap_or_default(),
        }),
        _ => None,
    }
}

fn of_message(message: &Message) -> Vec<Update> {
    match &message.body {
        Body::System(SystemMessage::Init(init)) => vec![Update::Started {
            session_id: init.session_id.as_ref().map(ToString::to_string),
            model: init.model.clone(),
        }],
        Body::System(SystemMessage::ApiRetry(retry)) => vec![Update::Retry {
            attempt: number(retry.attempt.as_ref()),
            delay_ms: number(retry.retry_delay_ms.as_ref()),
        }],
        Body::Assistant(answer) => {
            let parent = answer.parent_tool_use_id.as_ref().map(|id| id.as_str());
            answer.content().iter().filter_map(|block| of_block(block, parent)).collect()
        }
        Body::User(user) => {
            let Some(content) = user.content() else { return vec![] };
            content.blocks().iter().filter_map(|block| of_block(block, None)).collect()
        }
        Body::Result(result) => vec![Update::Result {
            is_error: result.is_error(),
            text: match (&result.result, result.errors.is_empty()) {
                (Some(text), _) => text.clone(),
                (None, false) => result.errors.join("; "),
                (None, true) => format!("{:?}", result.subtype),
            },
            turns: number(result.num_turns.as_ref()),
            duration_ms: number(result.duration_ms.as_ref()),
            cost_usd: result.total_cost_usd.as_ref().map(Number::as_f64),
        }],
        _ => {
            message.raw_str().map(|text| Update::Other { message: raw(text) }).into_iter().collect()
        }
    }
}

fn of_warning(warning: &Warning) -> Update {
    Update::Warning { code: format!("{:?}", warning.code()), text: warning.to_string() }
}

fn of_error(error: &Error) -> Update {
    Update::Error {
        kind: format!("{:?}", error.kind()),
        text: error.to_string(),
        hint: error.hint().map(str::to_owned),
        session_id: error.session_id().map(ToString::to_string),
    }
}

fn updates(item: Result<Item, Error>) -> Vec<Update> {
    match item {
        Ok(Item::Message(message)) => of_message(&message),
        Ok(Item::Warning(warning)) => vec![of_warning(&warning)],
        Err(error) => vec![of_error(&error)],
    }
}

async fn ask(prompt: String) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let items = match query(prompt, Options::new().allowed_tools(["Read", "Grep"])).await {
        Ok(stream) => stream.left_stream(),
        Err(error) => stream::iter([Err(error)]).right_stream(),
    };
    let events = items.flat_map(|item| stream::iter(updates(item))).map(|update| {
        let event = Event::default().json_data(update);
        Ok(event.unwrap_or_else(|error| Event::default().data(error.to_string())))
    });
    Sse::new(events)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, Router::new().route("/ask", post(ask))).await
}
