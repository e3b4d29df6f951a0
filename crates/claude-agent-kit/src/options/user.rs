//! Whom the CLI runs as.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cli::{self, Probe};
use crate::error::{Error, ErrorKind, Result};
use crate::process::UserIds;

/// A user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OsUser {
    /// The user of this name, with the group that the system says.
    Name(String),
    /// The user and the group with these numbers.
    Ids {
        /// The user.
        user: u32,
        /// The group.
        group: u32,
    },
}

impl From<&str> for OsUser {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for OsUser {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

/// How long the system may take to say who somebody is.
const LIMIT: Duration = Duration::from_secs(5);

impl OsUser {
    /// The numbers. A name is looked up by `id`, which knows every place where users are kept.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`], if there is no such user.
    pub(crate) async fn ids(&self) -> Result<UserIds> {
        match self {
            Self::Ids { user, group } => Ok(UserIds { user: *user, group: *group }),
            Self::Name(name) => {
                Ok(UserIds { user: number(name, "-u").await?, group: number(name, "-g").await? })
            }
        }
    }
}

async fn number(name: &str, which: &str) -> Result<u32> {
    let unknown = |why: String| {
        let message = format!("there is no user {name:?} to run the CLI as ({why})");
        Error::new(ErrorKind::InvalidOptions, message)
            .remedy("name another `user`, or give its numbers with `OsUser::Ids`")
    };
    if name.is_empty() || name.starts_with('-') || name.contains('\0') {
        return Err(unknown("that is no name".to_owned()));
    }
    let mut id = Command::new("id");
    id.args([which, "--", name]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let asked = tokio::task::spawn_blocking(move || match id.spawn() {
        Ok(child) => cli::printed(child, LIMIT),
        Err(error) => Probe::Failed(format!("it could not be started: {error}")),
    });
    match asked.await {
        Ok(Probe::Printed(text)) => {
            text.trim().parse().map_err(|_| unknown(format!("`id`: {text}")))
        }
        Ok(Probe::Failed(reason)) => Err(unknown(format!("`id`: {reason}"))),
        Err(error) => Err(Error::new(ErrorKind::RuntimeGone, error.to_string())),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_looked_up_and_an_unknown_one_is_an_error() {
        let root = OsUser::from("root").ids().await.unwrap();
        assert_eq!(root.user, 0);
        let ids = OsUser::Ids { user: 7, group: 8 }.ids().await.unwrap();
        assert_eq!(ids, UserIds { user: 7, group: 8 });
        for name in ["no-such-user-here", "", "-u", "a\0b"] {
            let error = OsUser::from(name).ids().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains("there is no user"), "{error}");
        }
    }
}
