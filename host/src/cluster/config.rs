//! Which cluster, and as whom: a named context, else `KUBECONFIG` or
//! `~/.kube/config`, else the Pod's own service account.

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::error::in_words;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("kubeconfig {path}: {reason}")]
    Kubeconfig { path: String, reason: String },
    #[error("context {context:?} of kubeconfig {path}: {reason}")]
    Context { path: String, context: String, reason: String },
    #[error("no cluster to talk to: kubeconfig {path}: {kubeconfig}; and not in a cluster: {incluster}")]
    Nowhere { path: String, kubeconfig: String, incluster: String },
    #[error("cluster {server}: proxy-url is not supported")]
    Proxy { server: String },
    #[error("credentials or certificates for {server}: {reason}")]
    Setup { server: String, reason: String },
}

pub(super) async fn configure(context: Option<&str>) -> Result<Config, ConnectError> {
    let path = std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty());
    let named = path.is_some() || context.is_some();
    let path = path.unwrap_or_else(|| "~/.kube/config".to_owned());
    let kubeconfig = match Kubeconfig::read() {
        Ok(kubeconfig) => kubeconfig,
        // What the user named must be there; only the default may be absent, in a Pod.
        Err(error) if named => return Err(ConnectError::Kubeconfig { path, reason: in_words(&error) }),
        Err(error) => {
            return Config::incluster().map(without_retry).map_err(|incluster| ConnectError::Nowhere {
                path,
                kubeconfig: in_words(&error),
                incluster: in_words(&incluster),
            });
        }
    };
    let context = context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let proxied = kubeconfig.clusters.iter().any(|named| named.cluster.as_ref().is_some_and(|c| c.proxy_url.is_some()));
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| ConnectError::Context {
        path,
        context,
        reason: in_words(&error),
    })?;
    if config.proxy_url.is_some() && proxied {
        return Err(ConnectError::Proxy { server: config.cluster_url.to_string() });
    }
    Ok(without_retry(config))
}

fn without_retry(mut config: Config) -> Config {
    config.default_retry = false;
    config
}
