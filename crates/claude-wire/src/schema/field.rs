//! What a type does when its field is absent, null or present.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::Error as _;

use super::{Encode, Error, Reader, View};
use crate::json::{Extra, Json, List, Nullable, Number};

/// A type that is read from JSON text.
pub(crate) trait Decode: Sized {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error>;
}

impl<T: Decode> Decode for Box<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        T::decode(reader).map(Self::new)
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.list("a sequence")?;
        let mut items = Self::new();
        while reader.next_item(items.is_empty())? {
            items.push(T::decode(reader)?);
        }
        Ok(items)
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        if reader.null() { Ok(None) } else { T::decode(reader).map(Some) }
    }
}

impl Decode for String {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.string().map(Cow::into_owned)
    }
}

impl Decode for bool {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.bool()
    }
}

impl Decode for Json {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.raw().map(|raw| raw.to_owned().into())
    }
}

impl Decode for Extra {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut extra = Self::default();
        let end = reader.object("an object")?.next_field(&[], &[], &mut extra)?;
        debug_assert_eq!(end, None, "there are no fields to stop at");
        Ok(extra)
    }
}

impl Encode for String {
    fn view(&self) -> View<'_> {
        View::Text(self)
    }
}

impl Encode for bool {
    fn view(&self) -> View<'_> {
        View::Bool(*self)
    }
}

impl Encode for Json {
    fn view(&self) -> View<'_> {
        View::Json(self)
    }
}

impl Encode for Number {
    fn view(&self) -> View<'_> {
        View::Number(self)
    }
}

impl Encode for Extra {
    fn view(&self) -> View<'_> {
        View::Extra(self)
    }
}

/// Numbers that a host sets, in a machine type.
macro_rules! machine_numbers {
    ($($type:ty),+) => {$(
        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
                reader.stream()
            }
        }

        impl Encode for $type {
            fn view(&self) -> View<'_> {
                View::Unsigned((*self).into())
            }
        }
    )+};
}

machine_numbers!(u16, u32, u64);

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut map = Self::new();
        let mut entries = reader.object("a map")?;
        while let Some(key) = entries.next_key()? {
            map.insert(key.into_owned(), T::decode(entries.reader)?);
        }
        Ok(map)
    }
}

impl<T: Encode> Encode for BTreeMap<String, T> {
    fn view(&self) -> View<'_> {
        View::Map(self)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn view(&self) -> View<'_> {
        View::List(self)
    }
}

/// A type that can be a field of a wire struct.
pub(crate) trait Field: Sized {
    /// Where the value is kept until the whole object was read. Types that may be absent are
    /// their own slot: one `Option` less to fill, move and drop for each field of each message.
    type Slot;

    fn empty() -> Self::Slot;

    fn read(reader: &mut Reader<'_>) -> Result<Self::Slot, Error>;

    /// The value; an error naming the field if it must come and did not.
    fn finish(slot: Self::Slot, name: &'static str) -> Result<Self, Error>;

    fn show(&self) -> View<'_>;
}

/// The reading half for a type that may be absent.
macro_rules! optional_slot {
    ($empty:expr) => {
        type Slot = Self;

        #[inline]
        fn empty() -> Self {
            $empty
        }

        #[inline]
        fn finish(slot: Self, _: &'static str) -> Result<Self, Error> {
            Ok(slot)
        }
    };
}

impl<T: Decode + Encode> Field for Option<T> {
    optional_slot!(None);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Self::decode(reader)
    }

    fn show(&self) -> View<'_> {
        self.as_ref().map_or(View::Absent, Encode::view)
    }
}

impl<T: Decode + Encode> Field for List<T> {
    optional_slot!(List::absent());

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Option::decode(reader).map(Self::from)
    }

    fn show(&self) -> View<'_> {
        self.as_vec().map_or(View::Absent, Encode::view)
    }
}

impl<T: Decode + Encode> Field for Nullable<T> {
    optional_slot!(Nullable::default());

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Option::decode(reader).map(Self::from)
    }

    fn show(&self) -> View<'_> {
        self.as_ref().map_or(View::Null, Encode::view)
    }
}

/// The error of a field that must come and did not.
#[cold]
pub(crate) fn missing(name: &'static str) -> Error {
    Error::missing_field(name)
}

/// Types whose absence is an error.
macro_rules! required_field {
    ($($({$($generics:tt)+})? $type:ty),+ $(,)?) => {$(
        impl $(<$($generics)+>)? $crate::schema::Field for $type {
            type Slot = Option<Self>;

            #[inline]
            fn empty() -> Option<Self> {
                None
            }

            #[inline]
            fn read(
                reader: &mut $crate::schema::Reader<'_>,
            ) -> Result<Option<Self>, $crate::schema::Error> {
                <Self as $crate::schema::Decode>::decode(reader).map(Some)
            }

            #[inline]
            fn finish(
                slot: Option<Self>,
                name: &'static str,
            ) -> Result<Self, $crate::schema::Error> {
                slot.ok_or_else(|| $crate::schema::missing(name))
            }

            fn show(&self) -> $crate::schema::View<'_> {
                $crate::schema::Encode::view(self)
            }
        }
    )+};
}
pub(crate) use required_field;

required_field!(String, bool, Json, Number, Extra, {T: Decode + Encode} Vec<T>);
