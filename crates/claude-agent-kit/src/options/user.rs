//! The operating-system user that the CLI runs as.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::list;
use crate::process::{Spec, UserIds};
use crate::tasks::BoxFuture;
use crate::transport::{Output, output};

/// A user of the operating system: a name, which is converted with `From`, or [IDs](Self::ids).
///
/// The CLI runs with the user ID and one group ID, for a name the primary group of the user.
/// Supplementary groups are not set.
#[derive(Clone, PartialEq, Eq)]
pub struct OsUser(UserKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum UserKind {
    Name(String),
    Ids { user: u32, group: u32 },
}

impl OsUser {
    /// Creates a user from a user ID and a group ID.
    pub const fn ids(user: u32, group: u32) -> Self {
        Self(UserKind::Ids { user, group })
    }
}

impl From<&str> for OsUser {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl From<String> for OsUser {
    fn from(name: String) -> Self {
        Self(UserKind::Name(name))
    }
}

impl fmt::Debug for OsUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The timeout of one lookup: the directory of users may be on another machine.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 5 });

/// The locations of `id`. A program of this name on `PATH` could choose the user that the CLI runs as.
const ID: [&str; 3] = ["/usr/bin/id", "/bin/id", "/run/current-system/sw/bin/id"];

impl OsUser {
    /// Returns the IDs. A name is looked up with the system's `id`, which knows all sources of
    /// users, not only `/etc/passwd`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] when there is no such user.
    pub(crate) fn resolve(&self) -> BoxFuture<'_, Result<UserIds>> {
        Box::pin(async move {
            match &self.0 {
                UserKind::Ids { user, group } => Ok(UserIds { user: *user, group: *group }),
                UserKind::Name(name) => Ok(UserIds {
                    user: number(name, "-u").await?,
                    group: number(name, "-g").await?,
                }),
            }
        })
    }
}

async fn number(name: &str, which: &str) -> Result<u32> {
    let unknown = |cause: String| {
        let message = format!("`user`: {name:?} was not found: {cause}");
        Error::new(ErrorKind::InvalidOptions, message)
            .with_help("set `user` to an existing user, or pass IDs with `OsUser::ids`")
    };
    if name.is_empty() || name.starts_with('-') || name.contains('\0') {
        return Err(unknown("not a valid user name".to_owned()));
    }
    let Some(id) = ID.iter().map(Path::new).find(|path| path.is_file()) else {
        return Err(unknown(format!(
            "none of {} exists",
            list::map(&ID, &ToString::to_string).join(", ")
        )));
    };
    let spec = Spec {
        program: id.to_owned(),
        arguments: [which, "--", name].map(Into::into).into(),
        environment: Vec::new(),
        directory: Some("/".into()),
        user: None,
        die_with_parent: true,
    };
    let shown = id.display();
    match output(&spec, TIMEOUT, |_| true).await {
        // Only a complete line: a truncated number would be another user.
        Ok(Output { stdout, .. }) if stdout.contains('\n') => {
            let number = stdout.trim().parse();
            number.map_err(|_| unknown(format!("`{shown}` printed {:?}", stdout.trim())))
        }
        Ok(Output { timed_out: true, .. }) => {
            Err(unknown(format!("`{shown}` printed nothing within {TIMEOUT:?}")))
        }
        Ok(_) => Err(unknown(format!("`{shown}` does not know the user"))),
        Err(error) => Err(unknown(format!("failed to run `{shown}`: {error}"))),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_looked_up_and_an_unknown_one_is_an_error() {
        let root = OsUser::from("root").resolve().await.unwrap();
        assert_eq!(root.user, 0);
        let ids = OsUser::ids(7, 8).resolve().await.unwrap();
        assert_eq!(ids, UserIds { user: 7, group: 8 });
        for name in ["no-such-user-here", "", "-u", "a\0b"] {
            let error = OsUser::from(name).resolve().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains("was not found"), "{error}");
        }
    }
}
