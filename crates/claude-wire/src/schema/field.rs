//! What a type does when its field is absent, null or present.

use serde::de::{Deserialize, MapAccess};
use serde::ser::{Serialize, SerializeMap};

use crate::json::{Extra, Json, List, Nullable, Number};

/// A type that can stand in a field of a wire struct.
pub(crate) trait Field<'de>: Sized {
    /// Where the value is kept until the whole object was read. Types that may be absent are
    /// their own slot: one `Option` less to fill, move and drop for each field of each message.
    type Slot;

    fn empty() -> Self::Slot;

    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Self::Slot, A::Error>;

    /// The value; an error naming the field if it must come and did not.
    fn finish<E: serde::de::Error>(slot: Self::Slot, name: &'static str) -> Result<Self, E>;

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error>;
}

/// The reading half for a type that may be absent and reads itself.
macro_rules! optional_slot {
    ($empty:expr) => {
        type Slot = Self;

        #[inline]
        fn empty() -> Self {
            $empty
        }

        #[inline]
        fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
            map.next_value()
        }

        #[inline]
        fn finish<E: serde::de::Error>(slot: Self, _: &'static str) -> Result<Self, E> {
            Ok(slot)
        }
    };
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for Option<T> {
    optional_slot!(None);

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        match self {
            Some(value) => map.serialize_entry(name, value),
            None => Ok(()),
        }
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for List<T> {
    optional_slot!(List::absent());

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        if self.is_absent() { Ok(()) } else { map.serialize_entry(name, self.as_slice()) }
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for Nullable<T> {
    optional_slot!(Nullable::default());

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for Vec<T> {
    type Slot = Option<Self>;

    fn empty() -> Option<Self> {
        None
    }

    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value().map(Some)
    }

    fn finish<E: serde::de::Error>(slot: Option<Self>, name: &'static str) -> Result<Self, E> {
        slot.ok_or_else(|| E::missing_field(name))
    }

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)
    }
}

/// Types whose absence is an error: the macro writes the same lines for each.
macro_rules! required_field {
    ($($type:ty),+ $(,)?) => {$(
        impl<'de> $crate::schema::Field<'de> for $type {
            type Slot = Option<Self>;

            #[inline]
            fn empty() -> Option<Self> {
                None
            }

            #[inline]
            fn read<A: ::serde::de::MapAccess<'de>>(
                map: &mut A,
            ) -> Result<Option<Self>, A::Error> {
                map.next_value().map(Some)
            }

            #[inline]
            fn finish<E: ::serde::de::Error>(
                slot: Option<Self>,
                name: &'static str,
            ) -> Result<Self, E> {
                slot.ok_or_else(|| E::missing_field(name))
            }

            fn write<M: ::serde::ser::SerializeMap>(
                &self,
                name: &'static str,
                map: &mut M,
            ) -> Result<(), M::Error> {
                map.serialize_entry(name, self)
            }
        }
    )+};
}
pub(crate) use required_field;

required_field!(String, bool, Json, Number, Extra);
