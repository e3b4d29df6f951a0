//! Variables that skip the tests on a server.

use std::env;
use std::ffi::OsStr;

/// Returns whether the tests on `server` are skipped because of `variable`, and says so.
///
/// # Panics
/// If the variable is set in CI.
#[expect(clippy::print_stderr, reason = "skipped tests must be noticed")]
#[expect(clippy::panic, reason = "every program and test that asks must fail")]
pub(crate) fn is_skipped(server: &str, variable: &str) -> bool {
    match decide(server, variable, env::var_os(variable).as_deref(), env::var_os("CI").as_deref()) {
        Ok(None) => false,
        Ok(Some(skipped)) => {
            eprintln!("{skipped}");
            true
        }
        Err(refused) => panic!("{refused}"),
    }
}

/// Returns the text about skipped tests, if they are skipped.
///
/// # Errors
/// Returns why they are not skipped although the variable is set: a test that did not run would count as passed.
fn decide(
    server: &str,
    variable: &str,
    value: Option<&OsStr>,
    ci: Option<&OsStr>,
) -> Result<Option<String>, String> {
    let is_set = |value: Option<&OsStr>| value.is_some_and(|value| !value.is_empty());
    match (is_set(value), is_set(ci)) {
        (false, _) => Ok(None),
        (true, false) => {
            Ok(Some(format!("the tests on {server} are skipped because of {variable}")))
        }
        (true, true) => Err(format!(
            "the tests on {server} cannot be skipped in CI; help: unset {variable}, or CI on a developer's machine"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_skipped_in_ci() {
        let decide = |value: Option<&str>, ci: Option<&str>| {
            decide("PostgreSQL", "SKIP_IT", value.map(OsStr::new), ci.map(OsStr::new))
        };
        for ci in [None, Some(""), Some("true")] {
            assert_eq!(decide(None, ci), Ok(None));
            assert_eq!(decide(Some(""), ci), Ok(None));
        }
        for ci in [None, Some("")] {
            let skipped = decide(Some("1"), ci).unwrap().unwrap();
            assert!(skipped.contains("PostgreSQL are skipped because of SKIP_IT"), "{skipped}");
        }
        let refused = decide(Some("1"), Some("true")).unwrap_err();
        assert!(refused.contains("PostgreSQL cannot be skipped in CI"), "{refused}");
        assert!(refused.contains("unset SKIP_IT"), "{refused}");
    }
}
