//! Parses and checks versions of the CLI.

use std::fmt;
use std::time::Duration;

use super::MINIMUM_FOR_PRINT_MODE;
use crate::error::{Error, ErrorKind, Result};

/// A version of the CLI. A pre-release is treated as its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a version has these three numbers")]
pub struct CliVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch version.
    pub patch: u32,
}

impl CliVersion {
    /// Creates a version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Returns the first `digits.digits.digits` in a text.
    pub(crate) fn find_in(text: &str) -> Option<Self> {
        let starts = text.char_indices().filter(|(at, first)| {
            // Not in the middle of a number.
            first.is_ascii_digit() && !text[..*at].ends_with(|last: char| last.is_ascii_digit())
        });
        starts.map(|(at, _)| &text[at..]).find_map(Self::at_the_start_of)
    }

    fn at_the_start_of(text: &str) -> Option<Self> {
        let (major, rest) = number(text)?;
        let (minor, rest) = number(rest.strip_prefix('.')?)?;
        let (patch, _) = number(rest.strip_prefix('.')?)?;
        Some(Self { major, minor, patch })
    }
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl fmt::Display for CliVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The outcome of running `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The output of the CLI.
    Printed(String),
    /// Why there is no output, although the program ended.
    Failed(String),
    /// The program printed no version within this time.
    TimedOut(Duration),
}

/// Returns the version if it is at least `minimum`.
///
/// # Errors
/// When the version is older than `minimum`, or unknown.
pub(crate) fn judge(probe: &Probe, minimum: CliVersion) -> Result<CliVersion> {
    let error = match probe {
        Probe::Printed(text) => match CliVersion::find_in(text) {
            Some(version) if version >= minimum => return Ok(version),
            Some(version) => return Err(too_old(version, minimum, text)),
            None => Error::new(
                ErrorKind::UnknownCliVersion,
                format!("`--version` printed no version: {:?}", shortened(text)),
            )
            .with(|facts| facts.output = Some(shortened(text))),
        },
        // The same program fails again.
        Probe::Failed(reason) => undetected(reason).with(|facts| facts.is_permanent = true),
        Probe::TimedOut(timeout) => {
            undetected(&format!("no version was printed within {timeout:?}"))
        }
    };
    Err(error.with_help(
        "check that the executable is `claude` and that it runs in a terminal, or accept an unknown \
         version with `VersionCheck::Permissive`",
    ))
}

fn undetected(reason: &str) -> Error {
    Error::new(
        ErrorKind::VersionDetection,
        format!("failed to detect the version of the CLI with `--version`: {reason}"),
    )
}

fn too_old(detected: CliVersion, minimum: CliVersion, output: &str) -> Error {
    let mut help = "update the CLI with `npm install -g @anthropic-ai/claude-code`".to_owned();
    if detected >= MINIMUM_FOR_PRINT_MODE {
        help += ", or set `print_mode(true)`, which supports older versions";
    }
    Error::new(
        ErrorKind::UnsupportedCliVersion,
        format!("CLI version {detected} is not supported: the minimum is {minimum}"),
    )
    .with_help(help)
    .with(|facts| {
        facts.detected = Some(detected);
        facts.output = Some(shortened(output));
    })
}

/// Returns the start of a text, for an error message.
fn shortened(text: &str) -> String {
    text.trim().chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_within_other_text() {
        for (text, expected) in [
            ("claude v1.2.3\n", Some((1, 2, 3))),
            ("1.2.3", Some((1, 2, 3))),
            ("v1.2.3", Some((1, 2, 3))),
            ("Claude Code CLI 1.2.3-beta.1", Some((1, 2, 3))),
            ("  1.2.3  \n", Some((1, 2, 3))),
            ("2.1.325 (Claude Code)", Some((2, 1, 325))),
            ("node 20 with 1.2 and then 3.4.5", Some((3, 4, 5))),
            ("10.20.30.40", Some((10, 20, 30))),
            ("garbage", None),
            ("", None),
            ("1.2", None),
            ("1.2.x", None),
            ("99999999999.1.1", None),
            ("é1.2.3", Some((1, 2, 3))),
        ] {
            let expected =
                expected.map(|(major, minor, patch)| CliVersion::new(major, minor, patch));
            assert_eq!(CliVersion::find_in(text), expected, "{text:?}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(CliVersion::new(2, 1, 9) < CliVersion::new(2, 1, 10));
        assert!(CliVersion::new(1, 99, 0) < CliVersion::new(2, 0, 0));
    }

    #[test]
    fn each_outcome_of_the_probe_has_its_error() {
        let minimum = CliVersion::new(2, 0, 0);
        let printed = |text: &str| Probe::Printed(text.to_owned());
        for (probe, expected) in [
            (printed("2.0.0"), None),
            (printed("2.0.0-beta"), None),
            (printed("1.9.9"), Some(ErrorKind::UnsupportedCliVersion)),
            (printed("?"), Some(ErrorKind::UnknownCliVersion)),
            (Probe::Failed("no".into()), Some(ErrorKind::VersionDetection)),
            (Probe::TimedOut(Duration::from_secs(5)), Some(ErrorKind::VersionDetection)),
        ] {
            let kind = judge(&probe, minimum).err().map(|error| error.kind());
            assert_eq!(kind, expected, "{probe:?}");
        }
    }

    #[test]
    fn only_a_timeout_of_the_probe_is_worth_a_retry() {
        let minimum = CliVersion::new(2, 0, 0);
        for (probe, is_retryable) in [
            (Probe::TimedOut(Duration::from_secs(5)), true),
            (Probe::Failed("nothing was printed (exit status: 1)".into()), false),
            (Probe::Printed("?".into()), false),
            (Probe::Printed("1.9.9".into()), false),
        ] {
            let error = judge(&probe, minimum).unwrap_err();
            assert_eq!(error.is_retryable(), is_retryable, "{error}");
        }
    }

    #[test]
    fn errors_carry_the_output_and_help() {
        let minimum = CliVersion::new(2, 0, 0);
        let judge = |text: &str| judge(&Probe::Printed(text.to_owned()), minimum).unwrap_err();
        let old = judge("1.9.9 (Claude Code)\n");
        assert_eq!(old.detected_version(), Some(CliVersion::new(1, 9, 9)));
        assert!(old.to_string().contains(&minimum.to_string()), "{old}");
        assert_eq!(old.output(), Some("1.9.9 (Claude Code)"));
        let help = old.help().unwrap_or_default();
        assert!(help.contains("npm install -g @anthropic-ai/claude-code"), "{help}");
        assert!(help.contains("`print_mode(true)`"), "{help}");
        // Too old for print mode as well.
        assert!(!judge("0.9.9").to_string().contains("print_mode"));
        let strange = judge(&"é".repeat(1000));
        assert_eq!(strange.output(), Some("é".repeat(100).as_str()));
        let help = strange.help().unwrap_or_default();
        assert!(help.contains("`VersionCheck::Permissive`"), "{help}");
    }
}
