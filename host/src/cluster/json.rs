//! JSON seen without building a tree: members borrowed, one step of a pointer at a time.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object's members in their order. Few, so looked up by walking; of equal keys the last counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields<'a, V>(Vec<(Cow<'a, str>, V)>);

/// The text of a raw JSON string; none for any other type.
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// RFC 6901: `~1` is `/` and `~0` is `~`, in this order.
pub(super) fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') { Cow::Owned(token.replace("~1", "/").replace("~0", "~")) } else { Cow::Borrowed(token) }
}

/// What stands under one key or index.
pub(super) fn step<'a>(raw: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    let mut json = serde_json::Deserializer::from_str(raw.get());
    match raw.get().as_bytes().first()? {
        b'{' => Member(token).deserialize(&mut json).ok()?,
        // An index is written without leading zeros.
        b'[' if token == "0" || !token.starts_with('0') => Element(token.parse().ok()?).deserialize(&mut json).ok()?,
        _ => None,
    }
}

// === impl Fields ===

impl<'a, V> Fields<'a, V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().rev().find(|(have, _)| have == key).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Fields<'a, Text<'a>> {
    pub(super) fn into_text(self) -> Fields<'a, Cow<'a, str>> {
        Fields(self.0.into_iter().map(|(key, value)| (key, value.0)).collect())
    }
}

impl<V> Default for Fields<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Fields<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<'a, V>(PhantomData<(&'a (), V)>);
        impl<'de: 'a, 'a, V: Deserialize<'de>> Visitor<'de> for Members<'a, V> {
            type Value = Fields<'a, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'a>, V>()? {
                    members.push((key.0, value));
                }
                Ok(Fields(members))
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

// === impl Text ===

/// A string that is borrowed where it has no escapes: serde borrows a bare `Cow` only as a direct field.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Borrow<'a> {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrow(PhantomData))
    }
}

// === One step of a pointer ===

struct Member<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if key.0 == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Element(usize);

impl<'de> DeserializeSeed<'de> for Element {
    type Value = Option<&'de RawValue>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de RawValue>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        for _ in 0..self.0 {
            if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}
