//! The values that wire types are made of: JSON, numbers, lists, unknown fields and undecodable parts.

pub use crate::error::DecodeError;
pub use crate::json::{Extra, Json, List, Nullable, Number};
pub use crate::message::Malformed;
pub use crate::schema::{Undecodable, Unknown};
