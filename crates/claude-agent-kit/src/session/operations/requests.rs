//! Operations without a method: their requests, with the types of their responses.

use claude_wire::Json;
use claude_wire::control::{
    ApplyFlagSettings, BackgroundTasks, BackgroundTasksResponse, BinaryVersion, ContextUsage,
    FileSuggestions, FileSuggestionsResponse, GetBinaryVersion, GetContextUsage, GetHooksListing,
    GetSessionCost, GetSettings, GetTaskOutput, GetUsage, HooksListing, HostRequest, ListModels,
    ListModelsResponse, ListPermissionRules, McpPermissionModeOverrideResponse, McpReadResource,
    McpReadResourceResponse, PermissionRulesResponse, ReadFile, ReadFileResponse, RegisterRepoRoot,
    RegisterRepoRootResponse, ReloadOutputStyles, ReloadOutputStylesResponse, ReloadPlugins,
    ReloadPluginsResponse, ReloadSkills, ReloadSkillsResponse, SeedReadState, SessionCost,
    SetColor, SetHasSubscribers, SetMaxThinkingTokens, SetMcpPermissionModeOverride, SetModel,
    SetModelResponse, SettingsResponse, TaskOutput, UpdateSettings, UsageResponse,
};

use super::decode;
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

    pub trait Operation {
        /// Returns what the CLI must support for this request, because it would ignore it otherwise.
        fn requirement(&self) -> Option<Requirement> {
            None
        }
    }

    /// A field of a request that only some versions of the CLI support.
    #[derive(Clone, Copy, Debug)]
    pub struct Requirement {
        pub field: &'static str,
        pub capability: &'static str,
    }

    pub trait Response: Sized + Send {
        fn decode(operation: &str, response: Option<Json>) -> Result<Self>;
    }
}

/// Any request, with the response as JSON.
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

        requests!(@operation $request);
        requests!(@$response);
    )+};
    // Implemented below.
    (@operation ReloadPlugins) => {};
    (@operation $request:ident) => {
        impl sealed::Operation for $request {}
    };
    (@()) => {};
    (@$response:ident) => {
        impl sealed::Response for $response {
            // Compiled only where the request is sent.
            #[inline]
            fn decode(operation: &str, response: Option<Json>) -> Result<Self> {
                decode(operation, response)
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
    /// Returns the settings that are in force, and where they come from.
    GetSettings => SettingsResponse;
    /// Changes settings of this session, over those of all files. Each key replaces the one of that
    /// name; `null` removes it.
    ApplyFlagSettings => ();
    /// Changes settings in a file. The CLI accepts `outputStyle` in the local file and `effortLevel`
    /// in the user's, and rejects all others.
    UpdateSettings => ();
    /// Reloads the skills.
    ReloadSkills => ReloadSkillsResponse;
    /// Reloads the plugins. With `refuse_if_busy` the error is
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the CLI would ignore that field.
    ReloadPlugins => ReloadPluginsResponse;
    /// Reloads the output styles.
    ReloadOutputStyles => ReloadOutputStylesResponse;
    /// Changes the model, from the next request on; `SetModel::default()` returns to the default
    /// model.
    SetModel => SetModelResponse;
    /// Sets the thinking budget in tokens, and how thinking is shown: `summarized`, `omitted` or
    /// `highlights`; `SetMaxThinkingTokens::default()` restores the default budget.
    SetMaxThinkingTokens => ();
    /// Moves running tools and agents to the background, so that the turn continues without them:
    /// one tool call, or all.
    BackgroundTasks => BackgroundTasksResponse;
    /// Returns the end of the output of a background shell.
    GetTaskOutput => TaskOutput;
    /// Sets whether anything reads partial messages; `null` if that is not known. Only matters to a
    /// CLI that holds them back (`CLAUDE_CODE_STREAM_EVENT_HOLD_MS`).
    SetHasSubscribers => ();
    /// Reads a file of the machine on which the CLI runs. The CLI rejects files that its tools may
    /// not read.
    ReadFile => ReadFileResponse;
    /// Returns the files below the working directory whose path matches a query.
    FileSuggestions => FileSuggestionsResponse;
    /// Marks a file as already read, so that `Edit` is allowed without a `Read`. Holds if the file
    /// was last changed at `mtime`, in milliseconds since 1970.
    SeedReadState => ();
    /// Adds another directory to the session.
    RegisterRepoRoot => RegisterRepoRootResponse;
    /// Reads a resource of an MCP server. The CLI rejects all but `ui://`.
    McpReadResource => McpReadResourceResponse;
    /// Changes who decides about the tools of one MCP server: `default` or `auto`; `null` returns to
    /// the permission mode of the session.
    SetMcpPermissionModeOverride => McpPermissionModeOverrideResponse;
}

impl sealed::Operation for ReloadPlugins {
    fn requirement(&self) -> Option<sealed::Requirement> {
        (self.refuse_if_busy == Some(true)).then_some(sealed::Requirement {
            field: "refuse_if_busy",
            capability: "reload_plugins_refuse_if_busy_v1",
        })
    }
}
