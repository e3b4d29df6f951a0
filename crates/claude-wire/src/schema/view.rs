//! How wire types are written: each shows its fields as [`View`]s, and one function writes them.
//! A function of serde's for every struct and every serializer would be compiled for each pair.

use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::json::{Extra, Json, Map, Number};
use crate::sort::sort_by;

/// A value as it is written.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// A field that is not written.
    Absent,
    Null,
    Bool(bool),
    Text(&'a str),
    Unsigned(u64),
    Number(&'a Number),
    Json(&'a Json),
    Extra(&'a Extra),
    List(&'a dyn Items),
    Map(&'a dyn Keyed),
    Object(Members<'a>),
}

/// A type that can be written.
pub(crate) trait Encode {
    fn view(&self) -> View<'_>;
}

impl<T: Encode> Encode for Box<T> {
    fn view(&self) -> View<'_> {
        (**self).view()
    }
}

/// The values of a list.
pub(crate) trait Items {
    fn length(&self) -> usize;
    fn item(&self, index: usize) -> View<'_>;
}

impl<T: Encode> Items for Vec<T> {
    fn length(&self) -> usize {
        self.len()
    }

    fn item(&self, index: usize) -> View<'_> {
        self[index].view()
    }
}

/// The values of an object whose keys are data.
pub(crate) trait Keyed {
    fn length(&self) -> usize;
    fn entry(&self, index: usize) -> (&str, View<'_>);
}

impl<T: Encode> Keyed for Map<T> {
    fn length(&self) -> usize {
        self.len()
    }

    fn entry(&self, index: usize) -> (&str, View<'_>) {
        let (key, value) = &self.entries()[index];
        (key, value.view())
    }
}

/// The named fields of a struct.
pub(crate) trait Fields {
    fn field(&self, index: usize) -> View<'_>;

    /// The fields that the struct does not name.
    fn extra(&self) -> &Extra;
}

impl<T: Fields> Fields for Box<T> {
    fn field(&self, index: usize) -> View<'_> {
        (**self).field(index)
    }

    fn extra(&self) -> &Extra {
        (**self).extra()
    }
}

/// The most tags that an object has.
const MAX_TAGS: usize = 3;

/// What an object is made of, in the order in which it is written.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a> {
    tags: [Option<(&'a str, &'a str)>; MAX_TAGS],
    names: &'static [&'static str],
    fields: Option<&'a dyn Fields>,
    extra: Option<&'a Extra>,
    raw: Option<&'a Json>,
}

impl<'a> Members<'a> {
    const EMPTY: Self =
        Self { tags: [None; MAX_TAGS], names: &[], fields: None, extra: None, raw: None };

    pub(crate) fn new(
        names: &'static [&'static str],
        fields: &'a dyn Fields,
        extra: &'a Extra,
    ) -> Self {
        Self { names, fields: Some(fields), extra: Some(extra), ..Self::EMPTY }
    }

    /// Only unknown fields.
    pub(crate) fn unnamed(extra: &'a Extra) -> Self {
        Self { extra: Some(extra), ..Self::EMPTY }
    }

    /// All fields of an object that is kept as text.
    pub(crate) fn raw(raw: &'a Json) -> Self {
        Self { raw: Some(raw), ..Self::EMPTY }
    }

    /// Writes a tag before the other tags.
    pub(crate) fn tagged(mut self, name: &'a str, value: &'a str) -> Self {
        self.tags.rotate_right(1);
        self.tags[0] = Some((name, value));
        self
    }

    #[inline(never)]
    pub(crate) fn all_tagged(self, tags: &'static [(&'static str, &'static str)]) -> Self {
        tags.iter().rev().fold(self, |members, (name, value)| members.tagged(name, value))
    }

    fn serialize<S: Serializer>(self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.tags.into_iter().flatten() {
            map.serialize_entry(name, value)?;
        }
        for (index, name) in self.names.iter().enumerate() {
            match self.fields.map_or(View::Absent, |fields| fields.field(index)) {
                View::Absent => {}
                value => map.serialize_entry(name, &value)?,
            }
        }
        if let Some(extra) = self.extra {
            extra.write(&mut map)?;
        }
        if let Some(raw) = self.raw {
            let fields: Extra = raw.decode().map_err(serde::ser::Error::custom)?;
            fields.write(&mut map)?;
        }
        map.end()
    }
}

/// A type that writes its members into an object: a union writes its tag and then its member.
pub(crate) trait Object {
    fn members(&self) -> Members<'_>;
}

impl<T: Object> Object for Box<T> {
    fn members(&self) -> Members<'_> {
        (**self).members()
    }
}

impl<T: Object> Object for Arc<T> {
    fn members(&self) -> Members<'_> {
        (**self).members()
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Absent | Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Unsigned(value) => serializer.serialize_u64(value),
            Self::Number(number) => number.serialize(serializer),
            Self::Json(json) => json.serialize(serializer),
            Self::Extra(extra) => extra.serialize(serializer),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.length()))?;
                for index in 0..items.length() {
                    list.serialize_element(&items.item(index))?;
                }
                list.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.length()))?;
                for index in 0..entries.length() {
                    let (key, value) = entries.entry(index);
                    map.serialize_entry(key, &value)?;
                }
                map.end()
            }
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

/// Shows the names of the fields that a value has, and none of their values.
pub(crate) fn fmt_names(name: &str, value: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fields: Extra = Json::from_view(value).decode().unwrap_or_default();
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name).collect();
    sort_by(&mut names, &|one, other| one.cmp(other));
    names.dedup();
    write!(f, "{name} ")?;
    f.debug_set().entries(names).finish()
}
