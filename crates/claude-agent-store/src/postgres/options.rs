//! The options of a store.

use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use claude_session_store::StoreError;
use tokio_postgres::config::{Config, Host};

use super::errors;
use super::tls::{Identity, Tls};

/// Options of a [`PostgresStore`](super::PostgresStore).
#[derive(Clone)]
pub struct PostgresOptions {
    config: Config,
    pub(super) schema: String,
    pub(super) max_connections: usize,
    pub(super) request_timeout: Duration,
    roots: Option<Arc<[u8]>>,
    identity: Option<Identity>,
}

impl PostgresOptions {
    /// Creates options for this server: `postgres://user:password@host:5432/database`, or the form
    /// `host=… user=…` of libpq. The parameters are those of
    /// [tokio-postgres](https://docs.rs/tokio-postgres/0.7/tokio_postgres/config/struct.Config.html), such as
    /// `sslmode`, `connect_timeout`, several hosts and `target_session_attrs=read-write`.
    ///
    /// # Errors
    /// Fails if the text is not a connection string.
    pub fn new(connection_string: &str) -> Result<Self, StoreError> {
        let mut config =
            Config::from_str(connection_string).map_err(|_| errors::invalid_connection_string())?;
        if config.get_application_name().is_none() {
            config.application_name("claude-agent-store");
        }
        Ok(Self {
            config,
            schema: "claude_agent_store".to_owned(),
            max_connections: 10,
            request_timeout: Duration::from_secs(10),
            roots: None,
            identity: None,
        })
    }

    /// Sets the password, instead of one in the connection string. Default: that of the connection string.
    #[must_use]
    pub fn password(mut self, password: impl AsRef<[u8]>) -> Self {
        self.config.password(password);
        self
    }

    /// Sets the schema that contains the tables: 1 to 63 lower-case ASCII letters, digits and underscores.
    /// Default: `claude_agent_store`.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Limits the connections of the store for requests; 0 counts as 1. Further requests wait for a connection.
    /// Connections are opened when they are needed. A store on which runs wait for approvals has one more. Default: 10.
    #[must_use]
    pub fn max_connections(mut self, max_connections: usize) -> Self {
        self.max_connections = max_connections;
        self
    }

    /// Limits the time of a request, including the time to wait for a connection and to open it. Afterwards the
    /// request fails with [`Unavailable`](claude_session_store::StoreErrorKind::Unavailable). The server waits
    /// at most half of this time for locks. Default: 10 s.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Trusts these certificate authorities, as PEM. Default: those of the operating system.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.roots = Some(pem.as_ref().into());
        self
    }

    /// Sets a client certificate with its chain and its private key, both as PEM. Default: none.
    #[must_use]
    pub fn client_certificate(
        mut self,
        chain_pem: impl AsRef<[u8]>,
        key_pem: impl AsRef<[u8]>,
    ) -> Self {
        self.identity = Some((chain_pem.as_ref().into(), key_pem.as_ref().into()));
        self
    }

    /// Checks the options that setters accept unchecked.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        // The name becomes part of statements.
        let is_valid = self.schema.len() <= 63
            && self.schema.starts_with(is_letter)
            && self.schema.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
            && !self.schema.starts_with("pg_");
        if is_valid { Ok(()) } else { Err(errors::invalid_schema(&self.schema)) }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn tls(&self) -> Result<Tls, StoreError> {
        Tls::new(self.roots.as_deref(), self.identity.as_ref())
    }

    /// Returns the server and the database, for messages.
    pub(super) fn target(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("\"{hosts}/{database}\"")
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("target", &self.target())
            .field("schema", &self.schema)
            .field("max_connections", &self.max_connections)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_in_messages() {
        for text in [
            "postgres://user:hunter2@host:x/db",
            "password=hunter2 hunter2",
            "host=a password='hunter2",
            "postgres://user:hunter2@[host/db",
            "user=hunter2 frobnicate=hunter2",
        ] {
            let error = PostgresOptions::new(text).unwrap_err();
            let shown = format!("{error} {error:?} {:?}", std::error::Error::source(&error));
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        let options =
            PostgresOptions::new("postgres://user:hunter2@a:1,b/db").unwrap().password("hunter2");
        assert_eq!(options.target(), "\"a:1,b:5432/db\"");
        assert!(!format!("{options:?}").contains("hunter2"));
    }

    #[test]
    fn names_of_schemas_are_checked() {
        let options = PostgresOptions::new("host=localhost").unwrap();
        for name in ["a", "_", "tenant_1", &"x".repeat(63)] {
            options.clone().schema(name).check().unwrap();
        }
        for name in ["", "1", "A", "a-b", "a\"", "a.b", "pg_a", "ü", "a b", &"x".repeat(64)] {
            assert!(options.clone().schema(name).check().is_err(), "{name:?}");
        }
    }

    #[test]
    fn certificates_are_checked() {
        let options = PostgresOptions::new("host=localhost").unwrap();
        assert!(options.tls().is_ok());
        assert!(options.clone().root_certificates("").tls().is_err());
        let error = options.client_certificate("", "hunter2").tls().err().unwrap();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
