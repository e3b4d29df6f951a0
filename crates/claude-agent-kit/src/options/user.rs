//! The operating-system user that the CLI runs as.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::process::{Spec, UserIds};
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

/// How long one lookup may take: the users may be on another machine.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 5 });

/// Where systems have `id`. A program of this name on `PATH` may be anybody's, and would say which
/// user the CLI runs as.
const ID: [&str; 3] = ["/usr/bin/id", "/bin/id", "/run/current-system/sw/bin/id"];

impl OsUser {
    /// Returns the IDs. A name is looked up with the system's `id`, which knows all sources of
    /// users, not only `/etc/passwd`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] when there is no such user.
    pub(crate) async fn resolve(&self) -> Result<UserIds> {
        match &self.0 {
            UserKind::Ids { user, group } => Ok(UserIds { user: *user, group: *group }),
            UserKind::Name(name) => {
                Ok(UserIds { user: number(name, "-u").await?, group: number(name, "-g").await? })
            }
        }
    }
}

async fn number(name: &str, which: &str) -> Result<u32> {
    let unknown = |cause: String| {
        let message = format!("`user`: there is no user {name:?}: {cause}");
        Error::new(ErrorKind::InvalidOptions, message)
            .with_help("name another `user`, or pass the IDs with `OsUser::ids`")
    };
    if name.is_empty() || name.starts_with('-') || name.contains('\0') {
        return Err(unknown("not a user name".to_owned()));
    }
    let Some(id) = ID.iter().map(Path::new).find(|path| path.is_file()) else {
        return Err(unknown(format!("found none of {}", ID.join(", "))));
    };
    let spec = Spec {
        program: id.to_owned(),
        arguments: [which, "--", name].map(Into::into).into(),
        environment: BTreeMap::new(),
        directory: Some("/".into()),
        user: None,
        die_with_parent: true,
    };
    let shown = id.display();
    match output(&spec, TIMEOUT, |_| true).await {
        // Only a complete line: the beginning of a number is another user.
        Ok(Output { stdout, .. }) if stdout.contains('\n') => {
            let number = stdout.trim().parse();
            number.map_err(|_| unknown(format!("{shown} printed {:?}", stdout.trim())))
        }
        Ok(Output { timed_out: true, .. }) => {
            Err(unknown(format!("{shown} printed nothing within {} s", TIMEOUT.as_secs())))
        }
        Ok(_) => Err(unknown(format!("{shown} does not know it"))),
        Err(error) => Err(unknown(format!("{shown} cannot be run ({error})"))),
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
            assert!(error.to_string().contains("there is no user"), "{error}");
        }
    }
}
