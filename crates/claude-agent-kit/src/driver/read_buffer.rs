//! A read buffer that all drivers of a thread share.
//!
//! Only who reads needs one, and on a thread one reads at a time. Thousands of sessions that wait
//! for their CLI would else hold one each.

use std::cell::Cell;

use bytes::BytesMut;
use claude_wire::frame::Framer;

thread_local! {
    static SPARE: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

/// Gives a framer the thread's buffer, if it has none of its own.
pub(super) fn acquire(framer: &mut Framer) {
    // A thread that ends has none to lend.
    framer.lend(|| SPARE.try_with(Cell::take).ok().flatten());
}

/// Takes the buffer of a framer that waits for a new line.
pub(super) fn release(framer: &mut Framer) {
    if let Some(buffer) = framer.take_spare() {
        // On a thread that ends it is dropped.
        let _ = SPARE.try_with(|spare| spare.set(Some(buffer)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_new_line_holds_no_buffer() {
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
