//! Finds project folders and the transcripts in them.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use claude_wire::transcript::{
    is_same_project_name, is_uuid, project_folder_name, project_folder_prefix,
};

use super::config::ConfigDir;
use super::members::SessionFiles;
use super::{errors, open};
use crate::error::Result;
use crate::id::SessionId;
use crate::list;
use crate::small_file;
use crate::sort;

/// Where sessions are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Projects {
    pub(crate) config: ConfigDir,
    /// The working directory whose sessions are meant; `None` for all.
    pub(crate) directory: Option<PathBuf>,
}

impl Projects {
    /// Returns the newest copy of a session, or with a working directory the first one.
    pub(crate) fn find(&self, id: &SessionId) -> Result<Option<SessionFiles>> {
        let mut copies = self.copies(id)?;
        if self.directory.is_none() {
            sort::sort_by(&mut copies, |(_, one), (_, other)| other.cmp(one));
        }
        Ok(copies.into_iter().next().map(|(located, _)| located))
    }

    /// Returns a session, or an error.
    pub(crate) fn require(&self, id: &SessionId) -> Result<SessionFiles> {
        self.find(id)?.ok_or_else(|| {
            errors::not_found(id, &self.config.projects(), self.directory.as_deref())
        })
    }

    /// Returns every copy of a session, each with its modification time.
    ///
    /// # Errors
    /// When there are only files that are not regular, or a folder cannot be read.
    pub(crate) fn copies(&self, id: &SessionId) -> Result<Vec<(SessionFiles, i64)>> {
        if !is_uuid(id.as_str()) {
            return Ok(Vec::new());
        }
        let (mut copies, mut failure) = (Vec::new(), None);
        for folder in self.folders(true)?.paths {
            let session = SessionFiles::in_folder(&folder, id.clone());
            let path = &session.path;
            match path.symlink_metadata() {
                Ok(metadata) if !metadata.is_file() => {
                    failure = Some(errors::io("open", path, open::not_regular()));
                }
                Ok(metadata) if metadata.len() == 0 => {}
                Ok(metadata) => {
                    copies.push((session, open::modified_millis(&metadata)));
                }
                Err(error) if open::is_absent(&error) => {}
                Err(error) => failure = Some(errors::io("open", path, error)),
            }
        }
        match failure {
            Some(failure) if copies.is_empty() => Err(failure),
            _ => Ok(copies),
        }
    }

    /// Returns the project folders to look at.
    pub(crate) fn folders(&self, include_worktrees: bool) -> Result<Folders> {
        let projects = self.config.projects();
        let Some(directory) = &self.directory else {
            return Ok(Folders { paths: subfolders(&projects)?, directories: Vec::new() });
        };
        let directory = canonical(directory);
        let mut directories = vec![directory.clone()];
        let worktrees = if include_worktrees { worktrees(&directory) } else { Vec::new() };
        if worktrees.len() > 1 {
            directories.extend(worktrees.into_iter().filter(|other| *other != directory));
        }
        let texts = list::map(&directories, &|path| path.to_string_lossy().into_owned());
        let mut names = Vec::from_iter(self.config.folder_override.clone());
        names.extend(texts.iter().map(|text| project_folder_name(text)));
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut add = |path: PathBuf| {
            if path.is_dir() && !paths.contains(&path) {
                paths.push(path);
            }
        };
        for name in &names {
            add(projects.join(name));
        }
        // Versions of the CLI differ in the hash behind a long name.
        for text in &texts {
            let Some(prefix) = project_folder_prefix(text) else { continue };
            for folder in subfolders(&projects)? {
                let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if name.starts_with(&prefix) && has_session_of(&folder, text) {
                    add(folder);
                }
            }
        }
        Ok(Folders { paths, directories })
    }
}

/// The project folders of a working directory.
pub(crate) struct Folders {
    pub(crate) paths: Vec<PathBuf>,
    /// The working directory and the other worktrees; empty for all projects.
    pub(crate) directories: Vec<PathBuf>,
}

impl Folders {
    /// Returns whether a session that ran in `cwd` belongs to these directories. Folder names are
    /// ambiguous, so a folder can hold sessions of another directory, which must still exist to be
    /// told apart.
    pub(crate) fn includes(&self, cwd: Option<&str>) -> bool {
        let Some(cwd) = cwd else { return true };
        let same = |directory: &PathBuf| directory.to_str() == Some(cwd);
        if self.directories.is_empty() || self.directories.iter().any(same) {
            return true;
        }
        let has_same_name =
            |directory: &PathBuf| is_same_project_name(&directory.to_string_lossy(), cwd);
        let is_remote = cwd.starts_with("\\\\") || cwd.starts_with("//");
        if is_remote || !self.directories.iter().any(has_same_name) {
            return true;
        }
        let Ok(real) = fs::canonicalize(cwd) else { return true };
        self.directories.iter().any(|directory| real.starts_with(directory))
    }
}

/// Returns the sessions in a project folder, each with the metadata of its main transcript.
pub(crate) fn sessions(folder: &Path) -> io::Result<Vec<(SessionFiles, Metadata)>> {
    let mut found = Vec::new();
    for entry in open::entries(folder)? {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) else { continue };
        if !is_uuid(id) {
            continue;
        }
        // A file that was deleted meanwhile is not an error.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() && metadata.len() > 0 {
            found.push((SessionFiles { id: SessionId::from(id), path: entry.path() }, metadata));
        }
    }
    Ok(found)
}

fn subfolders(projects: &Path) -> Result<Vec<PathBuf>> {
    let entries = open::entries(projects).map_err(|error| errors::io("list", projects, error))?;
    let mut folders = list::map(&entries, &DirEntry::path);
    folders.retain(|path| path.is_dir());
    sort::sort_by(&mut folders, PathBuf::cmp);
    Ok(folders)
}

/// Returns whether a transcript in the folder records this working directory.
fn has_session_of(folder: &Path, cwd: &str) -> bool {
    let mut buffers = open::EndBuffers::default();
    sessions(folder).unwrap_or_default().iter().any(|(located, _)| {
        let Ok((ends, _)) = buffers.open(&located.path) else { return false };
        ends.recorded_cwd().is_some_and(|recorded| is_same_project_name(&recorded, cwd))
    })
}

/// Resolves symbolic links, as the CLI does with its working directory.
pub(crate) fn canonical(directory: &Path) -> PathBuf {
    fs::canonicalize(directory)
        .or_else(|_| std::path::absolute(directory))
        .unwrap_or_else(|_| directory.to_owned())
}

/// Returns the main worktree of the Git repository that a directory belongs to.
pub(crate) fn main_worktree(directory: &Path) -> Option<PathBuf> {
    let git_dir = common_git_dir(directory)?;
    let is_main = git_dir.file_name().is_some_and(|name| name == ".git");
    git_dir.parent().filter(|_| is_main).map(canonical)
}

/// Returns the worktrees of the Git repository that a directory belongs to, read from the
/// repository's files: running `git` in a directory can run programs that the directory names.
fn worktrees(directory: &Path) -> Vec<PathBuf> {
    let Some(common) = common_git_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    if common.file_name().is_some_and(|name| name == ".git") {
        found.extend(common.parent().map(canonical));
    }
    for entry in fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten() {
        if let Some(dot_git) = line(&entry.path().join("gitdir")) {
            let dot_git = entry.path().join(dot_git);
            // A repository can name any directory as its worktree. One that was removed cannot agree.
            let is_own = dot_git.parent().is_some_and(|root| !root.exists())
                || git_dir_of_file(&dot_git).is_some_and(|(_, of_file)| of_file == common);
            found.extend(dot_git.parent().filter(|_| is_own).map(canonical));
        }
    }
    found
}

/// Returns the directory of the Git repository that all its worktrees share.
fn common_git_dir(directory: &Path) -> Option<PathBuf> {
    let dot_git = directory
        .ancestors()
        .map(|ancestor| ancestor.join(".git"))
        .find(|dot_git| dot_git.symlink_metadata().is_ok())?;
    // A link would make the repository of another directory that of this one.
    if dot_git.is_symlink() {
        return None;
    }
    if dot_git.is_dir() {
        return Some(canonical(&dot_git));
    }
    let (git_dir, common) = git_dir_of_file(&dot_git)?;
    // As Git does it: whoever writes a `.git` file can name any repository, but only who can write to the
    // repository can name the file in it.
    let named = git_dir.join(line(&git_dir.join("gitdir"))?);
    (canonical(&named) == canonical(&dot_git)).then_some(common)
}

/// Returns the directory that the `.git` file of a worktree names, and that of its repository: `None` if
/// the first is not a part of the second.
fn git_dir_of_file(dot_git: &Path) -> Option<(PathBuf, PathBuf)> {
    let text = line(dot_git)?;
    let git_dir = canonical(&dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()));
    let common = canonical(&git_dir.join(line(&git_dir.join("commondir"))?));
    (git_dir.parent()? == common.join("worktrees")).then_some((git_dir, common))
}

/// Returns the trimmed text of a small file.
fn line(path: &Path) -> Option<String> {
    let text = String::from_utf8(small_file::read(path).ok()?).ok()?;
    Some(text.trim().to_owned())
}
