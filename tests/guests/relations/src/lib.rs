//! The probe, and the hook `related`: it asks for what the parent's annotation `keelson.test/related` says, a list of
//! `{id, group?, version, kind, plural, namespace?, name? | labels?, observe?}`. Nothing without it.

#[path = "../../probe/src/manifest.rs"]
mod manifest;
#[path = "../../probe/src/play.rs"]
mod play;
#[path = "../../probe/src/script.rs"]
mod script;

use std::collections::BTreeMap;

use keelson_sdk::bindings::exports::keelson::operator::operator;
use keelson_sdk::contract;
use keelson_sdk::related::bindings::exports::keelson::operator::relations::{self, RelatedQuery, Selection};
use keelson_sdk::serde_json::{self, Value};
use serde::Deserialize;

const RELATED: &str = "/metadata/annotations/keelson.test~1related";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    id: String,
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    observe: Vec<String>,
}

struct Probe;

impl operator::Guest for Probe {
    fn describe() -> contract::Manifest {
        play::describe()
    }

    fn render(request: contract::Request) -> Result<contract::Rendering, contract::Failure> {
        play::render(&request)
    }
}

impl relations::Guest for Probe {
    fn related(request: contract::Request) -> Result<Vec<RelatedQuery>, contract::Failure> {
        play::log_panics();
        assert!(request.related.is_empty(), "asked with the answers");
        let parent: Value = serde_json::from_str(&request.parent).expect("the host sends JSON");
        let text = parent.pointer(RELATED).and_then(Value::as_str).unwrap_or("[]");
        let queries: Vec<Query> = serde_json::from_str(text).map_err(|error| script::unreadable(&error))?;
        Ok(queries.into_iter().map(Into::into).collect())
    }
}

impl From<Query> for RelatedQuery {
    fn from(query: Query) -> Self {
        let Query { id, group, version, kind, plural, namespace, name, labels, observe } = query;
        let label = |(key, value)| contract::Label { key, value };
        let by = match name {
            Some(name) => Selection::Name(name),
            None => Selection::Labels(labels.into_iter().map(label).collect()),
        };
        Self { id, kind: contract::KindRef { group, version, kind, plural }, namespace, by, observe }
    }
}

keelson_sdk::bindings::export!(Probe with_types_in keelson_sdk::bindings);
keelson_sdk::related::bindings::export_relations!(Probe with_types_in keelson_sdk::related::bindings);
