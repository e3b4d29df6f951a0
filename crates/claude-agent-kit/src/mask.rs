//! Hides secrets in what the CLI prints.
//!
//! What the host passed on as a secret comes back in complaints of the CLI, and complaints end up
//! in errors, logs and bug reports.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// What stands in the place of a secret.
const STARS: &str = "***";

/// Shorter values are no secrets, and hiding every `1` or `true` would make a text unreadable.
const SHORTEST: usize = 6;

/// Values that must not be shown, and the forms by which others are recognised.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    /// Shared by all copies, since more may have to be hidden later.
    secrets: Arc<RwLock<Vec<String>>>,
}

impl Mask {
    /// Hides these values.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mask = Self::default();
        mask.learn(secrets);
        mask
    }

    /// From now on hides these values as well, in every copy.
    pub(crate) fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        // Nothing that panics happens under the lock.
        let mut found = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            add(&mut found, secret.trim());
        }
        // Longest first: it hides what is inside of it.
        found.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        found.dedup();
    }

    fn known(&self) -> RwLockReadGuard<'_, Vec<String>> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hides the values of variables whose names say that they are secret.
    pub(crate) fn of_environment<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let mut secrets = Vec::new();
        for (name, value) in variables {
            let name = name.as_ref().to_string_lossy().to_ascii_uppercase();
            let value = value.as_ref().to_string_lossy().into_owned();
            // A limit of tokens is a number.
            let is_count = name.ends_with("TOKENS") && value.parse::<u64>().is_ok();
            if !names_a_secret(&name) || is_count {
                continue;
            }
            if name.ends_with("HEADERS") {
                let values = value.lines().filter_map(|line| line.split_once(':'));
                secrets.extend(values.map(|(_, value)| value.trim().to_owned()));
            }
            secrets.push(value);
        }
        Self::new(secrets)
    }

    /// The text without the secrets.
    pub(crate) fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut places = Vec::new();
        for secret in self.known().iter() {
            occurrences(text, secret, &mut places);
        }
        tokens(text, &mut places);
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.sort_unstable_by_key(|place| place.start);
        let mut masked = String::with_capacity(text.len());
        let mut shown = 0;
        for place in places {
            // What overlaps is hidden as one: else the rest of the second would stay visible.
            if place.start >= shown {
                masked.push_str(&text[shown..place.start]);
                masked.push_str(STARS);
            }
            shown = shown.max(place.end);
        }
        masked.push_str(&text[shown..]);
        Cow::Owned(masked)
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("secrets", &self.known().len()).finish()
    }
}

/// Adds a value in the forms in which it may be printed.
fn add(found: &mut Vec<String>, secret: &str) {
    let forms = [
        // `Bearer x`: the scheme may be left out.
        secret.split_once(' ').map_or(secret, |(_, token)| token.trim()).to_owned(),
        // Inside JSON.
        secret.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
        secret.to_owned(),
    ];
    // A key of several lines is printed line by line.
    let lines = secret.lines().filter(|line| line.len() < secret.len());
    let all = forms.into_iter().chain(lines.map(|line| line.trim().to_owned()));
    found.extend(all.filter(|form| form.chars().count() >= SHORTEST));
}

fn names_a_secret(name: &str) -> bool {
    const PARTS: [&str; 6] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CUSTOM_HEADERS"];
    PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("KEY")
        || name.starts_with("AUTH")
        || name.contains("_AUTH")
}

/// Every place where the secret stands, also where it overlaps itself.
fn occurrences(text: &str, secret: &str, places: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some(at) = text[from..].find(secret) {
        let start = from + at;
        places.push(start..start + secret.len());
        from = start + secret.chars().next().map_or(1, char::len_utf8);
    }
}

/// Keys and tokens that are recognised by what stands before them.
fn tokens(text: &str, places: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices("sk-ant-") {
        places.push(at..end_of_token(text, at));
    }
    for prefix in ["bearer", "x-api-key"] {
        let mut from = 0;
        while let Some(at) = find_ignoring_case(&text[from..], prefix) {
            from += at + prefix.len();
            let gap = text[from..].find(|c: char| !matches!(c, ' ' | ':' | '=' | '"' | '\''));
            // Without a gap it is a longer word.
            if let Some(gap) = gap.filter(|gap| *gap > 0) {
                let start = from + gap;
                let end = end_of_token(text, start);
                places.extend((end > start).then_some(start..end));
            }
        }
    }
}

fn end_of_token(text: &str, start: usize) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c);
    text[start..].find(|c| !is_part(c)).map_or(text.len(), |length| start + length)
}

/// The needle is ASCII and in lower case.
fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    let needle = needle.as_bytes();
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(secrets: &[&str], cases: &[(&str, &str)]) {
        let mask = Mask::new(secrets.iter().map(|&secret| secret.to_owned()));
        for (text, expected) in cases {
            assert_eq!(mask.apply(text), *expected, "{text:?} without {secrets:?}");
        }
    }

    #[test]
    fn values_are_hidden_wherever_they_stand() {
        check(
            &["hunter22", "pass word"],
            &[
                ("", ""),
                ("nothing here", "nothing here"),
                ("hunter22", "***"),
                ("a hunter22 b hunter22hunter22", "a *** b ******"),
                ("it is \"pass word\"", "it is \"***\""),
                ("Hunter22 is another", "Hunter22 is another"),
                ("ümläut hunter22 ümläut", "ümläut *** ümläut"),
            ],
        );
    }

    #[test]
    fn short_values_are_no_secrets() {
        check(&["1", "true", "", "12345"], &[("1 true 12345", "1 true 12345")]);
        // Characters count, not bytes.
        check(&["üüüüü"], &[("üüüüü", "üüüüü")]);
        check(&["üüüüüü"], &[("üüüüüü", "***")]);
    }

    #[test]
    fn secrets_that_overlap_leave_nothing_of_each_other() {
        check(&["abcdef", "abcdefghij"], &[("abcdefghij abcdef", "*** ***")]);
        check(&["abcdefgh", "efghijkl"], &[("-abcdefghijkl-", "-***-")]);
        check(&["aaaaaa"], &[("aaaaaaaaaa", "***")]);
        check(&["abcdef", "cdefgh", "bcdefg"], &[("xabcdefghx", "x***x")]);
    }

    #[test]
    fn a_secret_is_hidden_in_every_form_in_which_it_may_be_printed() {
        check(&["Bearer tok-123456"], &[("got tok-123456!", "got ***!")]);
        check(&["qu\"ote\\d"], &[(r#"{"v":"qu\"ote\\d"}"#, r#"{"v":"***"}"#)]);
        let key = "-----BEGIN-----\nMIIEabcdefgh\n-----END-----";
        check(&[key], &[("line MIIEabcdefgh", "line ***"), (key, "***")]);
        check(&[key], &[(r"-----BEGIN-----\nMIIEabcdefgh\n-----END-----", "***")]);
    }

    #[test]
    fn keys_and_tokens_are_recognised_without_being_known() {
        check(
            &[],
            &[
                ("key sk-ant-api03-Ab_c-9 is bad", "key *** is bad"),
                ("Authorization: Bearer xyz.abc==", "Authorization: Bearer ***"),
                ("authorization: bearer   xyz, more", "authorization: bearer   ***, more"),
                (r#""x-api-key":"abc" "#, r#""x-api-key":"***" "#),
                ("X-Api-Key=abc", "X-Api-Key=***"),
                ("bearer", "bearer"),
                ("bearer: ", "bearer: "),
                ("forbearers stand", "forbearers stand"),
                ("Bearer Bearer abc", "Bearer *** ***"),
                ("Bearer ünïcode", "Bearer ünïcode"),
            ],
        );
    }

    #[test]
    fn variables_are_secret_by_their_names() {
        let secret = |name: &str| {
            Mask::of_environment([(name, "value-of-it")]).apply("value-of-it") == "***"
        };
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "AUTHORIZATION",
            "ANTHROPIC_CUSTOM_HEADERS",
            "npm_config__authToken",
            "my_key",
        ] {
            assert!(secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "KEYBOARD_LAYOUT", "ANTHROPIC_MODEL", "LANG"] {
            assert!(!secret(name), "{name}");
        }
        let limits = Mask::of_environment([("MAX_THINKING_TOKENS", "1000000")]);
        assert_eq!(limits.apply("1000000"), "1000000");
    }

    #[test]
    fn each_header_of_a_list_is_hidden_by_itself() {
        let headers = "X-One: first-value\nX-Two: second-value";
        let mask = Mask::of_environment([("ANTHROPIC_CUSTOM_HEADERS", headers)]);
        assert_eq!(mask.apply("x-two is second-value"), "x-two is ***");
    }

    #[test]
    fn values_can_be_added_and_a_mask_does_not_show_them() {
        let mask = Mask::new(["first-secret".to_owned()]);
        let copy = mask.clone();
        mask.learn(["second-one".to_owned()]);
        assert_eq!(copy.apply("first-secret, second-one"), "***, ***");
        assert_eq!(mask.apply("first-secret, second-one"), "***, ***");
        assert_eq!(format!("{mask:?}"), "Mask { secrets: 2 }");
    }
}
