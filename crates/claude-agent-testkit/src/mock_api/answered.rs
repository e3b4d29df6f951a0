//! Which texts of a conversation were prompts of their own.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::ApiRequest;
use super::request::Position;

/// The number of prompts that are remembered. A script answers a handful; the limit bounds the memory
/// of one that answers for hours.
const KEPT: usize = 10_000;

/// The prompts that requests ended with.
///
/// The CLI merges prompts with no answer between them into one entry of the conversation: after an
/// error or an interrupt, the entry holds the old prompt and the new one, exactly like one prompt of
/// two texts. What tells them apart is that an earlier request ended with the old one.
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
            // A text that another one was added to ends with a line break.
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
