//! Reading parts of a JSON value without deserializing the whole of it. Names and meaning are those
//! of `serde_json::Value`.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Json;
use crate::repair;
use crate::schema::Reader;

impl Json {
    /// Returns the member `key` of an object; `None` if there is no such member or the value is not
    /// an object.
    ///
    /// If the object has several members of that name, the last one counts, as in `serde_json` and
    /// in the CLI.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.find(&[Step::Key(key)])
    }

    /// Returns the element at `index` of an array; `None` if there is no such element or the value
    /// is not an array.
    pub fn get_index(&self, index: usize) -> Option<Self> {
        self.find(&[Step::Index(index)])
    }

    /// Returns the value at a JSON pointer (RFC 6901), such as `/questions/0/header`; `None` if
    /// there is no such value. The empty pointer is the value itself.
    pub fn pointer(&self, pointer: &str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(self.clone());
        }
        let names = pointer.strip_prefix('/')?.split('/');
        let names: Vec<_> = names.map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        let steps: Vec<_> = names.iter().map(|name| Step::Name(name)).collect();
        self.find(&steps)
    }

    /// Returns the text of a string, with its escapes resolved; `None` for any other value. Lone
    /// surrogate escapes are read as U+FFFD.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        if !self.is_string() {
            return None;
        }
        let plain = self.text().get(1..self.text().len() - 1)?;
        if !plain.contains('\\') {
            return Some(Cow::Borrowed(plain));
        }
        self.decode::<String>().ok().map(Cow::Owned)
    }

    /// Returns the value of a boolean; `None` for any other value.
    pub fn as_bool(&self) -> Option<bool> {
        match self.text() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns an integer that an `i64` can hold; `None` for any other value, `5.0` included.
    pub fn as_i64(&self) -> Option<i64> {
        self.number()?.as_i64()
    }

    /// Returns an integer that a `u64` can hold; `None` for any other value, `5.0` included.
    pub fn as_u64(&self) -> Option<u64> {
        self.number()?.as_u64()
    }

    /// Returns the nearest floating-point value of a number; `None` for any other value and for
    /// numbers that are out of range.
    pub fn as_f64(&self) -> Option<f64> {
        self.number()?.as_f64()
    }

    /// Returns whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }

    /// Returns whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.text().starts_with('"')
    }

    /// Returns whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// Returns whether the value is an array.
    pub fn is_array(&self) -> bool {
        self.text().starts_with('[')
    }

    fn number(&self) -> Option<Value> {
        let is_number =
            self.text().starts_with(|start: char| start == '-' || start.is_ascii_digit());
        if is_number { serde_json::from_str(self.text()).ok() } else { None }
    }

    /// Follows `steps` from the value. A broken escape in a skipped name makes the first attempt fail; the
    /// second reads the repaired text.
    fn find(&self, steps: &[Step<'_>]) -> Option<Self> {
        if let Ok(found) = follow(&self.0, steps) {
            return found.map(|found| Self(found.to_owned()));
        }
        let repaired = repair::repaired(self.text().as_bytes())?;
        let found = follow(serde_json::from_str(&repaired).ok()?, steps).ok()?;
        found.map(|found| Self(found.to_owned()))
    }
}

/// A step of a path to a nested value.
#[derive(Clone, Copy)]
enum Step<'a> {
    /// A member of an object.
    Key(&'a str),
    /// An element of an array.
    Index(usize),
    /// Either, as a part of a JSON pointer.
    Name(&'a str),
}

impl<'a> Step<'a> {
    fn key(self) -> Option<&'a str> {
        match self {
            Self::Key(name) | Self::Name(name) => Some(name),
            Self::Index(_) => None,
        }
    }

    fn index(self) -> Option<usize> {
        match self {
            Self::Index(index) => Some(index),
            // A pointer's index has no sign and no leading zeros.
            Self::Name(name) if name.starts_with('+') || (name.starts_with('0') && name != "0") => {
                None
            }
            Self::Name(name) => name.parse().ok(),
            Self::Key(_) => None,
        }
    }
}

fn follow<'a>(
    value: &'a RawValue,
    steps: &[Step<'_>],
) -> Result<Option<&'a RawValue>, serde_json::Error> {
    let mut value = value;
    for step in steps {
        let text = value.get();
        let inner = match (text.as_bytes().first(), step.key(), step.index()) {
            (Some(b'{'), Some(key), _) => member(text, key)?,
            (Some(b'['), _, Some(index)) => element(text, index)?,
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// The last member of a name.
fn member<'a>(object: &'a str, name: &str) -> Result<Option<&'a RawValue>, serde_json::Error> {
    let mut reader = Reader::new(object);
    let mut entries = reader.object("an object")?;
    let mut found = None;
    while let Some(key) = entries.next_key()? {
        if key == name {
            found = Some(entries.reader.raw()?);
        } else {
            entries.reader.skip()?;
        }
    }
    Ok(found)
}

/// One element of an array.
fn element(array: &str, index: usize) -> Result<Option<&RawValue>, serde_json::Error> {
    let mut reader = Reader::new(array);
    reader.list("an array")?;
    let (mut at, mut found) = (0, None);
    while reader.next_item(at == 0)? {
        if at == index {
            found = Some(reader.raw()?);
        } else {
            reader.skip()?;
        }
        at += 1;
    }
    Ok(found)
}
