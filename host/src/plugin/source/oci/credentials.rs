//! Who we are to a registry, from a Docker configuration: `.dockerconfigjson`
//! or the older `.dockercfg`. Helpers that it names are never run.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// A user with a password, or a token to be exchanged for others.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    Password { user: String, password: String },
    Identity(String),
}

/// Shows nothing.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[derive(Deserialize)]
struct ConfigJson {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize, Default)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, rename = "identitytoken")]
    identity: String,
}

/// Those for a repository, of the longest name that fits, as Kubernetes chooses. None: nothing fits. The error tells no
/// secret.
pub fn find(config: &[u8], registry: &str, repository: &str) -> Result<Option<Credentials>, String> {
    // The older form has no `auths`; its keys are the registries themselves.
    let value: serde_json::Value =
        serde_json::from_slice(config).map_err(|error| format!("is no JSON (line {})", error.line()))?;
    let old = value.get("auths").is_none();
    let entries = if old {
        serde_json::from_value::<BTreeMap<String, Entry>>(value).map_err(|_| "is no .dockercfg".to_owned())?
    } else {
        serde_json::from_value::<ConfigJson>(value).map_err(|_| "is no .dockerconfigjson".to_owned())?.auths
    };
    let wanted = format!("{registry}/{repository}");
    let fitting = entries.into_iter().filter_map(|(key, entry)| Some((fits(&key, registry, &wanted)?, key, entry)));
    let Some((_, key, entry)) = fitting.max_by_key(|(length, ..)| *length) else { return Ok(None) };
    entry.read().map_err(|rule| format!("its entry for {key} {rule}"))
}

/// How much of the name a key names.
fn fits(key: &str, registry: &str, wanted: &str) -> Option<usize> {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    let (host, path) = key.split_once('/').map_or((key, ""), |(host, path)| (host, path));
    if !same_host(host, registry) {
        return None;
    }
    let rest = wanted.strip_prefix(registry)?.trim_start_matches('/');
    let whole = path.is_empty() || rest == path || rest.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    whole.then_some(host.len() + path.len())
}

/// `*` stands for one label, as in `*.example.com`.
fn same_host(pattern: &str, host: &str) -> bool {
    let (patterns, labels): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    patterns.len() == labels.len()
        && patterns.iter().zip(&labels).all(|(pattern, label)| *pattern == "*" || pattern == label)
}

impl Entry {
    fn read(self) -> Result<Option<Credentials>, &'static str> {
        let Self { auth, username, password, identity } = self;
        if !identity.is_empty() {
            return Ok(Some(Credentials::Identity(identity)));
        }
        if !username.is_empty() {
            return Ok(Some(Credentials::Password { user: username, password }));
        }
        if auth.is_empty() {
            return Ok(None);
        }
        let text = STANDARD.decode(auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or("has an `auth` that is no base64 of text")?;
        let (user, password) = text.split_once(':').ok_or("has an `auth` without a colon")?;
        Ok(Some(Credentials::Password { user: user.to_owned(), password: password.trim_end_matches('\0').to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(config: &str, registry: &str, repository: &str) -> Option<String> {
        match find(config.as_bytes(), registry, repository).unwrap()? {
            Credentials::Password { user, .. } => Some(user),
            Credentials::Identity(token) => Some(format!("token {token}")),
        }
    }

    #[test]
    fn the_longest_name_that_fits_is_taken() {
        let config = r#"{"auths": {
            "https://r.example.com/v1/": {"auth": "aG9zdDpw"},
            "r.example.com/team": {"username": "team", "password": "p"},
            "r.example.com/team/one": {"identitytoken": "t"},
            "*.wild.example.com": {"username": "wild", "password": "p"},
            "r.example.com:5000": {"username": "port", "password": "p"}},
            "credHelpers": {"r.example.com": "never-run"}, "credsStore": "nor-this"}"#;
        assert_eq!(user(config, "r.example.com", "other").as_deref(), Some("host"));
        assert_eq!(user(config, "r.example.com", "team/two").as_deref(), Some("team"));
        assert_eq!(user(config, "r.example.com", "teams").as_deref(), Some("host"));
        assert_eq!(user(config, "r.example.com", "team/one").as_deref(), Some("token t"));
        assert_eq!(user(config, "a.wild.example.com", "x").as_deref(), Some("wild"));
        assert_eq!(user(config, "r.example.com:5000", "x").as_deref(), Some("port"));
        assert_eq!(user(config, "a.b.wild.example.com", "x"), None);
        assert_eq!(user(config, "evil.example.com", "r.example.com"), None);
        // The older form.
        assert_eq!(user(r#"{"r.example.com": {"auth": "aG9zdDpw"}}"#, "r.example.com", "x").as_deref(), Some("host"));
    }

    #[test]
    fn errors_tell_no_secret() {
        for config in [
            r#"{"auths": {"r.example.com": {"auth": "c2VjcmV0"}}}"#,
            r#"{"r.example.com": {"auth": "!secret"}}"#,
            "{secret",
        ] {
            let error = find(config.as_bytes(), "r.example.com", "x").unwrap_err();
            assert!(!error.contains("secret") && !error.contains("c2Vj"), "{error}");
        }
        let shown = format!("{:?}", Credentials::Password { user: "u".into(), password: "secret".into() });
        assert!(!shown.contains("secret"));
    }
}
