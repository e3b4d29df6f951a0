//! How long each step took, and each test program.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::checks::StepOutcome;
use super::programs::Programs;

/// Parts of a step that took less are not listed.
const SHORT: Duration = Duration::from_secs(1);

/// How often the end of the tests is checked, and how long lines are awaited after it.
const INTERVAL: Duration = Duration::from_millis(200);

/// A step that was run.
pub(crate) struct Timing {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) parts: Vec<Part>,
    pub(crate) outcome: StepOutcome,
}

/// A part of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) took: Duration,
}

/// Returns the steps with their seconds, and the result of all.
pub(crate) fn table(timings: &[Timing]) -> String {
    let mut lines = vec!["== seconds".to_owned()];
    for timing in timings {
        let outcome = match &timing.outcome {
            StepOutcome::Passed => "",
            StepOutcome::Skipped(_) => ", SKIPPED",
            StepOutcome::Failed => ", FAILED",
        };
        lines.push(format!("{:>6}  {}{outcome}", seconds(timing.took), timing.name));
        for part in timing.parts.iter().filter(|part| part.took >= SHORT) {
            lines.push(format!("{:>6}    {}", seconds(part.took), part.name));
        }
    }
    let total = timings.iter().map(|timing| timing.took).sum();
    lines.push(format!("{:>6}  in all", seconds(total)));
    let named = |outcome: fn(&StepOutcome) -> bool| {
        let names = timings.iter().filter(|timing| outcome(&timing.outcome)).map(|it| it.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let failed = named(|outcome| *outcome == StepOutcome::Failed);
    let skipped = named(|outcome| matches!(outcome, StepOutcome::Skipped(_)));
    lines.push(match (failed.as_str(), skipped.as_str()) {
        ("", "") => "== all passed".to_owned(),
        ("", skipped) => format!("== passed, except what was SKIPPED: {skipped}"),
        (failed, _) => format!("== failed: {failed}"),
    });
    lines.join("\n") + "\n"
}

fn seconds(took: Duration) -> u64 {
    (took + Duration::from_millis(500)).as_secs()
}

/// Runs `cargo test` and returns whether it passed, and how long each test program took. Cargo prints the name of
/// a program when it starts it.
pub(crate) fn timed_tests(
    command: &mut Command,
    programs: &Programs,
) -> io::Result<(bool, Vec<Part>)> {
    let mut cargo = command.stderr(Stdio::piped()).spawn()?;
    let Some(stderr) = cargo.stderr.take() else { return Err(io::Error::other("no stderr")) };
    let (sender, lines) = mpsc::channel();
    // Not joined: a process that a test leaves behind keeps the pipe open.
    thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            eprintln!("{line}");
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let (mut parts, mut current) = (Vec::new(), None);
    let mut end = |current: Option<(String, Instant)>| {
        parts.extend(current.map(|(name, began)| Part { name, took: began.elapsed() }));
    };
    let mut status = None;
    loop {
        match lines.recv_timeout(INTERVAL) {
            Ok(line) => {
                if let Some(name) = started(&line, programs) {
                    end(current.replace((name, Instant::now())));
                }
            }
            Err(RecvTimeoutError::Timeout) if status.is_none() => status = cargo.try_wait()?,
            Err(_) => break,
        }
    }
    end(current);
    let status = match status {
        Some(status) => status,
        None => cargo.wait()?,
    };
    Ok((status.success(), parts))
}

/// Returns the name of the program that cargo says it starts.
fn started(line: &str, programs: &Programs) -> Option<String> {
    if let Some(library) = line.trim_start().strip_prefix("Doc-tests ") {
        return Some(format!("{} documentation", library.replace('_', "-")));
    }
    let (source, rest) = line.trim_start().strip_prefix("Running ")?.split_once(" (")?;
    let executable = rest.strip_suffix(')')?;
    Some(programs.label(Path::new(executable)).unwrap_or_else(|| source.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::programs::Program;
    use super::*;

    fn timing(name: &'static str, seconds: u64, outcome: StepOutcome) -> Timing {
        Timing { name, took: Duration::from_secs(seconds), parts: Vec::new(), outcome }
    }

    #[test]
    fn table_lists_every_step_with_its_seconds_and_parts() {
        let part =
            |name: &str, millis| Part { name: name.into(), took: Duration::from_millis(millis) };
        let mut tests = timing("tests", 130, StepOutcome::Passed);
        tests.parts = vec![part("wire it", 71_600), part("wire", 400)];
        assert_eq!(
            table(&[timing("format", 3, StepOutcome::Passed), tests]),
            "== seconds\n     3  format\n   130  tests\n    72    wire it\n   133  in all\n== all passed\n"
        );
    }

    #[test]
    fn table_names_failed_and_skipped_steps() {
        let skipped = || timing("macOS", 1, StepOutcome::Skipped("no target".into()));
        let failed = timing("lints", 2, StepOutcome::Failed);
        assert!(table(&[skipped()]).ends_with("== passed, except what was SKIPPED: macOS\n"));
        let both = table(&[skipped(), failed]);
        assert!(both.contains("     2  lints, FAILED\n"), "{both}");
        assert!(both.ends_with("== failed: lints\n"), "{both}");
    }

    #[test]
    fn programs_that_cargo_starts_are_recognized() {
        let programs = Programs::of(vec![Program {
            directory: "/w/crates/kit".into(),
            target: "it".into(),
            kind: "test".into(),
            path: "/w/target/debug/deps/it-0a".into(),
        }]);
        for (line, name) in [
            ("     Running tests/it/main.rs (target/debug/deps/it-0a)", Some("kit it")),
            ("     Running tests/x.rs (target/debug/deps/x-0b)", Some("tests/x.rs")),
            ("   Doc-tests claude_wire", Some("claude-wire documentation")),
            ("running 4 tests", None),
            ("Running late", None),
        ] {
            assert_eq!(started(line, &programs).as_deref(), name, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn each_program_is_timed_until_the_next_starts_also_with_a_process_left_behind() {
        let mut command = Command::new("sh");
        // The process that is left behind keeps stderr open.
        let script = "echo ' Running a (x/a-1)' >&2; echo ' Doc-tests b' >&2; sleep 20 & exit 1";
        let (passed, parts) =
            timed_tests(command.args(["-c", script]), &Programs::of(Vec::new())).unwrap();
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!((passed, names), (false, vec!["a", "b documentation"]));
    }
}
