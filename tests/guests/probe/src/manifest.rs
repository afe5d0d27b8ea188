//! What the plugin says that it is: JSON in a slot of the component's data, padded with spaces to its length.
//!
//! `{name, version, serves: [{group, versions, kind, plural, discriminator?: {path, value}}],
//! children: [{group, version, kind, plural, observe?}], related?: [{group, version, kind, plural}], schema?, usesTime?, act?}`

use std::hint::black_box;

use keelson_sdk::contract;
use keelson_sdk::serde_json::{self, Value};
use serde::Deserialize;

use crate::script::Act;

/// tests/src/probe.rs looks for these bytes.
const MARK: &[u8; 16] = b"keelson-manifest";
const BYTES: usize = 4096;

#[used]
static SLOT: [u8; BYTES] = {
    let mut slot = [b' '; BYTES];
    let mut at = 0;
    while at < MARK.len() {
        slot[at] = MARK[at];
        at += 1;
    }
    slot
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Manifest {
    name: String,
    version: String,
    serves: Vec<Serving>,
    children: Vec<Child>,
    #[serde(default)]
    related: Vec<Child>,
    schema: Option<Value>,
    #[serde(default)]
    uses_time: bool,
    act: Option<Act>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serving {
    group: String,
    versions: Vec<String>,
    kind: String,
    plural: String,
    discriminator: Option<Discriminator>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Discriminator {
    path: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Child {
    group: String,
    version: String,
    kind: String,
    plural: String,
    #[serde(default)]
    observe: Vec<String>,
}

pub(crate) fn read() -> contract::Manifest {
    // Not the bytes that the compiler knows: those that stand there now.
    let slot: &[u8; BYTES] = black_box(&SLOT);
    let manifest: Manifest =
        serde_json::from_slice(&slot[MARK.len()..]).expect("a test wrote a manifest into the slot");
    manifest.act.iter().for_each(crate::play::act);
    contract::Manifest {
        name: manifest.name,
        version: manifest.version,
        serves: manifest.serves.into_iter().map(Into::into).collect(),
        children: manifest.children.into_iter().map(Into::into).collect(),
        related: manifest.related.into_iter().map(|kind| contract::ChildKind::from(kind).kind).collect(),
        schema: manifest.schema.map(|schema| schema.to_string()),
        uses_time: manifest.uses_time,
    }
}

impl From<Serving> for contract::Serving {
    fn from(Serving { group, versions, kind, plural, discriminator }: Serving) -> Self {
        let discriminator = discriminator.map(|Discriminator { path, value }| contract::Discriminator { path, value });
        Self { group, versions, kind, plural, discriminator }
    }
}

impl From<Child> for contract::ChildKind {
    fn from(Child { group, version, kind, plural, observe }: Child) -> Self {
        Self { kind: contract::KindRef { group, version, kind, plural }, observe }
    }
}
