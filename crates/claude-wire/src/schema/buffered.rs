//! The entries of an object whose tag did not come first.

use std::vec;

use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess};
use serde_json::value::RawValue;

use super::Key;

/// Entries that were read as raw text and are now given out as if they came from the wire.
pub(crate) struct Buffered<'de> {
    entries: vec::IntoIter<(Key<'de>, &'de RawValue)>,
    value: Option<&'de RawValue>,
}

impl<'de> Buffered<'de> {
    /// Reads all of `map`, starting behind `first`, and takes the value of `tag` out of it.
    ///
    /// The first of several equal tags counts, as it does when the tag comes first.
    pub(crate) fn collect<A: MapAccess<'de>>(
        first: Option<Key<'de>>,
        mut map: A,
        tag: &str,
    ) -> Result<(Option<&'de RawValue>, Self), A::Error> {
        let mut tag_value = None;
        let mut entries = Vec::new();
        let mut next = first;
        while let Some(key) = next {
            let value: &'de RawValue = map.next_value()?;
            if key.as_str() == tag && tag_value.is_none() {
                tag_value = Some(value);
            } else {
                entries.push((key, value));
            }
            next = map.next_key()?;
        }
        Ok((tag_value, Self { entries: entries.into_iter(), value: None }))
    }
}

impl<'de> MapAccess<'de> for Buffered<'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(key.into_string().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let value = self.value.take().ok_or_else(|| Error::custom("value before its key"))?;
        seed.deserialize(value)
    }
}
