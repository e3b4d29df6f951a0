//! Operations without a method: their requests, with the types of their responses.

use claude_wire::Json;
use claude_wire::control::{
    BackgroundTasks, BackgroundTasksResponse, BinaryVersion, ContextUsage, FileSuggestions,
    FileSuggestionsResponse, GetBinaryVersion, GetContextUsage, GetHooksListing, GetSessionCost,
    GetUsage, HooksListing, HostRequest, ListModels, ListModelsResponse, ListPermissionRules,
    PermissionRulesResponse, RegisterRepoRoot, RegisterRepoRootResponse, ReloadOutputStyles,
    ReloadOutputStylesResponse, SeedReadState, SessionCost, SetColor, SetHasSubscribers,
    SetMaxThinkingTokens, UpdateSettings, UsageResponse,
};

use super::decoded;
use crate::error::Result;

/// A control request with a typed response, for [`Session::request`](crate::Session::request).
///
/// This trait is sealed. Everyday operations are methods of [`Session`](crate::Session) and
/// [`McpHandle`](crate::mcp::McpHandle).
pub trait Operation: Into<HostRequest> + Send + sealed::Operation {
    /// The response; `()` if the CLI only acknowledges the request.
    type Response: sealed::Response;
}

pub(super) mod sealed {
    use super::{Json, Result};

    pub trait Operation {}

    pub trait Response: Sized + Send {
        fn decode(operation: &str, response: Option<Json>) -> Result<Self>;
    }
}

/// Any request, with the response as it came.
impl Operation for HostRequest {
    type Response = Option<Json>;
}

impl sealed::Operation for HostRequest {}

impl sealed::Response for Option<Json> {
    fn decode(_operation: &str, response: Option<Json>) -> Result<Self> {
        Ok(response)
    }
}

impl sealed::Response for () {
    fn decode(_operation: &str, _response: Option<Json>) -> Result<Self> {
        Ok(())
    }
}

/// Declares requests and their responses.
macro_rules! requests {
    ($( $(#[$meta:meta])* $request:ident => $response:tt; )+) => {$(
        $(#[$meta])*
        impl Operation for $request {
            type Response = $response;
        }

        impl sealed::Operation for $request {}

        requests!(@$response);
    )+};
    (@()) => {};
    (@$response:ident) => {
        impl sealed::Response for $response {
            fn decode(operation: &str, response: Option<Json>) -> Result<Self> {
                decoded(operation, response)
            }
        }
    };
}

requests! {
    /// Returns what fills the context, in the given detail: `summary` or `full`.
    GetContextUsage => ContextUsage;
    /// Returns what the session used, and what is left of the account's limits. The CLI may change
    /// the contents.
    GetUsage => UsageResponse;
    /// Returns the cost of the session, as text for users.
    GetSessionCost => SessionCost;
    /// Returns the models to choose from, as they are now.
    ListModels => ListModelsResponse;
    /// Returns the version of the running CLI.
    GetBinaryVersion => BinaryVersion;
    /// Changes the color of the session.
    SetColor => ();
    /// Returns the hooks of all settings files and plugins; not those of the host.
    GetHooksListing => HooksListing;
    /// Returns the permission rules that are in force.
    ListPermissionRules => PermissionRulesResponse;
    /// Changes settings in a file. The CLI accepts `outputStyle` in the local file and `effortLevel`
    /// in the user's, and refuses all others.
    UpdateSettings => ();
    /// Reloads the output styles.
    ReloadOutputStyles => ReloadOutputStylesResponse;
    /// Sets how many tokens the model may think, and how its thinking is shown: `summarized`,
    /// `omitted` or `highlights`.
    SetMaxThinkingTokens => ();
    /// Moves one running tool call to the background.
    BackgroundTasks => BackgroundTasksResponse;
    /// Tells the CLI whether anything reads partial messages; `null` if that is not known. Only
    /// matters to a CLI that holds them back (`CLAUDE_CODE_STREAM_EVENT_HOLD_MS`).
    SetHasSubscribers => ();
    /// Returns the files below the working directory whose path matches a query.
    FileSuggestions => FileSuggestionsResponse;
    /// Marks a file as already read, so that `Edit` is allowed without a `Read`. Holds if the file
    /// was last changed at `mtime`, in milliseconds since 1970.
    SeedReadState => ();
    /// Adds another directory to the session.
    RegisterRepoRoot => RegisterRepoRootResponse;
}
