//! `settings_struct!`: a wire struct that a host makes, with a setter for each field.

/// Declares a [`wire_struct!`] of which every field may be absent, and a setter by value for each.
/// `one` is a field with one value, `list` one with a list of texts.
macro_rules! settings_struct {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[$field_meta:meta])* $kind:ident $field:ident: $type:ty $(as $wire:literal)? ),*
            $(,)?
        }
    ) => {
        silent_wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            $vis struct $name {
                $( $(#[$field_meta])* $field: settings_type!($kind $type) $(as $wire)?, )*
            }
        }

        names_only_debug!($name);

        impl $name {
            $( settings_setter! { $(#[$field_meta])* $kind $field: $type } )*

            /// Sets a field that this type does not name.
            #[must_use]
            pub fn set(
                mut self,
                name: impl Into<String>,
                value: impl Into<$crate::Json>,
            ) -> Self {
                self.extra.set(name, value);
                self
            }
        }
    };
}

/// `Debug` with the names of the present fields, without their values: variables, headers, commands and
/// prompts are confidential.
macro_rules! names_only_debug {
    ($name:ident) => {
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::schema::fmt_names(stringify!($name), $crate::schema::Encode::view(self), f)
            }
        }
    };
}

/// The type of a field.
macro_rules! settings_type {
    (one $type:ty) => {
        Option<$type>
    };
    (list $type:ty) => {
        $crate::json::List<$type>
    };
}

/// The setter of a field.
macro_rules! settings_setter {
    ($(#[$meta:meta])* one $field:ident: $type:ty) => {
        $(#[$meta])*
        #[must_use]
        pub fn $field(mut self, value: impl Into<$type>) -> Self {
            self.$field = Some(value.into());
            self
        }
    };
    ($(#[$meta:meta])* list $field:ident: $type:ty) => {
        $(#[$meta])*
        #[must_use]
        pub fn $field(mut self, entries: impl IntoIterator<Item = impl Into<$type>>) -> Self {
            self.$field = entries.into_iter().map(Into::into).collect();
            self
        }
    };
}
