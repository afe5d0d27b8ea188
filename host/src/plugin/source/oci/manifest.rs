//! What a manifest must be to hold a component: the CNCF Wasm layout, or the
//! layer type that was used before it.

use serde::Deserialize;

use super::reference::Digest;
use crate::limits::COMPONENT_BYTES;

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub const CONFIG: &str = "application/vnd.wasm.config.v0+json";
pub const LAYER: &str = "application/wasm";
const OLD_LAYER: &str = "application/vnd.wasm.content.layer.v1+wasm";

/// Where the component's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub digest: Digest,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("is an image index, for several platforms; a component is the same on all: name the image itself")]
    Index,
    #[error("is no image manifest: {0}")]
    Invalid(String),
    #[error("has a layer of {bytes} bytes; at most {COMPONENT_BYTES} are pulled")]
    TooLarge { bytes: u64 },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    #[serde(default)]
    pub media_type: String,
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    manifests: Option<serde::de::IgnoredAny>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    #[serde(default)]
    pub artifact_type: String,
    pub digest: String,
    #[serde(default)]
    pub size: u64,
    #[serde(default)]
    pub annotations: std::collections::BTreeMap<String, String>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    serde_json::from_slice(bytes).map_err(|error| ManifestError::Invalid(error.to_string()))
}

/// The one layer that is a component.
pub fn layer(bytes: &[u8]) -> Result<Layer, ManifestError> {
    let Manifest { media_type, layers, manifests } = parse(bytes)?;
    if manifests.is_some() || [INDEX, DOCKER_LIST].contains(&media_type.as_str()) {
        return Err(ManifestError::Index);
    }
    let invalid = |text: String| Err(ManifestError::Invalid(text));
    let [Descriptor { media_type, digest, size, .. }] = layers.as_slice() else {
        return invalid(format!("it has {} layers; a component is exactly one", layers.len()));
    };
    if ![LAYER, OLD_LAYER].contains(&media_type.as_str()) {
        return invalid(format!("its layer is {media_type:?}; a component is {LAYER} or {OLD_LAYER}"));
    }
    let Some(digest) = Digest::parse(digest) else {
        return invalid(format!("its layer's digest {digest:?} is no sha256"));
    };
    if *size > COMPONENT_BYTES {
        return Err(ManifestError::TooLarge { bytes: *size });
    }
    Ok(Layer { digest, bytes: *size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(layers: &serde_json::Value) -> Result<Layer, ManifestError> {
        layer(json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": layers}).to_string().as_bytes())
    }

    #[test]
    fn both_layouts_are_taken_and_nothing_else() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for kind in [LAYER, OLD_LAYER] {
            assert_eq!(with(&json!([{"mediaType": kind, "digest": digest, "size": 5}])).unwrap().bytes, 5);
        }
        let layer_of = |kind: &str, digest: &str, size: u64| json!({"mediaType": kind, "digest": digest, "size": size});
        let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
        for (layers, words) in [
            (json!([]), "0 layers"),
            (json!([layer_of(LAYER, &digest, 1), layer_of(LAYER, &digest, 1)]), "2 layers"),
            (json!([layer_of(tar, &digest, 1)]), "tar+gzip"),
            (json!([layer_of(LAYER, "sha512:00", 1)]), "is no sha256"),
            (json!([layer_of(LAYER, &digest, u64::MAX)]), "at most"),
        ] {
            let error = with(&layers).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        for index in [json!({"manifests": []}), json!({"mediaType": INDEX}), json!({"mediaType": DOCKER_LIST})] {
            assert_eq!(layer(index.to_string().as_bytes()), Err(ManifestError::Index));
        }
        assert!(layer(b"[]").is_err() && layer(b"<html>").is_err());
    }
}
