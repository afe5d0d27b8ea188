//! What a platform engineer lets a plugin do: `spec.grant` of the Plugin
//! document. Data only; everything defaults to nothing, and there are no wildcards
//! but the one for namespaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::path::Path;

/// What the plugin may serve and write. What is not named here is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Grant {
    /// Parent kinds that the plugin may serve.
    pub serves: Vec<GrantedParent>,
    /// Kinds that the plugin may make as children. `{group: "", kind: Secret}` lets it have Secrets generated.
    pub children: Vec<GrantedKind>,
    /// Kinds beside the children that the plugin may look at. Of a Secret it sees the revision, and its Pods may take it.
    pub related: Vec<GrantedRelated>,
    /// Namespaces whose parents the plugin may serve; `*` is all.
    pub namespaces: Vec<String>,
    /// Where parents name Secrets of the user's own, that Pods of the plugin may then take.
    pub user_secrets: Vec<UserSecrets>,
    /// Namespaces in which the Secrets that the host generates are watched, so that an edit or a loss is noticed at once, not
    /// when it is next looked at. To list Secrets is to read all of a namespace: the host's role must allow it there.
    pub watch_secrets: Vec<String>,
    /// Fields of children that are refused without being named here.
    pub allowed_fields: Vec<AllowedFields>,
}

/// A parent kind, whole or the part with one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantedParent {
    /// API group; empty for the core group.
    pub group: String,
    pub kind: String,
    /// Only the objects with this value. Absent: all objects of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<GrantedDiscriminator>,
}

/// A value that tells which plugin serves an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantedDiscriminator {
    /// JSON pointer into the parent, for instance /spec/type.
    pub path: String,
    /// The string that must stand there.
    pub value: String,
}

/// A kind of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantedKind {
    /// API group; empty for the core group.
    pub group: String,
    pub kind: String,
}

/// A kind that may be looked at. Whoever may write the parent may so point at any object of the kind in these namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantedRelated {
    /// API group; empty for the core group.
    pub group: String,
    pub kind: String,
    /// Namespaces beside the parent's own; `*` is all. A kind without namespaces needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// A place where a parent names a Secret in its own namespace. Whoever may write the parent may so point at any Secret there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserSecrets {
    /// JSON pointer into the parent, for instance /spec/credentials/secretRef/name.
    pub path: String,
}

/// Fields of one child kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowedFields {
    /// API group; empty for the core group.
    pub group: String,
    pub kind: String,
    /// JSON pointers into the child, with * for any index of a list, for instance /spec/serviceAccountName.
    pub paths: Vec<String>,
}

/// What to do when a change of a child cannot be made in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// Only what can be changed in place is changed; else the child stays and it is said.
    InPlace,
    /// The child is deleted and made anew, once, with back-off.
    Recreate,
    /// The child is made anew when somebody deletes it.
    OnDelete,
}

impl Strategy {
    pub const ALL: &[Strategy] = &[Self::InPlace, Self::Recreate, Self::OnDelete];

    pub fn name(self) -> &'static str {
        match self {
            Self::InPlace => "InPlace",
            Self::Recreate => "Recreate",
            Self::OnDelete => "OnDelete",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|strategy| strategy.name() == text)
    }
}

impl Grant {
    pub fn allows_child(&self, group: &str, kind: &str) -> bool {
        self.children.iter().any(|granted| granted.group == group && granted.kind == kind)
    }

    pub fn allows_related(&self, group: &str, kind: &str) -> bool {
        self.related.iter().any(|granted| granted.group == group && granted.kind == kind)
    }

    /// An object of a kind that may be looked at, in a namespace that is not the parent's.
    pub fn allows_related_in(&self, group: &str, kind: &str, namespace: &str) -> bool {
        let of_kind = |granted: &&GrantedRelated| granted.group == group && granted.kind == kind;
        let namespaces = self.related.iter().filter(of_kind).flat_map(|granted| &granted.namespaces);
        namespaces.into_iter().any(|granted| granted == "*" || granted == namespace)
    }

    pub fn allows_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|granted| granted == "*" || granted == namespace)
    }

    pub(super) fn allows_field(&self, group: &str, kind: &str, path: &Path<'_>) -> bool {
        self.fields_of(group, kind).any(|pattern| path.is(pattern))
    }

    /// A field that is in no list.
    pub(super) fn names_field(&self, group: &str, kind: &str, pointer: &str) -> bool {
        self.fields_of(group, kind).any(|pattern| pattern == pointer)
    }

    fn fields_of(&self, group: &str, kind: &str) -> impl Iterator<Item = &String> {
        let of_kind = move |allowed: &&AllowedFields| allowed.group == group && allowed.kind == kind;
        self.allowed_fields.iter().filter(of_kind).flat_map(|allowed| &allowed.paths)
    }
}
