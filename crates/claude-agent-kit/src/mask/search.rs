//! Finds many texts at once in a single pass over another (Aho–Corasick).
//!
//! The cost is linear in the text, whatever the patterns are: for each position only the longest
//! pattern that ends there is reported, because it covers the others.

use std::ops::Range;

/// A trie of the patterns. Node 0 is the root; as a child or sibling it means "none".
pub(super) struct Search {
    nodes: Vec<Node>,
    /// The children of the root, by byte: most of a text is compared with these alone.
    first: Box<[u32; 256]>,
    longest: usize,
}

#[derive(Clone, Copy, Default)]
struct Node {
    byte: u8,
    child: u32,
    sibling: u32,
    /// The node of the longest proper suffix that is also the beginning of a pattern.
    suffix: u32,
    depth: u32,
    /// The length of the longest pattern that ends here.
    ends: u32,
}

impl Search {
    pub(super) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut search =
            Self { nodes: vec![Node::default()], first: Box::new([0; 256]), longest: 0 };
        for pattern in patterns {
            search.add(pattern.as_bytes());
        }
        search.link();
        search
    }

    /// The length of the longest pattern.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    fn add(&mut self, pattern: &[u8]) {
        let mut node = 0;
        for byte in pattern {
            node = match self.child(node, *byte) {
                0 => self.grow(node, *byte),
                known => known,
            };
        }
        let end = &mut self.nodes[node as usize];
        end.ends = end.depth;
        self.longest = self.longest.max(pattern.len());
    }

    fn grow(&mut self, parent: u32, byte: u8) -> u32 {
        // As many patterns as fit: more than 4 GiB of them do not exist.
        let Ok(new) = u32::try_from(self.nodes.len()) else { return parent };
        let above = self.nodes[parent as usize];
        let node = Node { byte, sibling: above.child, depth: above.depth + 1, ..Node::default() };
        self.nodes.push(node);
        self.nodes[parent as usize].child = new;
        if parent == 0 {
            self.first[usize::from(byte)] = new;
        }
        new
    }

    /// Finds the suffixes, shallow nodes first: those of deeper ones depend on them.
    fn link(&mut self) {
        let mut queue = vec![0];
        let mut next = 0;
        while let Some(node) = queue.get(next).copied() {
            next += 1;
            let mut child = self.nodes[node as usize].child;
            while child != 0 {
                let Node { byte, sibling, .. } = self.nodes[child as usize];
                if node != 0 {
                    let suffix = self.step(self.nodes[node as usize].suffix, byte);
                    let ends = self.nodes[suffix as usize].ends;
                    let found = &mut self.nodes[child as usize];
                    found.suffix = suffix;
                    found.ends = found.ends.max(ends);
                }
                queue.push(child);
                child = sibling;
            }
        }
    }

    fn child(&self, node: u32, byte: u8) -> u32 {
        if node == 0 {
            return self.first[usize::from(byte)];
        }
        let mut child = self.nodes[node as usize].child;
        while child != 0 && self.nodes[child as usize].byte != byte {
            child = self.nodes[child as usize].sibling;
        }
        child
    }

    /// The node of the longest beginning of a pattern that ends with this byte.
    fn step(&self, mut node: u32, byte: u8) -> u32 {
        loop {
            let child = self.child(node, byte);
            if child != 0 || node == 0 {
                return child;
            }
            node = self.nodes[node as usize].suffix;
        }
    }

    /// Adds the places of all patterns in the order of the text, those that overlap as one. Returns
    /// how many of the last bytes are the beginning of a pattern, or all of one.
    pub(super) fn find(&self, text: &str, places: &mut Vec<Range<usize>>) -> usize {
        let mut node = 0;
        for (at, byte) in text.bytes().enumerate() {
            node = self.step(node, byte);
            let length = self.nodes[node as usize].ends as usize;
            if length > 0 {
                add(at + 1 - length..at + 1, places);
            }
        }
        self.nodes[node as usize].depth as usize
    }
}

/// Adds a place that ends behind all others.
fn add(mut place: Range<usize>, places: &mut Vec<Range<usize>>) {
    while let Some(last) = places.pop_if(|last| last.end > place.start) {
        place.start = place.start.min(last.start);
    }
    places.push(place);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(patterns: &[&str], text: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        Search::new(patterns.iter().copied()).find(text, &mut places);
        places
    }

    /// Which bytes belong to a pattern, found by looking everywhere for each.
    fn covered(patterns: &[String], text: &str) -> Vec<bool> {
        let mut covered = vec![false; text.len()];
        for pattern in patterns {
            for at in 0..text.len() {
                if text.as_bytes()[at..].starts_with(pattern.as_bytes()) {
                    covered[at..at + pattern.len()].fill(true);
                }
            }
        }
        covered
    }

    #[test]
    fn overlapping_places_are_one_and_adjacent_places_are_two() {
        assert_eq!(places(&["abc", "cde"], "xabcdex xabc"), [1..6, 9..12]);
        assert_eq!(places(&["abc"], "abcabc"), [0..3, 3..6]);
        assert_eq!(places(&["aaa"], "aaaaa aaa"), [0..5, 6..9]);
        assert_eq!(places(&["bcd", "abcde"], "abcdx abcde"), [1..4, 6..11]);
        assert_eq!(places(&[], "abc"), []);
    }

    #[test]
    fn the_beginning_of_a_pattern_at_the_end_is_reported() {
        let search = Search::new(["abcdef", "cdx"]);
        for (text, expected) in [("", 0), ("x", 0), ("xab", 2), ("abcd", 4), ("abcdx", 3)] {
            assert_eq!(search.find(text, &mut Vec::new()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_place_of_every_pattern_is_found(
            patterns in prop::collection::vec("[abü]{1,5}", 0..8),
            text in "[abcü]{0,60}",
        ) {
            let search = Search::new(patterns.iter().map(String::as_str));
            let mut places = Vec::new();
            let open = search.find(&text, &mut places);
            let mut found = vec![false; text.len()];
            for place in &places {
                found[place.clone()].fill(true);
            }
            prop_assert_eq!(found, covered(&patterns, &text));
            prop_assert!(places.is_sorted_by(|a, b| a.end <= b.start));
            let begins = |length: &usize| {
                let end = &text.as_bytes()[text.len() - length..];
                patterns.iter().any(|pattern| pattern.as_bytes().starts_with(end))
            };
            let expected = (1..=text.len()).rev().find(begins).unwrap_or(0);
            prop_assert_eq!(open, expected);
        }
    }
}
