//! How wire types are made: structs that keep what they do not name, unions and enums that stay
//! open. No serde derive, because none of its ways (`flatten`, `tag`, `untagged`) decodes a tagged
//! message in one pass and keeps unknown fields.
//!
//! Fields before a late tag are borrowed from the JSON text. A union that is decoded from something
//! else, such as a `serde_json::Value` or a reader, is written as text first (see [`Mode`]).

#[macro_use]
mod structs;
#[macro_use]
mod union;
#[macro_use]
mod strings;
#[macro_use]
mod setters;

mod buffered;
mod depth;
mod field;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap};
use serde_json::{Map, Value};

pub(crate) use buffered::{Buffered, Held};
pub(crate) use depth::Level;
pub(crate) use field::{Field, required_field};
pub(crate) use strings::TextVisitor;
pub use union::{Undecodable, Unknown};
pub(crate) use union::{decode_union, late_tag, unknown};

/// A type that is read from the entries of a JSON object, of which a union may already have taken
/// its tag.
pub(crate) trait FromMap<'de>: Sized {
    /// The word for it in error messages.
    const NAME: &'static str;

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de, T: FromMap<'de>> FromMap<'de> for Box<T> {
    const NAME: &'static str = T::NAME;

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::from_map(map).map(Box::new)
    }
}

/// The writing side of [`FromMap`]: a union writes its tag and then its member, a struct its named
/// fields and then the kept ones.
pub(crate) trait WriteFields {
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl<T: WriteFields> WriteFields for Box<T> {
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        (**self).write_fields(map)
    }
}

/// Visits an object and gives its entries to `T`.
pub(crate) struct MapVisitor<T>(PhantomData<T>);

impl<T> MapVisitor<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: FromMap<'de>> Visitor<'de> for MapVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object ({})", T::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }
}

/// Shows the names of the fields that a value has, and nothing of what stands in them.
pub(crate) fn fmt_names(
    name: &str,
    value: &impl Serialize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let written = serde_json::to_value(value).unwrap_or_default();
    let names = written.as_object().into_iter().flat_map(Map::<String, Value>::keys);
    write!(f, "{name} ")?;
    f.debug_set().entries(names).finish()
}

/// An object key or a tag, borrowed from the text unless it holds escapes.
#[derive(Debug)]
pub(crate) struct Key<'de>(Cow<'de, str>);

impl Key<'_> {
    /// The tag of an object that has none.
    pub(crate) fn none() -> Self {
        Self(Cow::Borrowed(""))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// How unions and numbers decode on this thread.
///
/// A thread-local and not an argument, because `Deserialize` has no place for one; it is set for
/// the length of one synchronous call, in which only types of this crate are decoded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// The deserializer is not known: a union takes its raw text first, which works for text, for
    /// `serde_json::Value` and for readers.
    Any,
    /// The deserializer reads text that can be borrowed.
    Text,
    /// The same, and a part that does not decode becomes `Undecodable` in its place. Only on the
    /// second attempt, because isolating a part means reading it twice.
    Isolating,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Any) };
}

impl Mode {
    pub(crate) fn current() -> Self {
        MODE.get()
    }

    /// Runs `decode` in this mode.
    pub(crate) fn run<T>(self, decode: impl FnOnce() -> T) -> T {
        struct Restore(Mode);

        impl Drop for Restore {
            fn drop(&mut self) {
                MODE.set(self.0);
            }
        }

        let _restore = Restore(MODE.replace(self));
        decode()
    }
}
