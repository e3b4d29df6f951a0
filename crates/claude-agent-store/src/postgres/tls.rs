//! TLS connections by rustls.
//!
//! Not by the crate tokio-postgres-rustls: it parses certificates for channel binding with a second version of
//! several crates. Certificates and host names are verified here, so that channel binding adds little.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use claude_session_store::StoreError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};

use super::errors;

/// The certificate chain of the client and its key, in PEM.
pub(super) type Identity = (Arc<[u8]>, Arc<[u8]>);

/// Creates TLS connections.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts these authorities, or those of the system.
    pub(super) fn new(
        roots: Option<&[u8]>,
        identity: Option<&Identity>,
    ) -> Result<Self, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| errors::invalid_certificate("configuration", &error.to_string()))?
            .with_root_certificates(root_store(roots)?);
        let config = match identity {
            Some((chain, key)) => {
                let invalid = |error: &dyn ToString| {
                    errors::invalid_certificate("client certificate", &error.to_string())
                };
                let chain = certificates(chain).map_err(|error| invalid(&error))?;
                // The text of the error must not contain the key, so its cause is not shown.
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
                    errors::invalid_certificate(
                        "private key of the client",
                        "not a private key in PEM",
                    )
                })?;
                config.with_client_auth_cert(chain, key).map_err(|error| invalid(&error))?
            }
            None => config.with_no_client_auth(),
        };
        Ok(Self(Arc::new(config)))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    CertificateDer::pem_slice_iter(pem).collect()
}

fn root_store(pem: Option<&[u8]>) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    let Some(pem) = pem else {
        // Without authorities, a connection with TLS fails, and one without does not need them.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    let invalid = |cause: &str| errors::invalid_certificate("root certificate", cause);
    let certificates = certificates(pem).map_err(|error| invalid(&error.to_string()))?;
    if certificates.is_empty() {
        return Err(invalid("no certificate in PEM"));
    }
    for certificate in certificates {
        store.add(certificate).map_err(|error| invalid(&error.to_string()))?;
    }
    Ok(store)
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        // A Unix socket has no host name, and does not use TLS.
        let host = if host.is_empty() { "localhost" } else { host };
        Ok(Handshake { config: Arc::clone(&self.0), name: ServerName::try_from(host)?.to_owned() })
    }
}

/// A handshake that has not begun.
pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connector = tokio_rustls::TlsConnector::from(self.config);
        Box::pin(async move { connector.connect(self.name, stream).await.map(Stream) })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
