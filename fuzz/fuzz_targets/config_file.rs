//! Whatever stands in a config file or a variable, it gives options or an error that says where.
#![no_main]

use claude_agent_kit::{ErrorKind, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, String, String)| {
    let (toml, text, variable) = input;
    let name = if toml { "x.toml" } else { "x.json" };
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
});
