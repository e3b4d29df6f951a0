//! Reads the outermost fields from the end of a line whose middle was discarded, backwards from the
//! closing brace.

use super::{Envelope, scan};

/// Adds the fields that `tail` contains completely. Fields from the head take precedence.
pub(super) fn complete<'a>(envelope: &mut Envelope<'a>, tail: &'a [u8]) {
    let mut cursor = Backwards { bytes: tail, end: tail.len() };
    if cursor.take(b'}').is_none() {
        return;
    }
    while let Some((name, value)) = cursor.field() {
        scan::set(envelope, name, value);
        if cursor.take(b',').is_none() {
            return;
        }
    }
}

/// A cursor that moves towards the beginning. Outside of strings JSON reads the same in both
/// directions; a string's first quote is the nearest one before its last that is not escaped.
struct Backwards<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> Backwards<'a> {
    /// A field whose name and value are both complete.
    fn field(&mut self) -> Option<(&'a str, &'a str)> {
        let value = self.value()?;
        self.take(b':')?;
        let name = self.string()?;
        Some((&name[1..name.len() - 1], value))
    }

    fn value(&mut self) -> Option<&'a str> {
        match self.peek()? {
            b'"' => self.string(),
            b'}' | b']' => self.nested(),
            _ => self.scalar(),
        }
    }

    fn string(&mut self) -> Option<&'a str> {
        if self.peek()? != b'"' {
            return None;
        }
        let last = self.end - 1;
        let mut at = last;
        loop {
            at = memchr::memrchr(b'"', &self.bytes[..at])?;
            let escapes = self.bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            if escapes % 2 == 0 {
                break;
            }
        }
        self.text(at, last + 1)
    }

    fn nested(&mut self) -> Option<&'a str> {
        self.peek()?;
        let last = self.end;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'}' | b']' => {
                    depth += 1;
                    self.end -= 1;
                }
                b'{' | b'[' => {
                    depth -= 1;
                    self.end -= 1;
                    if depth == 0 {
                        return self.text(self.end, last);
                    }
                }
                b'"' => drop(self.string()?),
                _ => self.end -= 1,
            }
        }
    }

    fn scalar(&mut self) -> Option<&'a str> {
        let last = self.end;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = self.bytes[..last].iter().rev().take_while(|byte| is_part(byte)).count();
        // At the very beginning of the bytes the value may be cut.
        if length == 0 || length == last { None } else { self.text(last - length, last) }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.end -= 1;
        Some(())
    }

    /// The byte before the cursor, behind white space.
    fn peek(&mut self) -> Option<u8> {
        while self.end > 0 && self.bytes[self.end - 1].is_ascii_whitespace() {
            self.end -= 1;
        }
        self.end.checked_sub(1).map(|at| self.bytes[at])
    }

    fn text(&mut self, from: usize, to: usize) -> Option<&'a str> {
        self.end = from;
        std::str::from_utf8(&self.bytes[from..to]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Envelope, complete};

    #[test]
    fn the_outermost_fields_are_read_from_the_end() {
        let tail = br#"lost "type":"no","a":{"type":"inner"},"s":"quote \" and \\","type":"result","n":-1.5e3,"l":["]",{"x":1}],"is_error":true,"uuid":"u-1"}"#;
        let mut envelope = Envelope::default();
        complete(&mut envelope, tail);
        assert_eq!(envelope.kind, "result");
        assert!(envelope.is_error);
        assert_eq!(envelope.uuid.as_deref(), Some("u-1"));
    }

    #[test]
    fn a_value_that_is_cut_is_not_read() {
        for tail in [r#"sult","uuid":"u"}"#, "rue}", r#"e":"result"}"#, "", "}", "]}", "\"}"] {
            let mut envelope = Envelope::default();
            complete(&mut envelope, tail.as_bytes());
            assert_eq!(envelope.kind, "", "{tail}");
            assert!(!envelope.is_error, "{tail}");
        }
    }
}
