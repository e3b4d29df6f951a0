//! `open_union!`: one of several structs, told apart by a tag, open to what is not known yet.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::{Buffered, Held, Key, MapVisitor, Mode, WriteFields};
use crate::json::{Extra, Json};
use crate::schema::FromMap;

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

impl WriteFields for Unknown {
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if !self.kind.is_empty() {
            map.serialize_entry(self.tag, &self.kind)?;
        }
        self.fields.write(map)
    }
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_fields(&mut map)?;
        map.end()
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

impl WriteFields for Undecodable {
    /// Only reached for a union inside another union's object, where nothing is isolated.
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (name, value) in
            self.raw.deserialize::<Extra>().map_err(serde::ser::Error::custom)?.iter()
        {
            map.serialize_entry(name, value)?;
        }
        Ok(())
    }
}

impl Serialize for Undecodable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// Reads the rest of an object whose tag is not known.
pub(crate) fn unknown<'de, A: MapAccess<'de>>(
    tag: &'static str,
    kind: Key<'de>,
    mut map: A,
) -> Result<Unknown, A::Error> {
    let mut fields = Extra::default();
    while let Some(key) = map.next_key::<Key<'de>>()? {
        fields.push(key.into_string(), map.next_value()?);
    }
    Ok(Unknown { kind: kind.into_string(), fields, tag })
}

/// Reads a union whose tag did not come first: the entries before it are held as raw text.
pub(crate) fn late_tag<'de, T, A: MapAccess<'de>>(
    tag: &'static str,
    optional: bool,
    first: Option<Key<'de>>,
    map: A,
    from_tagged: fn(Key<'de>, Buffered<'de, A>) -> Result<T, A::Error>,
) -> Result<T, A::Error> {
    let (value, rest) = Buffered::collect(first, map, tag)?;
    let kind = match value {
        Some(value) => Key::deserialize(Held(value))
            .map_err(|_| A::Error::custom(format_args!("`{tag}` is not a string")))?,
        None if optional => Key::none(),
        None => return Err(A::Error::custom(format_args!("an object without `{tag}`"))),
    };
    from_tagged(kind, rest)
}

/// Decodes a union. When isolating, a member that does not fit becomes `undecodable`.
pub(crate) fn decode_union<'de, T, D>(
    deserializer: D,
    tag: &'static str,
    undecodable: fn(Box<Undecodable>) -> T,
) -> Result<T, D::Error>
where
    T: for<'text> FromMap<'text>,
    D: Deserializer<'de>,
{
    match Mode::current() {
        Mode::Text => deserializer.deserialize_map(MapVisitor::<T>::new()),
        Mode::Any => {
            let raw = Box::<RawValue>::deserialize(deserializer)?;
            Mode::Text.run(|| from_raw(&raw)).map_err(D::Error::custom)
        }
        Mode::Isolating => {
            let raw = <&'de RawValue>::deserialize(deserializer)?;
            Ok(from_raw(raw).unwrap_or_else(|error| {
                undecodable(Box::new(Undecodable {
                    kind: tag_of(raw, tag),
                    raw: Json::from(raw.to_owned()),
                    reason: crate::error::without_values(&error),
                }))
            }))
        }
    }
}

fn from_raw<'a, T: FromMap<'a>>(raw: &'a RawValue) -> Result<T, serde_json::Error> {
    raw.deserialize_map(MapVisitor::<T>::new())
}

/// The tag of an object that does not decode, if it has one that is a string.
fn tag_of(raw: &RawValue, tag: &str) -> Option<String> {
    struct TagVisitor<'a>(&'a str);

    impl<'de> Visitor<'de> for TagVisitor<'_> {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an object with `{}`", self.0)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let first = map.next_key()?;
            let (value, mut rest) = Buffered::collect(first, map, self.0)?;
            while rest.next_entry::<Key<'de>, IgnoredAny>()?.is_some() {}
            Ok(value)
        }
    }

    let value = raw.deserialize_map(TagVisitor(tag)).ok()??;
    serde_json::from_str(value.get()).ok()
}

/// Declares an enum of structs that are told apart by a tag.
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

            fn from_tagged<'de, A: ::serde::de::MapAccess<'de>>(
                kind: $crate::schema::Key<'de>,
                map: A,
            ) -> Result<Self, A::Error> {
                match kind.as_str() {
                    $( $value => $crate::schema::FromMap::from_map(map).map(Self::$variant), )+
                    _ => $crate::schema::unknown($tag, kind, map)
                        .map(|unknown| Self::Unknown(Box::new(unknown))),
                }
            }
        }

        impl<'de> $crate::schema::FromMap<'de> for $name {
            const NAME: &'static str = stringify!($name);

            fn from_map<A: ::serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                let first = map.next_key::<$crate::schema::Key<'de>>()?;
                if first.as_ref().is_some_and(|key| key.as_str() == $tag) {
                    let kind = map.next_value()?;
                    return Self::from_tagged(kind, map);
                }
                $crate::schema::late_tag($tag, $optional, first, map, Self::from_tagged)
            }
        }

        impl $crate::schema::WriteFields for $name {
            fn write_fields<M: ::serde::ser::SerializeMap>(
                &self,
                map: &mut M,
            ) -> Result<(), M::Error> {
                match self {
                    $( Self::$variant(member) => {
                        map.serialize_entry($tag, $value)?;
                        member.write_fields(map)
                    } )+
                    Self::Unknown(unknown) => unknown.write_fields(map),
                    Self::Undecodable(undecodable) => undecodable.write_fields(map),
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                $crate::schema::decode_union(deserializer, $tag, Self::Undecodable)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                if let Self::Undecodable(undecodable) = self {
                    return undecodable.serialize(serializer);
                }
                let mut map = serializer.serialize_map(None)?;
                $crate::schema::WriteFields::write_fields(self, &mut map)?;
                map.end()
            }
        }

        $crate::schema::required_field!($name);
    };
}
