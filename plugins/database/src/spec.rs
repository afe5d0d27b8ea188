//! `spec` of a Database, as far as plugins read it. What it means to a user
//! stands in the CRD.

use crate::Server;
use keelson_sdk::prelude::*;
use keelson_sdk::serde_json::Map;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Absent: that of the data that is there, else the vendor's first.
    pub version: Option<String>,
    pub storage: Option<Storage>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) service: Option<Service>,
    pub resources: Option<Map<String, Value>>,
    pub node_selector: Option<Map<String, Value>>,
    pub tolerations: Option<Vec<Value>>,
    pub affinity: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// A quantity.
    pub size: String,
    pub storage_class_name: Option<String>,
    #[serde(default)]
    pub on_delete: OnDelete,
}

/// What becomes of the data when the Database goes.
#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    #[default]
    Retain,
    Delete,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    secret_ref: SecretRef,
}

#[derive(Deserialize)]
struct SecretRef {
    name: String,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    #[serde(default, rename = "type")]
    pub kind: ServiceType,
    pub node_port: Option<u16>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
pub enum ServiceType {
    #[default]
    NodePort,
    ClusterIP,
    LoadBalancer,
}

impl Spec {
    #[must_use]
    pub fn service(&self) -> Service {
        self.service.unwrap_or_default()
    }

    /// The name of a Secret that the user has brought.
    #[must_use]
    pub fn own_secret(&self) -> Option<&str> {
        self.credentials.as_ref().map(|it| it.secret_ref.name.as_str())
    }
}

impl ServiceType {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NodePort => "NodePort",
            Self::ClusterIP => "ClusterIP",
            Self::LoadBalancer => "LoadBalancer",
        }
    }
}

pub(crate) fn schema(server: &Server) -> Value {
    let text = || json!({"type": "string"});
    let object = || json!({"type": "object"});
    let versions: Vec<&str> = server.steps.iter().map(|(version, _)| *version).collect();
    json!({
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "enum": [server.name]},
            "version": {"type": "string", "enum": versions},
            "storage": {"type": "object", "required": ["size"], "properties": {
                "size": text(),
                "storageClassName": text(),
                "onDelete": {"type": "string", "enum": ["Retain", "Delete"]},
            }},
            "credentials": {"type": "object", "required": ["secretRef"], "properties": {
                "secretRef": {"type": "object", "required": ["name"], "properties": {"name": text()}},
            }},
            "service": {"type": "object", "properties": {
                "type": {"type": "string", "enum": ["NodePort", "ClusterIP", "LoadBalancer"]},
                "nodePort": {"type": "integer"},
            }},
            "resources": object(),
            "nodeSelector": {"type": "object", "additionalProperties": text()},
            "tolerations": {"type": "array", "items": object()},
            "affinity": object(),
        },
    })
}
