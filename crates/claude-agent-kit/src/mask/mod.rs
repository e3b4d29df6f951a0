//! Hides secrets in texts of the CLI and of callbacks.
//!
//! The CLI repeats what it was given in its error messages, and these end up in errors, logs and bug
//! reports. The guide's chapter on errors lists what is masked and in which forms.

mod forms;
mod search;
mod tokens;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

pub(crate) use self::tokens::is_part as is_part_of_token;

use self::search::Search;
use crate::sort;

/// Replaces a secret.
const STARS: &str = "***";

/// Replaces secret values, and keys and tokens that are recognised by what precedes them.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    /// Shared by all clones, since values may be added later.
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    values: Vec<String>,
    /// Built when a text is masked for the first time, which most runs never do.
    search: Option<Arc<Search>>,
}

/// A part of a text without its secrets.
pub(crate) struct MaskedPart {
    pub(crate) text: String,
    /// Whether the part ends inside a key or token.
    pub(crate) inside_token: bool,
}

impl Mask {
    /// Creates a mask that hides these values.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mask = Self::default();
        mask.learn(secrets);
        mask
    }

    /// Adds values, in every clone.
    pub(crate) fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        // Nothing that panics happens under the lock.
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.values.extend(secrets);
        known.search = None;
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of values. It changes when values are added.
    pub(crate) fn len(&self) -> usize {
        self.known().values.len()
    }

    /// Returns the length of the longest text that is hidden, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.search().longest()
    }

    fn search(&self) -> Arc<Search> {
        if let Some(search) = &self.known().search {
            return search.clone();
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let known = &mut *known;
        let search = known.search.get_or_insert_with(|| {
            let mut forms = Vec::new();
            for value in &known.values {
                forms::add(value, &mut forms);
            }
            Arc::new(Search::new(forms.iter().map(String::as_str)))
        });
        search.clone()
    }

    /// Creates a mask that hides the values of variables with secret-looking names.
    pub(crate) fn of_environment<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let mut secrets = Vec::new();
        for (name, value) in variables {
            let name = name.as_ref().to_string_lossy().to_ascii_uppercase();
            let value = value.as_ref().to_string_lossy().into_owned();
            // A token limit is a number, not a secret.
            let is_count = name.ends_with("TOKENS") && value.parse::<u64>().is_ok();
            if !names_a_secret(&name) || is_count {
                continue;
            }
            if name.ends_with("HEADERS") {
                for line in value.lines() {
                    if let Some((_, value)) = line.split_once(':') {
                        secrets.push(value.trim().to_owned());
                    }
                }
            }
            secrets.push(value);
        }
        Self::new(secrets)
    }

    /// Returns the text without secrets. Linear in the length of the text.
    pub(crate) fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut places = Vec::new();
        self.search().find(text, &mut places);
        tokens::find(text, 0, false, &mut places);
        render(text, 0..text.len(), places)
    }

    /// Returns the text without secrets, where the text may end inside of one: hides the beginning
    /// of a secret at its end as well.
    pub(crate) fn apply_to_start<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut places = Vec::new();
        let open = self.search().find(text, &mut places);
        tokens::find(text, 0, false, &mut places);
        if open > 0 {
            places.push(text.len() - open..text.len());
        }
        render(text, 0..text.len(), places)
    }

    /// Returns the first `limit` bytes of a text without secrets. The rest is not examined.
    pub(crate) fn apply_limited<'a>(&self, text: &'a str, limit: usize) -> Cow<'a, str> {
        if text.len() <= limit {
            return self.apply(text);
        }
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        Cow::Owned(format!("{}…", self.apply_to_start(&text[..end])))
    }

    /// Returns a part of a text without secrets, also those that begin before it or end after it.
    ///
    /// `inside_token` means that the part begins inside a key or token whose beginning is missing.
    pub(crate) fn apply_within(
        &self,
        text: &str,
        part: Range<usize>,
        inside_token: bool,
    ) -> MaskedPart {
        let mut places = Vec::new();
        tokens::find(text, part.start, inside_token, &mut places);
        let inside_token = places.iter().any(|at| at.start < part.end && part.end < at.end);
        let mut known = Vec::new();
        self.search().find(text, &mut known);
        places.append(&mut known);
        MaskedPart { text: render(text, part, places).into_owned(), inside_token }
    }
}

/// Returns a part of a text with these ranges replaced. A range that begins before the part leaves no trace
/// in it.
fn render(text: &str, part: Range<usize>, mut places: Vec<Range<usize>>) -> Cow<'_, str> {
    if places.is_empty() {
        return Cow::Borrowed(&text[part]);
    }
    // Stable: the places are a few sorted runs, which it merges in linear time.
    sort::sort_by_key(&mut places, |place| place.start);
    let mut masked = String::with_capacity(part.len());
    let mut shown = part.start;
    for place in places.into_iter().filter(|place| place.start < part.end) {
        // Overlapping places are hidden as one: else the rest of the second would stay visible.
        if place.start >= shown {
            masked.push_str(&text[shown..place.start]);
            masked.push_str(STARS);
        }
        shown = shown.max(place.end.min(part.end));
    }
    masked.push_str(&text[shown..part.end]);
    Cow::Owned(masked)
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("secrets", &self.len()).finish()
    }
}

fn names_a_secret(name: &str) -> bool {
    const PARTS: [&str; 6] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CUSTOM_HEADERS"];
    PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("KEY")
        || name.starts_with("AUTH")
        || name.contains("_AUTH")
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
    fn values_are_hidden_everywhere() {
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
    fn short_values_are_not_masked() {
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
        // JSON that escapes slashes and control characters, URLs, base64 of the whole value.
        let value = "p/ss w\u{1}rd+é";
        check(
            &[value],
            &[
                (r#"{"v":"p\/ss w\u0001rd+é"}"#, r#"{"v":"***"}"#),
                ("https://host/?v=p%2Fss%20w%01rd%2B%C3%A9&x", "https://host/?v=***&x"),
                ("v=p%2Fss+w%01rd%2B%C3%A9", "v=***"),
                ("base64 cC9zcyB3AXJkK8Op", "base64 ***"),
            ],
        );
        check(&["??>>~~x"], &[("Pz8+Pn5+eA== Pz8-Pn5-eA", "*** ***")]);
        check(&["Bearer tok-123456"], &[("dG9rLTEyMzQ1Ng==", "***")]);
        // A value that is too short is not masked in any form.
        check(&["a/b"], &[("a/b a%2Fb YS9i", "a/b a%2Fb YS9i")]);
    }

    #[test]
    fn forms_that_are_documented_as_visible_are_visible() {
        check(
            &["hunter22é"],
            &[
                (r"hunter22\u00e9", r"hunter22\u00e9"),
                ("hunter22%c3%a9", "hunter22%c3%a9"),
                // The value in the middle of `x:hunter22é`.
                ("eDpodW50ZXIyMsOp", "eDpodW50ZXIyMsOp"),
                ("hunter22\né", "hunter22\né"),
                ("HUNTER22é", "HUNTER22é"),
            ],
        );
    }

    /// With a cost that grows with the square of the text each of them would take hours.
    #[test]
    fn masking_is_linear_whatever_the_text_and_the_secrets_are() {
        const SIZE: usize = 2 * 1024 * 1024;
        let overlapping = "a".repeat(SIZE / 8);
        let nested = (6..1000).map(|length| "b".repeat(length));
        let almost = format!("{}x", "c".repeat(SIZE / 8));
        let many = (0..5000).map(|number| format!("value-number-{number}"));
        let secrets = [overlapping, almost].into_iter().chain(nested).chain(many);
        let mask = Mask::new(secrets);
        for (unit, expected) in [
            ("sk-ant-", "***"),
            ("x-api-key=", "x-api-key=***"),
            ("bearer=", "bearer=***"),
            ("a", "***"),
            ("b", "***"),
        ] {
            assert_eq!(mask.apply(&unit.repeat(SIZE / unit.len())), expected, "{unit}");
        }
        let text = "c".repeat(SIZE);
        assert_eq!(mask.apply(&text), text);
        let text = "value-number-".repeat(SIZE / 13);
        assert_eq!(mask.apply(&text), text);
        assert_eq!(mask.apply("value-number-4999"), "***");
    }

    #[test]
    fn a_text_that_is_cut_shows_no_part_of_a_secret() {
        let mask = Mask::new(["secret-value".to_owned()]);
        let text = "ü secret-value, Bearer token-value, ü";
        for limit in 0..text.len() {
            let shown = mask.apply_limited(text, limit);
            assert!(shown.ends_with('…'), "{limit}: {shown}");
            assert!(!shown.contains("se") && !shown.contains("to"), "{limit}: {shown}");
        }
        assert_eq!(mask.apply_limited(text, 10), "ü ***…");
        assert_eq!(mask.apply_limited(text, text.len()), "ü ***, Bearer ***, ü");
        assert_eq!(mask.apply_to_start("no se"), "no ***");
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
