//! Kinds that plugins commonly make, ready for `Manifest::child`.

use crate::Kind;

pub const CONFIG_MAP: Kind = Kind::core("ConfigMap", "configmaps");
pub const PERSISTENT_VOLUME_CLAIM: Kind = Kind::core("PersistentVolumeClaim", "persistentvolumeclaims");
pub const POD: Kind = Kind::core("Pod", "pods");
pub const SECRET: Kind = Kind::core("Secret", "secrets");
pub const SERVICE: Kind = Kind::core("Service", "services");
pub const SERVICE_ACCOUNT: Kind = Kind::core("ServiceAccount", "serviceaccounts");
pub const DEPLOYMENT: Kind = Kind::new("apps", "v1", "Deployment", "deployments");
pub const STATEFUL_SET: Kind = Kind::new("apps", "v1", "StatefulSet", "statefulsets");
pub const CRON_JOB: Kind = Kind::new("batch", "v1", "CronJob", "cronjobs");
pub const JOB: Kind = Kind::new("batch", "v1", "Job", "jobs");
pub const INGRESS: Kind = Kind::new("networking.k8s.io", "v1", "Ingress", "ingresses");
pub const NETWORK_POLICY: Kind = Kind::new("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
pub const POD_DISRUPTION_BUDGET: Kind = Kind::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
