//! `open_union!`: an enum of structs that are distinguished by a tag, with variants for unknown tags.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Entries, Error, FromEntries, Members, Object, Reader, View, decode_object};
use crate::json::{Extra, Json};

/// A member of a union whose tag this version of the types does not know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unknown {
    /// The tag's value; empty if there was none and none is required.
    pub kind: String,
    /// All other fields, as they came.
    pub fields: Extra,
    tag: &'static str,
}

impl Unknown {
    pub(crate) fn new(tag: &'static str) -> Self {
        Self { kind: String::new(), fields: Extra::default(), tag }
    }
}

impl Object for Unknown {
    fn members(&self) -> Members<'_> {
        let members = Members::unnamed(&self.fields);
        if self.kind.is_empty() { members } else { members.tagged(self.tag, &self.kind) }
    }
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        View::Object(self.members()).serialize(serializer)
    }
}

/// A member of a union that should be known but does not have the known shape.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Undecodable {
    /// The tag's value, if there was one.
    pub kind: Option<String>,
    /// The member as it came.
    pub raw: Json,
    /// What did not fit.
    pub reason: String,
}

impl Object for Undecodable {
    /// Only reached for a union inside another union's object, where nothing is isolated.
    fn members(&self) -> Members<'_> {
        Members::raw(&self.raw)
    }
}

impl Serialize for Undecodable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// Reads the rest of an object whose tag is not known.
pub(crate) fn unknown(
    tag: &'static str,
    kind: Cow<'_, str>,
    entries: &mut Entries<'_, '_>,
) -> Result<Box<Unknown>, Error> {
    let mut fields = Extra::default();
    entries.next_field(&[], &[], &mut fields)?;
    Ok(Box::new(Unknown { kind: kind.into_owned(), fields, tag }))
}

/// Reads the tag of a union; empty if it may be absent and is.
pub(crate) fn read_tag<'de>(
    tag: &'static str,
    is_optional: bool,
    entries: &mut Entries<'_, 'de>,
) -> Result<Cow<'de, str>, Error> {
    match entries.take_tag(tag)? {
        Some(kind) => Ok(kind),
        None if is_optional => Ok(Cow::Borrowed("")),
        None => Err(entries.reader.error(&format!("an object without `{tag}`"))),
    }
}

/// Decodes a union. When isolating, a member that does not fit becomes `undecodable`.
pub(crate) fn decode_union<T: FromEntries>(
    reader: &mut Reader<'_>,
    tag: &'static str,
    undecodable: fn(Box<Undecodable>) -> T,
) -> Result<T, Error> {
    if !reader.is_isolating() {
        return decode_object(reader);
    }
    let raw = reader.raw()?;
    Ok(decode_object(&mut reader.part(raw))
        .unwrap_or_else(|error| undecodable(Box::new(isolated(reader, raw, tag, &error)))))
}

#[cold]
fn isolated(reader: &Reader<'_>, raw: &RawValue, tag: &'static str, error: &Error) -> Undecodable {
    Undecodable {
        kind: tag_of(reader.part(raw), tag),
        raw: reader.owned(raw),
        reason: crate::error::without_values(error),
    }
}

/// The tag of an object that does not decode, if it has one that is a string.
fn tag_of(mut reader: Reader<'_>, tag: &str) -> Option<String> {
    let kind = reader.object("an object").ok()?.take_tag(tag).ok()??;
    Some(kind.into_owned())
}

/// Declares an enum of structs that are distinguished by a tag.
///
/// `by optional` lets the tag be absent: the member is then `Unknown` with an empty kind.
///
/// Decodes in one pass when the tag is the first key, through borrowed raw text otherwise. Two
/// more variants are added: `Unknown` for tags that are not in the list, and `Undecodable` for a
/// member that should be known and does not fit (see [`crate::Message`] for when it is used).
macro_rules! open_union {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident by optional $tag:literal { $($variants:tt)+ }
    ) => {
        open_union!(@declare true, $tag, $(#[$meta])* $vis enum $name { $($variants)+ });
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident by $tag:literal { $($variants:tt)+ }
    ) => {
        open_union!(@declare false, $tag, $(#[$meta])* $vis enum $name { $($variants)+ });
    };
    (
        @declare $optional:literal, $tag:literal,
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident($type:ty) = $value:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        $vis enum $name {
            $( $(#[$variant_meta])* $variant($type), )+
            /// A kind that this version of the types does not know.
            Unknown(Box<$crate::Unknown>),
            /// A known kind that does not have the known shape.
            Undecodable(Box<$crate::Undecodable>),
        }

        impl $name {
            /// The tags that this union knows.
            pub const KNOWN: &'static [&'static str] = &[$($value),+];

            /// The value of the tag, if there is one.
            pub fn kind(&self) -> Option<&str> {
                match self {
                    $( Self::$variant(_) => Some($value), )+
                    Self::Unknown(unknown) => Some(&unknown.kind),
                    Self::Undecodable(undecodable) => undecodable.kind.as_deref(),
                }
            }
        }

        impl $crate::schema::FromEntries for $name {
            const NAME: &'static str = concat!("an object (", stringify!($name), ")");

            // Compiled only where it is used, as everything marked `inline` here: many unions are never
            // decoded, or never written.
            #[inline]
            fn from_entries(
                entries: &mut $crate::schema::Entries<'_, '_>,
            ) -> Result<Self, $crate::schema::Error> {
                let kind = $crate::schema::read_tag($tag, $optional, entries)?;
                match &*kind {
                    $( $value => {
                        $crate::schema::FromEntries::from_entries(entries).map(Self::$variant)
                    } )+
                    _ => $crate::schema::unknown($tag, kind, entries).map(Self::Unknown),
                }
            }
        }

        impl $crate::schema::Placeholder for $name {
            #[inline]
            fn placeholder() -> Self {
                Self::Unknown(Box::new($crate::Unknown::new($tag)))
            }
        }

        impl $crate::schema::Object for $name {
            #[inline]
            fn members(&self) -> $crate::schema::Members<'_> {
                match self {
                    $( Self::$variant(member) => {
                        $crate::schema::Object::members(member).tagged($tag, $value)
                    } )+
                    Self::Unknown(unknown) => unknown.members(),
                    Self::Undecodable(undecodable) => undecodable.members(),
                }
            }
        }

        impl $crate::schema::Encode for $name {
            #[inline]
            fn view(&self) -> $crate::schema::View<'_> {
                match self {
                    Self::Undecodable(undecodable) => $crate::schema::View::Json(&undecodable.raw),
                    _ => $crate::schema::View::Object($crate::schema::Object::members(self)),
                }
            }
        }

        impl $crate::schema::Decode for $name {
            #[inline]
            fn decode(
                reader: &mut $crate::schema::Reader<'_>,
            ) -> Result<Self, $crate::schema::Error> {
                $crate::schema::decode_union(reader, $tag, Self::Undecodable)
            }
        }

        $crate::schema::serde_traits!($name);
        $crate::schema::required_field!($name);
    };
}
