//! Messages that are not known to this version of the SDK.

use std::sync::{Arc, Mutex};

use claude_agent_kit::{Item, Options, WarningCode};
use serde_json::json;

use crate::puppet;
use crate::support::{in_time, run};

#[test]
fn what_is_not_known_is_told_once_right_after_it() {
    run(async {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let options =
            Options::new().on_warning(move |warning| notes.lock().unwrap().push(warning.code()));
        let (session, mut puppet) = puppet::running(options).await;
        let mut messages = session.messages();
        for line in [
            json!({"type": "weather", "sun": true}),
            json!({"type": "weather", "sun": false}),
            json!({"type": "system", "subtype": "weather"}),
            json!({"type": "result", "subtype": "success", "sun": true}),
        ] {
            puppet.say(line).await;
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
        assert_eq!(*heard.lock().unwrap(), [WarningCode::UnknownMessage; 2]);
        session.stop().await.unwrap();
    });
}
