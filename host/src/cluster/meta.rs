//! An object seen without building a tree: metadata parsed, the rest borrowed
//! from the bytes it came in. Whatever is of the wrong type is an error, never a panic.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

pub use super::json::{Fields, text};
use super::json::{Text, step, unescape};

/// One object, borrowed from the text of a list, a watch event or an answer.
#[derive(Debug)]
pub struct ObjectView<'a> {
    /// The whole object as it came.
    pub raw: &'a str,
    /// The top-level fields: `spec`, `status`, `data`, `metadata` too.
    pub fields: Fields<'a, &'a RawValue>,
    pub name: Cow<'a, str>,
    /// Empty for a cluster-scoped object.
    pub namespace: Cow<'a, str>,
    pub uid: Cow<'a, str>,
    pub resource_version: Cow<'a, str>,
    pub generation: Option<i64>,
    /// RFC 3339, as the server wrote it.
    pub creation_timestamp: Option<Cow<'a, str>>,
    /// `deletionTimestamp` is set: the object is going.
    pub deletion: bool,
    pub labels: Fields<'a, Cow<'a, str>>,
    pub annotations: Fields<'a, Cow<'a, str>>,
    pub owners: Vec<Owner<'a>>,
    /// Parsed on demand by `managed_fields()`: it is half of a Pod's metadata and few ask.
    managed_fields: Option<&'a RawValue>,
}

/// One owner reference.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Owner<'a> {
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    pub controller: bool,
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedFields<'a> {
    #[serde(borrow)]
    pub manager: Cow<'a, str>,
    /// `Apply` or `Update`.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    #[serde(borrow)]
    pub subresource: Cow<'a, str>,
    /// Of the manager's last write here, RFC 3339.
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    #[serde(borrow, rename = "fieldsV1")]
    pub fields_v1: Option<&'a RawValue>,
}

/// What is wrong with an object: the field and the reason in serde's words.
#[derive(Debug, thiserror::Error)]
#[error("object cannot be read: {0}")]
pub struct ViewError(#[from] serde_json::Error);

impl ViewError {
    /// Not one JSON object at all, rather than an object with a field of a wrong type.
    pub(super) fn is_syntax(&self) -> bool {
        !self.0.is_data()
    }
}

// === impl ObjectView ===

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    generation: Option<i64>,
    #[serde(borrow)]
    creation_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    deletion_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    labels: Option<Fields<'a, Text<'a>>>,
    #[serde(borrow)]
    annotations: Option<Fields<'a, Text<'a>>>,
    #[serde(borrow)]
    owner_references: Option<Vec<Owner<'a>>>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl<'a> ObjectView<'a> {
    pub fn parse(raw: &'a str) -> Result<Self, ViewError> {
        let fields: Fields<'a, &'a RawValue> = serde_json::from_str(raw)?;
        let metadata = match fields.get("metadata") {
            // serde also reads a struct from a list.
            Some(metadata) if !metadata.get().starts_with('{') => {
                return Err(ViewError(serde_json::Error::custom("metadata is not an object")));
            }
            Some(metadata) => serde_json::from_str(metadata.get())?,
            None => Metadata::default(),
        };
        let Metadata {
            name,
            namespace,
            uid,
            resource_version,
            generation,
            creation_timestamp,
            deletion_timestamp,
            labels,
            annotations,
            owner_references,
            managed_fields,
        } = metadata;
        Ok(Self {
            raw,
            fields,
            name,
            namespace: namespace.map(|text| text.0).unwrap_or_default(),
            uid,
            resource_version,
            generation,
            creation_timestamp: creation_timestamp.map(|text| text.0),
            deletion: deletion_timestamp.is_some(),
            labels: labels.unwrap_or_default().into_text(),
            annotations: annotations.unwrap_or_default().into_text(),
            owners: owner_references.unwrap_or_default(),
            managed_fields,
        })
    }

    /// Reads an answer of the API server.
    pub fn from_slice(body: &'a [u8]) -> Result<Self, ViewError> {
        Self::parse(std::str::from_utf8(body).map_err(serde_json::Error::custom)?)
    }

    /// The owner that controls the object, if one does.
    pub fn controller(&self) -> Option<&Owner<'a>> {
        self.owners.iter().find(|owner| owner.controller)
    }

    pub fn managed_fields(&self) -> Result<Vec<ManagedFields<'a>>, ViewError> {
        match self.managed_fields {
            Some(raw) => Ok(serde_json::from_str::<Option<_>>(raw.get())?.unwrap_or_default()),
            None => Ok(Vec::new()),
        }
    }

    /// What stands at a JSON pointer (`/spec/ports/0/port`). The empty pointer, the whole object, is `raw`: none here.
    pub fn pointer(&self, pointer: &str) -> Option<&'a RawValue> {
        let rest = pointer.strip_prefix('/')?;
        let (first, rest) = rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest)));
        let field = *self.fields.get(&unescape(first))?;
        match rest {
            None => Some(field),
            Some(rest) => rest.split('/').try_fold(field, |raw, token| step(raw, &unescape(token))),
        }
    }

    /// The string at a JSON pointer.
    pub fn text_at(&self, pointer: &str) -> Option<Cow<'a, str>> {
        text(self.pointer(pointer)?)
    }
}

impl From<ViewError> for super::error::ApiErrorKind {
    fn from(error: ViewError) -> Self {
        Self::Decode(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u1",
      "resourceVersion":"42","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z",
      "labels":{"app":"db","quoted":"a\"b"},"annotations":{"x/y":"z"},
      "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u0"},
        {"apiVersion":"zalando.org/v1","kind":"Database","name":"d","uid":"u2","controller":true,"blockOwnerDeletion":true}],
      "managedFields":[{"manager":"keelson","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z",
        "fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}},{"manager":"kubelet","operation":"Update","subresource":"status"}]},
      "spec":{"containers":[{"name":"c","ports":[{"containerPort":27017}]}],"a/b":{"~":true}},"status":{"phase":"Running"}}"#;

    fn view(json: &str) -> Result<ObjectView<'_>, ViewError> {
        ObjectView::from_slice(json.as_bytes())
    }

    #[test]
    fn metadata_is_read_and_the_rest_borrowed() {
        let pod = view(POD).unwrap();
        assert_eq!((&*pod.name, &*pod.namespace, &*pod.uid, &*pod.resource_version), ("a", "ns", "u1", "42"));
        assert_eq!((pod.generation, pod.deletion), (Some(3), false));
        assert_eq!(pod.creation_timestamp.as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(pod.labels.get("quoted").unwrap(), "a\"b");
        assert!(matches!(pod.labels.get("app"), Some(Cow::Borrowed("db"))));
        assert_eq!(pod.annotations.get("x/y").unwrap(), "z");
        assert_eq!(pod.controller().map(|owner| &*owner.uid), Some("u2"));
        assert_eq!(pod.owners.len(), 2);
        let managed = pod.managed_fields().unwrap();
        assert_eq!((&*managed[0].manager, &*managed[0].operation), ("keelson", "Apply"));
        assert_eq!(managed[0].fields_v1.unwrap().get(), r#"{"f:spec":{}}"#);
        assert_eq!(&*managed[1].subresource, "status");
        assert_eq!(pod.fields.get("status").unwrap().get(), r#"{"phase":"Running"}"#);
    }

    #[test]
    fn pointers() {
        let pod = view(POD).unwrap();
        let at = |pointer| pod.pointer(pointer).map(RawValue::get);
        assert_eq!(at("/spec/containers/0/ports/0/containerPort"), Some("27017"));
        assert_eq!(at("/spec/a~1b/~0"), Some("true"));
        assert_eq!(at("/metadata/labels/app"), Some("\"db\""));
        assert_eq!(pod.raw, POD);
        for missing in
            ["/spec/containers/1", "/spec/containers/00", "/spec/containers/-", "/nope", "/spec/x/y", "spec", ""]
        {
            assert_eq!(at(missing), None, "{missing}");
        }
        assert_eq!(at("/status/phase/deeper"), None);
        assert_eq!(pod.text_at("/status/phase").as_deref(), Some("Running"));
        assert_eq!(pod.text_at("/spec/containers/0/ports/0/containerPort"), None);
    }

    #[test]
    fn absent_and_null_metadata_are_defaults() {
        for json in [
            "{}",
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"creationTimestamp":null,"labels":null,"ownerReferences":null,"managedFields":null}}"#,
        ] {
            let object = view(json).unwrap();
            assert!(
                object.name.is_empty() && object.labels.is_empty() && object.creation_timestamp.is_none(),
                "{json}"
            );
            assert!(object.managed_fields().unwrap().is_empty(), "{json}");
        }
    }

    #[test]
    fn wrong_types_are_errors() {
        for json in [
            "[]",
            "5",
            "null",
            "",
            "{",
            r#"{"metadata":5}"#,
            r#"{"metadata":null}"#,
            r#"{"metadata":["a"]}"#,
            r#"{"metadata":{"name":5}}"#,
            r#"{"metadata":{"labels":[]}}"#,
            r#"{"metadata":{"labels":{"a":1}}}"#,
            r#"{"metadata":{"generation":"1"}}"#,
            r#"{"metadata":{"ownerReferences":{}}}"#,
        ] {
            assert!(view(json).is_err(), "{json}");
        }
        assert!(view(r#"{"metadata":{"managedFields":[5]}}"#).unwrap().managed_fields().is_err());
    }
}
