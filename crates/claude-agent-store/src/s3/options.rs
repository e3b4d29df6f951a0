//! The options of a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use claude_session_store::StoreError;
use http::Uri;
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};

use super::errors;
use super::http::Http;
use super::objects::Objects;

/// The region, if none is set: what servers other than AWS expect.
const DEFAULT_REGION: &str = "us-east-1";

/// The longest prefix, so that all keys are shorter than the limit of S3.
const MAX_PREFIX: usize = 512;

/// Options of an [`S3Store`](super::S3Store).
#[derive(Clone)]
pub struct S3Options {
    bucket: String,
    prefix: String,
    endpoint: Option<String>,
    region: Option<String>,
    credentials: Option<Credentials>,
    is_path_style: Option<bool>,
    request_timeout: Duration,
    roots: Option<Arc<[u8]>>,
    pub(super) cache_bytes: usize,
}

#[derive(Clone)]
enum Credentials {
    Environment,
    Static { id: String, secret: String, token: Option<String> },
}

impl S3Options {
    /// Creates options for a bucket, such as `s3://bucket/prefix?region=eu-central-1`. The prefix is optional.
    ///
    /// Parameters are `region` (default: `us-east-1`), `endpoint` for a server other than AWS, such as
    /// `https://s3.example.com:9000`, and `path_style` (`true` or `false`). Special characters are written in
    /// percent-encoding. A URL does not contain credentials.
    ///
    /// # Errors
    /// Fails if the text is not such a URL.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let rest = url.strip_prefix("s3://").ok_or_else(|| errors::invalid_url("scheme"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        let mut options = Self {
            bucket: decode(bucket)?,
            prefix: decode(prefix.trim_matches('/'))?,
            endpoint: None,
            region: None,
            credentials: None,
            is_path_style: None,
            request_timeout: Duration::from_secs(10),
            roots: None,
            cache_bytes: 64 << 20,
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decode(value)?;
            match (name, &*value) {
                ("region", _) => options.region = Some(value),
                ("endpoint", _) => options.endpoint = Some(value),
                ("path_style", "true") => options.is_path_style = Some(true),
                ("path_style", "false") => options.is_path_style = Some(false),
                _ => return Err(errors::invalid_url("parameter")),
            }
        }
        options.check()?;
        Ok(options)
    }

    /// Sets the access key ID and the secret access key. Replaces all earlier credentials. Default: none; opening
    /// the store fails without credentials.
    #[must_use]
    pub fn credentials(mut self, id: impl Into<String>, secret: impl Into<String>) -> Self {
        let (id, secret) = (id.into(), secret.into());
        self.credentials = Some(Credentials::Static { id, secret, token: None });
        self
    }

    /// Sets temporary credentials with their session token. Replaces all earlier credentials. They are not
    /// renewed. Default: none.
    #[must_use]
    pub fn temporary_credentials(
        mut self,
        id: impl Into<String>,
        secret: impl Into<String>,
        token: impl Into<String>,
    ) -> Self {
        let (id, secret, token) = (id.into(), secret.into(), Some(token.into()));
        self.credentials = Some(Credentials::Static { id, secret, token });
        self
    }

    /// Gets credentials from the environment of the process, and renews them: `AWS_ACCESS_KEY_ID` and
    /// `AWS_SECRET_ACCESS_KEY`, a web identity (EKS), the container (ECS, EKS), or the instance (EC2). Replaces
    /// all earlier credentials. Other settings, such as `AWS_REGION` and `AWS_ENDPOINT_URL`, are used where these
    /// options set none. Profiles in `~/.aws` are not read. Default: the environment is not read.
    #[must_use]
    pub fn credentials_from_environment(mut self) -> Self {
        self.credentials = Some(Credentials::Environment);
        self
    }

    /// Sets the region, instead of that of the URL. Default: `us-east-1`.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Sets the endpoint, instead of that of the URL: `https://host:port`, or `http://` without TLS. Default: AWS.
    #[must_use]
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Sets whether the bucket is part of the path of a request (`true`) or of the host name. Default: part of the
    /// path with an endpoint, and of the host name without one.
    #[must_use]
    pub fn path_style(mut self, is_path_style: bool) -> Self {
        self.is_path_style = Some(is_path_style);
        self
    }

    /// Limits the time of each HTTP request, including up to two repetitions if the server is busy. A request
    /// with a body has a second more for each megabyte. Afterwards it fails with
    /// [`Unavailable`](claude_session_store::StoreErrorKind::Unavailable). Default: 10 s.
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

    /// Limits the memory in bytes for what the store knows of the sessions that it has written to: the newest
    /// entries, and 48 bytes for each other entry. The next append to a session that was removed reads its IDs
    /// again. The session of the last append is kept whatever its size. Default: 64 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    fn check(&self) -> Result<(), StoreError> {
        let is_letter =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if !(3..=63).contains(&self.bucket.len()) || !self.bucket.bytes().all(is_letter) {
            return Err(errors::invalid_url("bucket"));
        }
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        let is_letter = |byte: u8| is_letter(byte) || byte == b'/';
        let is_valid = self.prefix.is_empty()
            || (self.prefix.len() <= MAX_PREFIX
                && self.prefix.bytes().all(is_letter)
                && self.prefix.split('/').all(is_part));
        if !is_valid {
            return Err(errors::invalid_url("prefix"));
        }
        if let Some(endpoint) = &self.endpoint {
            let uri: Uri = endpoint.parse().map_err(|_| errors::invalid_url("endpoint"))?;
            let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
            let has_user = uri.authority().is_none_or(|it| it.as_str().contains('@'));
            if !is_http || has_user || uri.query().is_some() {
                return Err(errors::invalid_url("endpoint"));
            }
        }
        Ok(())
    }

    /// Returns the objects of the bucket.
    pub(super) fn objects(&self) -> Result<Objects, StoreError> {
        self.check()?;
        let http = Http::new(self.roots.as_deref(), self.request_timeout)?;
        let s3 = self.client(http.clone())?;
        Ok(Objects::new(s3, http, self.target(), self.prefix.clone()))
    }

    fn client(&self, http: Http) -> Result<AmazonS3, StoreError> {
        let mut builder = match &self.credentials {
            None => return Err(errors::no_credentials()),
            Some(Credentials::Environment) => AmazonS3Builder::from_env(),
            Some(Credentials::Static { id, secret, token }) => {
                let builder = AmazonS3Builder::new().with_access_key_id(id);
                let builder = builder.with_secret_access_key(secret);
                match token {
                    Some(token) => builder.with_token(token),
                    None => builder,
                }
            }
        };
        let region = self.region.clone();
        let from_environment = builder.get_config_value(&AmazonS3ConfigKey::Region);
        let region = region.or(from_environment).unwrap_or_else(|| DEFAULT_REGION.to_owned());
        let endpoint = self.endpoint.clone();
        let endpoint = endpoint.or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
        let is_path_style = self.is_path_style.unwrap_or(endpoint.is_some());
        if let Some(endpoint) = &endpoint {
            builder = builder.with_endpoint(self.endpoint_of_bucket(endpoint, is_path_style));
        }
        // The connections repeat requests.
        let retry = RetryConfig { max_retries: 0, ..Default::default() };
        builder
            .with_bucket_name(&self.bucket)
            .with_region(region)
            .with_allow_http(true)
            .with_virtual_hosted_style_request(!is_path_style)
            .with_retry(retry)
            .with_http_connector(http)
            .build()
            // The text could contain a value of the environment.
            .map_err(|_| {
                errors::invalid_option("credentials", "a value of the environment is not valid")
            })
    }

    /// Returns the endpoint with the bucket, unless the bucket is part of the path.
    fn endpoint_of_bucket(&self, endpoint: &str, is_path_style: bool) -> String {
        let endpoint = endpoint.trim_end_matches('/');
        match endpoint.split_once("://") {
            Some((scheme, host)) if !is_path_style => format!("{scheme}://{}.{host}", self.bucket),
            _ => endpoint.to_owned(),
        }
    }

    /// Returns the bucket and the server, for messages.
    fn target(&self) -> String {
        let endpoint = self.endpoint.as_deref().unwrap_or("aws");
        let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
        let prefix = if self.prefix.is_empty() { "" } else { "/" };
        format!("\"{}/{}{prefix}{}\"", host.trim_end_matches('/'), self.bucket, self.prefix)
    }
}

/// Decodes percent-encoding.
fn decode(text: &str) -> Result<String, StoreError> {
    let invalid = || errors::invalid_url("percent-encoding");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| {
                    digit.and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(invalid)
                });
                let [high, low] = digits;
                u8::try_from(high? * 16 + low?).map_err(|_| invalid())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options")
            .field("target", &self.target())
            .field("region", &self.region)
            .field("path_style", &self.is_path_style)
            .field("request_timeout", &self.request_timeout)
            .field("cache_bytes", &self.cache_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_bucket_a_prefix_and_parameters() {
        let url =
            "s3://my-bucket/a/b/?endpoint=http%3A%2F%2Flocalhost:1234&region=r&path_style=true";
        let options = S3Options::new(url).unwrap();
        assert_eq!(options.target(), "\"localhost:1234/my-bucket/a/b\"");
        assert_eq!((options.region.as_deref(), options.is_path_style), (Some("r"), Some(true)));
        assert_eq!(S3Options::new("s3://my-bucket").unwrap().target(), "\"aws/my-bucket\"");
        let host = options.endpoint_of_bucket("https://host:1/", false);
        assert_eq!(host, "https://my-bucket.host:1");
    }

    #[test]
    fn secrets_are_not_in_messages() {
        for url in [
            "hunter2",
            "https://hunter2/",
            "s3://hu",
            "s3://hunter2:hunter2@bucket/",
            "s3://bucket/hunter2?hunter2",
            "s3://bucket/?secret=hunter2",
            "s3://bucket/?path_style=hunter2",
            "s3://bucket/?region=hunter2%g",
            "s3://bucket/../hunter2",
            "s3://bucket/hunter2//b",
            "s3://bucket/hunter2?endpoint=hunter2",
            "s3://bucket/?endpoint=ftp://hunter2",
            "s3://bucket/?endpoint=https://hunter2:hunter2@host",
        ] {
            let error = S3Options::new(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
        let options = S3Options::new("s3://bucket").unwrap();
        for options in [
            options.clone().credentials("hunter2", "hunter2"),
            options.temporary_credentials("hunter2", "hunter2", "hunter2"),
        ] {
            assert!(!format!("{options:?}").contains("hunter2"));
            options.objects().unwrap();
        }
    }

    #[test]
    fn options_without_credentials_are_rejected() {
        let options = S3Options::new("s3://bucket").unwrap();
        assert!(options.objects().is_err());
        let options = options.credentials("a", "b");
        assert!(options.clone().root_certificates("").objects().is_err());
        assert!(options.endpoint("ftp://host").objects().is_err());
    }
}
