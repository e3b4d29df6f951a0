//! Any JSON number.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use super::Json;
use crate::schema::{Decode, Error, Reader};

/// A count, a time or a cost. Accepts every JSON number: `5`, `5.0`, `-1`, `1e3`, and numbers beyond all
/// machine types, which are kept as text.
#[derive(Clone, PartialEq)]
pub struct Number(Repr);

#[derive(Clone, PartialEq)]
enum Repr {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// Boxed, so that common numbers take two words.
    Text(Box<Json>),
}

impl Number {
    /// Returns the value as an unsigned integer; `None` if it is negative, has a fraction or is too large.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Unsigned(value) => Some(value),
            Repr::Signed(value) => u64::try_from(value).ok(),
            Repr::Float(value) => whole(value),
            Repr::Text(_) => None,
        }
    }

    /// Returns the nearest floating-point value; infinite if it is out of range.
    #[expect(clippy::cast_precision_loss, reason = "documented: the nearest value")]
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            Repr::Unsigned(value) => *value as f64,
            Repr::Signed(value) => *value as f64,
            Repr::Float(value) => *value,
            // Rust's parser accepts every JSON number and returns infinity if it is out of range.
            Repr::Text(text) => text.text().parse().unwrap_or(f64::NAN),
        }
    }
}

/// Returns a count; 0 if it is absent, negative or not a whole number.
pub(crate) fn count(number: Option<&Number>) -> u64 {
    number.and_then(Number::as_u64).unwrap_or_default()
}

/// Returns a cost in dollars; a missing, negative or non-finite number is zero.
pub(crate) fn dollars(number: Option<&Number>) -> f64 {
    number.map(Number::as_f64).filter(|usd| usd.is_finite() && *usd > 0.0).unwrap_or(0.0)
}

/// Returns a time given in milliseconds; zero if it is absent, negative or out of range.
pub(crate) fn millis(number: Option<&Number>) -> Duration {
    let seconds = number.map_or(0.0, Number::as_f64) / 1_000.0;
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Returns the integer value of a float, if it is exact.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked before")]
fn whole(value: f64) -> Option<u64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    ((0.0..=LIMIT).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(Repr::Unsigned(value))
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Self {
        Self(Repr::Unsigned(value.into()))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        u64::try_from(value).map_or(Self(Repr::Signed(value)), Self::from)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(Repr::Float(value))
    }
}

impl PartialEq<u64> for Number {
    fn eq(&self, other: &u64) -> bool {
        self.as_u64() == Some(*other)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unsigned(value) => value.fmt(f),
            Repr::Signed(value) => value.fmt(f),
            Repr::Float(value) => value.fmt(f),
            Repr::Text(text) => text.fmt(f),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

impl Decode for Number {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = number(reader)?;
        Ok(())
    }
}

fn number(reader: &mut Reader<'_>) -> Result<Number, Error> {
    if !matches!(reader.peek(), Some(b'-' | b'0'..=b'9')) {
        return Err(reader.mismatch("a number"));
    }
    if let Some(count) = reader.count() {
        return Ok(Number::from(count));
    }
    // serde_json rejects numbers beyond f64 (1e400). Such a line fails on the first, fast attempt; the
    // second attempt reads the number from its text.
    if !reader.is_isolating() {
        return Ok(from_value(&reader.stream()?));
    }
    let raw = reader.raw()?;
    Ok(match serde_json::from_str(raw.get()) {
        Ok(value) => from_value(&value),
        Err(_) => Number(Repr::Text(Box::new(reader.owned(raw)))),
    })
}

/// The number of a value that is one. Read as a `Value`, because that is compiled anyway.
fn from_value(value: &Value) -> Number {
    match (value.as_u64(), value.as_i64(), value.as_f64()) {
        (Some(value), ..) => Number::from(value),
        (_, Some(value), _) => Number::from(value),
        (.., value) => Number::from(value.unwrap_or_default()),
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number::from(value))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Unsigned(value) => serializer.serialize_u64(*value),
            Repr::Signed(value) => serializer.serialize_i64(*value),
            Repr::Float(value) => serializer.serialize_f64(*value),
            Repr::Text(text) => text.serialize(serializer),
        }
    }
}
