//! What a type does when its field is absent, null or present.

use serde::de::{Deserialize, MapAccess};
use serde::ser::{Serialize, SerializeMap};

use crate::json::{Extra, Json, List, Nullable, Number};

/// A type that can stand in a field of a wire struct.
pub(crate) trait Field<'de>: Sized {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error>;

    /// The value of a field that did not come; `None` if it must come.
    fn absent() -> Option<Self>;

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error>;
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for Option<T> {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        match self {
            Some(value) => map.serialize_entry(name, value),
            None => Ok(()),
        }
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for List<T> {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value::<Option<Vec<T>>>().map(List::from)
    }

    fn absent() -> Option<Self> {
        Some(List::absent())
    }

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        if self.is_absent() { Ok(()) } else { map.serialize_entry(name, self.as_slice()) }
    }
}

impl<'de, T: Deserialize<'de> + Serialize> Field<'de> for Nullable<T> {
    fn read<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }

    fn write<M: SerializeMap>(&self, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, self)
    }
}

/// Types whose absence is an error: the macro writes the same three lines for each.
macro_rules! required_field {
    ($($type:ty),+ $(,)?) => {$(
        impl<'de> $crate::schema::Field<'de> for $type {
            fn read<A: ::serde::de::MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
                map.next_value()
            }

            fn absent() -> Option<Self> {
                None
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
