//! Opens files below the config directory of a run.
//!
//! They belong to the agent, which may replace any of them by a link or a pipe. So no link below the directory is
//! followed, and nothing but a regular file is opened. Where the CLI runs as another user, the host may read
//! more than the agent: then a file of anybody else is refused, because some systems let everybody make a hard
//! link to it.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::config::ConfigDir;
use super::open::not_regular;
use crate::small_file;

/// The files below a directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFiles {
    /// The directory, which may be a link; `None` if no file may be opened.
    root: Option<PathBuf>,
    /// The working directory of the CLI: it reports relative paths if its config directory is relative.
    working_directory: PathBuf,
    /// The users one of whom must own a file; anybody may if there are none.
    owners: Vec<u32>,
}

impl OwnFiles {
    /// The files of a run below its config directory; `user` is the one that the CLI runs as, if it is chosen.
    pub(crate) fn of_run(config: &ConfigDir, user: Option<u32>) -> Self {
        let (root, owners) = match user {
            Some(user) => (config.path.clone(), vec![user]),
            // People move the folder to another disk. An agent with the rights of the host needs no link.
            None => (config.projects(), Vec::new()),
        };
        Self { root: Some(root), working_directory: config.working_directory.clone(), owners }
    }

    /// The files that this process wrote below a directory.
    pub(crate) fn of_host(directory: &Path) -> Self {
        Self { root: Some(directory.to_owned()), owners: own_users(), ..Self::default() }
    }

    /// Accepts the files of this process too: it writes a conversation that is resumed.
    pub(crate) fn or_of_host(mut self) -> Self {
        if !self.owners.is_empty() {
            self.owners.extend(own_users());
        }
        self
    }

    /// Opens a regular file for reading.
    pub(crate) fn open(&self, path: &Path) -> io::Result<(File, Metadata)> {
        let path = self.working_directory.join(path);
        let (root, below) = self.below(&path).ok_or_else(outside)?;
        let file = open_below(&root, &below)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(not_regular());
        }
        if !self.owners.is_empty() && !self.owners.iter().any(|user| is_owner(&metadata, *user)) {
            return Err(refused("the file belongs to another user"));
        }
        Ok((file, metadata))
    }

    /// Returns the contents of a small file.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        small_file::contents_of(self.open(path)?.0)
    }

    /// Returns the directory and the path below it. The CLI may report paths with the links of the directory
    /// resolved.
    fn below(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let root = self.root.as_ref()?;
        if let Ok(below) = path.strip_prefix(root) {
            return Some((root.clone(), below.to_owned()));
        }
        let root = root.canonicalize().ok()?;
        let below = path.strip_prefix(&root).ok()?.to_owned();
        Some((root, below))
    }
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn outside() -> io::Error {
    refused("the file is not in the config directory of the run")
}

/// Returns the names of which a path consists, without any that leads elsewhere.
fn names(below: &Path) -> io::Result<Vec<&std::ffi::OsStr>> {
    let name = |part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(outside()),
    };
    below.components().map(name).collect()
}

#[cfg(unix)]
fn open_below(root: &Path, below: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open, openat};
    use rustix::io::Errno;

    let failed = |error: Errno| match error {
        // A link, or something that is not a folder, or a socket.
        Errno::LOOP | Errno::MLINK | Errno::NOTDIR | Errno::NXIO => not_regular(),
        error => error.into(),
    };
    let names = names(below)?;
    let Some((name, folders)) = names.split_last() else { return Err(not_regular()) };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut folder = open(root, flags | OFlags::DIRECTORY, Mode::empty())?;
    for name in folders {
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        folder = openat(&folder, *name, flags, Mode::empty()).map_err(failed)?;
    }
    // Opening a pipe would block until a writer opens it.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(openat(&folder, *name, flags, Mode::empty()).map_err(failed)?))
}

#[cfg(not(unix))]
fn open_below(root: &Path, below: &Path) -> io::Result<File> {
    let mut path = root.to_owned();
    for name in names(below)? {
        path.push(name);
        if path.symlink_metadata()?.is_symlink() {
            return Err(not_regular());
        }
    }
    File::open(path)
}

#[cfg(unix)]
fn is_owner(metadata: &Metadata, user: u32) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == user
}

#[cfg(not(unix))]
fn is_owner(_: &Metadata, _: u32) -> bool {
    true
}

/// Returns the user of this process, where files have one.
#[cfg(unix)]
fn own_users() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw()]
}

#[cfg(not(unix))]
fn own_users() -> Vec<u32> {
    Vec::new()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use claude_wire::launch::Settings;

    use super::*;

    fn of_run(config: &Path, user: Option<u32>) -> OwnFiles {
        OwnFiles::of_run(&ConfigDir::at(config.to_owned()), user)
    }

    #[test]
    fn relative_paths_are_below_the_working_directory_of_the_cli() {
        let folder = tempfile::tempdir().unwrap();
        let projects = folder.path().join("config/projects");
        fs::create_dir_all(&projects).unwrap();
        fs::write(projects.join("file"), "text").unwrap();
        let mut settings = Settings::default();
        settings.cwd = Some(folder.path().to_owned());
        settings.env.insert("CLAUDE_CONFIG_DIR", "config".into());
        let files = OwnFiles::of_run(&ConfigDir::of_run(&settings).unwrap(), None);
        assert_eq!(files.read(Path::new("config/projects/file")).unwrap(), b"text");
        assert_eq!(files.read(&projects.join("file")).unwrap(), b"text");
        assert!(error(&files, Path::new("projects/file")).contains("not in the config directory"));
    }

    fn error(files: &OwnFiles, path: &Path) -> String {
        files.open(path).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_below_the_directory_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        let files = of_run(&config, None);
        let project = config.join("projects/p");
        fs::create_dir_all(&project).unwrap();
        let [file, link, outside] =
            [project.join("file"), project.join("link"), folder.path().join("outside")];
        for path in [&file, &outside] {
            fs::write(path, "text").unwrap();
        }
        symlink(&file, &link).unwrap();
        symlink(&project, config.join("projects/linked")).unwrap();
        let pipe = project.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(files.read(&file).unwrap(), b"text");
        let linked = config.join("projects/linked/file");
        for path in [&link, &linked, &pipe, &project, &config.join("projects")] {
            assert_eq!(error(&files, path), "not a regular file", "{path:?}");
        }
        for path in [&outside, &project.join("../../../outside"), &config.join("settings.json")] {
            assert!(error(&files, path).contains("not in the config directory"), "{path:?}");
        }
        let absent = files.open(&project.join("absent")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert!(error(&OwnFiles::default(), &file).contains("not in the config directory"));

        // The directory itself may be a link, and the CLI may resolve it.
        let other = folder.path().join("other");
        symlink(&config, &other).unwrap();
        let files = of_run(&other, None);
        for path in [&file, &other.join("projects/p/file")] {
            assert_eq!(files.read(path).unwrap(), b"text", "{path:?}");
        }
    }

    #[test]
    fn with_a_user_only_the_files_of_that_user_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path();
        fs::create_dir_all(config.join("projects")).unwrap();
        let file = config.join("projects/file");
        fs::write(&file, "text").unwrap();
        let own = own_users()[0];
        assert!(of_run(config, Some(own)).open(&file).is_ok());
        assert!(OwnFiles::of_host(config).open(&file).is_ok());
        let other = of_run(config, Some(own + 1));
        assert!(error(&other, &file).contains("belongs to another user"));
        assert!(other.or_of_host().open(&file).is_ok());
    }
}
