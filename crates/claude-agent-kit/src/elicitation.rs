//! Requests for user input that come neither from the model nor from a permission check:
//! elicitations of external MCP servers, and dialogs of the CLI.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use claude_wire::control::{CliRequest, Elicitation, UserDialog};
use claude_wire::{Extra, Json};

use crate::callback::{
    BoxError, CallResult, CallbackContext, CallbackRun, IntoCallbackResult, error_text, sealed,
};

/// The response of the user to an [`Elicitation`].
///
/// ```
/// use claude_agent_kit::Options;
/// use claude_agent_kit::elicitation::ElicitationResponse;
/// use serde_json::json;
///
/// let options = Options::new().on_elicitation(|question, _ctx| async move {
///     match question.mode.as_deref() {
///         // A form: the content has to match `requested_schema`.
///         None | Some("form") => ElicitationResponse::accept(json!({"name": "Ada"})),
///         _ => ElicitationResponse::decline(),
///     }
/// });
/// ```
#[derive(Clone, PartialEq)]
#[must_use]
pub struct ElicitationResponse {
    action: &'static str,
    content: Option<Json>,
}

impl ElicitationResponse {
    /// Accepts the elicitation: with a form, an object that matches its schema; with a URL, which has
    /// no content, [`Json::null`].
    pub fn accept(content: impl Into<Json>) -> Self {
        let content = content.into();
        Self { action: "accept", content: (!content.is_null()).then_some(content) }
    }

    /// Declines the elicitation.
    pub fn decline() -> Self {
        Self { action: "decline", content: None }
    }

    /// Dismisses the elicitation without a decision.
    pub fn cancel() -> Self {
        Self { action: "cancel", content: None }
    }
}

/// The response of the user to a dialog ([`UserDialog`]).
#[derive(Clone, PartialEq)]
#[must_use]
pub struct DialogResponse {
    result: Option<Json>,
}

impl DialogResponse {
    /// Completes the dialog with a result, in the format of the dialog's kind.
    pub fn completed(result: impl Into<Json>) -> Self {
        Self { result: Some(result.into()) }
    }

    /// Closes the dialog without a result.
    pub fn cancelled() -> Self {
        Self { result: None }
    }
}

/// The callbacks of the host for these requests.
#[derive(Clone, Default)]
pub(crate) struct UserCallbacks {
    elicitation: Option<UserCallback<Elicitation>>,
    dialog: Option<UserCallback<UserDialog>>,
    /// The kinds of dialogs that the host can show.
    kinds: Vec<String>,
}

type UserCallback<Q> = Arc<dyn Fn(Q, CallbackContext) -> CallbackRun + Send + Sync>;

impl UserCallbacks {
    pub(crate) fn has_elicitation(&self) -> bool {
        self.elicitation.is_some()
    }

    pub(crate) fn has_dialog(&self) -> bool {
        self.dialog.is_some()
    }

    /// Returns the kinds of dialogs that the host can show.
    pub(crate) fn dialog_kinds(&self) -> &[String] {
        &self.kinds
    }

    pub(crate) fn set_elicitation<F, R>(&mut self, callback: F)
    where
        F: Fn(Elicitation, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<ElicitationResponse>> + Send + 'static,
    {
        self.elicitation = Some(asynchronous(callback));
    }

    pub(crate) fn set_blocking_elicitation<F, A>(&mut self, callback: F)
    where
        F: Fn(Elicitation, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<ElicitationResponse>,
    {
        self.elicitation = Some(blocking(callback));
    }

    pub(crate) fn set_dialog<F, R>(&mut self, kinds: Vec<String>, callback: F)
    where
        F: Fn(UserDialog, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<DialogResponse>> + Send + 'static,
    {
        (self.kinds, self.dialog) = (kinds, Some(asynchronous(callback)));
    }

    pub(crate) fn set_blocking_dialog<F, A>(&mut self, kinds: Vec<String>, callback: F)
    where
        F: Fn(UserDialog, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<DialogResponse>,
    {
        (self.kinds, self.dialog) = (kinds, Some(blocking(callback)));
    }

    /// Calls the callback for a request of the CLI; `None` if none is registered.
    pub(crate) fn call(
        &self,
        request: CliRequest,
        context: CallbackContext,
    ) -> Option<CallbackRun> {
        match request {
            CliRequest::Elicitation(request) => Some(self.elicitation.as_ref()?(*request, context)),
            CliRequest::RequestUserDialog(request) => Some(self.dialog.as_ref()?(request, context)),
            _ => None,
        }
    }
}

fn asynchronous<Q, A, F, R>(callback: F) -> UserCallback<Q>
where
    Q: Send + 'static,
    A: EncodeResponse,
    F: Fn(Q, CallbackContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoCallbackResult<A>> + Send + 'static,
{
    let callback = Arc::new(callback);
    Arc::new(move |request, context| {
        let callback = callback.clone();
        CallbackRun::Async(Box::pin(
            async move { encode_response(callback(request, context).await) },
        ))
    })
}

fn blocking<Q, A, F, O>(callback: F) -> UserCallback<Q>
where
    Q: Send + 'static,
    A: EncodeResponse,
    F: Fn(Q, CallbackContext) -> O + Send + Sync + 'static,
    O: IntoCallbackResult<A>,
{
    let callback = Arc::new(callback);
    Arc::new(move |request, context| {
        let callback = callback.clone();
        CallbackRun::Blocking(Box::new(move || encode_response(callback(request, context))))
    })
}

/// Encodes the return value of a callback.
fn encode_response<A: EncodeResponse>(returned: impl IntoCallbackResult<A>) -> CallResult {
    returned.into_result().map_err(|error| error_text(&error))?.encode()
}

trait EncodeResponse: Sized {
    /// Encodes the response for the CLI, or returns the reason why it is invalid.
    fn encode(self) -> CallResult;
}

impl EncodeResponse for ElicitationResponse {
    fn encode(self) -> CallResult {
        let mut response = Extra::default();
        response.set("action", self.action);
        if let Some(content) = self.content {
            if !content.text().starts_with('{') {
                return Err(
                    "the content of the elicitation response is not a JSON object".to_owned()
                );
            }
            response.set("content", content);
        }
        Ok(Json::from(&response))
    }
}

impl EncodeResponse for DialogResponse {
    fn encode(self) -> CallResult {
        let mut response = Extra::default();
        match self.result {
            Some(result) => {
                response.set("behavior", "completed");
                response.set("result", result);
            }
            None => response.set("behavior", "cancelled"),
        }
        Ok(Json::from(&response))
    }
}

impl sealed::Sealed for ElicitationResponse {}

impl IntoCallbackResult<ElicitationResponse> for ElicitationResponse {
    fn into_result(self) -> Result<ElicitationResponse, BoxError> {
        Ok(self)
    }
}

impl sealed::Sealed for DialogResponse {}

impl IntoCallbackResult<DialogResponse> for DialogResponse {
    fn into_result(self) -> Result<DialogResponse, BoxError> {
        Ok(self)
    }
}

impl fmt::Debug for ElicitationResponse {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitationResponse").field("action", &self.action).finish_non_exhaustive()
    }
}

impl fmt::Debug for DialogResponse {
    /// Omits the result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialogResponse")
            .field("completed", &self.result.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for UserCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserCallbacks")
            .field("elicitation", &self.has_elicitation())
            .field("dialog_kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_response_is_encoded_for_the_cli() {
        for (response, expected) in [
            (
                ElicitationResponse::accept(json!({"a": 1})).encode(),
                r#"{"action":"accept","content":{"a":1}}"#,
            ),
            (ElicitationResponse::accept(Json::null()).encode(), r#"{"action":"accept"}"#),
            (ElicitationResponse::decline().encode(), r#"{"action":"decline"}"#),
            (ElicitationResponse::cancel().encode(), r#"{"action":"cancel"}"#),
            (
                DialogResponse::completed(json!("retry")).encode(),
                r#"{"behavior":"completed","result":"retry"}"#,
            ),
            (DialogResponse::cancelled().encode(), r#"{"behavior":"cancelled"}"#),
        ] {
            assert_eq!(response.unwrap().text(), expected);
        }
    }

    #[test]
    fn content_that_is_not_an_object_is_not_sent() {
        let text = ElicitationResponse::accept("Ada");
        assert!(text.clone().encode().unwrap_err().contains("not a JSON object"));
        assert!(!format!("{text:?} {:?}", DialogResponse::completed("Ada")).contains("Ada"));
        let failed: Result<ElicitationResponse, BoxError> = Err("the user is away".into());
        assert_eq!(encode_response(failed), Err("the user is away".to_owned()));
    }
}
