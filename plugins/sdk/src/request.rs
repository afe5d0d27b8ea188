//! All that a render may depend on.

use crate::{Failure, Kind, Plugin, contract, read};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The custom resource with the plugin's own types, and what the host knows
/// around it.
pub struct Request<P: Plugin> {
    pub spec: P::Spec,
    /// `config` of the Plugin document.
    pub config: P::Config,
    metadata: Metadata,
    raw: contract::Request,
}

#[derive(Deserialize)]
struct Parent {
    metadata: Metadata,
    spec: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    generation: i64,
    // As JSON, whose map is in every plugin anyway: another is 5 kB more.
    #[serde(default)]
    labels: Map<String, Value>,
    #[serde(default)]
    annotations: Map<String, Value>,
}

impl<P: Plugin> Request<P> {
    pub(crate) fn read(raw: contract::Request) -> Result<Self, Failure> {
        let Parent { metadata, spec } = serde_json::from_str(&raw.parent)?;
        // No spec is an empty one: what is missing in it is named.
        let spec = read::typed(spec.as_deref().map_or("{}", RawValue::get), "/spec")?;
        let config = read::typed(&raw.config, "/config").map_err(|failure| {
            Failure::internal(format!("configuration of the plugin: {}", failure.message)).reason("InvalidConfig")
        })?;
        Ok(Self { spec, config, metadata, raw })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Empty for a cluster-scoped parent.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    #[must_use]
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    #[must_use]
    pub fn generation(&self) -> i64 {
        self.metadata.generation
    }

    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key).and_then(Value::as_str)
    }

    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).and_then(Value::as_str)
    }

    /// `NAME-SUFFIX`, for a second child of a kind. The dash and the suffix have
    /// at most 13 characters, so that the name fits for every parent.
    #[must_use]
    pub fn name_with(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name())
    }

    /// `NAME.NAMESPACE.svc:PORT`, where a Service named as the parent answers.
    #[must_use]
    pub fn service_address(&self, port: u16) -> String {
        format!("{}.{}.svc:{port}", self.name(), self.namespace())
    }

    /// What a Service, or whatever else selects Pods, must select by. The host
    /// puts these labels on every child and every Pod template.
    #[must_use]
    pub fn selector(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        for label in &self.raw.selector_labels {
            labels.insert(label.key.clone(), Value::from(label.value.as_str()));
        }
        labels
    }

    /// A child that is there.
    #[must_use]
    pub fn child(&self, kind: Kind, name: &str) -> Option<Observed<'_>> {
        self.children().find(|child| child.0.name == name && kind.covers(&child.0.api_version, &child.0.kind))
    }

    /// All children that are there, in the order of kind and name.
    pub fn children(&self) -> impl Iterator<Item = Observed<'_>> {
        self.raw.children.iter().map(Observed)
    }

    /// Changes exactly when the data of this generated Secret changes; none
    /// until it is there. In an annotation of a Pod template it rolls the Pods.
    #[must_use]
    pub fn secret_revision(&self, name: &str) -> Option<&str> {
        self.raw.secrets.iter().find(|secret| secret.name == name).map(|secret| secret.revision.as_str())
    }

    /// The answers to the question of this id.
    pub fn related<'a>(&'a self, id: &'a str) -> impl Iterator<Item = Related<'a>> {
        self.raw.related.iter().filter(move |answer| answer.id == id).map(Related)
    }

    /// Seconds since 1970, to the minute; only where the manifest `uses_time`.
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.raw.now
    }

    /// For random choices that must stay. Not secret.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.raw.seed
    }

    /// The whole custom resource, for what has no method here.
    ///
    /// # Errors
    /// Never for what a host sends.
    pub fn parent<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(serde_json::from_str(&self.raw.parent)?)
    }
}

/// A child cut down to identity, phase, conditions and the observed paths.
#[derive(Clone, Copy)]
pub struct Observed<'a>(&'a contract::ObservedChild);

impl Observed<'_> {
    /// The value at a JSON pointer; none where it is absent or of another type.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, pointer: &str) -> Option<T> {
        value_at(&self.0.object, pointer)
    }

    /// Whether the condition of this type is True.
    #[must_use]
    pub fn is(&self, condition: &str) -> bool {
        self.get::<Vec<Value>>("/status/conditions")
            .is_some_and(|all| all.iter().any(|it| it["type"] == condition && it["status"] == "True"))
    }
}

impl std::ops::Deref for Observed<'_> {
    type Target = contract::ObservedChild;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

/// An answer to what the `related` hook asked for.
#[derive(Clone, Copy)]
pub struct Related<'a>(&'a contract::RelatedObject);

impl Related<'_> {
    /// The value at a JSON pointer; none where the object is absent too.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, pointer: &str) -> Option<T> {
        match &self.0.outcome {
            contract::RelatedOutcome::Found(object) => value_at(object, pointer),
            contract::RelatedOutcome::Absent => None,
        }
    }

    #[must_use]
    pub fn is_found(&self) -> bool {
        matches!(self.0.outcome, contract::RelatedOutcome::Found(_))
    }
}

impl std::ops::Deref for Related<'_> {
    type Target = contract::RelatedObject;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

fn value_at<T: DeserializeOwned>(object: &str, pointer: &str) -> Option<T> {
    let mut object: Value = serde_json::from_str(object).ok()?;
    serde_json::from_value(object.pointer_mut(pointer)?.take()).ok()
}
