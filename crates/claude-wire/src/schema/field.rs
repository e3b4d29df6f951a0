//! What a type does when its field is absent, null or present.

use std::borrow::Cow;

use super::{Encode, Error, Reader, View};
use crate::json::{Extra, Json, List, Map, Nullable, Number};

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
        reader.json()
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

impl<T: Decode> Decode for Map<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut values = Vec::new();
        let mut entries = reader.object("a map")?;
        while let Some(key) = entries.next_key()? {
            values.push((key.into_owned(), T::decode(entries.reader)?));
        }
        Ok(values.into())
    }
}

impl<T: Encode> Encode for Map<T> {
    fn view(&self) -> View<'_> {
        View::Map(self)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn view(&self) -> View<'_> {
        View::List(self)
    }
}

/// A value that a field has until its own was read: no `Option` around every field that must come,
/// and one way to drop a struct that was read in part.
pub(crate) trait Placeholder {
    fn placeholder() -> Self;
}

/// Placeholders of types that have a default.
macro_rules! default_placeholder {
    ($($({$($generics:tt)+})? $type:ty),+ $(,)?) => {$(
        impl $(<$($generics)+>)? Placeholder for $type {
            #[inline]
            fn placeholder() -> Self {
                Self::default()
            }
        }
    )+};
}

default_placeholder!(
    String, bool, Json, Extra, {T} Vec<T>, {T} Option<T>, {T} List<T>, {T} Nullable<T>,
);

impl Placeholder for Number {
    fn placeholder() -> Self {
        Self::from(0_u64)
    }
}

/// A type that can be a field of a wire struct.
pub(crate) trait Field: Placeholder {
    /// Whether the absence of the field is an error.
    const IS_REQUIRED: bool = false;

    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error>;

    fn show(&self) -> View<'_>;
}

impl<T: Decode + Encode> Field for Option<T> {
    // Not in each struct that has such a field.
    #[inline(never)]
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = if reader.null() { None } else { Some(T::decode(reader)?) };
        Ok(())
    }

    fn show(&self) -> View<'_> {
        match self {
            Some(value) => value.view(),
            None => View::Absent,
        }
    }
}

impl<T: Decode + Encode> Field for List<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = Option::decode(reader)?.into();
        Ok(())
    }

    fn show(&self) -> View<'_> {
        match self.as_vec() {
            Some(values) => values.view(),
            None => View::Absent,
        }
    }
}

impl<T: Decode + Encode> Field for Nullable<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = Option::decode(reader)?.into();
        Ok(())
    }

    fn show(&self) -> View<'_> {
        match self.as_ref() {
            Some(value) => value.view(),
            None => View::Null,
        }
    }
}

/// Types whose absence is an error.
macro_rules! required_field {
    ($($({$($generics:tt)+})? $type:ty),+ $(,)?) => {$(
        impl $(<$($generics)+>)? $crate::schema::Field for $type {
            const IS_REQUIRED: bool = true;

            // Compiled only where it is used: most types are only optional fields.
            #[inline]
            fn fill(
                &mut self,
                reader: &mut $crate::schema::Reader<'_>,
            ) -> Result<(), $crate::schema::Error> {
                *self = <Self as $crate::schema::Decode>::decode(reader)?;
                Ok(())
            }

            #[inline]
            fn show(&self) -> $crate::schema::View<'_> {
                $crate::schema::Encode::view(self)
            }
        }
    )+};
}
pub(crate) use required_field;

required_field!(String, bool, Json, Number, Extra, {T: Decode + Encode} Vec<T>);
