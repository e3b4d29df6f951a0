//! JSON-RPC messages, as far as the bridge needs them.

use claude_wire::control::McpResponse;
use claude_wire::{Extra, Json};

/// A message of the CLI for a server.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) kind: Kind,
    /// The raw message.
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
    /// The response to a request of the server.
    Response {
        id: Json,
    },
    /// Not a JSON-RPC message.
    Invalid {
        id: Json,
    },
}

/// The reply of a server to a message.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Json),
    /// A JSON-RPC error.
    Error {
        code: i64,
        message: String,
    },
    /// A JSON-RPC response, whose ID is corrected.
    Whole(Json),
    /// No reply, for a notification.
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

    /// Returns the ID of the response, or `None` if the message needs no response.
    pub(crate) fn response_id(&self) -> Option<Json> {
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

    /// Encodes the response to the control request, or returns the reason why there is none.
    pub(crate) fn encode(self, id: Option<Json>) -> Result<Json, String> {
        let mut response = Extra::default();
        response.set("jsonrpc", "2.0");
        match (id, self) {
            // A notification needs no response; the reply of the server is ignored.
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
                response =
                    whole.deserialize().map_err(|_| "the response is not an object".to_owned())?;
                if response.get("result").is_none() && response.get("error").is_none() {
                    return Err("the response has neither a result nor an error".to_owned());
                }
                response.set("jsonrpc", "2.0");
                response.set("id", id);
            }
            (Some(_), Self::Nothing) => return Err("the server sent no response".to_owned()),
        }
        encoded(&McpResponse::new(&response))
    }
}

fn encoded(value: &impl serde::Serialize) -> Result<Json, String> {
    Json::from_serialize(value).map_err(|error| error.to_string())
}
