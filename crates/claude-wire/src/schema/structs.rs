//! `wire_struct!`: declares a struct of the wire.

use std::marker::PhantomData;

use super::{
    Decode, Encode, Entries, Error, Field, Fields, Fill, FromEntries, Members, Object, Placeholder,
    Reader, View,
};
/// A struct that `wire_struct!` declares, as a type of this crate: a box of a struct could be a struct of
/// another crate.
pub(crate) struct Of<T>(PhantomData<T>);

/// What is known of a struct. All that follows from it is generic: an implementation of each trait for each
/// struct would take seconds to check.
pub(crate) trait WireStruct {
    const SHAPE: Shape;
}

/// The names of a struct and of its fields.
pub(crate) struct Shape {
    /// The words for the struct in error messages.
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [&'static str],
    pub(crate) tags: &'static [(&'static str, &'static str)],
    /// Which fields must come.
    pub(crate) required: &'static [bool],
}

impl<T: Fill + Placeholder> FromEntries for T
where
    Of<T>: WireStruct,
{
    const NAME: &'static str = Of::<T>::SHAPE.name;

    fn fill_from(&mut self, entries: &mut Entries<'_, '_>) -> Result<(), Error> {
        entries.fill(self, &Of::<T>::SHAPE)
    }
}

impl<T: Fields> Object for T
where
    Of<T>: WireStruct,
{
    fn members(&self) -> Members<'_> {
        Members::new(Of::<T>::SHAPE.fields, self, self.extra())
    }
}

impl<T: Fields> Encode for T
where
    Of<T>: WireStruct,
{
    fn view(&self) -> View<'_> {
        View::Object(self.members().all_tagged(Of::<T>::SHAPE.tags))
    }
}

impl<T: Fill + Placeholder> Decode for T
where
    Of<T>: WireStruct,
{
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        reader.fill(self, &Of::<T>::SHAPE)
    }
}

impl<T: Fields + Fill + Placeholder> Field for T
where
    Of<T>: WireStruct,
{
    const IS_REQUIRED: bool = true;

    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        // The field may have come before.
        *self = T::placeholder();
        self.decode(reader)
    }

    fn show(&self) -> View<'_> {
        self.view()
    }
}

/// Declares a struct whose named fields are typed and whose other fields are kept in `extra`.
///
/// `Option` and `List` fields may be absent, all others must come. `as "name"` gives the name on
/// the wire where it is not the field's own. `["type" = "text"]` are the tags by which a union
/// knows the struct: written first when the struct is written by itself, skipped when read.
macro_rules! wire_struct {
    ($($declaration:tt)*) => {
        silent_wire_struct! { #[derive(Debug)] $($declaration)* }
    };
}

/// A [`wire_struct!`] with its own `Debug` implementation.
macro_rules! silent_wire_struct {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $([$($tag:literal = $tag_value:literal),+])? {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq)]
        #[non_exhaustive]
        $vis struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
            /// Fields that this type does not name, as they came.
            pub extra: $crate::Extra,
        }

        impl $name {
            /// The fields that this type names, as they stand on the wire.
            #[doc(hidden)]
            #[allow(dead_code, reason = "not every type is asked for them")]
            $vis const FIELDS: &'static [&'static str] = &[$( wire_name!($field $($wire)?) ),*];
        }

        const _: () = {
            /// The fields by index: macros cannot count.
            #[allow(non_camel_case_types, reason = "named for the fields")]
            enum Index { $($field),* }

            const INDEX: &[Index] = &[$(Index::$field),*];

            // One bit for each field that came.
            const _: () = assert!($name::FIELDS.len() <= u128::BITS as usize);

            impl $crate::schema::WireStruct for $crate::schema::Of<$name> {
                const SHAPE: $crate::schema::Shape = $crate::schema::Shape {
                    name: concat!("an object (", stringify!($name), ")"),
                    fields: $name::FIELDS,
                    tags: &[$($( ($tag, $tag_value) ),+)?],
                    required: &[$( <$type as $crate::schema::Field>::IS_REQUIRED ),*],
                };
            }

            // As all that is marked `inline` here: compiled only where it is used. Otherwise every
            // type would be compiled for all that can be done with it.
            impl $crate::schema::Placeholder for $name {
                #[inline]
                fn placeholder() -> Self {
                    Self {
                        $( $field: <$type as $crate::schema::Placeholder>::placeholder(), )*
                        extra: $crate::Extra::default(),
                    }
                }
            }

            #[allow(unused_variables, reason = "a struct without fields reads nothing")]
            impl $crate::schema::Fill for $name {
                #[inline]
                fn fill(
                    &mut self,
                    index: usize,
                    reader: &mut $crate::schema::Reader<'_>,
                ) -> Result<(), $crate::schema::Error> {
                    match INDEX[index] {
                        $( Index::$field => $crate::schema::Field::fill(&mut self.$field, reader), )*
                    }
                }

                #[inline]
                fn extra(&mut self) -> &mut $crate::Extra {
                    &mut self.extra
                }
            }

            impl $crate::schema::Fields for $name {
                #[inline]
                fn field(&self, index: usize) -> $crate::schema::View<'_> {
                    match INDEX[index] {
                        $( Index::$field => $crate::schema::Field::show(&self.$field), )*
                    }
                }

                #[inline]
                fn extra(&self) -> &$crate::Extra {
                    &self.extra
                }
            }
        };

        $crate::schema::serde_traits!($name);
    };
}

/// The name of a field on the wire.
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}
