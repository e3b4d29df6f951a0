//! Turns bytes into structured values.

/// The remaining bytes of the input; zeros follow at the end.
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

    /// Returns `true` for one value of the next byte in `most`.
    pub(super) fn one_in(&mut self, most: u8) -> bool {
        self.byte() % most == 1
    }

    /// Returns up to `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Returns bytes with a length prefix of two bytes.
    pub(super) fn chunk(&mut self) -> &'a [u8] {
        let length = u16::from_le_bytes([self.byte(), self.byte()]);
        self.bytes(usize::from(length))
    }

    /// Returns a short text.
    pub(super) fn text(&mut self) -> String {
        let length = usize::from(self.byte());
        String::from_utf8_lossy(self.bytes(length)).into_owned()
    }

    /// Returns a text or `None`.
    pub(super) fn option<T: From<String>>(&mut self) -> Option<T> {
        self.one_in(2).then(|| T::from(self.text()))
    }

    /// Returns up to three texts.
    pub(super) fn texts(&mut self) -> Vec<String> {
        let count = self.byte() % 4;
        (0..count).map(|_| self.text()).collect()
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }
}
