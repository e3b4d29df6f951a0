//! What is fuzzed: one function per target, of any bytes. They panic when something is wrong.
//!
//! The targets in `fuzz_targets` give them what libFuzzer finds; `tests-e2e/tests/fuzz.rs` gives
//! them the kept corpus and changes of it, with any compiler.

mod argv;
mod config_file;
mod decode;
mod envelope;
mod framer;
mod input;
mod machine;
mod script;
mod transcript;

/// A name, and what is done with any bytes.
type Target = (&'static str, fn(&[u8]));

/// Every target by its name.
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

/// Gives these bytes to a target.
///
/// # Panics
/// When there is no such target, or something is wrong.
pub fn run(target: &str, data: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, function) = found.unwrap_or_else(|| panic!("there is no target {target}"));
    function(data);
}
