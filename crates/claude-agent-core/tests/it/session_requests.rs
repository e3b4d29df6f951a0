//! What the CLI asks means the same in whatever form its line is written.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{
    CallbackKey, CallbackOutcome, Effect, Event, Plan, QueryLimits, RunMode, RunWarning,
};
use claude_wire::{Exit, Extra, Json};
use serde_json::Value;

use crate::recording::corpus;
use crate::session_harness::{
    Harness, cancel, hook, message, permission, request, shown, with_callbacks,
};

/// The answer to the handshake.
const READY: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1_00000000","response":{"hook_on_failure_supported":true}}}"#;

/// What all forms must share: the request without what stood around it.
fn told(effect: &Effect) -> String {
    match effect {
        Effect::RunCallback { key, request, .. } => {
            format!("run {} {} {:?}", key.0, request.request_id, request.request)
        }
        // It holds the line as it came.
        Effect::Warn(RunWarning::Malformed(malformed)) => {
            format!("malformed: {}", malformed.reason)
        }
        other => shown(other),
    }
}

/// Everything that comes of a request: when it arrives, when it arrives again, when it is answered
/// or cancelled, when time passes and when all ends.
fn comes_of(mut harness: Harness, line: &str, id: &str, ending: Ending) -> Vec<String> {
    let mut all = Vec::new();
    let mut happens = |harness: &mut Harness, event: Event| {
        harness.machine.handle(event, harness.now);
        let effects: Vec<Effect> = std::iter::from_fn(|| harness.machine.next_effect()).collect();
        all.extend(effects.iter().map(told));
        all.push(format!("wakes at {:?}", harness.machine.wake_at()));
        let keys = effects.iter().filter_map(|effect| match effect {
            Effect::RunCallback { key, .. } => Some(*key),
            _ => None,
        });
        keys.collect::<Vec<CallbackKey>>()
    };
    let said = |text: &str| Event::Line(Bytes::copy_from_slice(text.as_bytes()));
    let run = happens(&mut harness, said(line));
    happens(&mut harness, said(line));
    match ending {
        Ending::Answered => {
            for key in run {
                let outcome = CallbackOutcome::Response(Json::from_text("{}").unwrap());
                happens(&mut harness, Event::CallbackDone { key, outcome });
            }
        }
        Ending::Withdrawn => drop(happens(&mut harness, said(&cancel(id)))),
        Ending::Late => {
            while let Some(at) = harness.machine.wake_at() {
                harness.now = at;
                happens(&mut harness, Event::Tick);
            }
        }
    }
    happens(&mut harness, Event::StdoutEnded(None));
    happens(&mut harness, Event::Exited(Exit::Code(1)));
    all.push(format!("{:?}", harness.machine.evidence().session_id));
    all
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Answered,
    Withdrawn,
    Late,
}

fn fields(line: &str) -> Extra {
    Json::from_text(line).unwrap().deserialize().unwrap()
}

/// The same line in other forms.
fn other_forms(line: &str) -> Vec<String> {
    let object = fields(line);
    let written = |(key, value): (&str, &Json)| format!("{key:?}:{value}");
    let (kind, others): (Vec<_>, Vec<_>) = object.iter().partition(|(key, _)| *key == "type");
    let [kind, others] = [kind, others].map(|part| part.into_iter().map(written).collect());
    let whole = |parts: [&Vec<String>; 2], between| {
        let pairs: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        format!("{{{}}}", pairs.join(between))
    };
    vec![
        // The type at the end.
        whole([&others, &kind], ","),
        // Blanks before it, and between all.
        line.replacen('{', "{ ", 1),
        whole([&kind, &others], " ,\t").replacen(':', " : ", 1),
        // A field that nobody knows.
        format!("{},\"later\":[1]}}", line.strip_suffix('}').unwrap()),
    ]
}

fn plans() -> Vec<Plan> {
    let mut all = with_callbacks();
    all.limits.running_callbacks = 2;
    all.limits.waiting_callbacks = 2;
    all.elicitation = true;
    all.dialogs = true;
    all.mcp_servers.push("calc".to_owned());
    let mut query = all.clone();
    let mut limits = QueryLimits::default();
    limits.idle_timeout = Some(Duration::from_secs(10));
    query.run = RunMode::Query { prompt: Some(message("a")), limits };
    vec![Plan::new(RunMode::Session), all, query]
}

/// The states of a session that make a difference to a request, and how to get there.
const STATES: [fn(&mut Harness); 6] = [
    |_| {},
    |harness| drop(harness.line(READY)),
    |harness| {
        harness.line(READY);
        harness.send(1, "b");
        harness.line(r#"{"type":"result","subtype":"success"}"#);
    },
    |harness| {
        harness.line(READY);
        harness.line("junk");
    },
    |harness| {
        harness.line(READY);
        harness.stop();
    },
    // As many run and wait as may.
    |harness| {
        harness.line(READY);
        for number in 0..4 {
            harness.line(&hook(&format!("earlier-{number}"), "hook_0"));
        }
    },
];

fn in_state(plan: &Plan, state: fn(&mut Harness)) -> Harness {
    let mut harness = Harness::new(plan.clone());
    harness.effects();
    state(&mut harness);
    harness.now += Duration::from_secs(1);
    harness
}

/// Checks one line in every state, with every ending and in every form; or in each `share`th of all
/// these, beginning with another one for each line.
fn check(line: &str, place: &str, share: (usize, usize)) {
    assert!(line.starts_with(r#"{"type":"control_request","#), "{place}");
    let id = fields(line).get("request_id").and_then(|id| id.deserialize::<String>().ok());
    let id = id.as_deref().unwrap_or_default();
    let others = other_forms(line);
    let (first, share) = share;
    let mut number = first;
    for (plan_number, plan) in plans().iter().enumerate() {
        for (state_number, state) in STATES.into_iter().enumerate() {
            for ending in [Ending::Answered, Ending::Withdrawn, Ending::Late] {
                for other in &others {
                    number += 1;
                    if !number.is_multiple_of(share) {
                        continue;
                    }
                    let expected = comes_of(in_state(plan, state), line, id, ending);
                    let found = comes_of(in_state(plan, state), other, id, ending);
                    let at = format!("{place}, plan {plan_number}, state {state_number}");
                    assert_eq!(found, expected, "{at}, {ending:?}:\n{line}\n{other}");
                }
            }
        }
    }
}

#[test]
fn a_recorded_request_means_the_same_in_every_form() {
    let mut checked = BTreeSet::new();
    for recorded in corpus() {
        for (index, line) in recorded.from_cli.iter().enumerate() {
            let text = std::str::from_utf8(&line.bytes).unwrap();
            if text.starts_with(r#"{"type":"control_request","#) {
                check(text, &line.place, (index, 13));
                let value: Value = serde_json::from_str(text).unwrap();
                checked.insert(value["request"]["subtype"].as_str().unwrap().to_owned());
            }
        }
    }
    for kind in ["can_use_tool", "hook_callback", "mcp_message", "elicitation"] {
        assert!(checked.contains(kind), "{kind} is missing in {checked:?}");
    }
}

#[test]
fn an_odd_request_means_the_same_in_every_form() {
    let input = r#""hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}"#;
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#);
    let mcp = |server: &str, message: &str| {
        format!(r#""subtype":"mcp_message","server_name":"{server}","message":{message}"#)
    };
    let mut bodies = vec![
        String::new(),
        r#""subtype":7"#.to_owned(),
        r#""subtype":"later","field":1"#.to_owned(),
        r#""subtype":"can_use_tool""#.to_owned(),
        r#""subtype":"can_use_tool","tool_name":"Bash","input":null"#.to_owned(),
        r#""subtype":"can_use_tool","tool_name":"half \ud83d","input":{}"#.to_owned(),
        r#""subtype":"hook_callback","callback_id":"hook_1""#.to_owned(),
        r#""subtype":"hook_callback","callback_id":"hook_1","input":7"#.to_owned(),
        r#""subtype":"hook_callback","callback_id":7,"input":{}"#.to_owned(),
        r#""subtype":"elicitation","mcp_server_name":"calc","message":"m""#.to_owned(),
        r#""subtype":"request_user_dialog","dialog_kind":"x""#.to_owned(),
        r#""subtype":"request_user_dialog""#.to_owned(),
        mcp("calc", &call("1")),
        mcp("calc", &call("\"1\"")),
        mcp("nobody", &call("1")),
        mcp("calc", "7"),
        mcp(
            "calc",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ),
        mcp("calc", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    ];
    for callback in ["hook_0", "hook_1", "hook_2", "hook_3", "nobody"] {
        let subtype = r#""subtype":"hook_callback""#;
        bodies
            .push(format!(r#"{subtype},"callback_id":"{callback}","input":{{{input}}},"more":1"#));
    }
    for (number, body) in bodies.iter().enumerate() {
        check(&request("odd", body), &format!("body {number}"), (0, 1));
    }
    // No id, one that is none, one that is used already, and a request that is no object.
    for line in [
        r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_request","request_id":7,"request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_request","request_id":"x","request":7}"#,
        r#"{"type":"control_request","request_id":"x","request":{"subtype":"x"},"session_id":"s"}"#,
        &hook("earlier-1", "hook_0"),
        &permission(""),
    ] {
        check(line, line, (0, 1));
    }
}
