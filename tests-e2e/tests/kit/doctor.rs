//! The findings of the doctor, on healthy and on broken CLIs.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use claude_agent_kit::{
    Check, Conversation, Finding, Level, MINIMUM_VERSION, Options, Report, VersionCheck, doctor,
};
use tests_e2e::harness::Harness;

use crate::support::{FakeProgram, HANDSHAKE, LIMIT, hello, in_time, on_all, run};

/// Returns the only finding of a check.
fn finding(report: &Report, check: Check) -> &Finding {
    let mut found = report.findings().iter().filter(|finding| finding.check() == check);
    let first = found.next().unwrap_or_else(|| panic!("nothing about the {check}:\n{report}"));
    assert!(found.next().is_none(), "{report}");
    first
}

/// Asserts that a report has one problem, that it is of this check, contains `part` and has help.
fn only_problem(report: &Report, check: Check, part: &str) {
    assert!(!report.is_healthy());
    let problems: Vec<&Finding> = report.problems().collect();
    assert_eq!(problems.len(), 1, "{report}");
    assert_eq!(problems[0].check(), check, "{report}");
    assert!(problems[0].what().contains(part), "{part}: {report}");
    assert!(problems[0].help().is_some_and(|help| !help.is_empty()), "{report}");
}

/// Runs the doctor on a fake CLI with changed options.
async fn run_doctor(fake: &FakeProgram, change: impl FnOnce(Options) -> Options) -> Report {
    let options = fake.options().env("HOME", fake.sibling("").to_string_lossy());
    in_time(doctor(change(options.env("ANTHROPIC_API_KEY", "s3cr3t"))).into_future()).await
}

#[test]
fn healthy_cli_passes_all_checks_and_the_handshake() {
    on_all(hello, |harness: Harness| async move {
        let report = doctor(harness.options()).handshake(LIMIT).await;
        assert!(report.is_healthy(), "{report}");
        assert_eq!(finding(&report, Check::Handshake).level(), Level::Good, "{report}");
        assert!(harness.api().requests().is_empty(), "no request is sent to the model");
        if let Some(program) = harness.program() {
            let executable = finding(&report, Check::Executable);
            assert!(executable.what().contains(&*program.to_string_lossy()), "{report}");
            assert_eq!(finding(&report, Check::Version).level(), Level::Good);
            let credentials = finding(&report, Check::Credentials);
            assert!(credentials.what().contains("ANTHROPIC_API_KEY"), "{report}");
            assert!(!report.to_string().contains("sk-dummy"), "{report}");
        }
    });
}

#[test]
fn executable_problems_are_reported_with_help() {
    run(async {
        let good = FakeProgram::new("exit 1");
        let report = run_doctor(&good, |options| options).await;
        assert!(report.is_healthy(), "{report}");
        let version = finding(&report, Check::Version).what();
        assert!(version.contains(&MINIMUM_VERSION.to_string()), "{version}");

        let missing = run_doctor(&good, |options| options.cli_path("/missing/claude")).await;
        only_problem(&missing, Check::Executable, "does not exist");
        let plain = good.sibling("plain");
        std::fs::write(&plain, "").unwrap();
        std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
        let report = run_doctor(&good, |options| options.cli_path(&plain)).await;
        only_problem(&report, Check::Executable, "is not executable");

        let report =
            run_doctor(&FakeProgram::bare("#!/bin/sh\necho 1.9.9\n"), |options| options).await;
        only_problem(&report, Check::Version, "1.9.9");
        for (script, part) in
            [("#!/bin/sh\necho hello\n", "version"), ("#!/bin/sh\nkill -SEGV $$\n", "signal")]
        {
            // In a session the handshake decides; print mode has none.
            let report =
                run_doctor(&FakeProgram::bare(script), |options| options.print_mode(true)).await;
            only_problem(&report, Check::Version, part);
            let report = run_doctor(&FakeProgram::bare(script), |options| options).await;
            let version = finding(&report, Check::Version);
            assert_eq!(version.level(), Level::Warning, "{report}");
            assert!(version.what().contains(part), "{report}");
            let skipped =
                run_doctor(&FakeProgram::bare(script), |o| o.version_check(VersionCheck::Skip))
                    .await;
            assert_eq!(finding(&skipped, Check::Version).level(), Level::Good, "{skipped}");
        }
        // A CLI that cannot be started is a problem in both modes.
        for print_mode in [false, true] {
            let broken = FakeProgram::bare("#!/missing/interpreter\n");
            let report = run_doctor(&broken, |options| options.print_mode(print_mode)).await;
            only_problem(&report, Check::Version, "failed to start");
        }
        // A version that is too old for a session may be sufficient for print mode.
        let old =
            run_doctor(&FakeProgram::bare("#!/bin/sh\necho 1.9.9\n"), |o| o.print_mode(true)).await;
        assert!(old.is_healthy(), "{old}");
    });
}

#[test]
fn option_config_and_path_problems_are_reported() {
    run(async {
        let fake = FakeProgram::new("exit 1");
        let id = "7d9f3c1e-0000-4000-8000-000000000001";
        let report = run_doctor(&fake, |options| {
            options.max_turns(0).conversation(Conversation::resume("r").fork_id(id))
        })
        .await;
        assert_eq!(
            report.problems().filter(|f| f.check() == Check::Options).count(),
            2,
            "{report}"
        );

        let report = run_doctor(&fake, |options| {
            options.permission_prompts("none").permission_prompt_tool("p")
        })
        .await;
        assert_eq!(finding(&report, Check::Options).level(), Level::Warning, "{report}");
        assert!(report.is_healthy());

        let report = run_doctor(&fake, |options| options.cwd("/missing")).await;
        only_problem(&report, Check::WorkingDirectory, "/missing");

        let report = run_doctor(&fake, |options| options.add_dir("missing")).await;
        only_problem(&report, Check::Files, "missing");

        let config = fake.sibling("agent.json");
        std::fs::write(&config, r#"{"modle": "m"}"#).unwrap();
        let layers = Options::layered().file(&config);
        let report = doctor(fake.options()).layers(layers.clone()).await;
        only_problem(&report, Check::Configuration, "agent.json:1:2: unknown key \"modle\"");
        // The other checks use the merged options.
        std::fs::write(&config, r#"{"cli_path": "/missing/claude"}"#).unwrap();
        let options = Options::new().cwd(fake.sibling(""));
        let report = doctor(options).layers(layers).await;
        assert_eq!(finding(&report, Check::Configuration).level(), Level::Good);
        only_problem(&report, Check::Executable, "/missing/claude");
    });
}

#[test]
fn doctor_reports_a_failing_handshake_and_skips_it_with_invalid_options() {
    run(async {
        let dying = FakeProgram::new("echo 'no such luck' >&2; exit 3");
        let limit = Duration::from_secs(30);
        let options =
            |fake: &FakeProgram| fake.options().env("HOME", fake.sibling("").to_string_lossy());
        let report = doctor(options(&dying)).handshake(limit).await;
        only_problem(&report, Check::Handshake, "");
        let silent = FakeProgram::new("exec sleep 1000");
        let soon = Duration::from_millis(200);
        let report = doctor(options(&silent)).handshake(soon).await;
        only_problem(&report, Check::Handshake, "");
        let good = FakeProgram::new(&format!("{HANDSHAKE}cat"));
        let report = doctor(options(&good)).handshake(limit).await;
        assert!(report.is_healthy(), "{report}");
        let report = doctor(options(&good).max_turns(0)).handshake(limit).await;
        assert_eq!(finding(&report, Check::Handshake).level(), Level::Warning, "{report}");
        only_problem(&report, Check::Options, "max_turns");
    });
}
