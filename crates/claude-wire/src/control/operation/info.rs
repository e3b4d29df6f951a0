//! What the CLI says of itself, and what the session is called.

use crate::control::ModelInfo;
use crate::id::SessionId;
use crate::json::List;

request! {
    /// Which models are there?
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
    /// Which version is it?
    GetBinaryVersion = "get_binary_version" {}
}

wire_struct! {
    /// The version of the CLI.
    #[derive(Default)]
    pub struct BinaryVersion {
        /// The version.
        version: Option<String>,
        /// When it was built.
        build_time: Option<String> as "buildTime",
    }
}

request! {
    /// Give the session another title.
    RenameSession = "rename_session" {
        /// The title.
        title: String,
        /// Who asks: `host` or `remote`.
        source: Option<String>,
        /// The session, if it is not this one.
        session_id: Option<SessionId>,
    }
}

request_by!(RenameSession.title);

request! {
    /// Give the session another colour.
    SetColor = "set_color" {
        /// The color.
        color: String,
    }
}

request_by!(SetColor.color);
