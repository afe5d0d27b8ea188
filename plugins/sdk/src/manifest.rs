//! What a plugin is, in the words of `describe`.

use crate::contract;
use crate::rendering::json_text;
use serde_json::Value;

/// A kind of the API, with the paths that the plugin wants to observe in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    pub(crate) observe: &'static [&'static str],
}

impl Kind {
    #[must_use]
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, version, kind, plural, observe: &[] }
    }

    /// A kind of the core group, version v1.
    #[must_use]
    pub const fn core(kind: &'static str, plural: &'static str) -> Self {
        Self::new("", "v1", kind, plural)
    }

    /// JSON pointers to see beside identity, phase and conditions. A change
    /// anywhere else causes no render.
    #[must_use]
    pub const fn observing(mut self, pointers: &'static [&'static str]) -> Self {
        self.observe = pointers;
        self
    }

    /// Whether an object of this `apiVersion` and `kind` is of this kind, in
    /// whichever version.
    #[must_use]
    pub fn covers(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == kind && self.group == group
    }

    pub(crate) fn reference(&self) -> contract::KindRef {
        contract::KindRef {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// A parent kind.
#[must_use]
#[derive(Debug, Clone)]
pub struct Serving(contract::Serving);

impl Serving {
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self(contract::Serving {
            group: group.to_owned(),
            versions: vec![version.to_owned()],
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            discriminator: None,
        })
    }

    /// A further version that the plugin can read, less liked than those before.
    pub fn or_version(mut self, version: &str) -> Self {
        self.0.versions.push(version.to_owned());
        self
    }

    /// Only the objects with this string at this JSON pointer: several plugins
    /// can share one kind.
    pub fn only(mut self, pointer: &str, value: &str) -> Self {
        self.0.discriminator = Some(contract::Discriminator { path: pointer.to_owned(), value: value.to_owned() });
        self
    }
}

/// Made once in [`Plugin::manifest`](crate::Plugin::manifest).
#[must_use]
#[derive(Debug, Clone)]
pub struct Manifest(contract::Manifest);

impl Manifest {
    /// The plugin's own name (a DNS label) and version (semver).
    pub fn new(name: &str, version: &str) -> Self {
        Self(contract::Manifest {
            name: name.to_owned(),
            version: version.to_owned(),
            serves: Vec::new(),
            children: Vec::new(),
            related: Vec::new(),
            schema: None,
            uses_time: false,
        })
    }

    pub fn serves(mut self, serving: Serving) -> Self {
        self.0.serves.push(serving.0);
        self
    }

    /// A kind that may ever be rendered, `SECRET` for generated ones included.
    pub fn child(mut self, kind: Kind) -> Self {
        let observe = kind.observe.iter().map(|&pointer| pointer.to_owned()).collect();
        self.0.children.push(contract::ChildKind { kind: kind.reference(), observe });
        self
    }

    /// A kind that [`Relations::related`](crate::related::Relations::related) may ever ask for.
    pub fn related(mut self, kind: Kind) -> Self {
        self.0.related.push(kind.reference());
        self
    }

    /// The structural schema of the part of `spec` that is read. The host holds
    /// it against the cluster's CRD, so that no field is pruned unnoticed.
    #[expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]
    pub fn spec_schema(mut self, schema: Value) -> Self {
        self.0.schema = Some(json_text(&schema));
        self
    }

    /// Asks for `Request::now`.
    pub fn uses_time(mut self) -> Self {
        self.0.uses_time = true;
        self
    }
}

impl From<Manifest> for contract::Manifest {
    fn from(manifest: Manifest) -> Self {
        manifest.0
    }
}
