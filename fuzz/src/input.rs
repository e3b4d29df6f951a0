//! Structure out of bytes.

/// Bytes that are used up; then there are zeros.
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// One choice in this many.
    pub(super) fn one_in(&mut self, most: u8) -> bool {
        self.byte() % most == 1
    }

    /// So many bytes, or those that are left.
    pub(super) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Bytes with their length before them, in two bytes.
    pub(super) fn chunk(&mut self) -> &'a [u8] {
        let length = u16::from_le_bytes([self.byte(), self.byte()]);
        self.bytes(usize::from(length))
    }

    /// A short text.
    pub(super) fn text(&mut self) -> String {
        let length = usize::from(self.byte());
        String::from_utf8_lossy(self.bytes(length)).into_owned()
    }

    /// A text, or none.
    pub(super) fn option<T: From<String>>(&mut self) -> Option<T> {
        self.one_in(2).then(|| T::from(self.text()))
    }

    /// A few texts.
    pub(super) fn texts(&mut self) -> Vec<String> {
        let count = self.byte() % 4;
        (0..count).map(|_| self.text()).collect()
    }

    /// The rest.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }
}
