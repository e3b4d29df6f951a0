use claude_wire::Message;
use serde_json::{Value, json};

use super::*;

fn message(line: &Value) -> Message {
    Message::decode(line.to_string()).unwrap()
}

fn assistant(id: &str, input: u64) -> Value {
    json!({"type": "assistant", "message": {"id": id, "usage": {"input_tokens": input}}})
}

#[test]
fn tokens_of_one_response_are_counted_once_until_the_result() {
    let mut uncounted = UncountedTokens::default();
    let start = json!({"type": "message_start",
                       "message": {"id": "one", "usage": {"input_tokens": 10}}});
    let delta = json!({"type": "message_delta", "delta": {},
                       "usage": {"input_tokens": 10, "output_tokens": 7}});
    for line in [
        json!({"type": "stream_event", "event": start}),
        assistant("one", 10),
        assistant("two", 5),
        assistant("one", 10),
        json!({"type": "stream_event", "event": delta}),
    ] {
        uncounted.record(&message(&line).body);
    }
    let tokens = uncounted.tokens();
    assert_eq!((tokens.input, tokens.output, tokens.total()), (15, 7, 22));
    uncounted.record(&message(&json!({"type": "result"})).body);
    assert_eq!(uncounted.tokens(), Tokens::default());
}

#[test]
fn cost_of_many_responses_uses_bounded_memory() {
    let mut uncounted = UncountedTokens::default();
    for number in 0..1_000 {
        uncounted.record(&message(&assistant(&number.to_string(), 1)).body);
    }
    assert_eq!(uncounted.tokens().input, 1_000);
    assert_eq!(uncounted.recent.len(), RECENT);
}
