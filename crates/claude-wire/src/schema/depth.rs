//! A limit to types that stand inside themselves.

use std::cell::Cell;

/// How deep content may stand inside content. Messages need two levels; without a limit a line of
/// nested tool results would overflow the stack, because the limit of `serde_json` begins anew
/// wherever a part is read from its raw text.
const MAX_DEPTH: u8 = 32;

thread_local! {
    static DEPTH: Cell<u8> = const { Cell::new(0) };
}

/// One level of nesting, left when dropped.
pub(crate) struct Level(());

impl Level {
    pub(crate) fn enter<E: serde::de::Error>() -> Result<Self, E> {
        let depth = DEPTH.get();
        if depth == MAX_DEPTH {
            return Err(E::custom(format_args!("more than {MAX_DEPTH} levels of content")));
        }
        DEPTH.set(depth + 1);
        Ok(Self(()))
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
