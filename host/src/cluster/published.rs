//! What the API server publishes of its kinds, OpenAPI v3: every account that
//! is known may read it, also where a Role is all that the host has.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::{Api, at, decode};
use super::error::{ApiError, ApiErrorKind};
use super::resource::group_version_path;
use crate::limits;

/// `x-kubernetes-preserve-unknown-fields` of a whole kind.
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// For each group and version a mark that is another whenever something of its kinds is published otherwise.
pub struct Published(BTreeMap<String, Mark>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    /// With a hash in it.
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

impl Published {
    /// Nothing where this version is not served.
    pub fn mark(&self, group: &str, version: &str) -> Option<&str> {
        let path = group_version_path(group, version);
        Some(&self.0.get(path.trim_start_matches('/'))?.url)
    }
}

impl Api {
    /// Some ten kB.
    pub async fn published(&self) -> Result<Published, ApiError> {
        #[derive(Deserialize)]
        struct Index {
            paths: BTreeMap<String, Mark>,
        }
        let call = || "get /openapi/v3".to_owned();
        let body = self.call(Method::GET, "/openapi/v3".to_owned(), None, limits::ANSWER_BYTES).await;
        let Index { paths } = decode(&body.map_err(at(call))?).map_err(at(call))?;
        Ok(Published(paths))
    }

    /// The schema of a kind, of which `properties.spec` and whether it keeps unknown fields; none where the version
    /// does not have the kind.
    pub async fn published_spec(
        &self,
        published: &Published,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Value>, ApiError> {
        let path = format!("/openapi/v3{}", group_version_path(group, version));
        let Some(mark) = published.mark(group, version) else { return Ok(None) };
        // With its hash: of several API servers one that knows other schemas answers with a redirect, which is an error here.
        let hash = mark.strip_prefix(&path).filter(|rest| rest.starts_with("?hash=")).unwrap_or_default();
        let call = || format!("get {path}");
        let body = self.call(Method::GET, format!("{path}{hash}"), None, limits::ANSWER_BYTES).await;
        spec_of(&body.map_err(at(call))?, group, version, kind).map_err(at(call))
    }
}

/// Only what is wanted becomes a tree: a group may have megabytes of schemas.
fn spec_of(document: &[u8], group: &str, version: &str, kind: &str) -> Result<Option<Value>, ApiErrorKind> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        components: Components<'a>,
    }
    #[derive(Deserialize)]
    struct Components<'a> {
        #[serde(borrow, default)]
        schemas: BTreeMap<String, &'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "x-kubernetes-group-version-kind", default)]
        names: Vec<Name>,
    }
    #[derive(Deserialize)]
    struct Name {
        group: String,
        version: String,
        kind: String,
    }
    #[derive(Deserialize)]
    struct Schema {
        #[serde(default)]
        properties: Fields,
        #[serde(rename = "x-kubernetes-preserve-unknown-fields", default)]
        keeps: bool,
    }
    #[derive(Deserialize, Default)]
    struct Fields {
        spec: Option<Value>,
    }
    let Document { components } = decode(document)?;
    for schema in components.schemas.values().map(|schema| schema.get().as_bytes()) {
        let Named { names } = decode(schema)?;
        // What all kinds share, such as DeleteOptions, is of many.
        let [Name { group: of, version: at, kind: is }] = names.as_slice() else { continue };
        if of == group && at == version && is == kind {
            let Schema { properties, keeps } = decode(schema)?;
            let fields = properties.spec.map_or_else(|| json!({}), |spec| json!({"spec": spec}));
            return Ok(Some(json!({"type": "object", "properties": fields, PRESERVE: keeps})));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use std::time::Duration;

    const INDEX: &str = r#"{"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
        "apis/example.org/v1": {"serverRelativeURL": "/openapi/v3/apis/example.org/v1?hash=B"}}}"#;

    fn document() -> String {
        let name = |kind: &str| json!([{"group": "example.org", "version": "v1", "kind": kind}]);
        let both = json!([{"group": "", "version": "v1", "kind": "Thing"}, {"group": "example.org", "version": "v1", "kind": "Thing"}]);
        json!({"openapi": "3.0.0", "paths": {}, "components": {"schemas": {
            "a.DeleteOptions": {"x-kubernetes-group-version-kind": both, "properties": {"spec": {"type": "array"}}},
            "a.Open": {"x-kubernetes-group-version-kind": name("Open"), PRESERVE: true},
            "a.Thing": {"x-kubernetes-group-version-kind": name("Thing"), "properties": {
                "metadata": {"allOf": [{"$ref": "#/m"}]}, "spec": {"type": "object", PRESERVE: true}, "status": {}}},
        }}})
        .to_string()
    }

    #[tokio::test]
    async fn a_mark_stands_for_each_version_that_is_served() {
        let (api, mut fake) = Fake::new(Duration::from_secs(5));
        let answer = async {
            fake.expect("/openapi/v3").await.answer(200, INDEX);
        };
        let (published, ()) = tokio::join!(api.published(), answer);
        let published = published.unwrap();
        assert!(published.mark("", "v1").unwrap().ends_with("hash=A"));
        assert!(published.mark("example.org", "v1").unwrap().ends_with("hash=B"));
        assert_eq!(published.mark("example.org", "v2"), None);
    }

    fn published() -> Published {
        let mark = |url: &str| Mark { url: url.to_owned() };
        Published([("apis/example.org/v1".to_owned(), mark("/openapi/v3/apis/example.org/v1?hash=B"))].into())
    }

    #[tokio::test]
    async fn a_kind_is_found_by_its_own_name() {
        let (api, mut fake) = Fake::new(Duration::from_secs(5));
        for (kind, wanted) in [
            (
                "Thing",
                Some(
                    json!({"type": "object", PRESERVE: false, "properties": {"spec": {"type": "object", PRESERVE: true}}}),
                ),
            ),
            ("Open", Some(json!({"type": "object", PRESERVE: true, "properties": {}}))),
            ("Other", None),
        ] {
            let answer = async { fake.expect("/openapi/v3/apis/example.org/v1?hash=B").await.answer(200, &document()) };
            let published = published();
            let (found, ()) = tokio::join!(api.published_spec(&published, "example.org", "v1", kind), answer);
            assert_eq!(found.unwrap(), wanted, "{kind}");
        }
    }

    #[tokio::test]
    async fn a_document_that_is_too_large_is_not_read() {
        let (api, mut fake) = Fake::new(Duration::from_secs(5));
        let answer = async {
            let large = " ".repeat(limits::ANSWER_BYTES + 1);
            fake.expect("/openapi/v3/apis/example.org/v1").await.answer(200, &large);
        };
        let published = published();
        let (found, ()) = tokio::join!(api.published_spec(&published, "example.org", "v1", "Thing"), answer);
        assert!(found.unwrap_err().to_string().contains("larger than"));
    }
}
