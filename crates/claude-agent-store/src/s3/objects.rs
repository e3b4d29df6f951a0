//! The objects of a store.

use std::ops::Range;

use bytes::Bytes;
use claude_session_store::{EntryId, ProjectKey, SessionKey, StoreError};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use sha2::{Digest as _, Sha256};

use super::errors::corrupt;
use super::http::{Failure, Http};

/// The longest object that is read as a whole.
const MAX_OBJECT: u64 = 64 << 20;

/// The number of project folders that are read at once.
const PARALLEL_PROJECTS: usize = 8;

pub(super) struct Objects {
    s3: AmazonS3,
    http: Http,
    target: String,
    prefix: String,
}

/// An object in a list.
pub(super) struct Listed {
    pub(super) path: Path,
    pub(super) etag: String,
}

/// The response to a conditional read.
pub(super) enum Read {
    Unchanged,
    Missing,
    Object { bytes: Bytes, etag: String },
}

impl Objects {
    pub(super) fn new(s3: AmazonS3, http: Http, target: String, prefix: String) -> Self {
        Self { s3, http, target, prefix }
    }

    /// Returns the bucket and the server, for messages.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Returns the number of requests that were sent.
    pub(super) fn count(&self) -> u64 {
        self.http.count()
    }

    /// Returns an object directly below the prefix.
    pub(super) fn top(&self, name: &str) -> Path {
        self.prefix.split('/').filter(|part| !part.is_empty()).chain([name]).collect()
    }

    /// Returns the folder of a project. Its name is a digest, because the keys of S3 are shorter than those of
    /// sessions, and not all servers accept all characters in them.
    fn project(&self, project: &ProjectKey) -> Path {
        let mut digest = Sha256::new();
        // A scope does not contain NUL, so that the digest is that of one pair only.
        digest.update(project.scope());
        digest.update([0]);
        digest.update(project.project());
        let mut name = String::with_capacity(64);
        for byte in digest.finalize() {
            name.extend(
                [byte >> 4, byte & 15]
                    .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
            );
        }
        self.top(&name)
    }

    /// Returns the folder of the head objects of a project.
    pub(super) fn heads(&self, project: &ProjectKey) -> Path {
        self.project(project).join("heads")
    }

    pub(super) fn head(&self, key: &SessionKey) -> Path {
        self.heads(key.project_key()).join(key.session().as_str())
    }

    /// Returns the folder of the parts of a session.
    pub(super) fn parts(&self, key: &SessionKey) -> Path {
        self.project(key.project_key()).join("parts").join(key.session().as_str())
    }

    fn failure(&self, error: &Error) -> StoreError {
        let mut cause: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = error.downcast_ref::<Failure>() {
                return failure.to_error(&self.target);
            }
            cause = error.source();
        }
        // The text of other errors can contain a response of the server.
        let message = match error {
            Error::NotFound { .. } => "an object does not exist",
            Error::Precondition { .. } | Error::AlreadyExists { .. } => "an object was changed",
            _ => "not an S3 response",
        };
        super::errors::server(&self.target, 400, "", message)
    }

    /// Reads an object, unless it still has this `ETag`.
    pub(super) async fn read(&self, path: &Path, etag: Option<&str>) -> Result<Read, StoreError> {
        self.get(path, GetOptions { if_none_match: etag.map(str::to_owned), ..Default::default() })
            .await
    }

    /// Reads a part of an object. The result is shorter if the object is.
    pub(super) async fn read_range(
        &self,
        path: &Path,
        range: Range<u64>,
    ) -> Result<Read, StoreError> {
        let range = Some(GetRange::Bounded(range));
        self.get(path, GetOptions { range, ..Default::default() }).await
    }

    async fn get(&self, path: &Path, options: GetOptions) -> Result<Read, StoreError> {
        let result = match self.s3.get_opts(path, options).await {
            Ok(result) => result,
            Err(Error::NotFound { .. }) => return Ok(Read::Missing),
            Err(Error::NotModified { .. }) => return Ok(Read::Unchanged),
            Err(error) => return Err(self.failure(&error)),
        };
        if result.range.end.saturating_sub(result.range.start) > MAX_OBJECT {
            return Err(corrupt("length of an object"));
        }
        let etag = result.meta.e_tag.clone().unwrap_or_default();
        let bytes = result.bytes().await.map_err(|error| self.failure(&error))?;
        Ok(Read::Object { bytes, etag })
    }

    /// Writes an object and returns its `ETag`, or `None` if the condition is not met: the object must have this
    /// `ETag`, or must not exist.
    pub(super) async fn write_if(
        &self,
        path: &Path,
        bytes: Vec<u8>,
        etag: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let mode = match etag {
            Some(etag) => {
                PutMode::Update(UpdateVersion { e_tag: Some(etag.to_owned()), version: None })
            }
            None => PutMode::Create,
        };
        let options = PutOptions { mode, ..Default::default() };
        match self.s3.put_opts(path, PutPayload::from(bytes), options).await {
            Ok(result) => Ok(Some(result.e_tag.unwrap_or_default())),
            Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Writes an object with a name that no other one has.
    pub(super) async fn write(&self, path: &Path, bytes: Vec<u8>) -> Result<(), StoreError> {
        let options = PutOptions::default();
        match self.s3.put_opts(path, PutPayload::from(bytes), options).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Returns when an object was written, in milliseconds on the clock of the server.
    pub(super) async fn modified_ms(&self, path: &Path) -> Result<u64, StoreError> {
        let options = GetOptions { head: true, ..Default::default() };
        let object = self.s3.get_opts(path, options).await;
        let object = object.map_err(|error| self.failure(&error))?;
        Ok(u64::try_from(object.meta.last_modified.timestamp_millis()).unwrap_or_default())
    }

    /// Lists all objects of a folder.
    pub(super) async fn list(&self, folder: &Path) -> Result<Vec<Listed>, StoreError> {
        let listed = self.s3.list(Some(folder)).map_ok(|object| Listed {
            path: object.location,
            etag: object.e_tag.unwrap_or_default(),
        });
        listed.try_collect().await.map_err(|error| self.failure(&error))
    }

    /// Lists the folders of all projects, with one head object of each that has one.
    pub(super) async fn list_projects(&self) -> Result<Vec<Path>, StoreError> {
        let prefix: Path = self.prefix.split('/').filter(|part| !part.is_empty()).collect();
        let prefix = Some(&prefix).filter(|_| !self.prefix.is_empty());
        let listed = self.s3.list_with_delimiter(prefix).await;
        let folders = listed.map_err(|error| self.failure(&error))?.common_prefixes;
        let heads = futures_util::stream::iter(folders)
            .map(|folder| async move {
                let heads = folder.join("heads");
                let first = self.s3.list(Some(&heads)).next().await.transpose();
                first.map_err(|error| self.failure(&error))
            })
            .buffer_unordered(PARALLEL_PROJECTS);
        let heads: Vec<_> = heads.try_collect().await?;
        Ok(heads.into_iter().flatten().map(|object| object.location).collect())
    }

    /// Deletes objects. One that does not exist is not an error.
    pub(super) async fn delete(&self, paths: Vec<Path>) -> Result<(), StoreError> {
        let paths = futures_util::stream::iter(paths).map(Ok).boxed();
        let mut deleted = self.s3.delete_stream(paths);
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(())
    }
}

/// Returns a name that nothing else has.
pub(super) fn unique() -> String {
    EntryId::unique().as_str().to_owned()
}
