//! The entries of an object whose tag did not come first.

use std::borrow::Cow;
use std::vec;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use super::Key;

/// As many entries as stand before a late tag, usually.
const USUAL_ENTRIES: usize = 8;

/// Entries that were read as raw text, given out as if they came from the wire; then the rest of
/// the object.
pub(crate) struct Buffered<'de, A> {
    entries: vec::IntoIter<(Key<'de>, &'de RawValue)>,
    value: Option<&'de RawValue>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> Buffered<'de, A> {
    /// Reads `map`, starting behind `first`, up to the value of `tag`.
    ///
    /// The first of several equal tags counts, as it does when the tag comes first.
    pub(crate) fn collect(
        first: Option<Key<'de>>,
        mut map: A,
        tag: &str,
    ) -> Result<(Option<&'de RawValue>, Self), A::Error> {
        let mut tag_value = None;
        let mut entries = Vec::with_capacity(USUAL_ENTRIES);
        let mut next = first;
        while let Some(key) = next {
            let value: &'de RawValue = map.next_value()?;
            if key.as_str() == tag {
                tag_value = Some(value);
                break;
            }
            entries.push((key, value));
            next = map.next_key()?;
        }
        Ok((tag_value, Self { entries: entries.into_iter(), value: None, rest: map }))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Buffered<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let Some((key, value)) = self.entries.next() else {
            return self.rest.next_key_seed(seed);
        };
        self.value = Some(value);
        match key.0 {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => seed.deserialize(key.into_deserializer()),
        }
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(Held(value)).map_err(A::Error::custom),
            None => self.rest.next_value_seed(seed),
        }
    }
}

/// A value that was held as text. Most are strings, and most of those stand there as they are: they
/// need no second reading.
pub(crate) struct Held<'de>(pub(crate) &'de RawValue);

impl<'de> Held<'de> {
    /// The string, if it is one without escapes.
    fn plain(&self) -> Option<&'de str> {
        let text = self.0.get().strip_prefix('"')?.strip_suffix('"')?;
        (!text.as_bytes().contains(&b'\\')).then_some(text)
    }
}

impl<'de> Deserializer<'de> for Held<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.plain() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.0.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.plain() {
            Some(_) => visitor.visit_some(self),
            None => self.0.deserialize_option(visitor),
        }
    }

    /// Raw text is asked for in this way too.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.deserialize_bytes(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.deserialize_byte_buf(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}
