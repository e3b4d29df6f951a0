//! Which versions of the CLI are accepted, and how often the version is probed.

use std::fs;

use claude_agent_kit::{
    CliVersion, ErrorKind, MINIMUM_FOR_PRINT_MODE, MINIMUM_VERSION, VersionCheck, WarningCode,
};

use crate::support::{
    FakeProgram, HANDSHAKE, RESULT, ask, codes, record_warnings, run, start_error,
};

/// Returns a working CLI that reports this version and counts its probes.
fn cli_printing(version: &str) -> FakeProgram {
    let count_probe = "if [ \"$1\" = --version ]; then echo x >> \"${0%/*}/asked\"";
    let form = format!("case \"$1\" in --print) ;; *)\n{HANDSHAKE};; esac");
    FakeProgram::bare(&format!("#!/bin/sh\n{count_probe}; {version}; exit; fi\n{form}\n{RESULT}"))
}

/// Returns how often the version was probed.
fn probe_count(fake: &FakeProgram) -> usize {
    fs::read_to_string(fake.sibling("asked")).unwrap_or_default().lines().count()
}

#[test]
fn old_cli_is_rejected_regardless_of_options() {
    run(async {
        let old = cli_printing("echo '2.0.0 (Claude Code)'");
        for options in [old.options(), old.options().version_check(VersionCheck::Permissive)] {
            let error = start_error("hello", options).await;
            assert_eq!(error.kind(), ErrorKind::UnsupportedCliVersion);
            assert_eq!(error.detected_version(), Some(CliVersion::new(2, 0, 0)));
            assert!(error.to_string().contains(&MINIMUM_VERSION.to_string()), "{error}");
            assert_eq!(error.output(), Some("2.0.0 (Claude Code)"));
            let suggestion = error.help().unwrap();
            assert!(suggestion.contains("npm install -g @anthropic-ai/claude-code"), "{error}");
            assert!(suggestion.contains("print_mode"), "{error}");
        }
        // The version is sufficient for print mode.
        assert!(ask("hello", old.options().print_mode(true)).await.result().is_some());
        let ancient = cli_printing("echo 0.9.9");
        let error = start_error("hello", ancient.options().print_mode(true)).await;
        assert_eq!(error.kind(), ErrorKind::UnsupportedCliVersion);
        assert!(error.to_string().contains(&MINIMUM_FOR_PRINT_MODE.to_string()), "{error}");
    });
}

#[test]
fn unparsable_version_is_the_first_warning() {
    run(async {
        for (version, code) in [
            ("echo garbage", WarningCode::UnknownCliVersion),
            ("exit 3", WarningCode::VersionDetection),
        ] {
            let fake = cli_printing(version);
            let (options, noted) = record_warnings(fake.options());
            let collected = ask("hello", options).await;
            assert_eq!(codes(&collected), [code]);
            assert!(collected.items[0].warning().is_some(), "{:?}", collected.items);
            assert_eq!(*noted.lock().unwrap(), [code]);
            assert!(collected.result().is_some(), "the handshake confirmed that it is a CLI");
        }
    });
}

#[test]
fn print_mode_requires_a_known_version_unless_the_check_is_permissive() {
    run(async {
        for (version, kind, code) in [
            ("echo garbage", ErrorKind::UnknownCliVersion, WarningCode::UnknownCliVersion),
            ("exit 3", ErrorKind::VersionDetection, WarningCode::VersionDetection),
        ] {
            let fake = cli_printing(version);
            let error = start_error("hello", fake.options().print_mode(true)).await;
            assert_eq!(error.kind(), kind);
            assert!(error.help().unwrap().contains("VersionCheck::Permissive"), "{error}");
            let options = fake.options().print_mode(true).version_check(VersionCheck::Permissive);
            let collected = ask("hello", options).await;
            assert_eq!(codes(&collected), [code]);
            assert!(collected.result().is_some());
        }
    });
}

#[test]
fn skipped_version_check_starts_no_process() {
    run(async {
        let old = cli_printing("echo 0.0.1");
        let collected = ask("hello", old.options().version_check(VersionCheck::Skip)).await;
        assert!(collected.result().is_some());
        assert_eq!((probe_count(&old), codes(&collected)), (0, Vec::new()));
    });
}

#[test]
fn version_is_probed_once_for_several_queries() {
    run(async {
        let fake = cli_printing("echo 2.1.325");
        for _ in 0..3 {
            assert!(ask("hello", fake.options()).await.result().is_some());
        }
        assert_eq!(probe_count(&fake), 1);
    });
}

#[test]
fn version_probe_timeout_does_not_prevent_the_run() {
    run(async {
        let fake = cli_printing("exec sleep 1000");
        let collected = ask("hello", fake.options()).await;
        assert_eq!(codes(&collected), [WarningCode::VersionDetection]);
        assert!(collected.result().is_some());
    });
}
