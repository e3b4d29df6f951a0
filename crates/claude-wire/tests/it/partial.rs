//! Pieces of answers: what is shown is what counts, and nothing is shown twice.

use std::collections::BTreeMap;

use claude_wire::content::ContentBlock;
use claude_wire::message::{Accumulator, BlockPlace, Update};
use claude_wire::{Body, Message};

use crate::recording::corpus;

/// What a program shows that prints every piece and takes back what is abandoned.
#[derive(Default)]
struct Screen {
    text: BTreeMap<BlockPlace, String>,
    whole: Vec<(BlockPlace, ContentBlock)>,
    pieces: usize,
}

impl Screen {
    fn show(&mut self, update: Update) {
        match update {
            Update::Text(place, text) | Update::Thinking(place, text) => {
                self.pieces += 1;
                self.text.entry(place).or_default().push_str(&text);
            }
            Update::Abandoned(place) => self.text.retain(|other, _| {
                (&other.parent, &other.message) != (&place.parent, &place.message)
                    || other.index < place.index
            }),
            Update::Block(place, block) => self.whole.push((place, block)),
            _ => {}
        }
    }
}

fn play(bodies: impl IntoIterator<Item = Body>) -> Screen {
    let (mut accumulator, mut screen) = (Accumulator::new(), Screen::default());
    for body in bodies {
        accumulator.push(&body).into_iter().for_each(|update| screen.show(update));
    }
    screen
}

fn bodies(lines: &[&str]) -> Vec<Body> {
    lines.iter().map(|line| Message::decode((*line).to_owned()).unwrap().body).collect()
}

#[test]
fn on_every_recording_the_text_shown_is_the_text_of_the_whole_blocks() {
    let mut streamed = 0;
    for recorded in corpus() {
        let bodies =
            recorded.from_cli.into_iter().filter_map(|line| Message::decode(line.bytes).ok());
        let screen = play(bodies.map(|message| message.body));
        let mut expected = BTreeMap::new();
        for (place, block) in &screen.whole {
            let text = match block {
                ContentBlock::Text(block) => block.text.clone(),
                ContentBlock::Thinking(block) => block.thinking.clone(),
                _ => continue,
            };
            if !text.is_empty() {
                expected.insert(place.clone(), text);
            }
        }
        assert_eq!(screen.text, expected, "{}", recorded.name);
        streamed += screen.pieces.saturating_sub(expected.len());
    }
    assert!(streamed > 10, "some recordings are streamed in pieces");
}

const START: &str =
    r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}"#;

fn delta(index: u64, text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
    )
}

fn whole(message: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{message}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[test]
fn block_without_deltas_is_shown_at_once() {
    let lines = [whole("m1", "one"), whole("m1", "two"), whole("m2", "three")];
    let screen = play(bodies(&lines.each_ref().map(String::as_str)));
    let texts: Vec<_> = screen.text.values().map(String::as_str).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    assert_eq!(screen.pieces, 3);
}

#[test]
fn text_missing_from_deltas_is_shown_with_the_block() {
    let lines = [START.to_owned(), delta(0, "Hel"), whole("m1", "Hello.")];
    let updates: Vec<_> = {
        let mut accumulator = Accumulator::new();
        bodies(&lines.each_ref().map(String::as_str))
            .iter()
            .flat_map(|body| accumulator.push(body))
            .collect()
    };
    let texts: Vec<_> = updates
        .iter()
        .filter_map(|update| match update {
            Update::Text(_, text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["Hel", "lo."]);
    assert!(matches!(updates.last(), Some(Update::Block(..))));
}

#[test]
fn wrong_partial_text_is_replaced() {
    let lines = [START.to_owned(), delta(0, "Good"), whole("m1", "Bad")];
    let screen = play(bodies(&lines.each_ref().map(String::as_str)));
    assert_eq!(screen.text.values().collect::<Vec<_>>(), ["Bad"]);
    // An answer that broke off and came again: the recording shows it on the wire.
    let recorded = corpus().into_iter().find(|one| one.name == "api_stream_dropped").unwrap();
    let lines = recorded.from_cli.into_iter().filter_map(|line| Message::decode(line.bytes).ok());
    let screen = play(lines.map(|message| message.body));
    assert_eq!(screen.text.values().collect::<Vec<_>>(), ["Whole."]);
}

#[test]
fn subagents_and_the_main_conversation_do_not_mix() {
    let sub = |text: &str| {
        format!(
            r#"{{"type":"stream_event","parent_tool_use_id":"t","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let lines = [START.to_owned(), delta(0, "a"), sub("x"), delta(0, "b"), sub("y")];
    let screen = play(bodies(&lines.each_ref().map(String::as_str)));
    assert_eq!(screen.text.values().collect::<Vec<_>>(), ["ab", "xy"]);
}
