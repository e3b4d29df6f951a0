//! Merges a settings file with the sandbox option.

use std::io;
use std::path::Path;

use claude_wire::Json;
use claude_wire::launch::{Problem, Settings};
use claude_wire::settings::SettingsSource;

use crate::small_file;

/// Replaces a settings file by its content if there is a sandbox: the CLI accepts a file or a value, not
/// both.
pub(super) fn inline_settings_for_sandbox(settings: &mut Settings, problems: &mut Vec<Problem>) {
    if settings.sandbox.is_none() {
        return;
    }
    let Some(SettingsSource::File(path)) = &settings.settings else { return };
    // The CLI resolves the path from its working directory.
    let path = settings.cwd.as_ref().map_or_else(|| path.clone(), |cwd| cwd.join(path));
    match read(&path) {
        Ok(value) => settings.settings = Some(SettingsSource::Value(value)),
        Err(error) => {
            let reason = format!(
                "cannot read `{}` to merge the sandbox into it: {error}; help: correct the path, or \
                 pass the settings as a value",
                path.display()
            );
            problems.push(Problem::new(&["sandbox", "settings"], reason));
            // Reported once.
            settings.settings = None;
        }
    }
}

/// Reads a settings file.
pub(crate) fn read(path: &Path) -> io::Result<Json> {
    let text = String::from_utf8(small_file::read(path)?).map_err(io::Error::other)?;
    let json = Json::from_text(text).map_err(io::Error::other)?;
    if !json.text().starts_with('{') {
        return Err(io::Error::other("not a JSON object"));
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use claude_wire::settings::Sandbox;

    use super::*;

    fn settings(file: &str, directory: &Path) -> Settings {
        let mut settings = Settings::default();
        settings.sandbox = Some(Sandbox::default().enabled(true).into());
        settings.settings = Some(SettingsSource::File(file.into()));
        settings.cwd = Some(directory.to_owned());
        settings
    }

    #[test]
    fn a_settings_file_is_passed_by_value_beside_a_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let text = " {\"model\":\"m\"}\n";
        std::fs::write(folder.path().join("s.json"), text).unwrap();
        let mut settings = settings("s.json", folder.path());
        let mut problems = Vec::new();
        inline_settings_for_sandbox(&mut settings, &mut problems);
        assert_eq!(problems, []);
        let Some(SettingsSource::Value(value)) = settings.settings else { panic!() };
        assert_eq!(value.text(), text.trim());
    }

    #[test]
    fn without_a_sandbox_the_file_is_passed_by_path() {
        let mut settings = settings("missing.json", Path::new("/"));
        settings.sandbox = None;
        let before = settings.clone();
        inline_settings_for_sandbox(&mut settings, &mut Vec::new());
        assert_eq!(settings, before);
    }

    #[test]
    fn an_unreadable_file_is_reported_with_both_options() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("list.json", "[]");
        write("broken.json", "{");
        write("huge.json", &format!("{{\"a\":\"{}\"}}", "x".repeat(2 * 1024 * 1024)));
        for file in ["missing.json", "list.json", "broken.json", "huge.json", "."] {
            let mut settings = settings(file, folder.path());
            let mut problems = Vec::new();
            inline_settings_for_sandbox(&mut settings, &mut problems);
            assert_eq!(problems.len(), 1, "{file}");
            assert_eq!(problems[0].options, ["sandbox", "settings"]);
        }
    }
}
