//! Secrets of the host are never shown.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use claude_agent_kit::{Collected, Json, Options, Session, Timeouts};

use crate::support::{FakeProgram, HANDSHAKE, all_text, ask, error_of, run};

const SECRETS: [&str; 6] = [
    "env-value-7d1f0c",
    "argument-value-7d1f0c",
    "system-prompt-7d1f0c",
    "header-value-7d1f0c",
    "server-env-7d1f0c",
    "appended-prompt-7d1f0c",
];

/// Returns options that hold every secret.
fn with_secrets(options: Options) -> Options {
    let server = r#"{"type":"http","url":"http://127.0.0.1:1/","headers":{"Authorization":"Bearer header-value-7d1f0c"},"env":{"X":"server-env-7d1f0c"}}"#;
    options
        .env("MY_SETTING", SECRETS[0])
        .add_arg(("some-flag", SECRETS[1]))
        .system_prompt(SECRETS[2])
        .system_prompt(claude_agent_kit::SystemPrompt::default().append(SECRETS[5]))
        .mcp("mine", Json::from_text(server).unwrap())
}

fn assert_hidden(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

fn warnings(collected: &Collected) -> String {
    let mut text = String::new();
    for warning in collected.warnings() {
        write!(text, "{warning} {warning:?} ").unwrap();
    }
    text
}

#[test]
fn debug_output_of_options_hides_secrets() {
    let options = with_secrets(Options::new());
    assert_hidden("Debug", &format!("{options:?} {options:#?}"));
}

/// Prints everything that the script knows.
const PRINT_ALL: &str = "env; echo \"$@\"; cat /proc/$$/environ | tr '\\000' ' '; echo";

#[test]
fn secrets_on_stderr_are_masked() {
    let fake =
        FakeProgram::new(&format!("{{ read -r line; echo \"$line\"; {PRINT_ALL}; }} >&2; exit 1"));
    run(async {
        let stderr = Arc::new(Mutex::new(String::new()));
        let lines = Arc::clone(&stderr);
        let options = with_secrets(fake.options())
            .on_stderr(move |line| writeln!(lines.lock().unwrap(), "{line}").unwrap());
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert!(error.stderr_tail().unwrap().contains("MY_SETTING=***"), "{error}");
        // The prompts of the handshake are not secrets, but stdin is not quoted.
        let text = all_text(error);
        for secret in [SECRETS[0], SECRETS[1], SECRETS[3], SECRETS[4]] {
            assert!(!text.contains(secret), "{secret}: {text}");
            assert!(!stderr.lock().unwrap().contains(secret), "{secret}");
        }
    });
}

#[test]
fn secrets_on_stdout_are_masked() {
    run(async {
        for (before, after) in [("", "exit 1"), (HANDSHAKE, "exit 1"), ("", "sleep 1000")] {
            let fake = FakeProgram::new(&format!("{before}\necho $(env) \"$@\"\n{after}"));
            let options = with_secrets(fake.options()).timeouts(
                Timeouts::new()
                    .initialize(crate::support::SHORT * 5)
                    .exit_grace(crate::support::SHORT),
            );
            let collected = ask("hello", options).await;
            assert_hidden("the error", &all_text(error_of(&collected)));
            assert_hidden("a warning", &warnings(&collected));
        }
    });
}

#[test]
fn secrets_in_a_handshake_rejection_are_masked() {
    let refusing = HANDSHAKE
        .replace("success", "error")
        .replace("\\\"response\\\":{}}}", "\\\"error\\\":\\\"bad: $MY_SETTING $last\\\"}}");
    run(async {
        let fake = FakeProgram::new(&format!("for last; do :; done\n{refusing}"));
        let collected = ask("hello", with_secrets(fake.options())).await;
        let error = error_of(&collected);
        assert!(error.to_string().contains("bad: ***"), "{error}");
        assert_hidden("the error", &all_text(error));
    });
}

#[test]
fn secrets_of_servers_set_later_are_masked() {
    // The line after the handshake is the request with the servers.
    let fake = FakeProgram::new(&format!("{HANDSHAKE}echo \"$prompt\" >&2\nexit 1"));
    run(async {
        let stderr = Arc::new(Mutex::new(String::new()));
        let lines = Arc::clone(&stderr);
        let options = fake
            .options()
            .on_stderr(move |line| writeln!(lines.lock().unwrap(), "{line}").unwrap());
        let session = Session::start(options).await.unwrap();
        let servers = r#"{"mine":{"command":"c","args":["--token","argument-value-7d1f0c"],"env":{"X":"server-env-7d1f0c"}}}"#;
        let error = session.mcp().set_servers(Json::from_text(servers).unwrap()).await.unwrap_err();
        assert!(
            error.stderr_tail().is_some_and(|tail| tail.contains("\"X\":\"***\"")),
            "{error:?}"
        );
        assert_hidden("the error", &all_text(&error));
        assert_hidden("stderr", &stderr.lock().unwrap());
    });
}
