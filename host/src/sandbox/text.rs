//! JSON text that stands in JSON as what it is: for requests and renderings that are written to a file.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::from_str::<Value>(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Ok(Value::deserialize(deserializer)?.to_string().into())
}

pub(super) fn serialize_maybe<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    match text {
        Some(text) => serialize(text, serializer),
        None => serializer.serialize_none(),
    }
}

pub(super) fn deserialize_maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    Ok(Option::<Value>::deserialize(deserializer)?.map(|value| value.to_string().into()))
}
