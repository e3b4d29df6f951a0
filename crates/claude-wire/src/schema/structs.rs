//! `wire_struct!`: a struct as it stands on the wire.

/// Declares a struct whose named fields are typed and whose other fields are kept in `extra`.
///
/// `Option` and `List` fields may be absent, all others must come. `as "name"` gives the name on
/// the wire where it is not the field's own. `["type" = "text"]` are the tags by which a union
/// knows the struct: written first when the struct is written by itself, skipped when read.
macro_rules! wire_struct {
    // One that prints itself, because it holds secrets.
    (
        @private
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

        impl<'de> $crate::schema::FromMap<'de> for $name {
            const NAME: &'static str = stringify!($name);

            fn from_map<A: ::serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                $( let mut $field = <$type as $crate::schema::Field<'de>>::empty(); )*
                let mut extra = $crate::Extra::default();
                while let Some(key) = map.next_key::<$crate::schema::Key<'de>>()? {
                    match key.as_str() {
                        $( wire_name!($field $($wire)?) => {
                            $field = <$type as $crate::schema::Field<'de>>::read(&mut map)?;
                        } )*
                        $($( $tag => { map.next_value::<::serde::de::IgnoredAny>()?; } )+)?
                        _ => extra.push(key.into_string(), map.next_value()?),
                    }
                }
                Ok(Self {
                    $( $field: <$type as $crate::schema::Field<'de>>::finish(
                        $field,
                        wire_name!($field $($wire)?),
                    )?, )*
                    extra,
                })
            }
        }

        impl $crate::schema::WriteFields for $name {
            fn write_fields<M: ::serde::ser::SerializeMap>(
                &self,
                map: &mut M,
            ) -> Result<(), M::Error> {
                $( $crate::schema::Field::write(&self.$field, wire_name!($field $($wire)?), map)?; )*
                self.extra.write(map)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                deserializer.deserialize_map($crate::schema::MapVisitor::<Self>::new())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $($( map.serialize_entry($tag, $tag_value)?; )+)?
                $crate::schema::WriteFields::write_fields(self, &mut map)?;
                map.end()
            }
        }

        $crate::schema::required_field!($name);
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $([$($tag:literal = $tag_value:literal),+])? {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        wire_struct! {
            @private
            $(#[$meta])*
            #[derive(Debug)]
            $vis struct $name $([$($tag = $tag_value),+])? {
                $( $(#[$field_meta])* $field: $type $(as $wire)? ),*
            }
        }
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
