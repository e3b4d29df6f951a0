//! The fuzz targets: one function per target, which takes any bytes and panics when an invariant is violated.
//!
//! The programs in `fuzz_targets` call them with inputs of libFuzzer; `tests-e2e/tests/fuzz.rs` calls them with the
//! stored corpus and mutations of it, with any compiler.

mod argv;
mod config_file;
mod decode;
mod envelope;
mod framer;
mod input;
mod machine;
mod script;
mod transcript;

/// The name of a target and its function.
type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("argv", argv::run),
    ("config_file", config_file::run),
    ("decode", decode::run),
    ("envelope", envelope::run),
    ("framer", framer::run),
    ("machine", machine::run),
    ("script", script::run),
    ("transcript", transcript::run),
];

/// Runs a target with these bytes.
///
/// # Panics
/// Panics if the target is unknown or an invariant is violated.
pub fn run(target: &str, data: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, function) = found.unwrap_or_else(|| panic!("unknown target: \"{target}\""));
    function(data);
}
