//! JSON-RPC, as far as the bridge must understand it.

use claude_wire::control::McpResponse;
use claude_wire::{Extra, Json};

/// A message of the CLI for a server.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) kind: Kind,
    /// The message as it came.
    pub(crate) whole: Json,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Request {
        id: Json,
        method: String,
        params: Json,
    },
    Notification,
    /// The answer to a request of the server.
    Response {
        id: Json,
    },
    /// Nothing that JSON-RPC knows.
    Invalid {
        id: Json,
    },
}

/// What a server says to a message.
#[derive(Debug)]
pub(crate) enum Reply {
    /// What was asked for.
    Result(Json),
    /// An error of JSON-RPC.
    Error { code: i64, message: String },
    /// A JSON-RPC response; its id is put right.
    Whole(Json),
    /// Nothing, as to a notification.
    Nothing,
}

pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

impl Incoming {
    pub(crate) fn read(whole: Json) -> Self {
        let fields: Extra = whole.deserialize().unwrap_or_default();
        let id = fields.get("id").cloned();
        let method = fields.get("method").and_then(|method| method.deserialize::<String>().ok());
        let answers = fields.get("result").is_some() || fields.get("error").is_some();
        let kind = match (method, id) {
            (Some(method), Some(id)) => {
                let params = fields.get("params").cloned().unwrap_or_default();
                Kind::Request { id, method, params }
            }
            (Some(_), None) => Kind::Notification,
            (None, id) if answers => Kind::Response { id: id.unwrap_or_default() },
            (None, id) => Kind::Invalid { id: id.unwrap_or_default() },
        };
        Self { kind, whole }
    }

    /// The id that the answer must have; none if there is nothing to answer.
    pub(crate) fn answer_to(&self) -> Option<Json> {
        match &self.kind {
            Kind::Request { id, .. } | Kind::Invalid { id } => Some(id.clone()),
            Kind::Notification | Kind::Response { .. } => None,
        }
    }
}

impl Reply {
    pub(crate) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into() }
    }

    /// The answer to the control request, or why there is none.
    pub(crate) fn encode(self, id: Option<Json>) -> Result<Json, String> {
        let mut response = Extra::default();
        response.set("jsonrpc", "2.0");
        match (id, self) {
            // Nothing is to be answered, whatever the server says.
            (None, _) => response.set("result", &Extra::default()),
            (Some(id), Self::Result(result)) => {
                response.set("id", id);
                response.set("result", result);
            }
            (Some(id), Self::Error { code, message }) => {
                let mut error = Extra::default();
                error.set("code", encoded(&code)?);
                error.set("message", message.as_str());
                response.set("id", id);
                response.set("error", &error);
            }
            (Some(id), Self::Whole(whole)) => {
                response = whole.deserialize().map_err(|_| "its answer is no object".to_owned())?;
                if response.get("result").is_none() && response.get("error").is_none() {
                    return Err("its answer has neither a result nor an error".to_owned());
                }
                response.set("jsonrpc", "2.0");
                response.set("id", id);
            }
            (Some(_), Self::Nothing) => return Err("it gave no answer".to_owned()),
        }
        encoded(&McpResponse::new(&response))
    }
}

fn encoded(value: &impl serde::Serialize) -> Result<Json, String> {
    Json::from_serialize(value).map_err(|error| error.to_string())
}
