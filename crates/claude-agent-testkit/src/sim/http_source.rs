//! Answers from a Messages API on loopback.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::json::text;
use super::source::{ApiFailure, ModelResponse, Source, SourceEvent, StreamEvent, seconds};

pub(super) struct HttpSource {
    body: Incoming,
    connection: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    unread: Vec<u8>,
    complete: bool,
}

impl HttpSource {
    pub(super) async fn next(&mut self) -> SourceEvent {
        loop {
            if let Some(event) = self.take_event() {
                self.complete |= event.name == "message_stop";
                return SourceEvent::Event(event);
            }
            if self.complete {
                return SourceEvent::End;
            }
            let frame = drive(&mut self.connection, self.body.frame()).await;
            match frame {
                Some(Ok(frame)) => self.unread.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) | None => return SourceEvent::Cut,
            }
        }
    }

    /// Returns the first complete event in the buffer; an event ends with a blank line.
    fn take_event(&mut self) -> Option<StreamEvent> {
        let end = self.unread.windows(2).position(|two| two == b"\n\n")?;
        let rest = self.unread.split_off(end + 2);
        let event = std::mem::replace(&mut self.unread, rest);
        let event = String::from_utf8_lossy(&event).into_owned();
        let field = |name: &str| {
            let lines = event.lines().filter_map(move |line| line.strip_prefix(name));
            lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
        };
        Some(StreamEvent { name: field("event:"), json: field("data:"), whole: None })
    }
}

/// Sends a request to a Messages API.
pub(super) async fn request(address: &str, body: &Value) -> ModelResponse {
    match try_request(address, body).await {
        Ok(response) => response,
        Err(error) => ModelResponse::Error(ApiFailure {
            status: None,
            kind: "connection_error".to_owned(),
            message: error.to_string(),
            retry_after: None,
            should_retry: None,
        }),
    }
}

async fn try_request(
    address: &str,
    body: &Value,
) -> Result<ModelResponse, Box<dyn std::error::Error + Send + Sync>> {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let stream = TcpStream::connect(host).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Connection errors are reported by the response.
    let connection: Pin<Box<dyn Future<Output = ()> + Send>> =
        Box::pin(async move { drop(connection.await) });
    let mut connection = Some(connection);
    let request = hyper::Request::post("/v1/messages?beta=true")
        .header("host", host)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let response = drive(&mut connection, sender.send_request(request)).await?;
    let (parts, mut body) = response.into_parts();
    if parts.status.is_success() {
        let source = HttpSource { body, connection, unread: Vec::new(), complete: false };
        return Ok(ModelResponse::Stream(Source::Http(Box::new(source))));
    }
    let mut bytes = Vec::new();
    while let Some(frame) = drive(&mut connection, body.frame()).await {
        bytes.extend(frame?.into_data().unwrap_or_default());
    }
    let error: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    Ok(ModelResponse::Error(ApiFailure {
        status: Some(parts.status.as_u16()),
        kind: text(&error["error"]["type"]).to_owned(),
        message: text(&error["error"]["message"]).to_owned(),
        retry_after: header("retry-after").and_then(seconds),
        should_retry: header("x-should-retry").map(|value| value != "false"),
    }))
}

/// Polls the connection while waiting for a future that depends on it.
async fn drive<T>(
    connection: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    what: impl Future<Output = T>,
) -> T {
    let mut what = std::pin::pin!(what);
    poll_fn(|context| {
        if let Poll::Ready(done) = what.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if connection.as_mut().is_some_and(|open| open.as_mut().poll(context).is_ready()) {
            *connection = None;
        }
        // Polling the connection may have made progress.
        what.as_mut().poll(context)
    })
    .await
}
