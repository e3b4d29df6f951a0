//! Options that say one thing together, where several sources speak of it.

use std::collections::BTreeMap;

use claude_wire::settings::PermissionPrompts;

use super::table::{Row, TABLE};
use crate::options::Options;

/// For each option the highest layer that gives it.
pub(super) type Levels = BTreeMap<&'static str, usize>;

/// Options that say one thing together. The highest source that decides it beats what lower ones
/// say of it, by whichever option.
struct Group {
    deciding: &'static [&'static str],
    /// What goes with them, and alone says nothing.
    details: &'static [&'static str],
}

const GROUPS: [Group; 1] =
    [Group { deciding: &["permission_prompts", "permission_prompt_tool"], details: &[] }];

/// Puts back to its default what a lower source says where a higher one decides.
pub(super) fn leave_out_what_is_beaten(all: &mut Options, levels: &Levels) {
    for group in GROUPS {
        group.leave_out_what_is_beaten(all, levels);
    }
}

impl Group {
    fn leave_out_what_is_beaten(&self, all: &mut Options, levels: &Levels) {
        let unset = Options::new();
        let level_of = |row: &Row| levels.get(row.name).copied();
        let decides = |row: &&Row| self.deciding.contains(&row.name) && says_something(row, all);
        let highest = TABLE.iter().filter(decides).filter_map(level_of).max();
        let belongs =
            |row: &&Row| self.deciding.contains(&row.name) || self.details.contains(&row.name);
        for row in TABLE.iter().filter(belongs).filter(|row| level_of(row) < highest) {
            (row.replace)(all, &unset);
            all.origins.remove(row.name);
        }
    }
}

/// Whether what was given differs from the default: `continue_latest = false` does not, nor do
/// `permission_prompts` that go to the host, where the tool may answer for it.
fn says_something(row: &Row, all: &Options) -> bool {
    let host = Some(PermissionPrompts::Host);
    let is_host = row.name == "permission_prompts" && all.settings.permission_prompts == host;
    (row.show)(all) != (row.show)(&Options::new()) && !is_host
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Conversation, Layers, prepare};

    /// The arguments with which the CLI would be started.
    fn arguments(options: &Options) -> Vec<String> {
        prepare(options, None).map(|prepared| prepared.command.arguments).ok().unwrap()
    }

    fn file(text: &str) -> Layers {
        Options::layered().file_text("a.json", text)
    }

    /// What the CLI would be told, and what it would not be, with no warning.
    fn check(layers: Layers, builder: Options, there: &str, gone: &str) {
        let options = layers.under(builder).unwrap();
        let arguments = arguments(&options).join(" ");
        assert!(arguments.contains(there), "{there}: {arguments}");
        assert!(!arguments.contains(gone), "{gone}: {arguments}");
        assert!(prepare(&options, None).is_ok_and(|it| it.warnings.is_empty()));
    }

    #[test]
    fn the_highest_source_says_which_conversation_it_is() {
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
    fn the_highest_source_says_who_answers_permission_requests() {
        let new = Options::new;
        for (layers, builder, there, gone) in [
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
            // The host is asked through the tool.
            (
                file(r#"{"permission_prompt_tool": "p"}"#),
                new().permission_prompts("host"),
                "--permission-prompt-tool=p",
                "none",
            ),
        ] {
            check(layers, builder, there, gone);
        }
    }
}
