//! Options of which only those of the highest source apply.

use claude_wire::settings::PermissionPrompts;

use super::table::{Row, TABLE};
use crate::options::Options;

/// The layers that set each option, the lowest first.
pub(super) type Levels = Vec<(&'static str, usize)>;

/// Options that together make one decision. The highest source that sets any of them takes precedence
/// over all of them in lower sources.
struct Group {
    deciding: &'static [&'static str],
    /// Options that only qualify the deciding ones.
    details: &'static [&'static str],
}

const GROUPS: [Group; 1] =
    [Group { deciding: &["permission_prompts", "permission_prompt_tool"], details: &[] }];

/// Resets the options of lower sources where a higher source decides.
pub(super) fn remove_ignored(all: &mut Options, levels: &Levels) {
    for group in GROUPS {
        group.remove_ignored(all, levels);
    }
}

impl Group {
    fn remove_ignored(&self, all: &mut Options, levels: &Levels) {
        let unset = Options::new();
        let level_of = |row: &Row| {
            let level = levels.iter().rfind(|(name, _)| *name == row.name);
            level.map(|(_, level)| *level)
        };
        let decides = |row: &&Row| self.deciding.contains(&row.name) && is_significant(row, all);
        let mut highest = None;
        for row in TABLE.iter().filter(decides) {
            highest = highest.max(level_of(row));
        }
        for row in TABLE {
            let belongs = self.deciding.contains(&row.name) || self.details.contains(&row.name);
            if belongs && level_of(row) < highest {
                row.replace(all, &unset);
                all.origins.remove(row.name);
            }
        }
    }
}

/// Returns whether a value differs from the default. `permission_prompts` for the host does not count,
/// because the tool may respond for the host.
fn is_significant(row: &Row, all: &Options) -> bool {
    let host = Some(PermissionPrompts::Host);
    let is_host = row.name == "permission_prompts" && all.settings.permission_prompts == host;
    row.show(all) != row.show(&Options::new()) && !is_host
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Conversation, Layers, prepare};

    /// Returns the arguments of the CLI.
    fn arguments(options: &Options) -> Vec<String> {
        prepare(options, None).map(|prepared| prepared.command.arguments).ok().unwrap()
    }

    fn file(text: &str) -> Layers {
        Options::layered().file_text("a.json", text)
    }

    /// Checks that the arguments contain `present` and not `absent`, without a warning.
    fn check(layers: Layers, builder: Options, present: &str, absent: &str) {
        let options = layers.under(builder).unwrap();
        let arguments = arguments(&options).join(" ");
        assert!(arguments.contains(present), "{present}: {arguments}");
        assert!(!arguments.contains(absent), "{absent}: {arguments}");
        assert!(prepare(&options, None).is_ok_and(|it| it.warnings.is_empty()));
    }

    #[test]
    fn the_highest_source_decides_about_the_conversation() {
        let resume = || file(r#"{"conversation": {"resume": "r", "at": "m", "persist": false}}"#);
        let latest = Options::new().conversation(Conversation::latest());
        check(resume(), latest.clone(), "--continue --no-session-persistence", "--resume");
        let new = Options::new().conversation(Conversation::new().persistent());
        check(resume(), new, "--await-initialize", "--resume");
        check(
            resume().file_text("b.json", r#"{"conversation": {"latest": false}}"#),
            Options::new(),
            "--no-session-persistence",
            "--resume",
        );
        let options = resume().under(latest).unwrap();
        assert_eq!(
            options.explain().to_string(),
            "conversation = {\"latest\": true} (builder)\n\
             conversation.persist = false (a.json:1:45)\n"
        );
    }

    #[test]
    fn the_highest_source_decides_about_permission_prompts() {
        let new = Options::new;
        for (layers, builder, present, absent) in [
            (
                file(r#"{"permission_prompts": "none"}"#),
                new().permission_prompt_tool("p"),
                "--permission-prompt-tool=p",
                "none",
            ),
            (
                file(r#"{"permission_prompt_tool": "p"}"#)
                    .variables([("CLAUDE_PERMISSION_PROMPTS", "none")]),
                new(),
                "--permission-prompts=none",
                "--permission-prompt-tool",
            ),
            // The tool responds for the host.
            (
                file(r#"{"permission_prompt_tool": "p"}"#),
                new().permission_prompts("host"),
                "--permission-prompt-tool=p",
                "none",
            ),
        ] {
            check(layers, builder, present, absent);
        }
    }
}
