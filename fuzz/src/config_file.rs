//! Any config file and any variables result in options, or in an error with the location.

use claude_agent_kit::{ErrorKind, Options};

use super::input::Input;

/// The input consists of the format, a variable, and the file.
pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let name = if input.one_in(2) { "x.toml" } else { "x.json" };
    let variable = input.text();
    let text = String::from_utf8_lossy(input.rest()).into_owned();
    let variables = ["CLAUDE_SETTINGS", "CLAUDE_ALLOWED_TOOLS", "CLAUDE_IDLE_TIMEOUT"];
    let layers = Options::layered()
        .file_text(name, text)
        .variables(variables.map(|name| (name, variable.clone())));
    match layers.load() {
        Ok(options) => drop(options.explain().to_string()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(!error.problems().is_empty());
        }
    }
}
