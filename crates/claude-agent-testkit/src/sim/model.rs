//! The model of a simulated CLI.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::engine::Engine;
use super::ids::IdGenerator;
use super::scope::Scope;
use super::source::{self, ModelResponse, ScriptSource, Source};
use super::state::{SessionState, lock};
use super::tool_list::name_for_model;
use crate::mock_api::log::RequestLog;
use crate::mock_api::reply::Block;
use crate::mock_api::{ApiRequest, Reply, Script};

/// The number of requests that are kept. Each contains the whole conversation, so an unbounded log would
/// use too much memory.
const KEPT: usize = 100;

/// A handle to the model of a simulated CLI. Clones refer to the same model.
///
/// It has the same methods as [`MockApi`](crate::mock_api::MockApi), so that a test can be written for
/// both.
#[derive(Clone)]
pub struct Model {
    shared: Arc<ModelState>,
}

struct ModelState {
    backend: RwLock<Backend>,
    log: RequestLog,
    release: Arc<Notify>,
}

/// The source of the answers.
#[derive(Clone)]
enum Backend {
    Script(Script),
    /// A Messages API at this address.
    #[cfg(feature = "mock-api")]
    Api(String),
}

impl Model {
    pub(super) fn new(script: Script) -> Self {
        Self::with_backend(Backend::Script(script))
    }

    #[cfg(feature = "mock-api")]
    pub(super) fn with_api_backend(address: String) -> Self {
        Self::with_backend(Backend::Api(address))
    }

    fn with_backend(backend: Backend) -> Self {
        let (backend, log) = (RwLock::new(backend), RequestLog::with_capacity(KEPT));
        Self { shared: Arc::new(ModelState { backend, log, release: Arc::default() }) }
    }

    /// Returns the requests that the model has received, oldest first. The newest 100 are kept.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.shared.log.all().iter().map(|request| ApiRequest::clone(request)).collect()
    }

    /// Waits for a request that satisfies `matches`. Returns immediately if such a request has already
    /// been received.
    ///
    /// This method has no timeout; tests should wrap it in one.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn wait_for_request(&self, matches: impl Fn(&ApiRequest) -> bool) -> ApiRequest {
        self.shared.log.wait_for(matches).await
    }

    /// Replaces the script for later requests.
    pub fn set_script(&self, script: Script) {
        *self.shared.backend.write().unwrap_or_else(PoisonError::into_inner) =
            Backend::Script(script);
    }

    /// Releases every reply that is on [`hold`](crate::mock_api::Reply::hold).
    ///
    /// This includes the replies to all requests in [`requests`](Self::requests), even if they have not
    /// reached the point of the hold; replies to later requests are held again.
    pub fn release_held(&self) {
        self.shared.release.notify_waiters();
    }

    /// Sends a request. Ids are generated only for the replies of a script; an API has its own.
    async fn request(&self, body: Value, ids: &IdGenerator) -> ModelResponse {
        let request = Arc::new(ApiRequest::simulated(body));
        // Created before the request is visible: a test that has seen the request can release its reply.
        let released = Arc::clone(&self.shared.release).notified_owned();
        self.shared.log.record(Arc::clone(&request));
        let backend = self.shared.backend.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reply = match backend {
            Backend::Script(script) => script.reply_to(&request),
            #[cfg(feature = "mock-api")]
            Backend::Api(address) => {
                return super::http_source::request(&address, &request.body).await;
            }
        };
        if let Some(pause) = reply.pause_before {
            tokio::time::sleep(pause).await;
        }
        if let Some(failure) = source::failure_of(&reply) {
            return ModelResponse::Error(failure);
        }
        for block in &mut reply.blocks {
            if let Block::Tool { id, .. } = block {
                *id = ids.tool();
            }
        }
        let stream = ScriptSource::new(reply, ids.message(), request.model(), released);
        ModelResponse::Stream(Source::Script(Box::new(stream)))
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

/// Returns the script of a simulated CLI without a script: it repeats the prompt or the tool result.
pub(super) fn default_script() -> Script {
    Script::respond_with(|request| {
        let results = request.tool_results();
        if let (Some(result), 1..) = (results.last(), request.assistant_turns_after_last_prompt()) {
            return Reply::text(format!("The tool said: {}", result["content"]));
        }
        Reply::text(format!("You said: {}", request.last_prompt().unwrap_or_default()))
    })
}

impl Engine {
    /// Sends the conversation to the model.
    pub(super) async fn request_model(&self, scope: &Scope) -> ModelResponse {
        self.model.request(self.request_body(scope), &self.ids).await
    }

    fn request_body(&self, scope: &Scope) -> Value {
        let messages = lock(&scope.conversation).to_json();
        let state = self.state();
        let system = match &scope.agent {
            Some(agent) => text_block(agent.instructions.as_deref().unwrap_or("You are an agent.")),
            None => self.system_prompt(&state),
        };
        let tools = self.tool_names(&state);
        let tools: Vec<Value> =
            tools.iter().map(|name| json!({"name": name_for_model(name)})).collect();
        json!({
            "model": scope.model(&state),
            "max_tokens": 32_000,
            "system": system,
            "tools": tools,
            "messages": messages,
            "stream": true,
        })
    }

    fn system_prompt(&self, state: &SessionState) -> Value {
        let given = self.launch.system_prompt.as_deref().unwrap_or("You are a simulated agent.");
        let own = match &state.own_prompt {
            Some(parts) => parts.iter().map(String::as_str).collect(),
            None => vec![given],
        };
        let appended = self.launch.append_system_prompt.as_deref();
        let more = [appended, state.appended_prompt.as_deref()].into_iter().flatten();
        own.into_iter().chain(more).map(|text| json!({"type": "text", "text": text})).collect()
    }
}

fn text_block(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}
