//! Whether the crates are ready to be published, and what their dependencies are licensed under.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the way to fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;
use tests_e2e::public_api::CRATES;
use tests_e2e::workspace::root;

/// Far more than the crates have; a corpus that was packaged by mistake exceeds it.
const MAX_SOURCE_BYTES: u64 = 3_000_000;

/// The licences that dependencies may have.
const LICENCES: [&str; 6] = ["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Old versions of dependencies that are in the tree beside newer ones, and what requires them. `syn` is not part of
/// the built programs. The others are there only with the features `postgres` and `s3` of claude-agent-store, or only
/// on other platforms.
const OLD_VERSIONS: [(&str, &str, &str); 8] = [
    ("base64", "0.22.", "postgres-protocol 0.6"),
    ("crypto-common", "0.1.", "crc-fast 1, of object_store"),
    ("digest", "0.10.", "crc-fast 1, of object_store"),
    ("fallible-iterator", "0.2.", "postgres-protocol 0.6"),
    ("getrandom", "0.2.", "ring 0.17"),
    ("syn", "2.", "some macro crates"),
    ("wasi", "0.14.", "whoami 2, on WASI only"),
    ("windows-sys", "0.52.", "ring 0.17, on Windows only"),
];

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the packages of the dependency tree, the workspace included.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--locked", "--format-version=1", "--all-features"]);
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    let Value::Array(packages) = metadata["packages"].take() else { panic!("no packages") };
    packages
}

fn files(name: &str) -> Vec<String> {
    let list = cargo(&["package", "--list", "--allow-dirty", "--package", name]);
    // The separator is that of the platform.
    list.lines().map(|line| line.replace('\\', "/")).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn only_the_listed_crates_are_published() {
    let mut published: Vec<String> = packages()
        .iter()
        .filter(|package| package["source"].is_null() && package["publish"].is_null())
        .map(|package| package["name"].as_str().unwrap().to_owned())
        .collect();
    let mut expected = CRATES.map(str::to_owned).to_vec();
    published.sort();
    expected.sort();
    assert_eq!(published, expected);
}

#[test]
fn every_published_crate_has_the_metadata_of_a_registry() {
    let packages = packages();
    for name in CRATES {
        let package = packages.iter().find(|package| package["name"] == name).unwrap();
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{name} has no {field}");
        }
        for field in ["keywords", "categories"] {
            // crates.io accepts at most five of each.
            let count = package[field].as_array().unwrap().len();
            assert!((1..=5).contains(&count), "{name} has {count} {field}");
        }
        let docs = &package["metadata"]["docs"]["rs"];
        assert_eq!(docs["all-features"], true, "{name}");
        assert_eq!(docs["rustdoc-args"], serde_json::json!(["--cfg", "docsrs"]), "{name}");
    }
}

#[test]
fn every_package_has_its_readme_and_licences_and_no_recordings() {
    for name in CRATES {
        let files = files(name);
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            assert!(files.iter().any(|listed| listed == file), "{name} is packaged without {file}");
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(&format!("crates/{name}/{licence}")), read(licence), "{name}");
        }
        // Cargo writes some of the listed files itself.
        let sizes = files.iter().filter_map(|file| {
            fs::metadata(root().join("crates").join(name).join(file)).ok().map(|data| data.len())
        });
        let bytes: u64 = sizes.sum();
        assert!(bytes < MAX_SOURCE_BYTES, "{name} has {bytes} bytes");
        assert!(!files.iter().any(|file| file.contains("corpus/")), "{name}: {files:?}");
    }
}

#[test]
fn every_example_is_in_the_package_of_the_kit() {
    let files = files("claude-agent-kit");
    let mut count = 0;
    for entry in fs::read_dir(root().join("crates/claude-agent-kit/examples")).unwrap() {
        let file = format!("examples/{}", entry.unwrap().file_name().to_string_lossy());
        assert!(files.contains(&file), "{file} is not packaged");
        count += 1;
    }
    assert!(count > 5, "{count}");
}

/// Cargo publishes in the order of the dependencies, and so does a maintainer after a failed upload.
#[test]
fn crates_are_published_after_their_dependencies() {
    let packages = packages();
    for (at, name) in CRATES.iter().enumerate() {
        let package = packages.iter().find(|package| package["name"] == *name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_later =
                |later: &&str| dependency["name"] == **later && dependency["kind"] != "dev";
            assert!(!CRATES[at..].iter().any(is_later), "{name}: {dependency}");
        }
    }
    let order = CRATES.map(|name| format!("`{name}`")).join(", ");
    let contributing = read("CONTRIBUTING.md").replace("\n   ", " ");
    assert!(contributing.contains(&order), "CONTRIBUTING.md does not list {order}");
}

#[test]
fn no_crate_depends_on_the_kit() {
    let packages = packages();
    for name in CRATES.iter().filter(|name| **name != "claude-agent-kit") {
        let package = packages.iter().find(|package| package["name"] == *name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            // The tests and examples of the stores use it, by path.
            let is_test = dependency["kind"] == "dev" && dependency["req"] == "*";
            assert!(dependency["name"] != "claude-agent-kit" || is_test, "{name}");
        }
    }
    // With a version, a dev-dependency of the kit on itself could not be published.
    let kit = packages.iter().find(|package| package["name"] == "claude-agent-kit").unwrap();
    for dependency in kit["dependencies"].as_array().unwrap() {
        if dependency["name"] == "claude-agent-kit" {
            assert_eq!((&dependency["kind"], &dependency["req"]), (&"dev".into(), &"*".into()));
        }
    }
}

/// Whether a licence expression can be met with these licences.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    // Some old packages separate alternatives by a slash.
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = expression.split_whitespace().peekable();
    let met = any_of(&mut words, allowed);
    met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut met = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let met = any_of(words, allowed);
        return words.next_if_eq(&")").is_some() && met;
    }
    let Some(licence) = words.next() else { return false };
    // With an exception it is another licence, which would have to be listed as such.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
        return false;
    }
    allowed.contains(&licence)
}

#[test]
fn licence_expressions_are_evaluated() {
    let allowed = ["MIT", "Unicode-3.0"];
    for expression in ["MIT", "X/MIT", "X WITH y OR MIT", "(MIT OR X) AND Unicode-3.0"] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["", "X", "MIT AND X", "MIT WITH y", "(MIT OR X) AND X", "(MIT", "MIT X"] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}

#[test]
fn every_dependency_has_an_allowed_licence_and_comes_from_the_registry() {
    for package in packages() {
        let name = &package["name"];
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_allowed(licence, &LICENCES), "{name} is licensed under {licence:?}");
        if let Some(source) = package["source"].as_str() {
            let registry = "registry+https://github.com/rust-lang/crates.io-index";
            assert_eq!(source, registry, "{name}");
        }
    }
}

#[test]
fn every_dependency_is_there_in_one_version_unless_the_reason_is_listed() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages().iter().filter(|package| !package["source"].is_null()) {
        let text = |field: &str| package[field].as_str().unwrap().to_owned();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    for (name, old, reason) in OLD_VERSIONS {
        let found = versions.get_mut(name).filter(|versions| versions.len() > 1);
        let found = found.unwrap_or_else(|| panic!("{name} is there in one version: {reason}?"));
        let before = found.len();
        found.retain(|version| !version.starts_with(old));
        assert!(found.len() < before, "{name} {old} is not there: {reason}?");
    }
    versions.retain(|_, versions| versions.len() > 1);
    assert!(versions.is_empty(), "more than one version: {versions:?}");
}

/// A dev-dependency by path alone is not published.
#[test]
fn every_dependency_outside_the_workspace_names_a_version() {
    for package in packages().iter().filter(|package| package["source"].is_null()) {
        for dependency in package["dependencies"].as_array().unwrap() {
            let names_version = dependency["req"] != "*";
            assert!(names_version || dependency["path"].is_string(), "{dependency}");
        }
    }
}

#[test]
fn the_test_command_packages_the_crates() {
    let checks = read("tests-e2e/src/bin/xtask/checks.rs");
    assert!(checks.contains("packages::check()"));
    let packages = read("tests-e2e/src/bin/xtask/packages.rs");
    assert!(packages.contains(r#""publish", "--workspace", "--dry-run""#));
}

#[test]
fn the_workflow_runs_the_script_and_security_reports_have_a_policy() {
    assert!(read(".github/workflows/ci.yml").contains(" .ci/run\n"));
    assert!(read(".ci/run").contains("cargo xtask test"));
    let policy = read("SECURITY.md");
    for part in ["## Reporting", "## Supported versions", "docs/security-review.md"] {
        assert!(policy.contains(part), "{part}");
    }
}
