//! Identifiers in the index: fixed-size hashes of the strings in a transcript.

/// A hash of an identifier, 96 bits: the chance that two of ten million identifiers share one is
/// below 10⁻¹⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key([u32; 3]);

impl Key {
    /// Hashes an identifier. Upper and lower case differ, as they do for the CLI.
    pub(crate) fn of(text: &str) -> Self {
        let (low, high) = hash(text.as_bytes());
        Self([lower(low), lower(low >> 32), lower(high)])
    }

    /// The first 32 bits. Keys are ordered by them first.
    pub(crate) fn first_word(self) -> u32 {
        self.0[0]
    }

    /// The other 64 bits.
    pub(super) fn last_words(self) -> u64 {
        u64::from(self.0[1]) << 32 | u64::from(self.0[2])
    }

    /// The first 48 bits. Keys are ordered by them first.
    pub(crate) fn prefix(self) -> u64 {
        u64::from(self.0[0]) << 16 | u64::from(self.0[1] >> 16)
    }
}

/// A shorter hash, 48 bits, for identifiers that only group lines: API responses and tool calls.
/// Zero means "none".
pub(crate) fn short_hash(text: &str) -> u64 {
    (hash(text.as_bytes()).1 >> 16).max(1)
}

/// The low 32 bits.
pub(crate) fn lower(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).unwrap_or_default()
}

fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or_default();
    let high = u64::try_from(product >> 64).unwrap_or_default();
    low ^ high
}

fn hash(bytes: &[u8]) -> (u64, u64) {
    const SEEDS: [u64; 4] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xd6e8_feb8_6659_fd93,
    ];
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let (mut one, mut two) = (SEEDS[0] ^ length, SEEDS[1]);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        one = mix(one ^ word, SEEDS[2]) ^ two;
        two = mix(two ^ word.rotate_left(29), SEEDS[3]).wrapping_add(one);
    }
    (mix(one ^ SEEDS[3], two ^ SEEDS[2]), mix(two ^ SEEDS[1], one ^ SEEDS[0]))
}

/// Returns whether `text` has the form of a UUID: 8-4-4-4-12 hexadecimal digits in either case.
///
/// Only such names are sessions: the CLI and the official SDKs skip all other files.
pub fn is_uuid(text: &str) -> bool {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| {
            if HYPHENS.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
}
