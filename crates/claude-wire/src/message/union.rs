//! `message_union!`: a union of messages, and the fields that all of them have.

/// Declares an [`open_union!`] whose members are messages, each with `session_id` and `extra`, or
/// unions of such messages (`unions`). A new type of message is one row.
///
/// Messages are shared when they are cloned. The code that drops an [`Arc`](std::sync::Arc) is also
/// compiled once per crate, and that of a `Box` in each codegen unit.
macro_rules! message_union {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $($optional:ident)? $tag:literal
        $( unions {
            $( $(#[$union_meta:meta])* $union:ident($union_type:ident) = $union_value:literal, )+
        } )?
        messages {
            $( $(#[$message_meta:meta])* $message:ident($type:ident) = $value:literal, )+
        }
    ) => {
        open_union! {
            $(#[$meta])*
            pub enum $name by $($optional)? $tag {
                $($( $(#[$union_meta])* $union($union_type) = $union_value, )+)?
                $( $(#[$message_meta])* $message(std::sync::Arc<$type>) = $value, )+
            }
        }

        impl $name {
            /// Returns the session ID of the message; `None` if it is absent or the type is unknown.
            pub fn session_id(&self) -> Option<&$crate::id::SessionId> {
                match self {
                    $($( Self::$union(union) => union.session_id(), )+)?
                    $( Self::$message(message) => message.session_id.as_ref(), )+
                    Self::Unknown(_) | Self::Undecodable(_) => None,
                }
            }

            /// Returns the unknown fields of the message; `None` if its type is unknown.
            pub fn extra(&self) -> Option<&$crate::Extra> {
                match self {
                    $($( Self::$union(union) => union.extra(), )+)?
                    $( Self::$message(message) => Some(&message.extra), )+
                    Self::Unknown(_) | Self::Undecodable(_) => None,
                }
            }
        }
    };
}
