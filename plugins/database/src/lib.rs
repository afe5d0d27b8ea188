//! What the plugins for Database objects share: the spec, the children that
//! every server has, and how a version follows another.
//!
//! A plugin says what is particular to its vendor in a [`Server`], asks for a
//! [`Plan`], and renders it.

mod spec;
mod version;
mod back;
mod plan;
mod children;
mod pod;
mod upgrade;

pub use children::{credentials, render, secret_env};
pub use plan::Plan;
pub use pod::{as_nobody, no_rights, running, server};
pub use spec::{Service, ServiceType, Spec, Storage};
pub use upgrade::{State, taken_back, upgrading};
pub use version::{Data, Steps};

use keelson_sdk::prelude::*;

/// A vendor's server.
pub struct Server {
    /// Of the plugin, `spec.type`, the image and the container.
    pub name: &'static str,
    pub port: u16,
    /// Where the image keeps its data.
    pub data: &'static str,
    pub steps: Steps,
}

/// The plugin's own record on the claim, beside the host's: it is there for
/// data that is not kept as well, and a person can write it.
pub const DATA_VERSION: &str = "zalando.org/data-version";

/// On the claim during a step: the Pod that ran before, and how often its server had been started again, as
/// `UID/COUNT`. By it is known whether the new server has ever been started.
pub const SERVER_BEFORE: &str = "zalando.org/server-before";

const SERVER_BEFORE_POINTER: &str = "/metadata/annotations/zalando.org~1server-before";
const IMAGE: &str = "/spec/containers/0/image";
const DATA_VERSION_POINTER: &str = "/metadata/annotations/zalando.org~1data-version";
const NODE_PORT: &str = "/spec/ports/0/nodePort";
const BALANCER: &str = "/status/loadBalancer/ingress/0";
const CONTAINERS: &str = "/status/containerStatuses";

impl Server {
    /// Pod, Service and claim of a Database; the plugin adds what it makes beside them.
    pub fn manifest(&self, plugin_version: &str) -> Manifest {
        Manifest::new(self.name, plugin_version)
            .serves(Serving::new("zalando.org", "v1", "Database", "databases").only("/spec/type", self.name))
            .child(POD.observing(&[CONTAINERS, IMAGE]))
            .child(SERVICE.observing(&[NODE_PORT, BALANCER]))
            .child(PERSISTENT_VOLUME_CLAIM.observing(&[DATA_VERSION_POINTER, SERVER_BEFORE_POINTER]))
            .spec_schema(spec::schema(self))
    }
}
