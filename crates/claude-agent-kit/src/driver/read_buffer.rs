//! A read buffer shared by all drivers of a thread.
//!
//! A driver needs a buffer only while it reads, and a thread runs one driver at a time. Thousands of
//! idle sessions would otherwise hold one buffer each.

use std::cell::Cell;

use bytes::BytesMut;
use claude_wire::frame::Framer;

thread_local! {
    static SPARE: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

/// Lends the thread's buffer to a framer that has none.
pub(super) fn acquire(framer: &mut Framer) {
    // An exiting thread has no buffer to lend.
    framer.lend(|| SPARE.try_with(Cell::take).ok().flatten());
}

/// Returns the buffer of a framer that holds no partial line.
pub(super) fn release(framer: &mut Framer) {
    if let Some(buffer) = framer.take_spare() {
        // On an exiting thread the buffer is dropped.
        let _ = SPARE.try_with(|spare| spare.set(Some(buffer)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_framer_holds_no_buffer() {
        let (mut one, mut other) = (Framer::default(), Framer::default());
        acquire(&mut one);
        one.push(b"a line\nand a ");
        assert!(one.next_frame().is_some() && one.next_frame().is_none());
        release(&mut one);
        acquire(&mut other);
        assert!(other.take_spare().is_none(), "the other half is still waited for");
        one.push(b"half\n");
        assert!(one.next_frame().is_some() && one.next_frame().is_none());
        release(&mut one);
        assert!(one.take_spare().is_none());
        acquire(&mut other);
        assert!(other.take_spare().is_some());
    }
}
