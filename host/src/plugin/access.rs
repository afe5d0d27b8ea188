//! What opens a registry, read from the host's own namespace each time: a
//! Secret that is rotated is used at the next try.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::document::OciSource;
use super::source::oci::credentials;
use super::source::oci::{Access, Reference};
use crate::cluster::{Api, Resource};

const CONFIG_JSON: &str = ".dockerconfigjson";
const CONFIG: &str = ".dockercfg";
const CA: &str = "ca.crt";

#[derive(Debug, thiserror::Error)]
#[error("spec.source.oci.{field}: {kind} {namespace}/{name} {rule}")]
pub struct AccessError {
    field: &'static str,
    kind: &'static str,
    namespace: String,
    name: String,
    rule: String,
}

impl AccessError {
    pub fn reason(&self) -> &'static str {
        "PullSecretInvalid"
    }
}

/// Without an API server only what needs no Secret can be pulled.
pub async fn access(api: Option<&Api>, source: &OciSource, reference: &Reference) -> Result<Access, AccessError> {
    let OciSource { image: _, pull_secret, ca_config_map, plain_http } = source;
    let credentials = match pull_secret {
        None => None,
        Some(name) => {
            let error = error(api, "pullSecret", "Secret", name);
            let data = data(api, "secrets", "Secret", name).await.map_err(&error)?;
            let decoded = |key: &str| data.get(key).and_then(|text| STANDARD.decode(text).ok());
            let rule = || format!("has neither {CONFIG_JSON} nor {CONFIG}");
            let config = decoded(CONFIG_JSON).or_else(|| decoded(CONFIG)).ok_or_else(|| error(rule()))?;
            credentials::find(&config, &reference.registry, &reference.repository).map_err(&error)?
        }
    };
    let ca = match ca_config_map {
        None => None,
        Some(name) => {
            let error = error(api, "caConfigMap", "ConfigMap", name);
            let mut data = data(api, "configmaps", "ConfigMap", name).await.map_err(&error)?;
            let text = data.remove(CA).ok_or_else(|| error(format!("has no {CA}")))?;
            Some(text.into_bytes())
        }
    };
    Ok(Access { credentials, ca, plain_http: *plain_http })
}

fn error(
    api: Option<&Api>,
    field: &'static str,
    kind: &'static str,
    name: &str,
) -> impl Fn(String) -> AccessError + use<> {
    let namespace = api.map_or("", Api::default_namespace).to_owned();
    let name = name.to_owned();
    move |rule| AccessError { field, kind, namespace: namespace.clone(), name: name.clone(), rule }
}

/// The error is a rule, and tells nothing of the data.
async fn data(api: Option<&Api>, plural: &str, kind: &str, name: &str) -> Result<BTreeMap<String, String>, String> {
    #[derive(Deserialize)]
    struct Holder {
        #[serde(default)]
        data: BTreeMap<String, String>,
    }
    let api = api.ok_or("cannot be read before the API server is reached")?;
    let resource = Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
        has_status: false,
    };
    match api.get(&resource, Some(api.default_namespace()), name).await {
        Ok(bytes) => {
            serde_json::from_slice::<Holder>(&bytes).map(|it| it.data).map_err(|_| "cannot be read".to_owned())
        }
        Err(error) if error.is_not_found() => Err("does not exist".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}
