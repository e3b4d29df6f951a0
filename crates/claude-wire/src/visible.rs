//! Text that a model, a tool or a file controls, for people who decide by it.

use std::fmt::{self, Write as _};

/// The characters without ink that the standard library takes for printable: joiners, fillers, blank symbols,
/// variation selectors.
const BLANK: [(char, char); 14] = [
    ('\u{34f}', '\u{34f}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2065}', '\u{2065}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffc}'),
    ('\u{16fe4}', '\u{16fe4}'),
    ('\u{1d159}', '\u{1d159}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Shows a text as it is: characters that a terminal or a browser would not show, or that change how their
/// neighbors are shown, become `\u{…}` with their number.
///
/// Use it wherever a person reads a text of a model, a tool or a file, above all before a decision. Without it,
/// the command `echo ok \u{202e}…` can look like another one. Escaped are control characters, characters that change
/// the direction of text, invisible characters such as zero-width spaces, variation selectors, tags and fillers, all
/// spaces but the ordinary one, and characters that are private or not assigned. Nothing is left out.
///
/// The form is unambiguous: a backslash is escaped only where the text itself contains `\u{`, so that every `\u{` of
/// the result is an escape. Letters that look like others are not changed.
///
/// The result is one line. With `{:#}`, line breaks and tabs are kept, and each further line begins with `| `, so that
/// no text can look like the lines around it.
///
/// ```
/// use claude_wire::visible::visible;
///
/// let command = "echo ok \u{202e}# \x1b[2K\nrm -r build";
/// assert_eq!(visible(command).to_string(), r"echo ok \u{202e}# \u{1b}[2K\u{a}rm -r build");
/// assert_eq!(format!("{:#}", visible(command)), "echo ok \\u{202e}# \\u{1b}[2K\n| rm -r build");
/// assert_eq!(visible(r"\d \u{202e}").to_string(), r"\d \u{5c}u{202e}");
/// ```
pub fn visible(text: &str) -> VisibleText<'_> {
    VisibleText(text)
}

/// A text with its invisible characters escaped; see [`visible`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibleText<'a>(&'a str);

impl fmt::Display for VisibleText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line_break = f.alternate().then_some("\n| ");
        write_visible(self.0, line_break, true, f)
    }
}

/// Shows a message, such as an error, that may quote such a text: its line breaks and tabs are kept. Texts that are quoted
/// with [`visible`] are not escaped again.
pub fn visible_message(message: &str) -> VisibleMessage<'_> {
    VisibleMessage(message)
}

/// A message with its invisible characters escaped; see [`visible_message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibleMessage<'a>(&'a str);

impl fmt::Display for VisibleMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_visible(self.0, Some("\n"), false, f)
    }
}

/// Writes a text with these line breaks, and tabs; or with both escaped. `is_raw` if the text may contain escapes that
/// are not ours.
fn write_visible(
    text: &str,
    line_break: Option<&str>,
    is_raw: bool,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (at, character) in text.char_indices() {
        match (character, line_break) {
            ('\n', Some(line_break)) => f.write_str(line_break)?,
            ('\t', Some(_)) => f.write_char('\t')?,
            ('\\', _) if is_raw && text[at..].starts_with("\\u{") => escape(character, f)?,
            (character, _) if is_escaped(character) => escape(character, f)?,
            (character, _) => f.write_char(character)?,
        }
    }
    Ok(())
}

fn escape(character: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "\\u{{{:x}}}", u32::from(character))
}

fn is_escaped(character: char) -> bool {
    let is_blank = |(first, last): &(char, char)| (*first..=*last).contains(&character);
    !matches!(character, ' '..='~') && (!is_printable(character) || BLANK.iter().any(is_blank))
}

/// Returns whether the standard library shows the character in `Debug` output: controls, formats, separators,
/// private and unassigned characters are escaped there.
fn is_printable(character: char) -> bool {
    // Combining marks are escaped only at the start of a text.
    let text = String::from_iter(['a', character]);
    text.escape_debug().count() == 2 || matches!(character, '\\' | '\'' | '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shown(character: char) -> bool {
        visible(&character.to_string()).to_string() == character.to_string()
    }

    /// The ranges of Unicode 16: `Cc`, `Cf`, `Zl`, `Zp`, `Zs` without the space, `Bidi_Control`,
    /// `Default_Ignorable_Code_Point`, and blank symbols.
    const HIDDEN: &[(u32, u32)] = &[
        (0x00, 0x1f),
        (0x7f, 0xa0),
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x600, 0x605),
        (0x61c, 0x61c),
        (0x6dd, 0x6dd),
        (0x70f, 0x70f),
        (0x890, 0x891),
        (0x8e2, 0x8e2),
        (0x115f, 0x1160),
        (0x1680, 0x1680),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x2000, 0x200f),
        (0x2028, 0x202f),
        (0x205f, 0x206f),
        (0x2800, 0x2800),
        (0x3000, 0x3000),
        (0x3164, 0x3164),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff0, 0xfffc),
        (0x110bd, 0x110bd),
        (0x110cd, 0x110cd),
        (0x13430, 0x1343f),
        (0x16fe4, 0x16fe4),
        (0x1bca0, 0x1bca3),
        (0x1d159, 0x1d159),
        (0x1d173, 0x1d17a),
        (0xe0000, 0xe0fff),
        (0xf0000, 0xfffff),
        (0x0010_0000, 0x0010_ffff),
    ];

    #[test]
    fn every_invisible_character_is_escaped() {
        for (first, last) in HIDDEN {
            for character in (*first..=*last).filter_map(char::from_u32) {
                let shown = visible(&character.to_string()).to_string();
                assert_eq!(shown, format!("\\u{{{:x}}}", u32::from(character)));
            }
        }
        // What is not in the list is private or not assigned.
        let listed =
            |code: u32| HIDDEN.iter().any(|(first, last)| (*first..=*last).contains(&code));
        for character in ('\0'..=char::MAX).filter(|it| !is_shown(*it)) {
            assert!(listed(u32::from(character)) || !is_printable(character), "{character:?}");
        }
    }

    #[test]
    fn ordinary_text_is_not_changed() {
        let texts = [
            r#"cargo test -- --nocapture | grep -E '^a\.b' > "C:\temp\u\{x}" && echo $? # \\server"#,
            "Käse, naïve, e\u{301}, Łódź, Ἀθῆναι, Москва, 東京, 서울, हिन्दी, ภาษาไทย, العربية, עברית",
            "\u{fffd} ± – “quoted” € 🙂",
        ];
        for text in texts {
            assert_eq!(visible(text).to_string(), text);
            assert_eq!(format!("{:#}", visible(text)), text);
        }
    }

    #[test]
    fn escapes_are_distinguishable_from_the_same_text() {
        let texts = [
            "\u{202e}",
            r"\u{202e}",
            r"\\u{202e}",
            "\\\u{202e}",
            r"\u{5c}u{202e}",
            "\\\\\u{202e}",
            r"\u{5c}",
            "\\",
        ];
        let shown: Vec<String> = texts.iter().map(|text| visible(text).to_string()).collect();
        for (at, one) in shown.iter().enumerate() {
            assert!(!shown[at + 1..].contains(one), "{one}");
            assert_eq!(&decoded(one), texts[at], "{one}");
        }
    }

    /// Replaces each `\u{…}` by its character.
    fn decoded(shown: &str) -> String {
        let mut parts = shown.split("\\u{");
        let mut text = parts.next().unwrap().to_owned();
        for part in parts {
            let (code, rest) = part.split_once('}').unwrap();
            text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            text.push_str(rest);
        }
        text
    }

    #[test]
    fn no_line_of_a_text_looks_like_the_lines_around_it() {
        let text = "ls\nApproved by ana\r\n\tdone\u{2028}x";
        assert_eq!(
            visible(text).to_string(),
            r"ls\u{a}Approved by ana\u{d}\u{a}\u{9}done\u{2028}x"
        );
        assert_eq!(
            format!("{:#}", visible(text)),
            "ls\n| Approved by ana\\u{d}\n| \tdone\\u{2028}x"
        );
    }
}
