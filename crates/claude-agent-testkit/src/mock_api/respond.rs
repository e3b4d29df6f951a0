//! Responds to HTTP requests.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::body::{Step, StepBody, stream_steps, whole_steps};
use super::message::{Message, error_json};
use super::reply::ApiError;
use super::server::ServerState;
use super::{ApiRequest, Reply};

const MAX_BODY: usize = 64 * 1024 * 1024;

/// Responds to the requests of one connection.
pub(super) struct Responder {
    pub(super) shared: Arc<ServerState>,
    /// Signalled whenever the connection has been flushed.
    pub(super) flushed: Arc<Notify>,
}

impl Responder {
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Response<StepBody> {
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/v1/messages") => self.reply(request).await,
            (&Method::POST, "/v1/messages/count_tokens") => self.count_tokens(request).await,
            (&Method::POST, path) => {
                let message = format!("mock: no such path: {path}");
                self.reject(StatusCode::NOT_FOUND, "not_found_error", message)
            }
            // The CLI probes the address before it uses it.
            _ => self.json(StatusCode::OK, "{}"),
        }
    }

    async fn reply(&self, request: Request<Incoming>) -> Response<StepBody> {
        let (parts, body) = request.into_parts();
        let body = match read_object(body).await {
            Ok(body) => body,
            Err(reason) => return self.reject_request(reason),
        };
        let request = Arc::new(ApiRequest::new(&parts, body));
        // Created before the request is visible: a test that has seen the request can release its reply.
        let released = Arc::clone(&self.shared.release).notified_owned();
        self.shared.log.record(Arc::clone(&request));
        let reply = self.shared.reply_to(&request);
        if let Some(pause) = reply.pause_before {
            tokio::time::sleep(pause).await;
        }
        match &reply.error {
            Some(error) => self.send_whole(&reply, error.status, error_json(error), released),
            None => self.send_message(&reply, &request, released),
        }
    }

    async fn count_tokens(&self, request: Request<Incoming>) -> Response<StepBody> {
        match read_object(request.into_body()).await {
            // About four characters per token, so that longer requests count more.
            Ok(body) => {
                let tokens = body.to_string().len() / 4;
                self.json(StatusCode::OK, json!({"input_tokens": tokens}).to_string())
            }
            Err(reason) => self.reject_request(reason),
        }
    }

    fn send_message(
        &self,
        reply: &Reply,
        request: &ApiRequest,
        released: OwnedNotified,
    ) -> Response<StepBody> {
        let id = self.shared.next_message_id();
        let message = Message { id, model: request.model(), reply };
        if !request.stream() {
            return self.send_whole(reply, 200, message.whole(), released);
        }
        let steps = stream_steps(reply, message.events());
        let body = StepBody::new(steps, None, Some(released), Arc::clone(&self.flushed));
        self.send(reply, 200, "text/event-stream", body)
    }

    fn send_whole(
        &self,
        reply: &Reply,
        status: u16,
        json: String,
        released: OwnedNotified,
    ) -> Response<StepBody> {
        let length = json.len() as u64;
        let steps = whole_steps(reply, &json.into());
        let body = StepBody::new(steps, Some(length), Some(released), Arc::clone(&self.flushed));
        self.send(reply, status, "application/json", body)
    }

    fn send(
        &self,
        reply: &Reply,
        status: u16,
        content_type: &str,
        body: StepBody,
    ) -> Response<StepBody> {
        let mut response = Response::builder().status(status).header(CONTENT_TYPE, content_type);
        for (name, value) in &reply.headers {
            response = response.header(name, value);
        }
        response.body(body).unwrap_or_else(|error| {
            self.reject_request(format!("mock: the reply of the script is not valid HTTP: {error}"))
        })
    }

    fn reject_request(&self, reason: String) -> Response<StepBody> {
        self.reject(StatusCode::BAD_REQUEST, "invalid_request_error", reason)
    }

    fn reject(&self, status: StatusCode, kind: &str, message: String) -> Response<StepBody> {
        let error = ApiError { status: status.as_u16(), kind: kind.to_owned(), message };
        self.json(status, error_json(&error))
    }

    fn json(&self, status: StatusCode, json: impl Into<Bytes>) -> Response<StepBody> {
        let json = json.into();
        let length = json.len() as u64;
        let steps = [Step::Send(json)].into();
        let body = StepBody::new(steps, Some(length), None, Arc::clone(&self.flushed));
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let json_type = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json_type);
        response
    }
}

async fn read_object(body: Incoming) -> Result<Value, String> {
    // A declared length is checked before the body is read, so that the client receives the response.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(format!("mock: the body is larger than {MAX_BODY} bytes"));
    }
    let body = Limited::new(body, MAX_BODY).collect().await;
    let body = body.map_err(|error| format!("mock: the body cannot be read: {error}"))?.to_bytes();
    match serde_json::from_slice(&body) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("mock: the body is not a JSON object".to_owned()),
        Err(error) => Err(format!("mock: the body is not JSON: {error}")),
    }
}
