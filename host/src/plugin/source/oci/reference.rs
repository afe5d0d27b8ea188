//! The name of an image: `REGISTRY/REPOSITORY[:TAG][@sha256:HEX]`.

use std::fmt;

/// Where an image lies. The registry is always named: none is assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Host, with a port where it has one.
    pub registry: String,
    pub repository: String,
    pub tag: Option<String>,
    pub digest: Option<Digest>,
}

/// SHA-256 of a manifest or layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest(String);

// === impl Digest ===

impl Digest {
    /// `sha256:` and 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let valid = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        valid.then(|| Self(hex.to_owned()))
    }

    pub fn of(bytes: &[u8]) -> Self {
        Self(crate::plugin::source::hash::sha256(bytes))
    }

    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

// === impl Reference ===

impl Reference {
    /// The error is a rule, as for a field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest = Digest::parse(digest).ok_or("its digest must be sha256: and 64 lower-case hex digits")?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let (registry, path) = rest.split_once('/').ok_or("must name a registry: REGISTRY/REPOSITORY:TAG")?;
        let named = registry.contains(['.', ':']) || registry == "localhost";
        let host = registry.split_once(':').map_or(registry, |(host, _)| host);
        let port = registry.split_once(':').map(|(_, port)| port);
        if !named
            || host.is_empty()
            || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        {
            return Err(format!("must name a registry, such as ghcr.io or localhost:5000; {registry:?} is none"));
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(format!("the port of {registry:?} is none"));
        }
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (path, None),
        };
        let part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
                && part.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
                && part.bytes().last().is_some_and(|byte| byte.is_ascii_alphanumeric())
        };
        if repository.len() > 255 || !repository.split('/').all(part) {
            return Err(format!(
                "{repository:?} is no repository: lower-case letters, digits, and . _ - / between them"
            ));
        }
        if let Some(tag) = &tag {
            let letters = tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
            if tag.is_empty() || tag.len() > 128 || !letters || tag.starts_with(['.', '-']) {
                return Err(format!("{tag:?} is no tag"));
            }
        }
        if tag.is_none() && digest.is_none() {
            return Err("must have a tag or a digest: none is assumed".to_owned());
        }
        Ok(Self { registry: registry.to_owned(), repository: repository.to_owned(), tag, digest })
    }

    /// `REGISTRY/REPOSITORY`, which tells no secret.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    pub fn at(&self, digest: &Digest) -> String {
        format!("{}@{digest}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken() {
        let hex = "a".repeat(64);
        for (text, tag, digest) in [
            ("ghcr.io/acme/mongo:1.2", Some("1.2"), false),
            ("localhost/m:x", Some("x"), false),
            ("127.0.0.1:5000/a/b/c:v1_2-3.x", Some("v1_2-3.x"), false),
            (&format!("r.example.com/a@sha256:{hex}"), None, true),
            (&format!("r.example.com:443/a:1@sha256:{hex}"), Some("1"), true),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!((reference.tag.as_deref(), reference.digest.is_some()), (tag, digest), "{text}");
        }
    }

    #[test]
    fn names_that_are_not() {
        for (text, words) in [
            ("mongo:1", "must name a registry"),
            ("acme/mongo:1", "must name a registry"),
            ("ghcr.io/acme/mongo", "a tag or a digest"),
            ("ghcr.io/Acme/mongo:1", "is no repository"),
            ("ghcr.io/a//b:1", "is no repository"),
            ("ghcr.io/../b:1", "is no repository"),
            ("ghcr.io/a:", "is no tag"),
            ("ghcr.io/a:b/c", "is no tag"),
            ("ghcr.io/a@sha256:abc", "64 lower-case hex"),
            ("ghcr.io/a@md5:abc", "sha256"),
            ("ghcr.io:x/a:1", "port"),
            ("user@ghcr.io/a:1", "sha256"),
            ("gh cr.io/a:1", "must name a registry"),
        ] {
            let error = Reference::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
