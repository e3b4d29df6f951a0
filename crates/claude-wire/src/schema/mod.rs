//! How wire types are made: structs that keep what they do not name, unions and enums that stay
//! open. No serde derive, because none of its ways (`flatten`, `tag`, `untagged`) decodes a tagged
//! message in one pass and keeps unknown fields, and because generic code for each struct and each
//! deserializer takes minutes to compile: all types are read by one [`Reader`] of JSON text, and
//! written from one kind of [`View`].
//!
//! The serde traits are built on both. A type that is decoded from something else than text, such
//! as a `serde_json::Value` or a reader, is written as text first.

#[macro_use]
mod structs;
#[macro_use]
mod union;
#[macro_use]
mod strings;
#[macro_use]
mod setters;

mod field;
mod long;
mod reader;
mod view;

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

pub(crate) use field::{Decode, Field, Placeholder, SetText, Slot, required_field};
pub(crate) use long::{Gap, LongStrings, ReadAt};
pub(crate) use reader::{Entries, Error, Fill, Reader};
pub(crate) use strings::TextVisitor;
pub(crate) use structs::{Of, Shape, WireStruct};
pub use union::{Undecodable, Unknown};
pub(crate) use union::{decode_union, read_tag, unknown};
pub(crate) use view::{Encode, Fields, Members, Object, View, fmt_names};

/// A type that is read from the entries of a JSON object, of which a union may already have taken
/// its tag.
pub(crate) trait FromEntries: Sized {
    /// The words for it in error messages.
    const NAME: &'static str;

    /// Reads into this value, as [`Decode::decode`] does.
    fn fill_from(&mut self, entries: &mut Entries<'_, '_>) -> Result<(), Error>;
}

impl<T: FromEntries> FromEntries for Box<T> {
    const NAME: &'static str = T::NAME;

    fn fill_from(&mut self, entries: &mut Entries<'_, '_>) -> Result<(), Error> {
        (**self).fill_from(entries)
    }
}

impl<T: FromEntries> FromEntries for Arc<T> {
    const NAME: &'static str = T::NAME;

    fn fill_from(&mut self, entries: &mut Entries<'_, '_>) -> Result<(), Error> {
        // Nothing shares a value that is being read.
        match Self::get_mut(self) {
            Some(value) => value.fill_from(entries),
            None => Ok(()),
        }
    }
}

/// Reads an object.
pub(crate) fn decode_object<T: FromEntries>(
    target: &mut T,
    reader: &mut Reader<'_>,
) -> Result<(), Error> {
    target.fill_from(&mut reader.object(T::NAME)?)
}

/// Decodes a whole text.
pub(crate) fn from_text<T: Decode + Placeholder>(text: &str) -> Result<T, Error> {
    decode_all(Reader::new(text))
}

/// Decodes a whole text; a part that does not decode becomes `Undecodable` in its place.
pub(crate) fn from_text_isolating<T: Decode + Placeholder>(text: &str) -> Result<T, Error> {
    decode_all(Reader::isolating(text))
}

/// Decodes everything that a reader has.
pub(crate) fn decode_all<T: Decode + Placeholder>(reader: Reader<'_>) -> Result<T, Error> {
    let mut value = T::placeholder();
    fill_all(&mut value, reader)?;
    Ok(value)
}

/// Reads everything that a reader has.
pub(crate) fn fill_all(target: &mut dyn Decode, mut reader: Reader<'_>) -> Result<(), Error> {
    target.decode(&mut reader)?;
    reader.end()
}

/// Decodes from any deserializer of `serde_json`.
pub(crate) fn deserialize<'de, T: Decode + Placeholder, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    from_text(raw.get()).map_err(D::Error::custom)
}

/// The serde traits of a wire type.
macro_rules! serde_traits {
    ($name:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                $crate::schema::deserialize(deserializer)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ::serde::Serialize::serialize(&$crate::schema::Encode::view(self), serializer)
            }
        }
    };
}
pub(crate) use serde_traits;
