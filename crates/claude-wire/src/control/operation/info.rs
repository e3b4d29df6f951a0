//! The version and the models of the CLI, and the title of the session.

use crate::control::ModelInfo;
use crate::id::SessionId;
use crate::json::List;

request! {
    /// Lists the available models.
    ListModels = "list_models" {}
}

wire_struct! {
    /// The models to choose from.
    #[derive(Default)]
    pub struct ListModelsResponse {
        /// The models.
        models: List<ModelInfo>,
    }
}

request! {
    /// Returns the version of the CLI.
    GetBinaryVersion = "get_binary_version" {}
}

wire_struct! {
    /// The version of the CLI.
    #[derive(Default)]
    pub struct BinaryVersion {
        /// The version.
        version: Option<String>,
        /// The build time.
        build_time: Option<String> as "buildTime",
    }
}

request! {
    /// Renames the session.
    RenameSession = "rename_session" {
        /// The title.
        title: String,
        /// The source of the request: `host` or `remote`.
        source: Option<String>,
        /// The session ID, if it is not this session.
        session_id: Option<SessionId>,
    }
}

request_by!(RenameSession.title);

request! {
    /// Changes the color of the session.
    SetColor = "set_color" {
        /// The color.
        color: String,
    }
}

request_by!(SetColor.color);
