//! What a type does when its field is absent, null or present.

use std::sync::Arc;

use super::{Encode, Error, Reader, View};
use crate::json::{Extra, Json, List, Map, Nullable, Number};

/// A type that is read from JSON text.
pub(crate) trait Decode {
    /// Reads the next value into this one, which is a [`Placeholder`]. After an error it is of no
    /// use.
    ///
    /// The value is not returned: a `Result` of each type would take code in each function that
    /// passes it on.
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error>;
}

/// A value for code that reads a second time and need not know its type.
pub(crate) trait Slot: Decode {
    /// Makes it a placeholder again.
    fn reset(&mut self);
}

impl<T: Decode + Placeholder> Slot for T {
    fn reset(&mut self) {
        *self = T::placeholder();
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        (**self).decode(reader)
    }
}

/// A value that is made of a string.
pub(crate) trait SetText {
    fn set_text(&mut self, text: &str);
}

/// A list that grows while it is read.
pub(crate) trait Items {
    fn read_next(&mut self, reader: &mut Reader<'_>) -> Result<(), Error>;
}

impl<T: Decode + Placeholder> Items for Vec<T> {
    fn read_next(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let at = self.len();
        self.push(T::placeholder());
        self[at].decode(reader)
    }
}

impl<T: Decode + Placeholder> Decode for Vec<T> {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        self.clear();
        reader.items(self)
    }
}

impl<T: Decode + Placeholder> Decode for Option<T> {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = if reader.null() { None } else { Some(T::placeholder()) };
        match self {
            Some(value) => value.decode(reader),
            None => Ok(()),
        }
    }
}

impl Decode for String {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = reader.string()?.into_owned();
        Ok(())
    }
}

impl Decode for bool {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = reader.bool()?;
        Ok(())
    }
}

impl Decode for Json {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = reader.json()?;
        Ok(())
    }
}

impl Decode for Extra {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = Self::default();
        let end = reader.object("an object")?.next_field(&[], &[], self)?;
        debug_assert_eq!(end, None, "there are no fields to stop at");
        Ok(())
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
            fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
                let number = reader.unsigned()?;
                *self = Self::try_from(number)
                    .map_err(|_| reader.out_of_range(number, stringify!($type)))?;
                Ok(())
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

impl<T: Decode + Placeholder> Decode for Map<T> {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let mut values = Vec::new();
        let mut entries = reader.object("a map")?;
        while let Some(key) = entries.next_key()? {
            let at = values.len();
            values.push((key.into_owned(), T::placeholder()));
            values[at].1.decode(entries.reader)?;
        }
        *self = values.into();
        Ok(())
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
    /// Whether it takes memory from the heap, and so time.
    const ALLOCATES: bool = false;

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
    String, bool, u16, u32, u64, Json, Extra, {T} Vec<T>, {T} Map<T>, {T} Option<T>, {T} List<T>,
    {T} Nullable<T>,
);

impl<T: Placeholder> Placeholder for Box<T> {
    const ALLOCATES: bool = true;

    #[inline]
    fn placeholder() -> Self {
        Self::new(T::placeholder())
    }
}

impl<T: Placeholder> Placeholder for Arc<T> {
    const ALLOCATES: bool = true;

    #[inline]
    fn placeholder() -> Self {
        Self::new(T::placeholder())
    }
}

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

impl<T: Decode + Encode + Placeholder> Field for Option<T> {
    // Not in each struct that has such a field.
    #[inline(never)]
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        self.decode(reader)
    }

    fn show(&self) -> View<'_> {
        match self {
            Some(value) => value.view(),
            None => View::Absent,
        }
    }
}

impl<T: Decode + Encode + Placeholder> Field for List<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        self.as_option_mut().decode(reader)
    }

    fn show(&self) -> View<'_> {
        match self.as_vec() {
            Some(values) => values.view(),
            None => View::Absent,
        }
    }
}

impl<T: Decode + Encode + Placeholder> Field for Nullable<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        (**self).decode(reader)
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
                $crate::schema::Decode::decode(self, reader)
            }

            #[inline]
            fn show(&self) -> $crate::schema::View<'_> {
                $crate::schema::Encode::view(self)
            }
        }
    )+};
}
pub(crate) use required_field;

required_field!(String, bool, Json, Number, Extra, {T: Decode + Encode + Placeholder} Vec<T>);
