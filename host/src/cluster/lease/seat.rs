//! Which Lease it is, and the three calls that it takes: get, create, update.

use http::Method;

use super::record::Record;
use crate::cluster::client::{Api, JSON, at};
use crate::cluster::error::{ApiError, ApiErrorKind};
use crate::cluster::fence::Fence;
use crate::cluster::resource::Resource;
use crate::limits;

pub(super) struct Seat {
    api: Api,
    resource: Resource,
    namespace: String,
    name: String,
}

impl Seat {
    pub(super) fn new(api: Api, namespace: &str, name: &str) -> Self {
        let resource = Resource {
            group: "coordination.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "Lease".to_owned(),
            plural: "leases".to_owned(),
            namespaced: true,
            has_status: false,
        };
        Self { api, resource, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// `keelson-system/keelson`
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    pub(super) fn fence(&self) -> &Fence {
        self.api.fence()
    }

    pub(super) fn leads(&self, leads: bool) {
        self.api.metrics().leads(&self.name, leads);
    }

    pub(super) fn vacant(&self) -> Record {
        Record::vacant(&self.namespace, &self.name)
    }

    pub(super) fn error(&self, kind: ApiErrorKind) -> ApiError {
        ApiError::new(format!("lease {}", self.name()), kind)
    }

    /// As of now; none where there is none.
    pub(super) async fn read(&self) -> Result<Option<Record>, ApiError> {
        match self.api.get(&self.resource, Some(&self.namespace), &self.name).await {
            Ok(body) => self.decode(&body).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes it where it was not read, else replaces exactly the state that was.
    pub(super) async fn write(&self, record: &Record) -> Result<Record, ApiError> {
        let name = record.is_there().then_some(self.name.as_str());
        let (method, verb) = if name.is_some() { (Method::PUT, "update") } else { (Method::POST, "create") };
        let call = || format!("{verb} {}", self.resource.describe(Some(&self.namespace), Some(&self.name), None));
        let uri = self.resource.path(Some(&self.namespace), name, None);
        let content = Some((JSON, record.body()));
        let answer = self.api.call_unfenced(method, uri, content, limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.decode(&answer)
    }

    fn decode(&self, body: &[u8]) -> Result<Record, ApiError> {
        Record::read(body).map_err(|error| self.error(ApiErrorKind::Decode(error.to_string())))
    }
}
