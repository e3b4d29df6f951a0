//! `wire_struct!`: declares a struct of the wire.

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
            #[derive(Clone, Copy)]
            enum Index { $($field),* }

            const INDEX: &[Index] = &[$(Index::$field),*];
            const REQUIRED: &[bool] = &[$( <$type as $crate::schema::Field>::IS_REQUIRED ),*];
            const TAGS: &[(&str, &str)] = &[$($( ($tag, $tag_value) ),+)?];

            impl $crate::schema::FromEntries for $name {
                const NAME: &'static str = concat!("an object (", stringify!($name), ")");

                // As all that is marked `inline` here: compiled only where it is used. Otherwise every
                // type would be compiled for all that can be done with it.
                #[inline]
                fn from_entries(
                    entries: &mut $crate::schema::Entries<'_, '_>,
                ) -> Result<Self, $crate::schema::Error> {
                    let mut this = <Self as $crate::schema::Placeholder>::placeholder();
                    entries.fill(&mut this, Self::FIELDS, TAGS, REQUIRED)?;
                    Ok(this)
                }
            }

            impl $crate::schema::Placeholder for $name {
                #[inline]
                fn placeholder() -> Self {
                    Self {
                        $( $field: <$type as $crate::schema::Placeholder>::placeholder(), )*
                        extra: $crate::Extra::default(),
                    }
                }
            }

            // One bit for each field that came.
            const _: () = assert!(REQUIRED.len() <= u128::BITS as usize);

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
            }

            impl $crate::schema::Object for $name {
                #[inline]
                fn members(&self) -> $crate::schema::Members<'_> {
                    $crate::schema::Members::new(Self::FIELDS, self, &self.extra)
                }
            }

            impl $crate::schema::Encode for $name {
                #[inline]
                fn view(&self) -> $crate::schema::View<'_> {
                    $crate::schema::View::Object(
                        $crate::schema::Object::members(self).all_tagged(TAGS),
                    )
                }
            }
        };

        impl $crate::schema::Decode for $name {
            #[inline]
            fn decode(
                reader: &mut $crate::schema::Reader<'_>,
            ) -> Result<Self, $crate::schema::Error> {
                $crate::schema::decode_object(reader)
            }
        }

        $crate::schema::wire_traits!($name);
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
