//! The distribution API, as far as a pull needs it: manifests and blobs by
//! digest, tags, and what was signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, Method};
use serde::Deserialize;

use super::credentials::Credentials;
use super::http::{Answer, Http, HttpError};
use super::manifest::{self, INDEX, MANIFEST, ManifestError};
use super::reference::{Digest, Reference};
use crate::limits::{COMPONENT_BYTES, MANIFEST_BYTES};

/// How a registry is spoken to.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub credentials: Option<Credentials>,
    /// PEM of certificates that are trusted beside the system's.
    pub ca: Option<Vec<u8>>,
    /// Without TLS.
    pub plain_http: bool,
}

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    #[error("{image} {error}")]
    Manifest { image: String, error: ManifestError },
    #[error("{name}: the registry has no {what}")]
    NotFound { name: String, what: String },
    #[error("{name}: the registry refuses {who} ({status})")]
    Unauthorized { name: String, who: &'static str, status: u16 },
    #[error("{name}: asked for {wanted}, the registry gave bytes with {found}")]
    Digest { name: String, wanted: Digest, found: Digest },
    #[error("{name}: {error}")]
    Http { name: String, error: HttpError },
    #[error("{name}: the registry answers {status}{words}")]
    Status { name: String, status: u16, words: String },
    #[error("{name}: {rule}")]
    Challenge { name: String, rule: String },
}

impl OciError {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Manifest { error: ManifestError::Index, .. } => "ImageIndex",
            Self::Manifest { error: ManifestError::TooLarge { .. }, .. } => "TooLarge",
            Self::Manifest { .. } => "ImageInvalid",
            Self::NotFound { .. } => "ImageNotFound",
            Self::Unauthorized { .. } => "ImageUnauthorized",
            Self::Digest { .. } => "DigestMismatch",
            Self::Http { error: HttpError::TooLarge(..), .. } => "TooLarge",
            Self::Http { error: HttpError::Ca(_) | HttpError::Url(_) | HttpError::Plain(_), .. } => "ImageInvalid",
            Self::Http { .. } | Self::Status { .. } | Self::Challenge { .. } => "RegistryUnavailable",
        }
    }

    /// Whether it may be otherwise with the same document. Credentials are read anew at each try.
    pub fn passes(&self) -> bool {
        matches!(self.reason(), "RegistryUnavailable" | "ImageUnauthorized")
    }

    fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// One repository, and what opens it.
pub struct Client {
    http: Http,
    reference: Reference,
    credentials: Option<Credentials>,
    /// What the registry wants to see, once it has said so.
    authorization: Option<String>,
}

impl Client {
    pub fn new(reference: &Reference, access: &Access) -> Result<Self, OciError> {
        let Access { credentials, ca, plain_http } = access;
        let http =
            Http::new(ca.as_deref(), *plain_http).map_err(|error| OciError::Http { name: reference.name(), error })?;
        Ok(Self { http, reference: reference.clone(), credentials: credentials.clone(), authorization: None })
    }

    /// The manifest that a tag or digest names, and its own digest, by its bytes.
    pub async fn manifest(&mut self, at: &str) -> Result<(Digest, Vec<u8>), OciError> {
        let accept = format!(
            "{MANIFEST}, {INDEX}, application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json"
        );
        let bytes = self.get(&format!("manifests/{at}"), &accept, MANIFEST_BYTES, at).await?;
        let found = Digest::of(&bytes);
        match Digest::parse(at) {
            Some(wanted) if wanted != found => Err(OciError::Digest { name: self.reference.name(), wanted, found }),
            _ => Ok((found, bytes)),
        }
    }

    /// At most `limit` bytes, and exactly those of this digest.
    pub async fn blob(&mut self, wanted: &Digest, limit: u64) -> Result<Vec<u8>, OciError> {
        let bytes = self.get(&format!("blobs/{wanted}"), "*/*", limit, &format!("blob {wanted}")).await?;
        let found = Digest::of(&bytes);
        if found != *wanted {
            return Err(OciError::Digest { name: self.reference.name(), wanted: wanted.clone(), found });
        }
        Ok(bytes)
    }

    /// The component of an image, whose manifest has this digest.
    pub async fn component(&mut self, digest: &Digest) -> Result<Vec<u8>, OciError> {
        let (_, bytes) = self.manifest(&digest.to_string()).await?;
        let layer =
            manifest::layer(&bytes).map_err(|error| OciError::Manifest { image: self.reference.at(digest), error })?;
        self.blob(&layer.digest, layer.bytes.min(COMPONENT_BYTES)).await
    }

    /// As [`Self::manifest`]; none where there is none.
    pub(super) async fn manifest_if_there(&mut self, at: &str) -> Result<Option<Vec<u8>>, OciError> {
        match self.manifest(at).await {
            Ok((_, bytes)) => Ok(Some(bytes)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What refers to a manifest, as an index; none where the registry does not know of such.
    pub(super) async fn referrers(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, OciError> {
        match self.get(&format!("referrers/{digest}"), INDEX, MANIFEST_BYTES, "referrers").await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn get(&mut self, path: &str, accept: &str, limit: u64, what: &str) -> Result<Vec<u8>, OciError> {
        let headers = [(ACCEPT, accept.to_owned())];
        let answer = self.call(Method::GET, path, &headers, Vec::new(), limit, "pull").await?;
        match answer.status {
            200 => Ok(answer.body),
            404 => Err(OciError::NotFound { name: self.reference.name(), what: what.to_owned() }),
            _ => Err(self.refused(&answer)),
        }
    }

    /// One call below the repository, with what the registry wants to see of us. `path` may be a whole URL of it.
    pub(super) async fn call(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, String)],
        body: Vec<u8>,
        limit: u64,
        actions: &str,
    ) -> Result<Answer, OciError> {
        let Reference { registry, repository, .. } = &self.reference;
        let url = if path.contains("://") {
            path.to_owned()
        } else {
            format!("{}://{registry}/v2/{repository}/{path}", self.http.scheme())
        };
        let mut again = true;
        loop {
            let mut headers = headers.to_vec();
            headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
            let answer = self.http.send(method.clone(), &url, &headers, body.clone(), limit).await;
            let answer = answer.map_err(|error| self.unreachable(error))?;
            if answer.status != 401 || !std::mem::take(&mut again) {
                return Ok(answer);
            }
            self.authorization = Some(self.authorize(&answer, actions).await?);
        }
    }

    /// Answers a challenge.
    async fn authorize(&self, answer: &Answer, actions: &str) -> Result<String, OciError> {
        let name = self.reference.name();
        let challenges: Vec<&str> =
            answer.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
        let of = |scheme: &str| {
            challenges.iter().find_map(|text| {
                let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
                word.eq_ignore_ascii_case(scheme).then_some(rest)
            })
        };
        if let Some(parameters) = of("Bearer") {
            return self.token(parameters, actions).await.map(|token| format!("Bearer {token}"));
        }
        match (of("Basic"), &self.credentials) {
            (Some(_), Some(Credentials::Password { user, password })) => Ok(basic(user, password)),
            (Some(_), _) => Err(self.unauthorized(answer.status)),
            (None, _) => {
                let rule =
                    "the registry wants an authentication that is not known here (Bearer and Basic are)".to_owned();
                Err(OciError::Challenge { name, rule })
            }
        }
    }

    /// A token of the service that the registry names.
    async fn token(&self, parameters: &str, actions: &str) -> Result<String, OciError> {
        #[derive(Deserialize)]
        struct Token {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
        }
        let rule = |rule: &str| OciError::Challenge { name: self.reference.name(), rule: rule.to_owned() };
        let realm = parameter(parameters, "realm").ok_or_else(|| rule("its challenge names no realm"))?;
        let scope = parameter(parameters, "scope")
            .unwrap_or_else(|| format!("repository:{}:{actions}", self.reference.repository));
        let mut query = vec![("scope", scope)];
        query.extend(parameter(parameters, "service").map(|service| ("service", service)));
        let (method, url, headers, body) = match &self.credentials {
            Some(Credentials::Identity(token)) => {
                query.extend([
                    ("grant_type", "refresh_token".to_owned()),
                    ("client_id", "keelson".to_owned()),
                    ("refresh_token", token.clone()),
                ]);
                let form = vec![(CONTENT_TYPE, "application/x-www-form-urlencoded".to_owned())];
                (Method::POST, realm, form, encode(&query).into_bytes())
            }
            credentials => {
                let headers = match credentials {
                    Some(Credentials::Password { user, password }) => vec![(AUTHORIZATION, basic(user, password))],
                    _ => Vec::new(),
                };
                let join = if realm.contains('?') { '&' } else { '?' };
                (Method::GET, format!("{realm}{join}{}", encode(&query)), headers, Vec::new())
            }
        };
        let answer = self.http.send(method, &url, &headers, body, MANIFEST_BYTES).await;
        let answer = answer.map_err(|error| self.unreachable(error))?;
        if answer.status != 200 {
            return Err(self.refused(&answer));
        }
        let Token { token, access_token } =
            serde_json::from_slice(&answer.body).map_err(|_| rule("its token service gave no token"))?;
        let token = if token.is_empty() { access_token } else { token };
        if token.is_empty() { Err(rule("its token service gave no token")) } else { Ok(token) }
    }

    /// Where a registry sends us to, which may be a path only.
    pub(super) fn absolute(&self, location: &str) -> String {
        if location.contains("://") {
            return location.to_owned();
        }
        format!("{}://{}{location}", self.http.scheme(), self.reference.registry)
    }

    pub(super) fn refused(&self, answer: &Answer) -> OciError {
        let name = self.reference.name();
        match answer.status {
            status @ (401 | 403) => self.unauthorized(status),
            status => OciError::Status { name, status, words: words(&answer.body) },
        }
    }

    fn unauthorized(&self, status: u16) -> OciError {
        let who =
            if self.credentials.is_some() { "the credentials of the pull secret" } else { "who gives no credentials" };
        OciError::Unauthorized { name: self.reference.name(), who, status }
    }

    fn unreachable(&self, error: HttpError) -> OciError {
        OciError::Http { name: self.reference.name(), error }
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Of `name="value",other="…"`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim().trim_start_matches(',').trim().eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = next;
    }
    None
}

fn encode(query: &[(&str, String)]) -> String {
    let escape = |text: &str| {
        text.bytes().fold(String::new(), |mut out, byte| {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
                byte => out.push_str(&format!("%{byte:02X}")),
            }
            out
        })
    };
    query.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect::<Vec<_>>().join("&")
}

/// The registry's own message, where it has one.
fn words(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<Said>,
    }
    #[derive(Deserialize)]
    struct Said {
        #[serde(default)]
        message: String,
    }
    let said = serde_json::from_slice::<Errors>(body).ok().and_then(|all| all.errors.into_iter().next());
    said.map(|said| format!(": {}", said.message.chars().take(200).collect::<String>())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let text = r#"realm="https://auth.example.com/token",service="r",scope="repository:a/b:pull,push""#;
        assert_eq!(parameter(text, "scope").as_deref(), Some("repository:a/b:pull,push"));
        assert_eq!(parameter(text, "service").as_deref(), Some("r"));
        assert_eq!(parameter(r#"realm=x, service=y"#, "service").as_deref(), Some("y"));
        assert_eq!(parameter(text, "nothing"), None);
        assert_eq!(parameter("realm=\"x", "realm"), None);
    }

    #[test]
    fn a_query_forges_no_other() {
        assert_eq!(encode(&[("scope", "a b&c=d".to_owned()), ("x", "é".to_owned())]), "scope=a%20b%26c%3Dd&x=%C3%A9");
    }
}
