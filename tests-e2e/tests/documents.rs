//! Checks that the files, folders and headings that the documents name exist.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use tests_e2e::workspace::root;

/// Folders whose files are not part of the repository.
const SKIPPED: &[&str] = &[".git", "target", "node_modules", "__pycache__"];

/// Lists of texts, which name files of imaginary machines.
const TEXTS: &[&str] = &["docs/messages.md", "docs/messages-store.md"];

/// Files of other programs.
const FOREIGN: &[&str] = &["CLAUDE.md"];

/// How the names of files end that are checked without a folder.
const ENDINGS: &[&str] = &["rs", "md", "toml", "sql"];

/// Returns the paths of all files and folders of the repository, relative to its root.
fn tree() -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && !SKIPPED.contains(&&*name) {
                folders.push(path);
            }
        }
    }
    found
}

/// Returns the documents that people read outside of rustdoc, and the chapters of the guides.
fn documents(tree: &BTreeSet<String>) -> Vec<(&str, String)> {
    let is_document = |path: &&String| {
        let Some((folder, _)) = path.rsplit_once('/') else { return is_markdown(path) };
        let is_readme = path.ends_with("/README.md") && !folder.contains("tests");
        let is_read = folder == "docs" || folder.ends_with("/guide") || is_readme;
        is_markdown(path) && is_read && !TEXTS.contains(&path.as_str())
    };
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    tree.iter().filter(is_document).map(|path| (path.as_str(), read(path))).collect()
}

/// Returns the text without its code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// Returns every path that `{a,b}` in a path stands for.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?)));
    let Some((start, (names, end))) = parts else { return vec![path.to_owned()] };
    names.split(',').map(|name| format!("{start}{name}{end}")).collect()
}

/// Returns whether code in a document is the path of a file or folder of the repository.
fn is_path(code: &str, tree: &BTreeSet<String>) -> bool {
    let is_allowed = |letter: char| letter.is_alphanumeric() || "…._-/{},*".contains(letter);
    if !code.chars().all(is_allowed) || code.starts_with('/') || FOREIGN.contains(&code) {
        return false;
    }
    let starts_in_the_repository =
        code.split_once('/').is_some_and(|(start, _)| start == "…" || tree.contains(start));
    let is_file =
        Path::new(code).extension().is_some_and(|end| ENDINGS.iter().any(|it| end == *it));
    starts_in_the_repository || is_file
}

/// Returns whether a path, or the end of a path below a folder, exists.
fn exists(path: &str, tree: &BTreeSet<String>) -> bool {
    let path = path.trim_end_matches('/');
    match path.strip_suffix('*') {
        Some(start) => tree.iter().any(|known| known.starts_with(start)),
        None => tree.iter().any(|known| {
            known.strip_suffix(path).is_some_and(|start| start.is_empty() || start.ends_with('/'))
        }),
    }
}

/// Returns the paths in a document that do not exist. `…` is the package that was named last.
fn dead_paths(text: &str, tree: &BTreeSet<String>) -> Vec<String> {
    let (mut package, mut dead) = (String::new(), Vec::new());
    for code in prose(text).split('`').skip(1).step_by(2).filter(|code| is_path(code, tree)) {
        if let Some((name, _)) = code.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
        {
            package = format!("crates/{name}");
        }
        let whole = code.replacen('…', &package, 1);
        dead.extend(alternatives(&whole).into_iter().filter(|path| !exists(path, tree)));
    }
    dead
}

/// Returns the names under which a page can link to the headings of a document.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let names = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    names.map(|name| name.chars().filter(is_kept).collect::<String>().replace(' ', "-")).collect()
}

/// Returns the relative links in a document that lead to no file or heading.
fn dead_links(path: &str, text: &str) -> Vec<String> {
    let text = prose(text);
    let links = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let is_relative = |link: &&str| !link.contains("::") && !link.contains("://");
    let is_dead = |link: &&str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let file = if file.is_empty() { path.to_owned() } else { beside(path, file) };
        let target = root().join(&file);
        let has_anchor = || anchors(&fs::read_to_string(&target).unwrap()).contains(&anchor.into());
        !target.exists() || (!anchor.is_empty() && !has_anchor())
    };
    links.filter(is_relative).filter(is_dead).map(str::to_owned).collect()
}

/// Resolves a path against the folder of a document.
fn beside(document: &str, path: &str) -> String {
    let mut resolved = PathBuf::from(document);
    resolved.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => assert!(resolved.pop(), "{document}: {path}"),
            part => resolved.push(part),
        }
    }
    resolved.to_string_lossy().into_owned()
}

#[test]
fn paths_in_documents_exist() {
    let tree = tree();
    let documents = documents(&tree);
    assert!(documents.len() > 30, "{documents:?}");
    let dead = documents.iter().flat_map(|(name, text)| {
        dead_paths(text, &tree).into_iter().map(move |path| format!("{name}: {path}"))
    });
    assert_eq!(dead.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn links_in_documents_lead_to_files_and_headings() {
    let tree = tree();
    let dead = documents(&tree).into_iter().flat_map(|(name, text)| {
        dead_links(name, &text).into_iter().map(move |link| format!("{name}: {link}"))
    });
    assert_eq!(dead.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn readme_links_every_chapter_of_the_guides() {
    let tree = tree();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let chapters = tree.iter().filter(|path| path.contains("/guide/") && is_markdown(path));
    let chapters: Vec<&String> = chapters.collect();
    assert!(chapters.len() > 15, "{chapters:?}");
    let is_missing = |path: &&&String| !readme.contains(&format!("]({path})"));
    assert_eq!(chapters.iter().filter(is_missing).collect::<Vec<_>>(), Vec::<&&String>::new());
}

#[test]
fn dead_paths_and_links_are_found() {
    let tree = tree();
    let text = "`crates/claude-wire/src/frame.rs`, `…/src/{frame,gone}.rs`, `docs/`, `/gone.rs`, `gone.md`, \
                `session/turns.rs`, `crates/claude-wire/src/con*`, `mod.rs` [a](README.md#speed) [b](README.md#gone) [c](gone/)\n\
                ```\n`docs/gone`\n```\n`docs/gone/`\n";
    assert_eq!(
        dead_paths(text, &tree),
        ["crates/claude-wire/src/gone.rs", "gone.md", "docs/gone/"]
    );
    assert_eq!(dead_links("CHANGELOG.md", text), ["README.md#gone", "gone/"]);
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}
