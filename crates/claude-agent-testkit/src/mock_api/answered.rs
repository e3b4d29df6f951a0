//! Detects where the latest prompt of a conversation starts.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::ApiRequest;
use super::request::Position;

/// The maximum number of remembered prompts. It bounds the memory of a script that runs for hours.
const KEPT: usize = 10_000;

/// The last prompts of earlier requests.
///
/// The CLI merges consecutive prompts without an answer into one entry of the conversation: after an
/// error or an interrupt, the entry contains the old prompt and the new one, exactly like one prompt of
/// two texts. They can be distinguished because an earlier request ended with the old prompt.
#[derive(Debug, Default)]
pub(super) struct AnsweredPrompts {
    fingerprints: VecDeque<u64>,
}

impl AnsweredPrompts {
    /// Returns where the latest prompt of the conversation starts, and remembers this prompt.
    pub(super) fn start_of_prompt(&mut self, request: &ApiRequest) -> Position {
        let mut hasher = DefaultHasher::new();
        let mut start = Position::default();
        let mut last = None;
        for (position, text) in request.prompt_texts() {
            start = match last {
                None => position.start_of_entry(),
                Some((before, _)) if position.is_in_later_entry(before) => {
                    position.start_of_entry()
                }
                Some((before, fingerprint)) if self.has(fingerprint) => before.next(),
                Some(_) => start,
            };
            // The CLI adds a newline to a text when it appends another one.
            text.trim_end().hash(&mut hasher);
            last = Some((position, hasher.finish()));
        }
        if let Some((_, fingerprint)) = last
            && !self.has(fingerprint)
        {
            if self.fingerprints.len() == KEPT {
                self.fingerprints.pop_front();
            }
            self.fingerprints.push_back(fingerprint);
        }
        start
    }

    fn has(&self, fingerprint: u64) -> bool {
        self.fingerprints.contains(&fingerprint)
    }
}
