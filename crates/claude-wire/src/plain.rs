//! Skips the plain part of JSON strings, for all readers of JSON text.

/// How many bytes at the start are neither a quote, a backslash nor a control character.
#[inline]
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    /// Most strings are shorter: names and identifiers.
    const SHORT: usize = 48;
    let length = plain_words(&bytes[..bytes.len().min(SHORT)]);
    if length < SHORT { length } else { SHORT + plain_blocks(&bytes[SHORT..]) }
}

/// As [`plain_length`], for long text.
fn plain_blocks(bytes: &[u8]) -> usize {
    /// The compiler turns a block of this size into a few vector instructions.
    const BLOCK: usize = 64;
    // Numbers instead of booleans, which would be compared one after the other.
    let special =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    let is_plain =
        |block: &[u8; BLOCK]| block.iter().fold(0, |found, byte| found | special(*byte)) == 0;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let plain = BLOCK * blocks.iter().take_while(|block| is_plain(block)).count();
    plain + plain_words(&bytes[plain..])
}

/// As [`plain_length`], for short text.
#[inline]
fn plain_words(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
        // A borrow may mark bytes behind the first one that counts, never before it.
        let found = (below(word, 0x20) | below(quote, 1) | below(slash, 1)) & HIGH;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().take_while(is_plain).count()
}
