//! Options that older CLIs would ignore without a word: they are refused before anything is sent.

use claude_wire::launch::{PluginDelivery, Settings};

use crate::cli::CliVersion;
use crate::error::{Error, ErrorKind, Result};

/// An option, the oldest CLI that obeys it, and whether it is asked for.
type Need = (&'static str, CliVersion, fn(&Settings) -> bool);

const NEEDS: &[Need] = &[
    ("verbatim_prompts", CliVersion::new(2, 1, 248), |settings| settings.verbatim_prompts),
    ("plugin_delivery", CliVersion::new(2, 1, 261), |settings| {
        settings.plugin_delivery == PluginDelivery::Handshake && !settings.plugins.is_empty()
    }),
];

/// Refuses what this CLI would ignore.
///
/// # Errors
/// [`ErrorKind::Unsupported`], naming every such option and what it needs.
pub(crate) fn check(settings: &Settings, version: CliVersion) -> Result<()> {
    let unmet: Vec<&Need> =
        NEEDS.iter().filter(|(_, oldest, asked)| version < *oldest && asked(settings)).collect();
    let Some((_, newest, _)) = unmet.iter().max_by_key(|(_, oldest, _)| *oldest) else {
        return Ok(());
    };
    let list: Vec<String> =
        unmet.iter().map(|(option, oldest, _)| format!("`{option}` needs {oldest}")).collect();
    let message =
        format!("the CLI is of version {version} and would ignore options: {}", list.join(", "));
    Err(Error::new(ErrorKind::Unsupported, message)
        .remedy("update the CLI, or do without them")
        .with(|facts| facts.needs = Some(newest.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use claude_wire::launch::Plugin;

    #[test]
    fn what_an_older_cli_would_ignore_is_refused_by_name() {
        let asking = Options::new()
            .verbatim_prompts(true)
            .plugin(Plugin::new("/plugins/one"))
            .plugin_delivery(PluginDelivery::Handshake);
        let old = check(&asking.settings, CliVersion::new(2, 1, 110)).unwrap_err();
        assert_eq!(old.kind(), ErrorKind::Unsupported);
        assert_eq!(old.needs(), Some("2.1.261"));
        let text = old.to_string();
        assert!(text.contains("`verbatim_prompts` needs 2.1.248"), "{text}");
        assert!(text.contains("`plugin_delivery` needs 2.1.261"), "{text}");
        let newer = check(&asking.settings, CliVersion::new(2, 1, 250)).unwrap_err().to_string();
        assert!(!newer.contains("verbatim") && newer.contains("plugin_delivery"), "{newer}");
        assert!(check(&asking.settings, CliVersion::new(2, 1, 261)).is_ok());
        assert!(check(&Options::new().settings, CliVersion::new(2, 1, 110)).is_ok());
    }
}
