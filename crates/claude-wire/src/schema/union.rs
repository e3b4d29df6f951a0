//! `open_union!`: an enum of structs that are distinguished by a tag, with variants for unknown tags.

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};

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
    target: &mut T,
    reader: &mut Reader<'_>,
    tag: &'static str,
    undecodable: fn(Box<Undecodable>) -> T,
) -> Result<(), Error> {
    if !reader.is_isolating() {
        return decode_object(target, reader);
    }
    if let Some(isolated) = isolate(reader, tag, &mut |part| decode_object(target, part))? {
        *target = undecodable(isolated);
    }
    Ok(())
}

/// Reads a member by itself; returns it as it came if it does not fit.
#[cold]
fn isolate(
    reader: &mut Reader<'_>,
    tag: &'static str,
    read: &mut dyn FnMut(&mut Reader<'_>) -> Result<(), Error>,
) -> Result<Option<Box<Undecodable>>, Error> {
    let raw = reader.raw()?;
    let Err(error) = read(&mut reader.part(raw)) else { return Ok(None) };
    Ok(Some(Box::new(Undecodable {
        kind: tag_of(reader.part(raw), tag),
        raw: reader.owned(raw),
        reason: crate::error::without_values(&error),
    })))
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
            fn fill_from(
                &mut self,
                entries: &mut $crate::schema::Entries<'_, '_>,
            ) -> Result<(), $crate::schema::Error> {
                let kind = $crate::schema::read_tag($tag, $optional, entries)?;
                *self = match &*kind {
                    $( $value => Self::$variant($crate::schema::Placeholder::placeholder()), )+
                    _ => Self::Unknown($crate::schema::unknown($tag, kind, entries)?),
                };
                match self {
                    $( Self::$variant(member) => {
                        $crate::schema::FromEntries::fill_from(member, entries)
                    } )+
                    // Read as a whole.
                    Self::Unknown(_) | Self::Undecodable(_) => Ok(()),
                }
            }
        }

        impl $crate::schema::Placeholder for $name {
            const ALLOCATES: bool = true $(&& <$type as $crate::schema::Placeholder>::ALLOCATES)+;

            // The first member that takes no memory.
            #[inline]
            fn placeholder() -> Self {
                $( if !<$type as $crate::schema::Placeholder>::ALLOCATES {
                    return Self::$variant($crate::schema::Placeholder::placeholder());
                } )+
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
                &mut self,
                reader: &mut $crate::schema::Reader<'_>,
            ) -> Result<(), $crate::schema::Error> {
                $crate::schema::decode_union(self, reader, $tag, Self::Undecodable)
            }
        }

        $crate::schema::serde_traits!($name);
        $crate::schema::required_field!($name);
    };
}
