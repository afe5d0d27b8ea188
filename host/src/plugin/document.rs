//! The Plugin document: what a platform engineer writes to install a plugin.
//!
//! One shape for the file beside the component and for the object in a cluster
//! (`plugins.keelson.dev`, printed by `keelson crd`). What is not known is
//! refused by name: a grant that is misspelt must not be a grant that is missing.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::passed::Passed;
use super::source::oci::Reference;
use super::status::PluginStatus;
use crate::check::{Grant, GrantedParent, Strategy, syntax};
use crate::limits::{FINALIZE, FINALIZE_RANGE, PluginLimits};
use crate::names;

/// Which component serves, why its bytes are trusted, and what it may do.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "keelson.dev",
    version = "v1alpha1",
    kind = "Plugin",
    root = "PluginObject",
    doc = "A Plugin installs a WebAssembly component that renders the children of custom resources.",
    category = "keelson",
    status = "PluginStatus",
    printcolumn(name = "Serves", type_ = "string", json_path = ".status.serves"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.servingDigest"),
    printcolumn(name = "Objects", type_ = "integer", json_path = ".status.objects"),
    printcolumn(name = "File", type_ = "string", json_path = ".spec.source.file.path", priority = 1),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.image", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(clippy::duplicated_attributes, reason = "columns of one type")]
pub struct PluginSpec {
    /// Where the component's bytes come from.
    pub source: Source,
    /// Why these bytes may run: exactly one of the fields. There is no default.
    pub trust: Trust,
    /// What the plugin may serve, make and see. All of it defaults to nothing; a
    /// component whose manifest goes beyond it does not serve (NotGranted).
    #[serde(default)]
    pub grant: Grant,
    /// What one call may use. A field that is left out has its default.
    #[serde(default)]
    pub limits: PluginLimits,
    /// Handed to the component at every call, as it stands here. Not for secrets.
    #[serde(default)]
    #[schemars(schema_with = "any_object")]
    pub config: Map<String, Value>,
    /// What to do with children whose change cannot be made in place. Overrides
    /// what the component asks for.
    #[serde(default)]
    pub strategies: Vec<StrategyRule>,
    /// Labels and annotations of a parent that its children get. Nothing by default.
    #[serde(default)]
    pub passed: Passed,
    /// For a component that exports `finalize`: how long a deleted parent may wait for it.
    #[serde(default)]
    pub finalize: FinalizeRule,
}

/// How long a deleted parent may wait for its finalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FinalizeRule {
    /// Seconds from the delete, by the host's clock. Default 3600.
    #[schemars(range(min = 1, max = 2592000))]
    pub timeout_seconds: u32,
    /// What happens then.
    pub on_timeout: OnTimeout,
}

/// What becomes of a parent whose finalization takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnTimeout {
    /// It is said (FinalizeTimeout), and the parent stays until the finalization is done or forced.
    #[default]
    Hold,
    /// It is said, and the parent goes unfinalized.
    Release,
}

/// Where the component's bytes come from: exactly one of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A file beside the Plugin document.
    File(FileSource),
    /// An image of an OCI registry.
    Oci(OciSource),
}

/// An image whose one layer is a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciSource {
    /// `REGISTRY/REPOSITORY:TAG`, `…@sha256:…`, or both; then the digest counts. A tag is resolved once, by the host
    /// that leads, and its digest recorded in the status; another image here resolves anew. A document in the plugin
    /// folder must name a digest.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// A Secret in the host's own namespace, of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret: Option<String>,
    /// A ConfigMap in the host's own namespace, whose key `ca.crt` holds certificates (PEM) that are trusted for this
    /// registry beside the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_config_map: Option<String>,
    /// `true`: the registry is spoken to without TLS. For development.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// Path of the component, relative to the folder of Plugin documents. It does not leave the folder.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
}

/// Why these bytes may run: exactly one of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Trust {
    /// SHA-256 of the component, 64 lower-case hex digits. Any other bytes are refused (DigestMismatch).
    Sha256(#[schemars(regex(pattern = "^[0-9a-f]{64}$"))] String),
    /// Public keys (PEM, ECDSA P-256 or Ed25519), one of which must have signed the image's manifest with cosign, or the
    /// file: then its bundle lies beside it, as FILE.sigstore.json. Checked offline. Unsigned, or signed by others: refused
    /// (Unsigned, SignatureInvalid).
    Keys(#[schemars(length(min = 1, max = 16))] Vec<String>),
    /// `true`: whatever is found at the source may run. For development.
    Unsigned(Yes),
}

/// The value `true`; `unsigned: false` would say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "bool")]
pub struct Yes;

/// What to do with one kind of child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrategyRule {
    /// API group of the child; empty for the core group.
    pub group: String,
    /// Kind of the child, for instance `Pod`.
    pub kind: String,
    pub strategy: Strategy,
}

/// A Plugin document that was read and holds together.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub name: String,
    pub spec: PluginSpec,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("is not YAML: {0}")]
    Yaml(String),
    #[error("holds {0} YAML documents; a file holds exactly one Plugin document")]
    Count(usize),
    #[error("is not a Plugin document: {found}, wanted apiVersion {group}/{version} and kind Plugin",
        group = names::GROUP, version = names::VERSION)]
    NotAPlugin { found: String },
    #[error("{field}: {rule}")]
    Field { field: String, rule: String },
}

// === impl Document ===

impl Document {
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| yaml(&error))?;
        let value = match (documents.pop(), documents.len()) {
            (Some(value), 0) => value,
            (_, rest) => return Err(DocumentError::Count(if rest == 0 { 0 } else { rest + 1 })),
        };
        let word = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("none").to_owned();
        let (api_version, kind) = (word("apiVersion"), word("kind"));
        if api_version != format!("{}/{}", names::GROUP, names::VERSION) || kind != "Plugin" {
            let found = format!("found apiVersion {api_version} and kind {kind}");
            return Err(DocumentError::NotAPlugin { found });
        }
        // The parser's error knows line and column, the path is kept aside.
        let mut path = None;
        let raw = serde_saphyr::with_deserializer_from_str(text, |deserializer| {
            serde_path_to_error::deserialize::<_, Raw>(deserializer).map_err(|error| {
                path = Some(error.path().to_string());
                error.into_inner()
            })
        });
        let Raw { metadata: Metadata { name, .. }, spec, .. } = raw.map_err(|error| match path {
            Some(field) => DocumentError::Field { field, rule: plain(&error) },
            None => yaml(&error),
        })?;
        let document = Self { name, spec };
        document.validate()?;
        Ok(document)
    }

    /// What the types cannot hold. The CRD says the same where a schema can.
    fn validate(&self) -> Result<(), DocumentError> {
        let Self { name, spec: PluginSpec { source, trust, grant, limits, config: _, strategies, passed, finalize } } =
            self;
        check(syntax::dns_1123_label(name), "metadata.name", "must be a DNS-1123 label: at most 63 of a-z, 0-9 and -")?;
        match source {
            Source::File(FileSource { path }) => check(!path.is_empty(), "spec.source.file.path", "must not be empty")?,
            Source::Oci(OciSource { image, pull_secret, ca_config_map, plain_http: _ }) => {
                Reference::parse(image).map_err(|rule| field("spec.source.oci.image", &rule))?;
                for (at, name) in [("pullSecret", pull_secret), ("caConfigMap", ca_config_map)] {
                    let named = name.as_ref().is_none_or(|name| syntax::dns_1123_subdomain(name));
                    check(
                        named,
                        &format!("spec.source.oci.{at}"),
                        "must be the name of an object in the host's namespace",
                    )?;
                }
            }
        }
        match trust {
            Trust::Sha256(digest) => {
                let hex = digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                check(hex, "spec.trust.sha256", "must be 64 lower-case hex digits, as sha256sum prints them")?;
            }
            Trust::Keys(keys) => check(!keys.is_empty(), "spec.trust.keys", "must name a key at least")?,
            Trust::Unsigned(Yes) => {}
        }
        grant_fields(grant)?;
        limit_fields(*limits)?;
        for (index, StrategyRule { group, kind, strategy: _ }) in strategies.iter().enumerate() {
            group_and_kind(&format!("spec.strategies[{index}]"), group, kind)?;
        }
        if let Some((at, rule)) = passed.fault() {
            return Err(field(&format!("spec.passed.{at}"), &rule));
        }
        let FinalizeRule { timeout_seconds, on_timeout: _ } = finalize;
        let (least, most) = FINALIZE_RANGE;
        let within = (least..=most).contains(timeout_seconds);
        let rule = format!("is {timeout_seconds}, must be {least} to {most}");
        check(within, "spec.finalize.timeoutSeconds", &rule)
    }
}

/// Lines that could never match, such as `kind: pods` or `group: "*"`. What may
/// be granted at all is checked with the manifest.
fn grant_fields(grant: &Grant) -> Result<(), DocumentError> {
    let Grant { serves, children, related, namespaces, user_secrets: _, watch_secrets, allowed_fields } = grant;
    let serves = serves.iter().map(|one| (&one.group, &one.kind)).enumerate().map(|line| ("serves", line));
    let children = children.iter().map(|one| (&one.group, &one.kind)).enumerate().map(|line| ("children", line));
    let related = related.iter().map(|one| (&one.group, &one.kind)).enumerate().map(|line| ("related", line));
    let allowed = allowed_fields.iter().map(|one| (&one.group, &one.kind)).enumerate();
    let allowed = allowed.map(|line| ("allowedFields", line));
    for (list, (index, (group, kind))) in serves.chain(children).chain(related).chain(allowed) {
        group_and_kind(&format!("spec.grant.{list}[{index}]"), group, kind)?;
    }
    for (index, namespace) in namespaces.iter().enumerate() {
        let known = namespace == "*" || syntax::dns_1123_label(namespace);
        check(known, &format!("spec.grant.namespaces[{index}]"), "must be \"*\" or the name of a namespace")?;
    }
    for (index, namespace) in watch_secrets.iter().enumerate() {
        let at = format!("spec.grant.watchSecrets[{index}]");
        check(syntax::dns_1123_label(namespace), &at, "must be the name of a namespace; there is no word for all")?;
    }
    Ok(())
}

fn limit_fields(limits: PluginLimits) -> Result<(), DocumentError> {
    let PluginLimits { memory_mib, fuel, wall_milliseconds, output_kib, children, log_kib } = limits;
    let ranges = [
        ("memoryMiB", u64::from(memory_mib), 1, 4096),
        ("fuel", fuel, 1, i64::MAX as u64),
        ("wallMilliseconds", u64::from(wall_milliseconds), 10, 60_000),
        ("outputKiB", u64::from(output_kib), 1, 16_384),
        ("children", u64::from(children), 1, 4096),
        ("logKiB", u64::from(log_kib), 0, 1024),
    ];
    for (name, value, least, most) in ranges {
        let within = (least..=most).contains(&value);
        check(within, &format!("spec.limits.{name}"), &format!("is {value}, must be {least} to {most}"))?;
    }
    Ok(())
}

fn group_and_kind(at: &str, group: &str, kind: &str) -> Result<(), DocumentError> {
    let known = group.is_empty() || syntax::dns_1123_subdomain(group);
    check(known, &format!("{at}.group"), "must be an API group without version, or empty for the core group")?;
    check(syntax::kind(kind), &format!("{at}.kind"), "must be a kind, for instance Pod (not pods, and no *)")
}

fn check(holds: bool, at: &str, rule: &str) -> Result<(), DocumentError> {
    if holds { Ok(()) } else { Err(field(at, rule)) }
}

fn field(field: &str, rule: &str) -> DocumentError {
    DocumentError::Field { field: field.to_owned(), rule: rule.to_owned() }
}

fn yaml(error: &serde_saphyr::Error) -> DocumentError {
    DocumentError::Yaml(plain(error))
}

/// The parser's message on one line, without the excerpt that it can draw.
fn plain(error: &serde_saphyr::Error) -> String {
    error.without_snippet().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a document that is refused would have served, as far as it can be told:
/// the objects that waited for it shall say so.
pub fn salvage(text: &str) -> (Option<String>, Vec<GrantedParent>) {
    let value = serde_saphyr::from_multiple::<Value>(text).ok().and_then(|all| all.into_iter().next());
    let at = |path: &str| value.as_ref().and_then(|value| value.pointer(path));
    if at("/kind").and_then(Value::as_str) != Some("Plugin") {
        return (None, Vec::new());
    }
    let name = at("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    let serves = at("/spec/grant/serves").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    (name, serves.iter().filter_map(|one| GrantedParent::deserialize(one).ok()).collect())
}

impl Default for FinalizeRule {
    fn default() -> Self {
        Self { timeout_seconds: FINALIZE, on_timeout: OnTimeout::Hold }
    }
}

// === the document in a file ===

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    metadata: Metadata,
    spec: PluginSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
    #[serde(default, rename = "labels")]
    _labels: IgnoredAny,
    #[serde(default, rename = "annotations")]
    _annotations: IgnoredAny,
}

// === serde and schema of the parts ===

impl From<Yes> for bool {
    fn from(_: Yes) -> Self {
        true
    }
}

impl<'de> Deserialize<'de> for Yes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            return Ok(Self);
        }
        Err(serde::de::Error::custom("must be true; to have the bytes verified give sha256 in its place"))
    }
}

impl JsonSchema for Yes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Yes".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "boolean", "enum": [true]})
    }
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

#[cfg(test)]
mod tests;
