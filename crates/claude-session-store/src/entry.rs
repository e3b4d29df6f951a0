//! Entries and their IDs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use claude_wire::transcript::is_uuid;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::error::StoreError;
use super::key::{Sequence, Subpath};

/// The maximum length of the ID of an entry.
const MAX_ID_BYTES: usize = 128;

/// The namespace of digests; it must never change, because stored IDs depend on it.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d1f_8f0e_55c4_4c0a_9a3b_0c61_7e2d_94b7);

/// The ID of an entry in its transcript. Stores only compare IDs.
///
/// The ID is derived from the text of the entry: `<uuid>.<digest>` for an entry with a `uuid`, and
/// `<digest>.<occurrence>` for others. So an entry that is sent again has the same ID, and an entry that was
/// changed has another one, even with the same `uuid`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// Creates an ID from its text, as a store returns it: 1 to 128 bytes without control characters.
    ///
    /// # Errors
    /// Fails if the text is not an ID.
    pub fn new(text: &str) -> Result<Self, StoreError> {
        if text.is_empty() || text.len() > MAX_ID_BYTES || text.contains(char::is_control) {
            return Err(StoreError::rejected(format!(
                "invalid ID of an entry: expected 1 to {MAX_ID_BYTES} bytes without control \
                 characters, found {} bytes",
                text.len()
            )));
        }
        Ok(Self(text.into()))
    }

    /// Generates a random ID, for an entry that is written without knowledge of the transcript, such as a
    /// title.
    #[cfg(feature = "random")]
    pub fn unique() -> Self {
        Self(Uuid::new_v4().to_string().into())
    }

    /// Returns the ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the ID was derived from an entry with a `uuid`.
    pub fn has_uuid(&self) -> bool {
        self.0.split_once('.').is_some_and(|(uuid, _)| is_uuid(uuid))
    }

    /// Returns the digest and the occurrence number of an ID that was derived from an entry without `uuid`.
    pub fn occurrence(&self) -> Option<(Uuid, u64)> {
        let (digest, occurrence) = self.0.split_once('.')?;
        // Only the form that `derive` writes: `Uuid` parses others too.
        let digest = (digest.len() == 32).then(|| Uuid::try_parse(digest).ok())??;
        Some((digest, occurrence.parse().ok()?))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// An entry to append: one JSON value as text, which stores keep byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    subpath: Option<Subpath>,
    id: EntryId,
    text: Arc<str>,
}

impl NewEntry {
    /// Creates an entry of a transcript (without a subpath: of the main one), with an ID derived from its
    /// text.
    ///
    /// `occurrence` is the number of earlier entries of the transcript with exactly this text. It is ignored
    /// for an entry with a `uuid`. [`Occurrences`] counts it.
    ///
    /// # Errors
    /// Fails if the text is not one JSON value.
    pub fn new(
        subpath: Option<Subpath>,
        text: impl Into<Arc<str>>,
        occurrence: u64,
    ) -> Result<Self, StoreError> {
        Self::derive(subpath, text.into(), |_, _| occurrence)
    }

    /// Creates an entry with an ID of its own.
    ///
    /// # Errors
    /// Fails if the text is not one JSON value.
    pub fn with_id(
        subpath: Option<Subpath>,
        id: EntryId,
        text: impl Into<Arc<str>>,
    ) -> Result<Self, StoreError> {
        let text = text.into();
        scan(&text)?;
        Ok(Self { subpath, id, text })
    }

    fn derive(
        subpath: Option<Subpath>,
        text: Arc<str>,
        occurrence: impl FnOnce(&Option<Subpath>, Uuid) -> u64,
    ) -> Result<Self, StoreError> {
        let uuid = scan(&text)?;
        let digest = Uuid::new_v5(&NAMESPACE, text.as_bytes());
        let id = match uuid {
            Some(uuid) => format!("{uuid}.{}", digest.simple()),
            None => format!("{}.{}", digest.simple(), occurrence(&subpath, digest)),
        };
        Ok(Self { subpath, id: EntryId(id.into()), text })
    }

    /// Returns the subpath of the transcript, or `None` for the main one.
    pub fn subpath(&self) -> Option<&Subpath> {
        self.subpath.as_ref()
    }

    /// Returns the ID.
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Returns the text. A clone shares it.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
}

/// An entry that a store returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEntry {
    /// The position in the session.
    pub sequence: Sequence,
    /// The subpath of the transcript, or `None` for the main one.
    pub subpath: Option<Subpath>,
    /// The ID.
    pub id: EntryId,
    /// The text, as it was appended.
    pub text: Arc<str>,
}

impl StoredEntry {
    /// Creates an entry.
    pub fn new(
        sequence: Sequence,
        subpath: Option<Subpath>,
        id: EntryId,
        text: impl Into<Arc<str>>,
    ) -> Self {
        Self { sequence, subpath, id, text: text.into() }
    }
}

/// Counts equal entries without a `uuid`, to derive the IDs of the entries of one session in order.
///
/// Takes memory for every different entry without a `uuid`.
#[derive(Clone, Debug, Default)]
pub struct Occurrences {
    counts: HashMap<(Option<Subpath>, Uuid), u64>,
}

impl Occurrences {
    /// Creates a counter for a session without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the next entry of a transcript.
    ///
    /// # Errors
    /// Fails if the text is not one JSON value. The counter is then unchanged.
    pub fn entry(
        &mut self,
        subpath: Option<Subpath>,
        text: impl Into<Arc<str>>,
    ) -> Result<NewEntry, StoreError> {
        NewEntry::derive(subpath, text.into(), |subpath, digest| {
            let count = self.counts.entry((subpath.clone(), digest)).or_default();
            let occurrence = *count;
            *count += 1;
            occurrence
        })
    }

    /// Returns how many entries of a transcript have each text.
    pub fn of(&self, subpath: Option<&Subpath>) -> HashMap<Uuid, u64> {
        let of_transcript = self.counts.iter().filter(|((known, _), _)| known.as_ref() == subpath);
        of_transcript.map(|((_, digest), count)| (*digest, *count)).collect()
    }

    /// Counts an entry that the store already has.
    pub fn count(&mut self, entry: &StoredEntry) {
        if let Some((digest, occurrence)) = entry.id.occurrence() {
            let count = self.counts.entry((entry.subpath.clone(), digest)).or_default();
            *count = occurrence.saturating_add(1).max(*count);
        }
    }
}

/// Checks that the text is one JSON value, and returns its `uuid` if it has one.
fn scan(text: &str) -> Result<Option<&str>, StoreError> {
    let scanned = if text.trim_start().starts_with('{') {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let uuid = deserializer.deserialize_map(UuidVisitor);
        uuid.and_then(|uuid| deserializer.end().map(|()| uuid))
    } else {
        serde_json::from_str::<&RawValue>(text).map(|_| None)
    };
    scanned.map_err(|error| {
        // The text of the error has a position and no part of the entry.
        StoreError::rejected(format!("the entry is not a JSON value: {error}")).caused_by(error)
    })
}

/// Visits an object and keeps the value of its last member `uuid`, if that is a UUID.
struct UuidVisitor;

impl<'de> Visitor<'de> for UuidVisitor {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut uuid = None;
        while let Some(IsUuid(is_uuid_member)) = map.next_key()? {
            if is_uuid_member {
                let value: &RawValue = map.next_value()?;
                let text = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                uuid = text.filter(|text| is_uuid(text));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(uuid)
    }
}

/// Whether the name of a member is `uuid`. Names are read as bytes, which may contain lone surrogates.
struct IsUuid(bool);

impl<'de> Deserialize<'de> for IsUuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = IsUuid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<IsUuid, E> {
                Ok(IsUuid(name == b"uuid"))
            }
        }

        deserializer.deserialize_bytes(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::StoreErrorKind;
    use super::*;

    const UUID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    fn id(text: &str, occurrence: u64) -> String {
        NewEntry::new(None, text, occurrence).unwrap().id().to_string()
    }

    /// Stored IDs depend on these values.
    #[test]
    fn ids_are_the_same_in_every_release() {
        let text = r#"{"type":"user"}"#;
        assert_eq!(id(text, 7), "2ecda646493d5d9eb9ec3f726f416fa7.7");
        let text = format!(r#"{{"type":"user","uuid":"{UUID}"}}"#);
        assert_eq!(id(&text, 7), format!("{UUID}.5266350afede5c82890e645fc16e3b1e"));
    }

    #[test]
    fn one_uuid_with_two_texts_has_two_ids() {
        let text = |value: u32| format!(r#"{{"uuid":"{UUID}","value":{value}}}"#);
        assert_ne!(id(&text(1), 0), id(&text(2), 0));
        assert_eq!(id(&text(1), 0), id(&text(1), 1));
        assert!(id(&text(1), 0).starts_with(UUID));
    }

    #[test]
    fn only_a_uuid_of_the_entry_itself_is_used() {
        for text in [
            format!(r#"{{"inner":{{"uuid":"{UUID}"}}}}"#),
            r#"{"uuid":"x"}"#.to_owned(),
            r#"{"uuid":1e400}"#.to_owned(),
            format!(r#"["{UUID}"]"#),
            format!("\"{UUID}\""),
        ] {
            assert!(id(&text, 3).ends_with(".3"), "{text}");
        }
        assert!(id(&format!(r#" {{"\ud800":[],"uuid" : "{UUID}"}} "#), 3).starts_with(UUID));
    }

    #[test]
    fn unusual_json_is_accepted_and_other_text_is_rejected() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for text in ["1e400", "-0.0", r#""\ud800\u0000""#, r#"{"a":1,"a":2}"#, "{\n}", &deep] {
            assert_eq!(&**NewEntry::new(None, text, 0).unwrap().text(), text);
        }
        for text in ["", " ", "{", "{}{}", "{} x", "nul", "[1,]", "{\"a\":01}"] {
            let error = NewEntry::new(None, text, 0).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Rejected, "{text}");
            assert!(NewEntry::with_id(None, EntryId::unique(), text).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_have_one_to_128_bytes() {
        assert!(EntryId::new(&"x".repeat(128)).is_ok());
        for text in ["", "a\nb", "a\0", &"x".repeat(129)] {
            assert!(EntryId::new(text).is_err(), "{text:?}");
        }
        assert_ne!(EntryId::unique(), EntryId::unique());
    }

    #[test]
    fn occurrences_are_counted_per_transcript() {
        let sub = Subpath::new("subagents/a").unwrap();
        let mut occurrences = Occurrences::new();
        let mut next = |subpath: &Option<Subpath>, text: &str| {
            occurrences.entry(subpath.clone(), text).unwrap().id().to_string()
        };
        let (first, second, other) = (next(&None, "{}"), next(&None, "{}"), next(&Some(sub), "{}"));
        assert_eq!((first, second), (id("{}", 0), id("{}", 1)));
        assert_eq!(other, id("{}", 0));
    }

    #[test]
    fn counting_continues_after_stored_entries() {
        let stored = |entry: &NewEntry| {
            StoredEntry::new(Sequence::new(1), None, entry.id().clone(), entry.text().clone())
        };
        let mut occurrences = Occurrences::new();
        occurrences.count(&stored(&NewEntry::new(None, "{}", 4).unwrap()));
        occurrences.count(&stored(&NewEntry::new(None, "{}", 2).unwrap()));
        occurrences.count(&stored(&NewEntry::with_id(None, EntryId::unique(), "{}").unwrap()));
        assert_eq!(occurrences.entry(None, "{}").unwrap().id().as_str(), id("{}", 5));
        assert_eq!(occurrences.counts.len(), 1);
    }
}
