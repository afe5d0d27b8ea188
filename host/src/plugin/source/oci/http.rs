//! HTTP to a registry: every answer is read up to a limit, and no further.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, LOCATION};
use http::uri::Scheme;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::limits::{API_CONNECT, REGISTRY_CALL, REGISTRY_REDIRECTS, REGISTRY_SILENCE};

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the CA is no PEM of certificates: {0}")]
    Ca(String),
    #[error("{0} is no URL of a registry")]
    Url(String),
    #[error("{0} is asked for without TLS; only `plainHttp: true` allows that")]
    Plain(String),
    #[error("{0} does not answer: {1}")]
    Unreachable(String, String),
    #[error("{0} sends more than {1} bytes")]
    TooLarge(String, u64),
}

/// What a registry said.
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    plain: bool,
}

impl Http {
    /// `ca` is PEM of certificates that are trusted beside the system's. `plain`: without TLS, for all of this source.
    pub(super) fn new(ca: Option<&[u8]>, plain: bool) -> Result<Self, HttpError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            // An image from scratch has none.
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        if let Some(pem) = ca {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            let certificates = certificates.map_err(|error| HttpError::Ca(error.to_string()))?;
            if certificates.is_empty() {
                return Err(HttpError::Ca("it holds none".to_owned()));
            }
            for certificate in certificates {
                roots.add(certificate).map_err(|error| HttpError::Ca(error.to_string()))?;
            }
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpError::Ca(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(API_CONNECT));
        let tls =
            HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(tcp);
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(tls), plain })
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.plain { "http" } else { "https" }
    }

    /// At most `limit` bytes of body. A GET follows redirects; the authorization goes to the host that it was given for,
    /// and to no other.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(http::HeaderName, String)],
        body: Vec<u8>,
        limit: u64,
    ) -> Result<Answer, HttpError> {
        let whole = async {
            let mut url: Uri = url.parse().map_err(|_| HttpError::Url(url.to_owned()))?;
            let first = url.authority().cloned();
            for _ in 0..=REGISTRY_REDIRECTS {
                self.allowed(&url)?;
                let own = url.authority() == first.as_ref();
                let mut request = Request::builder().method(method.clone()).uri(&url);
                for (name, value) in headers.iter().filter(|(name, _)| own || *name != AUTHORIZATION) {
                    request = request.header(name, value);
                }
                let body = Full::new(Bytes::from(body.clone()));
                let request = request.body(body).map_err(|_| HttpError::Url(url.to_string()))?;
                let answer = self.once(request, &host(&url), limit).await?;
                let next = answer.headers.get(LOCATION).and_then(|to| to.to_str().ok());
                match (answer.status, next) {
                    (301 | 302 | 303 | 307 | 308, Some(next)) if method == Method::GET => url = join(&url, next)?,
                    _ => return Ok(answer),
                }
            }
            Err(HttpError::Unreachable(host(&url), "it redirects without end".to_owned()))
        };
        timeout(REGISTRY_CALL, whole).await.unwrap_or_else(|_| {
            Err(HttpError::Unreachable(url.to_owned(), format!("not done within {REGISTRY_CALL:?}")))
        })
    }

    async fn once(&self, request: Request<Full<Bytes>>, host: &str, limit: u64) -> Result<Answer, HttpError> {
        let lost = |error: String| HttpError::Unreachable(host.to_owned(), error);
        let silent = || lost(format!("silent for {REGISTRY_SILENCE:?}"));
        let answer = timeout(REGISTRY_SILENCE, self.client.request(request)).await.map_err(|_| silent())?;
        let (head, mut incoming) = answer.map_err(|error| lost(chain(&error)))?.into_parts();
        let mut body = Vec::new();
        while let Some(frame) = timeout(REGISTRY_SILENCE, incoming.frame()).await.map_err(|_| silent())? {
            let frame = frame.map_err(|error| lost(chain(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            if (body.len() + data.len()) as u64 > limit {
                return Err(HttpError::TooLarge(host.to_owned(), limit));
            }
            body.extend_from_slice(&data);
        }
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    fn allowed(&self, url: &Uri) -> Result<(), HttpError> {
        match url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => Ok(()),
            Some(scheme) if *scheme == Scheme::HTTP && self.plain => Ok(()),
            Some(scheme) if *scheme == Scheme::HTTP => Err(HttpError::Plain(host(url))),
            _ => Err(HttpError::Url(url.to_string())),
        }
    }
}

fn join(base: &Uri, next: &str) -> Result<Uri, HttpError> {
    let unfit = || HttpError::Url(next.to_owned());
    if next.contains("://") {
        return next.parse().map_err(|_| unfit());
    }
    if !next.starts_with('/') {
        return Err(unfit());
    }
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(next.parse().map_err(|_| unfit())?);
    Uri::from_parts(parts).map_err(|_| unfit())
}

/// Never the query: it may hold what signs a download.
fn host(url: &Uri) -> String {
    url.authority().map_or_else(
        || "the registry".to_owned(),
        |authority| authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host).to_owned(),
    )
}

/// An error with its causes; what is outermost here says nothing.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push(error.to_string());
        cause = error.source();
    }
    words.dedup();
    words.join(": ")
}
