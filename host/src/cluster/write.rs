//! What is written. Every write is conditional or names its field manager; none is repeated here, and none is sent by a
//! host that does not lead.

use bytes::Bytes;
use http::{HeaderValue, Method};
use serde::Serialize;

use super::client::{Api, JSON, at, parameter};
use super::error::{ApiError, ApiErrorKind};
use super::resource::Resource;
use crate::limits;

const MERGE: HeaderValue = HeaderValue::from_static("application/merge-patch+json");
const STRATEGIC_MERGE: HeaderValue = HeaderValue::from_static("application/strategic-merge-patch+json");
/// JSON is YAML.
const APPLY: HeaderValue = HeaderValue::from_static("application/apply-patch+yaml");

impl Api {
    /// Server-side apply, forced.
    pub async fn apply(
        &self,
        resource: &Resource,
        subresource: Option<&str>,
        namespace: Option<&str>,
        name: &str,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("apply {}", resource.describe(namespace, Some(name), subresource));
        let mut uri = resource.path(namespace, Some(name), subresource);
        uri.push_str("?force=true");
        parameter(&mut uri, "fieldManager", manager);
        let answer =
            self.call(Method::PATCH, uri, Some((APPLY, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        let verb = if subresource.is_none() { "apply" } else { "apply-subresource" };
        self.wrote(resource, verb);
        Ok(answer)
    }

    /// A JSON merge patch. With uid and resourceVersion in its metadata it meets exactly the state that was seen.
    pub async fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("patch {}", resource.describe(namespace, Some(name), None));
        let mut uri = resource.path(namespace, Some(name), None);
        uri.push('?');
        parameter(&mut uri, "fieldManager", manager);
        let answer =
            self.call(Method::PATCH, uri, Some((MERGE, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.wrote(resource, "patch");
        Ok(answer)
    }

    /// A strategic merge patch of a subresource, whose lists are merged by their keys.
    pub async fn patch_subresource(
        &self,
        resource: &Resource,
        subresource: &str,
        namespace: Option<&str>,
        name: &str,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("patch {}", resource.describe(namespace, Some(name), Some(subresource)));
        let mut uri = resource.path(namespace, Some(name), Some(subresource));
        uri.push('?');
        parameter(&mut uri, "fieldManager", manager);
        let content = Some((STRATEGIC_MERGE, body));
        let answer = self.call(Method::PATCH, uri, content, limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.wrote(resource, "patch-subresource");
        Ok(answer)
    }

    /// What a create would come to, without making anything: where the name is taken, an object that is allowed is
    /// refused as `AlreadyExists`, after every rule has been held against it.
    pub async fn would_create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<(), ApiError> {
        let call = || format!("create (dry run) {}", resource.describe(namespace, None, None));
        let mut uri = resource.path(namespace, None, None);
        uri.push_str("?dryRun=All");
        parameter(&mut uri, "fieldManager", manager);
        match self.call(Method::POST, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call)) {
            Err(error) if !error.is_already_exists() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    pub async fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("create {}", resource.describe(namespace, None, None));
        let mut uri = resource.path(namespace, None, None);
        uri.push('?');
        parameter(&mut uri, "fieldManager", manager);
        let answer = self.call(Method::POST, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.wrote(resource, "create");
        Ok(answer)
    }

    /// Deletes exactly this object (uid), where asked exactly this state of it (resourceVersion). A 404 is an error.
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        (uid, resource_version): (&str, Option<&str>),
    ) -> Result<(), ApiError> {
        let call = || format!("delete {}", resource.describe(namespace, Some(name), None));
        let options = DeleteOptions {
            api_version: "v1",
            kind: "DeleteOptions",
            propagation_policy: "Background",
            preconditions: Preconditions { uid, resource_version },
        };
        let body =
            serde_json::to_vec(&options).map_err(|error| ApiErrorKind::Decode(error.to_string())).map_err(at(call))?;
        let uri = resource.path(namespace, Some(name), None);
        self.call(Method::DELETE, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.wrote(resource, "delete");
        Ok(())
    }

    fn wrote(&self, resource: &Resource, verb: &'static str) {
        self.metrics().wrote(&resource.dotted(), verb);
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions<'a> {
    api_version: &'a str,
    kind: &'a str,
    propagation_policy: &'a str,
    preconditions: Preconditions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}
