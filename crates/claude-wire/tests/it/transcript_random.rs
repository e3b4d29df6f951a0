//! Properties of generated transcripts.

use std::collections::{BTreeMap, BTreeSet};

use claude_wire::transcript::{EntryKind, EntryRef, Fork, ForkIds, Index, MessageFilter};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::transcript_lines::*;

/// A line of a generated transcript; ids are small numbers, so that they repeat and miss.
fn any_line() -> impl Strategy<Value = String> {
    let id = 0..12_u32;
    (0..12_u32, id.clone(), proptest::option::of(id.clone()), id, 0..4_u32).prop_map(
        |(kind, uuid, parent, other, response)| {
            let (uuid, parent) = (format!("e{uuid}"), parent.map(|id| format!("e{id}")));
            let (other, parent_id) = (format!("e{other}"), parent.clone().unwrap_or_default());
            let response = format!("m{response}");
            match kind {
                0..=2 => user(&uuid, parent.as_deref()),
                3 => assistant(&uuid, &parent_id, &response),
                4 => call(&uuid, &parent_id, &response, &other, 1),
                5 => result(&uuid, &parent_id, &other, 2),
                6 => queued(&uuid, &parent_id, json!({"source_uuid": other})),
                7 => entry("progress", &uuid, parent.as_deref(), json!({})),
                8 => entry("user", &uuid, parent.as_deref(), json!({"isSidechain": true})),
                9 => {
                    let kept = json!({"anchorUuid": other, "uuids": [parent_id]});
                    boundary(&uuid, &other, json!({"preservedMessages": kept}))
                }
                10 => json!({"type": "tag", "tag": other, "sessionId": "s"}).to_string(),
                _ => format!("{{\"torn\":\"{other}"),
            }
        },
    )
}

fn any_transcript() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any_line(), 0..30).prop_map(|lines| transcript(&lines))
}

/// Bytes that come near the rules of salvage.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any_line().prop_map(String::into_bytes),
        3 => Just(b"\n".to_vec()),
        1 => Just(b"\0\0".to_vec()),
        1 => Just(b"{\"parentUuid\":".to_vec()),
        1 => Just(b"\xff".to_vec()),
        1 => any_line().prop_map(|line| line.into_bytes()[..11].to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_conversation_follows_the_tree(bytes in any_transcript()) {
        let index = index(&bytes);
        let tree = index.tree();
        let conversation = tree.conversation();
        let distinct: BTreeSet<usize> = conversation.iter().map(EntryRef::index).collect();
        prop_assert_eq!(distinct.len(), conversation.len());
        for branch in tree.branches() {
            let path = tree.path(branch);
            for pair in path.windows(2) {
                prop_assert_eq!(tree.parent(pair[1]), Some(pair[0]));
            }
            prop_assert!(tree.full_path(branch).len() >= path.len());
        }
        // The conversation is a path of the tree, and results and lines of parallel calls.
        let is_part = |path: &[EntryRef]| {
            let mut rest = conversation.iter();
            path.iter().all(|entry| rest.any(|other| other == entry))
        };
        let is_parallel =
            |entry: &EntryRef| entry.has_tool_result() || entry.kind() == EntryKind::Assistant;
        let mut paths = conversation.iter().map(|entry| tree.path(*entry));
        let is_path = paths.any(|path| {
            let is_explained = |entry: &EntryRef| path.contains(entry) || is_parallel(entry);
            is_part(&path) && conversation.iter().all(is_explained)
        });
        prop_assert!(is_path || conversation.is_empty());
        let shown = tree.messages(MessageFilter::default());
        prop_assert!(shown.iter().all(|message| !message.entry.is_sidechain()));
        drop(tree.messages(MessageFilter::default().include_compacted(true).include_system(true)));
        drop(tree.issues());
    }

    #[test]
    fn chunks_do_not_matter(
        bytes in any_bytes(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
    ) {
        let whole = index(&bytes);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut cut = Index::new();
        for pair in places.windows(2) {
            cut.feed(&bytes[pair[0]..pair[1]]);
        }
        cut.finish();
        prop_assert_eq!(whole.issues(), cut.issues());
        prop_assert!(whole.entries().eq(cut.entries()));
        prop_assert_eq!(whole.tree().conversation(), cut.tree().conversation());
        // Entries lie in the file one behind another.
        let mut end = 0;
        for entry in whole.entries() {
            prop_assert!(entry.offset() >= end);
            end = entry.offset() + entry.len() as u64;
        }
        prop_assert!(end <= bytes.len() as u64);
        prop_assert_eq!(whole.position(), bytes.len() as u64);
    }

    #[test]
    fn indexes_of_parts_are_joined(
        bytes in prop_oneof![any_bytes(), any_transcript()],
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
    ) {
        // Parts begin with a line.
        let breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let starts: Vec<usize> = breaks.map(|(at, _)| at + 1).chain([0, bytes.len()]).collect();
        let mut places: Vec<usize> = cuts.iter().map(|cut| *cut.get(&starts)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut joined = Index::new();
        for pair in places.windows(2) {
            let mut part = Index::new().starting_at(pair[0] as u64);
            part.feed(&bytes[pair[0]..pair[1]]);
            if pair[1] == bytes.len() {
                part.finish();
            }
            joined.append(part);
        }
        let whole = index(&bytes);
        prop_assert_eq!(whole.issues(), joined.issues());
        prop_assert!(whole.entries().eq(joined.entries()));
        prop_assert_eq!(whole.tree().conversation(), joined.tree().conversation());
        prop_assert_eq!(whole.tree().issues(), joined.tree().issues());
        prop_assert_eq!(whole.checkpoint(), joined.checkpoint());
        prop_assert_eq!(whole.position(), joined.position());
    }

    #[test]
    fn a_fork_maps_every_id(bytes in any_transcript(), up_to in proptest::option::of(0..12_u32)) {
        let index = index(&bytes);
        let tree = index.tree();
        let up_to = up_to.map(|id| format!("e{id}"));
        let Ok(plan) = tree.fork(up_to.as_deref()) else { return Ok(()) };
        let mut next = 0_u8;
        let mut fork = Fork::new(&plan, ForkIds::new("s", "n", at(0)), || {
            next += 1;
            [next; 16]
        });
        let mut mapped: BTreeMap<String, String> = BTreeMap::new();
        let mut copies: Vec<(Value, Value)> = Vec::new();
        for entry in plan.entries() {
            let source = bytes_of(&bytes, entry);
            let copy = fork.entry(entry, source).unwrap();
            prop_assert_eq!(copy.last(), Some(&b'\n'));
            let source: Value = serde_json::from_slice(source).unwrap();
            let copy: Value = serde_json::from_slice(&copy).unwrap();
            let (old, new) = (source["uuid"].as_str().unwrap(), copy["uuid"].as_str().unwrap());
            let before = mapped.insert(old.to_owned(), new.to_owned());
            prop_assert!(before.is_none_or(|before| before == new));
            prop_assert_eq!(&copy["forkedFrom"]["messageUuid"], &source["uuid"]);
            prop_assert_eq!(&copy["sessionId"], "n");
            prop_assert_eq!(&copy["isSidechain"], false);
            copies.push((source, copy));
        }
        let new: BTreeSet<&String> = mapped.values().collect();
        prop_assert_eq!(new.len(), mapped.len());
        let mut uses: BTreeMap<String, usize> = BTreeMap::new();
        for entry in index.entries() {
            let entry: Value = serde_json::from_slice(bytes_of(&bytes, entry)).unwrap();
            *uses.entry(entry["uuid"].to_string()).or_default() += 1;
        }
        for (source, copy) in &copies {
            let parent = copy["parentUuid"].as_str();
            prop_assert!(parent.is_none_or(|id| new.contains(&id.to_owned())));
            // One id may be that of a message and of a progress entry, which is not copied.
            let is_unique = uses.get(&source["parentUuid"].to_string()) == Some(&1);
            let direct = source["parentUuid"].as_str().and_then(|id| mapped.get(id));
            if let Some(direct) = direct.filter(|_| is_unique) {
                prop_assert_eq!(parent, Some(&**direct));
            }
        }
        if let Some(up_to) = up_to {
            prop_assert!(mapped.contains_key(&up_to) || !copies.is_empty());
        }
    }
}
