//! Messages that are not known to this version of the SDK.

use std::sync::{Arc, Mutex};

use claude_agent_kit::{Item, Options, WarningCode};
use serde_json::json;

use crate::fake_cli;
use crate::support::{in_time, run};

#[test]
fn unknown_message_is_reported_once_after_it() {
    run(async {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&reported);
        let options =
            Options::new().on_warning(move |warning| notes.lock().unwrap().push(warning.code()));
        let (session, mut cli) = fake_cli::connect(options).await;
        let mut messages = session.messages();
        for line in [
            json!({"type": "weather", "sun": true}),
            json!({"type": "weather", "sun": false}),
            json!({"type": "system", "subtype": "weather"}),
            json!({"type": "result", "subtype": "success", "sun": true}),
        ] {
            cli.send(line).await;
        }
        let mut kinds = Vec::new();
        while kinds.last().map(String::as_str) != Some("result") {
            kinds.push(match in_time(messages.next()).await.unwrap().unwrap() {
                Item::Message(message) => message.body.kind().unwrap().to_owned(),
                Item::PermissionRequest(request) => panic!("{request:?}"),
                Item::Warning(warning) => {
                    assert_eq!(warning.code(), WarningCode::UnknownMessage);
                    assert!(!warning.to_string().contains("sun"), "{warning}");
                    "warning".to_owned()
                }
            });
        }
        assert_eq!(kinds, ["weather", "warning", "weather", "system", "warning", "result"]);
        assert_eq!(*reported.lock().unwrap(), [WarningCode::UnknownMessage; 2]);
        session.stop().await.unwrap();
    });
}
