//! HTTP for the client of S3: connections, timeouts, retries, and errors without what must not be shown.
//!
//! The client signs requests and parses responses; it gets its connections from here, because its own HTTP client
//! would bring a second implementation of cryptography into the program.

use std::fmt;
use std::future::Future;
use std::hash::BuildHasher as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use claude_session_store::StoreError;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::errors;

/// How often a request is sent, if the server is busy or the connection fails.
const ATTEMPTS: u32 = 3;

/// The delay before the second attempt; doubled before the third one.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A connection that was idle for longer is closed: routers may have forgotten it.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// The longest response. Objects are at most a tenth of it, unless another program wrote them.
const MAX_RESPONSE: usize = 256 << 20;

type Connections = Client<HttpsConnector<HttpConnector>, HttpRequestBody>;

/// The connections of a store.
#[derive(Clone)]
pub(super) struct Http(Arc<Shared>);

struct Shared {
    tls: ClientConfig,
    timeout: Duration,
    connections: Mutex<Connections>,
    count: AtomicU64,
}

impl Http {
    /// Trusts these authorities, or those of the system.
    pub(super) fn new(roots: Option<&[u8]>, timeout: Duration) -> Result<Self, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| errors::invalid_option("TLS configuration", &error.to_string()))?
            .with_root_certificates(root_store(roots)?)
            .with_no_client_auth();
        let connections = Mutex::new(connections(&tls, timeout));
        Ok(Self(Arc::new(Shared { tls, timeout, connections, count: AtomicU64::new(0) })))
    }

    /// Returns the number of requests that were sent.
    pub(super) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    fn connections(&self) -> Connections {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes idle connections: those to a server that does not respond are useless.
    fn reset(&self) {
        let new = connections(&self.0.tls, self.0.timeout);
        *self.0.connections.lock().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// Sends a request until there is a response, at most for the timeout of the store and a second for each
    /// megabyte.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        let megabytes = u64::try_from(request.body().content_length() >> 20).unwrap_or(u64::MAX);
        let limit = self.0.timeout.saturating_add(Duration::from_secs(megabytes));
        if let Ok(result) = tokio::time::timeout(limit, self.attempts(request)).await {
            return result;
        }
        self.reset();
        Err(Failure::Timeout(limit))
    }

    async fn attempts(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        let mut delay = RETRY_DELAY;
        for _ in 1..ATTEMPTS {
            match self.attempt(request.clone()).await {
                Err(failure) if failure.is_temporary() => {}
                result => return result,
            }
            tokio::time::sleep(jitter(delay)).await;
            delay *= 2;
        }
        self.attempt(request).await
    }

    async fn attempt(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        let response = self
            .connections()
            .request(request)
            .await
            .map_err(|error| Failure::Connection(causes(&error)))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE).collect().await;
        let body = body.map_err(|error| Failure::Connection(causes(&*error)))?.to_bytes();
        let status = parts.status.as_u16();
        if parts.status.is_success() || matches!(status, 304 | 412) {
            return Ok(HttpResponse::from_parts(parts, full(body)));
        }
        let text = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]);
        let (code, message) = (element(&text, "Code"), element(&text, "Message"));
        match status {
            // An object that does not exist, and a write that was faster, are not failures.
            404 if code != "NoSuchBucket" => {
                Ok(HttpResponse::from_parts(parts, full(Bytes::new())))
            }
            409 => {
                let mut parts = parts;
                parts.status = http::StatusCode::PRECONDITION_FAILED;
                Ok(HttpResponse::from_parts(parts, full(Bytes::new())))
            }
            _ => Err(Failure::Server { status, code, message }),
        }
    }
}

/// Returns a random time between half of this one and all of it, so that hosts do not retry at the same time.
pub(super) fn jitter(time: Duration) -> Duration {
    let random = std::hash::RandomState::new().hash_one(0) % 1_000;
    time / 2 + time / 2_000 * u32::try_from(random).unwrap_or_default()
}

fn full(body: Bytes) -> HttpResponseBody {
    HttpResponseBody::new(Full::new(body).map_err(|never| match never {}))
}

/// Returns the text of an XML element of an error: at most 200 characters without control characters.
fn element(xml: &str, name: &str) -> String {
    let text = xml.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
    let text = text.map(|(text, _)| text).unwrap_or_default().trim();
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

/// Returns the text of an error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn connections(tls: &ClientConfig, timeout: Duration) -> Connections {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(timeout));
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls.clone())
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(MAX_IDLE)
        .build(connector)
}

fn root_store(pem: Option<&[u8]>) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    let Some(pem) = pem else {
        // Without authorities, a connection with TLS fails, and one without does not need them.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    let invalid = |cause: &str| errors::invalid_option("root certificate", cause);
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| invalid(&error.to_string()))?;
        store.add(certificate).map_err(|error| invalid(&error.to_string()))?;
    }
    if store.is_empty() { Err(invalid("no certificate in PEM")) } else { Ok(store) }
}

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    Timeout(Duration),
    Connection(String),
    Server { status: u16, code: String, message: String },
}

impl Failure {
    fn is_temporary(&self) -> bool {
        match self {
            Self::Timeout(_) => false,
            Self::Connection(_) => true,
            Self::Server { status, .. } => matches!(status, 408 | 429 | 500 | 502..=504),
        }
    }

    pub(super) fn to_error(&self, target: &str) -> StoreError {
        match self {
            Self::Timeout(limit) => errors::timeout(target, *limit),
            Self::Connection(cause) => errors::connection(target, cause),
            // A range that the object does not have.
            Self::Server { status: 416, .. } => errors::corrupt("length of an object"),
            Self::Server { status, code, message } => {
                errors::server(target, *status, code, message)
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request failed")
    }
}

impl std::error::Error for Failure {}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl HttpService for Http {
    // Without the macro of the trait, which is another dependency.
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            self.send(request)
                .await
                .map_err(|failure| HttpError::new(HttpErrorKind::Unknown, failure))
        })
    }
}

impl object_store::client::HttpConnector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_errors_are_short_and_printable() {
        let xml = "<?xml?><Error><Code>AccessDenied</Code><Message>a\u{1b}b\n</Message></Error>";
        assert_eq!(element(xml, "Code"), "AccessDenied");
        assert_eq!(element(xml, "Message"), "ab");
        for xml in ["", "<Code>", "<Code>x", "</Code>"] {
            assert_eq!(element(xml, "Code"), "", "{xml}");
        }
        let long = format!("<Code>{}</Code>", "x".repeat(1_000));
        assert_eq!(element(&long, "Code").len(), 200);
    }
}
