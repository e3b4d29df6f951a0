//! What the handshake carries of the settings.

use super::settings::{Secret, Settings, SystemPrompt};
use crate::control::Initialize;

/// The handshake of a session with these settings. Hooks, agents and whatever else lives in the
/// host's process are for the host to add.
///
/// Prompts and schemas stand here and not on the command line: they can be large, and everybody on
/// the machine can read the command line. A file with a system prompt is named there.
pub fn initialize(settings: &Settings) -> Initialize {
    let mut initialize = Initialize::default();
    if let Some(SystemPrompt::Text(text)) = &settings.system_prompt {
        initialize.system_prompt = vec![text.clone()].into();
    }
    let append = settings.append_system_prompt.as_ref();
    initialize.append_system_prompt = append.map(|text| Secret::expose(text).to_owned());
    initialize.json_schema.clone_from(&settings.output_schema);
    initialize
}
