//! Questions to the user that come neither from the model nor from a tool that wants to run: those
//! of MCP servers outside this process, and dialogs of the CLI itself.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use claude_wire::control::CliRequest;
use claude_wire::{Extra, Json};

pub use claude_wire::control::{Elicitation, UserDialog};

use crate::callback::{
    BoxError, CallResult, CallbackContext, CallbackRun, IntoCallbackResult, error_text, sealed,
};

/// What the user says to an [`Elicitation`].
///
/// ```
/// use claude_agent_kit::Options;
/// use claude_agent_kit::elicitation::ElicitationResponse;
/// use serde_json::json;
///
/// let options = Options::new().on_elicitation(|question, _ctx| async move {
///     match question.mode.as_deref() {
///         // A form: the answer has to fit `requested_schema`.
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
    /// The user filled in the form like this: an object that fits the schema of the question.
    pub fn accept(content: impl Into<Json>) -> Self {
        Self { action: "accept", content: Some(content.into()) }
    }

    /// The user agreed to go to the address of the question.
    pub fn agree() -> Self {
        Self { action: "accept", content: None }
    }

    /// The user does not want to answer.
    pub fn decline() -> Self {
        Self { action: "decline", content: None }
    }

    /// The user did not decide.
    pub fn cancel() -> Self {
        Self { action: "cancel", content: None }
    }
}

/// What the user does with a dialog ([`UserDialog`]).
#[derive(Clone, PartialEq)]
#[must_use]
pub struct DialogResponse {
    result: Option<Json>,
}

impl DialogResponse {
    /// The user came to this result, in the shape of the dialog's kind.
    pub fn completed(result: impl Into<Json>) -> Self {
        Self { result: Some(result.into()) }
    }

    /// The user closed the dialog.
    pub fn cancelled() -> Self {
        Self { result: None }
    }
}

/// The callbacks of a host for these questions.
#[derive(Clone, Default)]
pub(crate) struct UserCallbacks {
    elicitation: Option<Run<Elicitation>>,
    dialog: Option<Run<UserDialog>>,
    /// The dialogs that can be shown.
    kinds: Vec<String>,
}

type Run<Q> = Arc<dyn Fn(Q, CallbackContext) -> CallbackRun + Send + Sync>;

impl UserCallbacks {
    pub(crate) fn has_elicitation(&self) -> bool {
        self.elicitation.is_some()
    }

    pub(crate) fn has_dialog(&self) -> bool {
        self.dialog.is_some()
    }

    /// The dialogs that can be shown.
    pub(crate) fn dialog_kinds(&self) -> &[String] {
        &self.kinds
    }

    pub(crate) fn set_elicitation<F, R>(&mut self, callback: F)
    where
        F: Fn(Elicitation, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<ElicitationResponse>> + Send + 'static,
    {
        self.elicitation = Some(waiting(callback));
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
        (self.kinds, self.dialog) = (kinds, Some(waiting(callback)));
    }

    pub(crate) fn set_blocking_dialog<F, A>(&mut self, kinds: Vec<String>, callback: F)
    where
        F: Fn(UserDialog, CallbackContext) -> A + Send + Sync + 'static,
        A: IntoCallbackResult<DialogResponse>,
    {
        (self.kinds, self.dialog) = (kinds, Some(blocking(callback)));
    }

    /// What answers a request of the CLI; none if nobody is registered for it.
    pub(crate) fn call(
        &self,
        request: CliRequest,
        context: CallbackContext,
    ) -> Option<CallbackRun> {
        match request {
            CliRequest::Elicitation(asked) => Some(self.elicitation.as_ref()?(*asked, context)),
            CliRequest::RequestUserDialog(asked) => Some(self.dialog.as_ref()?(asked, context)),
            _ => None,
        }
    }
}

fn waiting<Q, A, F, R>(callback: F) -> Run<Q>
where
    Q: Send + 'static,
    A: Answer,
    F: Fn(Q, CallbackContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoCallbackResult<A>> + Send + 'static,
{
    let callback = Arc::new(callback);
    Arc::new(move |question, context| {
        let callback = callback.clone();
        CallbackRun::Async(Box::pin(async move { answered(callback(question, context).await) }))
    })
}

fn blocking<Q, A, F, O>(callback: F) -> Run<Q>
where
    Q: Send + 'static,
    A: Answer,
    F: Fn(Q, CallbackContext) -> O + Send + Sync + 'static,
    O: IntoCallbackResult<A>,
{
    let callback = Arc::new(callback);
    Arc::new(move |question, context| {
        let callback = callback.clone();
        CallbackRun::Blocking(Box::new(move || answered(callback(question, context))))
    })
}

/// The answer that a callback's return value becomes.
fn answered<A: Answer>(returned: impl IntoCallbackResult<A>) -> CallResult {
    returned.into_result().map_err(|error| error_text(&error))?.encode()
}

trait Answer: Sized {
    /// In the shape that the CLI wants, or why that cannot be.
    fn encode(self) -> CallResult;
}

impl Answer for ElicitationResponse {
    fn encode(self) -> CallResult {
        let mut answer = Extra::default();
        answer.set("action", self.action);
        if let Some(content) = self.content {
            if !content.text().starts_with('{') {
                return Err("what was filled in is no object".to_owned());
            }
            answer.set("content", content);
        }
        Ok(Json::from(&answer))
    }
}

impl Answer for DialogResponse {
    fn encode(self) -> CallResult {
        let mut answer = Extra::default();
        match self.result {
            Some(result) => {
                answer.set("behavior", "completed");
                answer.set("result", result);
            }
            None => answer.set("behavior", "cancelled"),
        }
        Ok(Json::from(&answer))
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
    /// Without what was filled in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitationResponse").field("action", &self.action).finish_non_exhaustive()
    }
}

impl fmt::Debug for DialogResponse {
    /// Without the result.
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
    fn each_answer_is_said_as_the_cli_wants_it() {
        for (answer, expected) in [
            (
                ElicitationResponse::accept(json!({"a": 1})).encode(),
                r#"{"action":"accept","content":{"a":1}}"#,
            ),
            (ElicitationResponse::agree().encode(), r#"{"action":"accept"}"#),
            (ElicitationResponse::decline().encode(), r#"{"action":"decline"}"#),
            (ElicitationResponse::cancel().encode(), r#"{"action":"cancel"}"#),
            (
                DialogResponse::completed(json!("retry")).encode(),
                r#"{"behavior":"completed","result":"retry"}"#,
            ),
            (DialogResponse::cancelled().encode(), r#"{"behavior":"cancelled"}"#),
        ] {
            assert_eq!(answer.unwrap().text(), expected);
        }
    }

    #[test]
    fn what_is_no_form_is_not_sent() {
        let text = ElicitationResponse::accept("Ada");
        assert!(text.clone().encode().unwrap_err().contains("no object"));
        assert!(!format!("{text:?} {:?}", DialogResponse::completed("Ada")).contains("Ada"));
        let failed: Result<ElicitationResponse, BoxError> = Err("nobody is there".into());
        assert_eq!(answered(failed), Err("nobody is there".to_owned()));
    }
}
