//! For a plugin's own tests, natively: a request as the host would make it, the
//! rendering as values, and the host's rules that an author trips over first.
//!
//! ```
//! # use keelson_sdk::prelude::*;
//! # struct Cache;
//! # impl Plugin for Cache {
//! #     type Spec = Unread;
//! #     type Config = NoConfig;
//! #     fn manifest() -> Manifest {
//! #         Manifest::new("cache", "1.0.0").serves(Serving::new("example.org", "v1", "Cache", "caches")).child(CONFIG_MAP)
//! #     }
//! #     fn render(cache: &Request<Self>) -> Result<Rendering, Failure> {
//! #         let name = cache.name();
//! #         Ok(Rendering::of([json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})]))
//! #     }
//! # }
//! use keelson_sdk::testing::Fixture;
//!
//! let rendered = Fixture::of::<Cache>("small").with("/spec/size", 64).render().unwrap();
//! assert_eq!(rendered.child(CONFIG_MAP, "small")["metadata"]["name"], "small");
//! ```
#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod finalize;
mod rules;
mod yaml;

pub use finalize::Finalized;
pub use yaml::{Crd, assert_granted, assert_permitted};

use crate::{Failure, Kind, Plugin, contract, entry};
use serde_json::{Map, Value, json};
use std::marker::PhantomData;

/// A request for a plugin, with defaults that its manifest gives.
#[must_use]
pub struct Fixture<P> {
    parent: Value,
    config: Value,
    children: Vec<contract::ObservedChild>,
    secrets: Vec<contract::SecretRevision>,
    related: Vec<contract::RelatedObject>,
    now: Option<u64>,
    plugin: PhantomData<P>,
}

/// What a [`Fixture`] was rendered to.
#[derive(Debug)]
pub struct Rendered {
    pub children: Vec<Value>,
    pub secrets: Vec<contract::GeneratedSecret>,
    /// `{}` where the plugin gives none.
    pub status: Value,
    pub contract: contract::Rendering,
}

impl Fixture<()> {
    /// A parent of the first kind that the plugin serves, in namespace
    /// `default`, with the discriminator's value in its place.
    pub fn of<P: Plugin>(name: &str) -> Fixture<P> {
        let manifest = contract::Manifest::from(P::manifest());
        let serving = manifest.serves.first().expect("the manifest serves nothing");
        let version = serving.versions.first().expect("the manifest serves no version of its kind");
        let fixture = Fixture {
            parent: json!({
                "apiVersion": if serving.group.is_empty() { version.clone() } else { format!("{}/{version}", serving.group) },
                "kind": serving.kind,
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": "11111111-2222-4333-8444-555555555555",
                    "generation": 1,
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {},
            }),
            config: json!({}),
            children: Vec::new(),
            secrets: Vec::new(),
            related: Vec::new(),
            now: manifest.uses_time.then_some(1_767_225_600),
            plugin: PhantomData,
        };
        match &serving.discriminator {
            Some(it) => fixture.with(&it.path, it.value.as_str()),
            None => fixture,
        }
    }
}

impl<P: Plugin> Fixture<P> {
    /// Sets the parent's value at a JSON pointer.
    pub fn with(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        set(&mut self.parent, pointer, value.into());
        self
    }

    /// Takes a field out of the parent.
    pub fn without(mut self, pointer: &str) -> Self {
        let (object, field) = pointer.rsplit_once('/').expect("a JSON pointer");
        self.parent.pointer_mut(object).and_then(Value::as_object_mut).and_then(|object| object.remove(field));
        self
    }

    /// `config` of the Plugin document.
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// A child that is there, given whole: cut down here as the host does it.
    #[expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]
    pub fn child(self, object: Value) -> Self {
        self.observed(&object, None)
    }

    /// A retained child that is there, with the version of its data.
    #[expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]
    pub fn retained(self, object: Value, data_version: &str) -> Self {
        self.observed(&object, Some(data_version.to_owned()))
    }

    fn observed(mut self, object: &Value, data_version: Option<String>) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let manifest = contract::Manifest::from(P::manifest());
        let Some(declared) = manifest.children.iter().find(|it| rules::is_of(&it.kind, &api_version, &kind)) else {
            panic!("the manifest has no child of kind {kind} ({api_version}), so that the host would not show one");
        };
        let mut projected = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        let always = ["/metadata/uid", "/status/phase", "/status/conditions"];
        for pointer in always.into_iter().chain(declared.observe.iter().map(String::as_str)) {
            project(object, &mut projected, pointer);
        }
        self.children.push(contract::ObservedChild {
            api_version,
            kind,
            name,
            uid: text("/metadata/uid"),
            going: object.pointer("/metadata/deletionTimestamp").is_some(),
            object: projected.to_string(),
            data_version,
        });
        self
    }

    /// A generated Secret that is there.
    pub fn secret(mut self, name: &str, revision: &str) -> Self {
        self.secrets.push(contract::SecretRevision { name: name.to_owned(), revision: revision.to_owned() });
        self
    }

    /// An object that answers the query of this id, as its paths show it.
    #[expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]
    pub fn related(self, id: &str, object: Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        self.answered(id, api_version, kind, name, contract::RelatedOutcome::Found(object.to_string()))
    }

    /// There is none of the name that the query of this id asks for.
    pub fn absent(self, id: &str, kind: Kind, name: &str) -> Self {
        let contract::KindRef { group, version, kind, plural: _ } = kind.reference();
        let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
        self.answered(id, api_version, kind, name.to_owned(), contract::RelatedOutcome::Absent)
    }

    fn answered(
        mut self,
        id: &str,
        api_version: String,
        kind: String,
        name: String,
        outcome: contract::RelatedOutcome,
    ) -> Self {
        self.related.push(contract::RelatedObject { id: id.to_owned(), api_version, kind, name, outcome });
        self
    }

    /// Seconds since 1970.
    pub fn now(mut self, seconds: u64) -> Self {
        self.now = Some(seconds);
        self
    }

    /// The request as it crosses the border.
    #[must_use]
    pub fn request(&self) -> contract::Request {
        contract::Request {
            parent: self.parent.to_string(),
            config: self.config.to_string(),
            selector_labels: vec![contract::Label { key: rules::SELECTOR.to_owned(), value: self.uid() }],
            children: self.children.clone(),
            related: self.related.clone(),
            secrets: self.secrets.clone(),
            now: self.now,
            seed: 1,
        }
    }

    /// Renders twice, which must give the same, and holds the result against
    /// the host's rules.
    ///
    /// # Errors
    /// The plugin's own [`Failure`].
    pub fn render(&self) -> Result<Rendered, Failure> {
        let first = entry::render::<P>(self.request());
        assert_eq!(first, entry::render::<P>(self.request()), "the same request gave two renderings");
        let contract = first?;
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("the plugin gave no JSON");
        let children = match &contract.children {
            contract::Children::Exactly(children) => children.iter().map(|child| read(&child.object)).collect(),
            contract::Children::Keep | contract::Children::None => Vec::new(),
        };
        let status = contract.status.as_deref().map_or_else(|| json!({}), read);
        let rendered = Rendered { children, secrets: contract.secrets.clone(), status, contract };
        rules::hold(&P::manifest().into(), &self.parent, &rendered);
        Ok(rendered)
    }

    fn uid(&self) -> String {
        self.parent.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

impl Rendered {
    #[must_use]
    pub fn child(&self, kind: Kind, name: &str) -> &Value {
        self.find(kind, name).unwrap_or_else(|| panic!("no such child {name} among {:#?}", self.children))
    }

    #[must_use]
    pub fn find(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.children.get(self.place(kind, name)?)
    }

    /// How the host is asked to keep a child.
    #[must_use]
    pub fn retention(&self, kind: Kind, name: &str) -> Option<&contract::Retention> {
        let contract::Children::Exactly(children) = &self.contract.children else { return None };
        children.get(self.place(kind, name)?)?.retain.as_ref()
    }

    fn place(&self, kind: Kind, name: &str) -> Option<usize> {
        let text =
            |child: &'_ Value, pointer| child.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.children.iter().position(|it| {
            kind.covers(&text(it, "/apiVersion"), &text(it, "/kind")) && text(it, "/metadata/name") == name
        })
    }
}

/// Copies what is at a JSON pointer, with the lists and objects on the way.
fn project(from: &Value, to: &mut Value, pointer: &str) {
    if let Some(value) = from.pointer(pointer) {
        set(to, pointer, value.clone());
    }
}

fn set(mut at: &mut Value, pointer: &str, value: Value) {
    for key in pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")) {
        at = match key.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = json!([]);
                }
                let Value::Array(list) = at else { unreachable!("just made one") };
                list.resize(list.len().max(index + 1), Value::Null);
                list.get_mut(index).expect("just made room")
            }
            Err(_) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(object) = at else { unreachable!("just made one") };
                object.entry(key).or_insert(Value::Null)
            }
        };
    }
    *at = value;
}
