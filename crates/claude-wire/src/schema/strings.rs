//! Strings with a meaning: ids, and enums that stay open.

use std::fmt;
use std::marker::PhantomData;

use serde::de::Visitor;

/// Visits a string and makes a `T` of it.
pub(crate) struct TextVisitor<T>(PhantomData<T>);

impl<T> TextVisitor<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: for<'a> From<&'a str>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from(text))
    }
}

/// Declares a newtype over a string, so that one id is not taken for another. Ids go from hand to
/// hand, so a copy shares the text.
macro_rules! string_id {
    ($( $(#[$meta:meta])* $name:ident ),+ $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(::std::sync::Arc<str>);

        impl $name {
            /// Returns the ID as on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::schema::Placeholder for $name {
            fn placeholder() -> Self {
                Self(::std::sync::Arc::default())
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        string_traits!($name);
    )+};
}

/// Declares an enum of strings that keeps a string it does not know.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $value:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// A value that this version of the types does not know.
            Other(Box<str>),
        }

        impl $name {
            /// The values that this enum knows.
            pub const KNOWN: &'static [&'static str] = &[$($value),+];

            /// Returns the value as on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $value, )+
                    Self::Other(value) => value,
                }
            }
        }

        impl $crate::schema::Placeholder for $name {
            fn placeholder() -> Self {
                Self::Other(Box::default())
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                match value {
                    $( $value => Self::$variant, )+
                    _ => Self::Other(value.into()),
                }
            }
        }

        string_traits!($name);
    };
}

/// What both kinds of string share.
macro_rules! string_traits {
    ($name:ident) => {
        impl From<String> for $name {
            fn from(value: String) -> Self {
                Self::from(value.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::schema::TextVisitor::<Self>::new())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::schema::Decode for $name {
            fn decode(
                &mut self,
                reader: &mut $crate::schema::Reader<'_>,
            ) -> Result<(), $crate::schema::Error> {
                reader.text(self)
            }
        }

        impl $crate::schema::SetText for $name {
            fn set_text(&mut self, text: &str) {
                *self = Self::from(text);
            }
        }

        impl $crate::schema::Encode for $name {
            #[inline]
            fn view(&self) -> $crate::schema::View<'_> {
                $crate::schema::View::Text(self.as_str())
            }
        }

        $crate::schema::required_field!($name);
    };
}
