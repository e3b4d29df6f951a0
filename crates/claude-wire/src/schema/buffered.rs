//! The entries of an object whose tag did not come first.

use std::borrow::Cow;
use std::vec;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess};
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
            Some(value) => seed.deserialize(value).map_err(A::Error::custom),
            None => self.rest.next_value_seed(seed),
        }
    }
}
