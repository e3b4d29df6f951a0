//! Megabytes of keys in the output of a CLI.

use std::sync::{Arc, Mutex};

use claude_agent_kit::{ErrorKind, Session};

use crate::support::{FakeProgram, HANDSHAKE, RESULT, ask, in_time, run};

/// Returns a script that writes this many bytes of keys without separators.
fn keys_script(bytes: usize) -> String {
    format!("yes sk-ant- | head -n {} | tr -d '\\n'", bytes / "sk-ant-".len())
}

/// Returns a CLI that rejects the first operation with a text of this size.
fn rejecting_cli(bytes: usize) -> FakeProgram {
    let refusal = r#"id=${prompt#*\"request_id\":\"}; id=${id%%\"*}
printf '{"type":"control_response","response":{"subtype":"error","request_id":"%s","error":"' "$id""#;
    FakeProgram::new(&format!(
        "{HANDSHAKE}{refusal}\n{}\necho '\"}}}}'\ncat > /dev/null",
        keys_script(bytes)
    ))
}

/// With quadratic cost this would take hours.
#[test]
fn operation_rejected_with_megabytes_of_keys_fails_promptly() {
    run(async {
        let fake = rejecting_cli(8 * 1024 * 1024);
        let session = Session::start(fake.options()).await.unwrap();
        let error = in_time(session.set_model("m")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlRejected);
        let output = error.output().unwrap();
        assert!(output.contains("***") && !output.contains("sk-ant"), "{output}");
        assert!(error.to_string().len() < 1000, "{}", error.to_string().len());
        session.stop().await.unwrap();
    });
}

#[test]
fn megabytes_of_keys_on_stderr_are_masked_promptly() {
    run(async {
        let fake = FakeProgram::new(&format!(
            "{HANDSHAKE}{{ {}; echo; echo done; }} >&2\n{RESULT}",
            keys_script(8 * 1024 * 1024)
        ));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        let options =
            fake.options().on_stderr(move |line| sink.lock().unwrap().push(line.to_owned()));
        in_time(ask("hello", options)).await;
        assert_eq!(*lines.lock().unwrap(), ["***", "done"]);
    });
}
