//! The test programs and examples, built once with the features that all steps use.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::checks::cargo;

/// Builds and runs all tests. A step that named single packages would rebuild the crates with other features.
pub(crate) const TESTS: [&str; 3] = ["test", "--workspace", "--all-features"];

/// All programs of the workspace.
pub(crate) struct Programs(Vec<Program>);

/// A test program or an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The directory of its package, in which cargo runs tests.
    pub(crate) directory: PathBuf,
    /// The name of its target.
    pub(crate) target: String,
    /// `lib`, `bin`, `test` or `example`.
    pub(crate) kind: String,
    pub(crate) path: PathBuf,
}

/// Builds the tests and examples.
pub(crate) fn build() -> Result<Programs, Box<dyn Error>> {
    let output = cargo(&TESTS)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the tests could not be built".into());
    }
    let lines = output.stdout.split(|byte| *byte == b'\n');
    Ok(Programs(lines.filter_map(program).collect()))
}

/// Reads a line that cargo prints for a program. Returns `None` for other lines, and for programs that are only
/// started by tests.
fn program(line: &[u8]) -> Option<Program> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let kind = message["target"]["kind"][0].as_str()?;
    if message["profile"]["test"] != true && kind != "example" {
        return None;
    }
    Some(Program {
        directory: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        kind: kind.to_owned(),
        path: message["executable"].as_str()?.into(),
    })
}

impl Programs {
    /// Returns an example.
    pub(crate) fn example(&self, name: &str) -> Result<&Program, Box<dyn Error>> {
        let found = self.0.iter().find(|it| it.kind == "example" && it.target == name);
        found.ok_or_else(|| format!("there is no example \"{name}\"").into())
    }

    /// Returns the unit tests of a package, which are in its library or in this integration test.
    pub(crate) fn unit_tests(&self, package: &str, test: Option<&str>) -> Vec<&Program> {
        let is_unit_test = |it: &&Program| {
            it.directory.ends_with(Path::new("crates").join(package))
                && match test {
                    None => it.kind == "lib",
                    Some(name) => it.kind == "test" && it.target == name,
                }
        };
        self.0.iter().filter(is_unit_test).collect()
    }

    /// Returns the package and the target of an executable, for the table of seconds.
    pub(crate) fn label(&self, executable: &Path) -> Option<String> {
        let found = self.0.iter().find(|it| it.path.file_name() == executable.file_name())?;
        let package = found.directory.file_name()?.to_string_lossy();
        Some(match found.kind.as_str() {
            "lib" => package.into_owned(),
            _ => format!("{package} {}", found.target),
        })
    }
}

#[cfg(test)]
impl Programs {
    pub(crate) fn of(programs: Vec<Program>) -> Self {
        Self(programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, is_test: bool, name: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/kit/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{is_test}}},
                "executable":"/w/target/debug/deps/{name}-0a"}}"#
        )
    }

    #[test]
    fn tests_and_examples_are_found_in_the_output_of_cargo() {
        let found = |line: &str| program(line.as_bytes()).map(|it| (it.kind, it.target));
        assert_eq!(found(&line("lib", true, "kit")), Some(("lib".into(), "kit".into())));
        assert_eq!(found(&line("example", false, "chat")), Some(("example".into(), "chat".into())));
        assert_eq!(found(&line("bin", false, "host")), None);
        let library = line("lib", true, "kit").replace("\"/w/target/debug/deps/kit-0a\"", "null");
        assert_eq!(found(&library), None);
        assert_eq!(found("not JSON"), None);
    }

    #[test]
    fn programs_are_named_by_package_and_target() {
        let programs = ["lib", "test"].map(|kind| program(line(kind, true, kind).as_bytes()));
        let programs = Programs::of(programs.into_iter().flatten().collect());
        let label = |name: &str| programs.label(Path::new(name));
        assert_eq!(label("target/debug/deps/lib-0a").as_deref(), Some("kit"));
        assert_eq!(label("target/debug/deps/test-0a").as_deref(), Some("kit test"));
        assert_eq!(label("target/debug/deps/other-0a"), None);
        assert_eq!(programs.unit_tests("kit", None).len(), 1);
        assert_eq!(programs.unit_tests("kit", Some("test")).len(), 1);
        assert_eq!(programs.unit_tests("wire", None).len(), 0);
    }
}
