//! Runs the fuzz targets on the stored corpus and on deterministic mutations of it, with a stable
//! compiler.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    unreachable_pub,
    reason = "tests fail by panicking; the module is also a library"
)]

use std::fs;
use std::path::{Path, PathBuf};

#[allow(dead_code, reason = "a module of other tests")]
#[path = "../../crates/claude-wire/tests/it/transcript_shapes.rs"]
mod shapes;
#[path = "../../fuzz/src/lib.rs"]
mod targets;

/// The size of a crafted transcript in the corpus: about twenty entries.
const SHAPE_BYTES: usize = 2_000;

/// The number of mutations per file.
const MUTATIONS: u64 = 60;

fn fuzz_directory(name: &str) -> PathBuf {
    tests_e2e::workspace::root().join("fuzz").join(name)
}

/// Returns the files of a directory, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_fuzz_target_passes_on_its_corpus() {
    for (target, run) in targets::TARGETS {
        let files = files(&fuzz_directory("corpus").join(target));
        assert!(files.len() >= 3, "the corpus of {target} is missing");
        targets::run(target, &[]);
        for file in files {
            let data = fs::read(&file).unwrap();
            let tried = std::panic::catch_unwind(|| run(&data));
            assert!(tried.is_ok(), "{target} fails on {}", file.display());
        }
    }
}

/// `UPDATE_EXPECT=1 cargo test -p tests-e2e --test fuzz` writes them.
#[test]
fn crafted_transcripts_are_in_the_corpus() {
    let folder = fuzz_directory("corpus/transcript");
    let mut expected = Vec::new();
    for (name, make) in shapes::CRAFTED {
        let name = name
            .replace(' ', "_")
            .replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_', "");
        let path = folder.join(format!("shape_{name}"));
        // Lines of up to 16 KiB, in chunks of 64 bytes.
        let data = [&[0xff, 0x3f], &*make(SHAPE_BYTES)].concat();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, &data).unwrap();
        }
        let stored = fs::read(&path).unwrap_or_default();
        assert!(stored == data, "{} is not current; help: set UPDATE_EXPECT=1", path.display());
        expected.push(path);
    }
    let is_shape =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("shape_");
    let mut found: Vec<PathBuf> = files(&folder).into_iter().filter(is_shape).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn every_fuzz_target_passes_on_mutations_of_its_corpus() {
    for (target, run) in targets::TARGETS {
        let corpus: Vec<Vec<u8>> = files(&fuzz_directory("corpus").join(target))
            .into_iter()
            .map(|file| fs::read(file).unwrap())
            .collect();
        for (number, data) in corpus.iter().enumerate() {
            for change in 0..MUTATIONS {
                let seed = u64::try_from(number).unwrap() << 32 | change;
                let other = &corpus[usize::try_from(change).unwrap() % corpus.len()];
                let changed = mutate(data, other, seed);
                let tried = std::panic::catch_unwind(|| run(&changed));
                assert!(
                    tried.is_ok(),
                    "{target} fails on {:?}",
                    changed.escape_ascii().to_string()
                );
            }
        }
    }
}

/// Replaces, removes or repeats some bytes of `data`, or appends the end of `other`.
fn mutate(data: &[u8], other: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut below = |most: usize| {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(most.max(1)).unwrap()).unwrap()
    };
    let mut changed = data.to_vec();
    for _ in 0..=below(4) {
        let place = below(changed.len());
        let end = (place + below(9)).min(changed.len());
        match below(5) {
            0 if !changed.is_empty() => changed[place] = u8::try_from(below(256)).unwrap(),
            1 => drop(changed.drain(place..end)),
            2 => {
                let again = changed[place..end].to_vec();
                changed.splice(place..place, again);
            }
            3 => {
                let odd: [&[u8]; 6] = [b"\0", b"\xff", b"\"", b"\\u", b"{", b"-"];
                changed.splice(place..place, odd[below(6)].iter().copied());
            }
            _ => {
                changed.truncate(place);
                changed.extend_from_slice(&other[below(other.len())..]);
            }
        }
    }
    changed
}

#[test]
fn every_fuzz_target_has_a_program() {
    let programs: Vec<String> = files(&fuzz_directory("fuzz_targets"))
        .into_iter()
        .map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(programs, targets::TARGETS.map(|(name, _)| name));
}

#[test]
fn fuzz_corpus_stays_small() {
    let all =
        targets::TARGETS.iter().flat_map(|(name, _)| files(&fuzz_directory("corpus").join(name)));
    let bytes: u64 = all.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < 300 * 1024, "{bytes}");
}
