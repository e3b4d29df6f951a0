//! What a pre-flight finds, on good and on bad CLIs.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use claude_agent_kit::{
    Check, Conversation, Finding, Level, MINIMUM_VERSION, Options, Report, VersionCheck, doctor,
};
use tests_e2e::harness::Harness;

use crate::support::{Fake, HANDSHAKE, LIMIT, hello, in_time, on_all, run};

/// The one finding of a check.
fn finding(report: &Report, check: Check) -> &Finding {
    let mut found = report.findings().iter().filter(|finding| finding.check() == check);
    let first = found.next().unwrap_or_else(|| panic!("nothing about the {check}:\n{report}"));
    assert!(found.next().is_none(), "{report}");
    first
}

/// The one problem of a report, which must be of this check, say this and have a help.
fn only_problem(report: &Report, check: Check, part: &str) {
    assert!(!report.is_healthy());
    let problems: Vec<&Finding> = report.problems().collect();
    assert_eq!(problems.len(), 1, "{report}");
    assert_eq!(problems[0].check(), check, "{report}");
    assert!(problems[0].what().contains(part), "{part}: {report}");
    assert!(problems[0].help().is_some_and(|help| !help.is_empty()), "{report}");
}

/// A report on a fake CLI that would be good but for one thing.
async fn on(fake: &Fake, change: impl FnOnce(Options) -> Options) -> Report {
    let options = fake.options().env("HOME", fake.beside("").to_string_lossy());
    in_time(doctor(change(options.env("ANTHROPIC_API_KEY", "s3cr3t"))).into_future()).await
}

#[test]
fn a_good_cli_is_found_healthy_with_its_handshake() {
    on_all(hello, |harness: Harness| async move {
        let report = doctor(harness.options()).handshake(LIMIT).await;
        assert!(report.is_healthy(), "{report}");
        assert_eq!(finding(&report, Check::Handshake).level(), Level::Good, "{report}");
        assert!(harness.api().requests().is_empty(), "no model is asked");
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
fn what_is_wrong_with_the_executable_is_told_with_a_remedy() {
    run(async {
        let good = Fake::new("exit 1");
        let report = on(&good, |options| options).await;
        assert!(report.is_healthy(), "{report}");
        let version = finding(&report, Check::Version).what();
        assert!(version.contains(&MINIMUM_VERSION.to_string()), "{version}");

        let missing = on(&good, |options| options.cli_path("/missing/claude")).await;
        only_problem(&missing, Check::Executable, "does not exist");
        let plain = good.beside("plain");
        std::fs::write(&plain, "").unwrap();
        std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
        let report = on(&good, |options| options.cli_path(&plain)).await;
        only_problem(&report, Check::Executable, "is not executable");

        let report = on(&Fake::bare("#!/bin/sh\necho 1.9.9\n"), |options| options).await;
        only_problem(&report, Check::Version, "1.9.9");
        for (script, part) in
            [("#!/bin/sh\necho hello\n", "version"), ("#!/bin/sh\nkill -SEGV $$\n", "signal")]
        {
            // The handshake of a session tells; print mode has none.
            let report = on(&Fake::bare(script), |options| options.print_mode(true)).await;
            only_problem(&report, Check::Version, part);
            let report = on(&Fake::bare(script), |options| options).await;
            let version = finding(&report, Check::Version);
            assert_eq!(version.level(), Level::Warning, "{report}");
            assert!(version.what().contains(part), "{report}");
            let skipped = on(&Fake::bare(script), |o| o.version_check(VersionCheck::Skip)).await;
            assert_eq!(finding(&skipped, Check::Version).level(), Level::Good, "{skipped}");
        }
        // A CLI that cannot be started is of no use to either.
        for print_mode in [false, true] {
            let broken = Fake::bare("#!/missing/interpreter\n");
            let report = on(&broken, |options| options.print_mode(print_mode)).await;
            only_problem(&report, Check::Version, "failed to start");
        }
        // What is too old for a session may do for print mode.
        let old = on(&Fake::bare("#!/bin/sh\necho 1.9.9\n"), |o| o.print_mode(true)).await;
        assert!(old.is_healthy(), "{old}");
    });
}

#[test]
fn bad_options_configurations_and_places_are_told_each() {
    run(async {
        let fake = Fake::new("exit 1");
        let id = "7d9f3c1e-0000-4000-8000-000000000001";
        let report = on(&fake, |options| {
            options.max_turns(0).conversation(Conversation::resume("r").fork_id(id))
        })
        .await;
        assert_eq!(
            report.problems().filter(|f| f.check() == Check::Options).count(),
            2,
            "{report}"
        );

        let report =
            on(&fake, |options| options.permission_prompts("none").permission_prompt_tool("p"))
                .await;
        assert_eq!(finding(&report, Check::Options).level(), Level::Warning, "{report}");
        assert!(report.is_healthy());

        let report = on(&fake, |options| options.cwd("/missing")).await;
        only_problem(&report, Check::WorkingDirectory, "/missing");

        let report = on(&fake, |options| options.add_dir("missing")).await;
        only_problem(&report, Check::Files, "missing");

        let config = fake.beside("agent.json");
        std::fs::write(&config, r#"{"modle": "m"}"#).unwrap();
        let layers = Options::layered().file(&config);
        let report = doctor(fake.options()).layers(layers.clone()).await;
        only_problem(&report, Check::Configuration, "agent.json:1:2: unknown key \"modle\"");
        // What the layers say counts for the rest.
        std::fs::write(&config, r#"{"cli_path": "/missing/claude"}"#).unwrap();
        let options = Options::new().cwd(fake.beside(""));
        let report = doctor(options).layers(layers).await;
        assert_eq!(finding(&report, Check::Configuration).level(), Level::Good);
        only_problem(&report, Check::Executable, "/missing/claude");
    });
}

#[test]
fn a_handshake_that_fails_or_hangs_is_a_problem_and_is_not_tried_in_vain() {
    run(async {
        let dying = Fake::new("echo 'no such luck' >&2; exit 3");
        let limit = Duration::from_secs(30);
        let options = |fake: &Fake| fake.options().env("HOME", fake.beside("").to_string_lossy());
        let report = doctor(options(&dying)).handshake(limit).await;
        only_problem(&report, Check::Handshake, "");
        let silent = Fake::new("exec sleep 1000");
        let soon = Duration::from_millis(200);
        let report = doctor(options(&silent)).handshake(soon).await;
        only_problem(&report, Check::Handshake, "");
        let good = Fake::new(&format!("{HANDSHAKE}cat"));
        let report = doctor(options(&good)).handshake(limit).await;
        assert!(report.is_healthy(), "{report}");
        let report = doctor(options(&good).max_turns(0)).handshake(limit).await;
        assert_eq!(finding(&report, Check::Handshake).level(), Level::Warning, "{report}");
        only_problem(&report, Check::Options, "max_turns");
    });
}
