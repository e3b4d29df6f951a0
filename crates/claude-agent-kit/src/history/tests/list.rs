//! Lists and infos.

use super::*;
#[cfg(unix)]
use crate::session_files::open::counted;
use crate::session_files::project::main_worktree;

#[tokio::test]
async fn sessions_are_listed_by_modification_time_in_pages() {
    let fixture = Fixture::new();
    for number in 0..10 {
        fixture.write_at(number, 1_000_000 + u64::from(number));
    }
    let all = fixture.history.list(ListFilter::new()).await.unwrap();
    assert_eq!(ids(&all), (0..10).rev().map(id).collect::<Vec<_>>());
    assert!(!all.has_more && all.skipped.is_empty());
    let page = fixture.history.list(ListFilter::new().offset(2).limit(3)).await.unwrap();
    assert_eq!(ids(&page), [id(7), id(6), id(5)]);
    assert!(page.has_more);
    let page = fixture.history.list(ListFilter::new().offset(9).limit(3)).await.unwrap();
    assert_eq!(ids(&page), [id(0)]);
    assert!(!page.has_more);
    let page = fixture.history.list(ListFilter::new().limit(0)).await.unwrap();
    assert!(page.sessions.is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_page_reads_the_ends_of_its_own_transcripts_only() {
    let fixture = Fixture::new();
    let mut lines = conversation(100, &fixture.work());
    for line in &mut lines {
        line["padding"] = json!("x".repeat(5000));
    }
    let paths: Vec<_> = (0..5).map(|number| fixture.write(number, &lines)).collect();
    for (path, time) in paths.iter().zip(1_000_000..) {
        assert!(path.metadata().unwrap().len() > 1_000_000);
        set_modified(path, time);
        counted::take(path);
    }
    let page = fixture.history.list(ListFilter::new().limit(2)).await.unwrap();
    assert_eq!(ids(&page), [id(4), id(3)]);
    let read: Vec<usize> = paths.iter().map(|path| counted::take(path)).collect();
    assert_eq!(read, [0, 0, 0, 131_072, 131_072]);
}

#[tokio::test]
async fn equal_times_are_ordered_by_id_and_hidden_files_do_not_shorten_a_page() {
    let fixture = Fixture::new();
    for number in 0..6 {
        let path = fixture.write_at(number, 1_000_000);
        if number % 2 == 1 {
            // Nothing to show.
            fs::write(&path, "{\"type\":\"mode\",\"mode\":\"default\"}\n").unwrap();
            set_modified(&path, 1_000_000);
        }
    }
    let page = fixture.history.list(ListFilter::new().limit(2)).await.unwrap();
    assert_eq!(ids(&page), [id(4), id(2)]);
}

#[tokio::test]
async fn missing_directories_are_an_empty_history() {
    let history = History::at("/nonexistent/config");
    assert!(history.list(ListFilter::new()).await.unwrap().sessions.is_empty());
    let history = history.for_directory("/nonexistent/project");
    assert!(history.list(ListFilter::new()).await.unwrap().sessions.is_empty());
    assert_eq!(history.info(&id(1)).await.unwrap(), None);
    assert_eq!(history.info(&SessionId::from("../../etc/passwd")).await.unwrap(), None);
    let error = history.open(&SessionId::from("../x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
    assert_eq!(error.to_string(), "\"../x\" is not a session ID; help: pass a UUID");
}

#[tokio::test]
async fn info_has_what_the_transcript_and_the_files_beside_it_say() {
    let fixture = Fixture::new();
    let path = fixture.write_at(1, 1_000_000);
    let info = fixture.history.info(&id(1)).await.unwrap().unwrap();
    assert_eq!((info.summary.as_str(), info.first_prompt.as_deref()), ("Hi", Some("Hi")));
    assert_eq!(info.cwd.as_deref(), fixture.work().to_str());
    assert_eq!(info.last_modified, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
    assert_eq!(info.file_size, Some(path.metadata().unwrap().len()));
    assert_eq!((info.archived, info.path), (None, Some(path.clone())));
    assert_eq!(info.created_at, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800)));
    let beside = path.with_extension("");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("custom-title.json"), r#"{"customTitle":" Nice\u0007\u200btitle "}"#)
        .unwrap();
    fs::write(beside.join("archived.json"), r#"{"archived":true,"at":"2026-02-01T00:00:00Z"}"#)
        .unwrap();
    let info = fixture.history.info(&id(1)).await.unwrap().unwrap();
    assert_eq!((info.summary.as_str(), info.archived), ("Nice title", Some(true)));
    fs::write(beside.join("archived.json"), r#"{"archived":true,"at":"2026-01-01T00:00:00Z"}"#)
        .unwrap();
    let info = fixture.history.info(&id(1)).await.unwrap().unwrap();
    assert_eq!(info.archived, Some(false), "a prompt is newer");
}

#[tokio::test]
async fn a_directory_has_its_own_sessions_and_not_those_of_a_similar_name() {
    let fixture = Fixture::new();
    // Both have one project folder.
    let (one, other) = (fixture.work().join("a.b"), fixture.work().join("a-b"));
    for (number, directory) in [(1, &one), (2, &other)] {
        fs::create_dir(directory).unwrap();
        let path = fixture.folder(directory).join(format!("{}.jsonl", id(number)));
        fs::write(path, text(&[prompt("u", None, "Hi", directory)])).unwrap();
    }
    assert_eq!(fixture.folder(&one), fixture.folder(&other));
    let list = |directory: &Path| {
        let history = fixture.history.for_directory(directory);
        async move { ids(&history.list(ListFilter::new()).await.unwrap()) }
    };
    assert_eq!(list(&one).await, [id(1)]);
    assert_eq!(list(&other).await, [id(2)]);
    // A directory that no longer exists cannot be told apart.
    fs::remove_dir(&other).unwrap();
    assert_eq!(list(&one).await.len(), 2);
}

/// Writes the files of a repository with one worktree.
fn worktree(main: &Path, tree: &Path) {
    let admin = main.join(".git/worktrees/tree");
    fs::create_dir_all(&admin).unwrap();
    fs::create_dir_all(tree).unwrap();
    fs::write(admin.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
    fs::write(admin.join("commondir"), "../..\n").unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
}

#[test]
fn a_repository_is_that_of_a_directory_only_if_it_names_the_directory() {
    let fixture = Fixture::new();
    let (main, tree) = (fixture.work().join("main"), fixture.work().join("tree"));
    worktree(&main, &tree);
    assert_eq!(main_worktree(&main), Some(main.clone()));
    assert_eq!(main_worktree(&tree.join("src")), Some(main.clone()));
    let hostile = fixture.work().join("hostile");
    let own = hostile.join("admin");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("gitdir"), hostile.join(".git").to_str().unwrap()).unwrap();
    fs::write(own.join("commondir"), main.join(".git").to_str().unwrap()).unwrap();
    let git = main.join(".git");
    for named in [git.clone(), git.join("worktrees/tree"), git.join("worktrees"), own] {
        fs::write(hostile.join(".git"), format!("gitdir: {}\n", named.display())).unwrap();
        assert_eq!(main_worktree(&hostile), None, "{}", named.display());
    }
    // A directory that shares the files of another one.
    fs::remove_file(hostile.join(".git")).unwrap();
    fs::create_dir(hostile.join(".git")).unwrap();
    fs::write(hostile.join(".git/commondir"), git.to_str().unwrap()).unwrap();
    assert_eq!(main_worktree(&hostile), Some(hostile.clone()));
    #[cfg(unix)]
    {
        fs::remove_dir_all(hostile.join(".git")).unwrap();
        std::os::unix::fs::symlink(&git, hostile.join(".git")).unwrap();
        assert_eq!(main_worktree(&hostile), None);
    }
}

#[tokio::test]
async fn sessions_of_a_directory_that_a_repository_claims_are_not_listed() {
    let fixture = Fixture::new();
    let (victim, hostile) = (fixture.work().join("victim"), fixture.work().join("hostile"));
    fs::create_dir_all(victim.join(".git")).unwrap();
    let admin = hostile.join(".git/worktrees/x");
    fs::create_dir_all(&admin).unwrap();
    fs::write(admin.join("gitdir"), victim.join(".git").to_str().unwrap()).unwrap();
    fs::write(admin.join("commondir"), "../..").unwrap();
    let lines = text(&[prompt("u1", None, "Hi", &victim)]);
    fs::write(fixture.folder(&victim).join(format!("{}.jsonl", id(1))), lines).unwrap();
    let listed = async |directory: &Path| {
        let history = fixture.history.for_directory(directory);
        ids(&history.list(ListFilter::new()).await.unwrap())
    };
    assert_eq!(listed(&victim).await, [id(1)]);
    assert!(listed(&hostile).await.is_empty());
    // Nor those of a repository that a file names.
    fs::remove_dir_all(hostile.join(".git")).unwrap();
    let named = victim.join(".git");
    fs::write(hostile.join(".git"), format!("gitdir: {}\n", named.display())).unwrap();
    assert!(listed(&hostile).await.is_empty());
}

#[tokio::test]
async fn worktrees_of_a_repository_are_listed_together() {
    let fixture = Fixture::new();
    let (main, tree) = (fixture.work().join("main"), fixture.work().join("tree"));
    let admin = main.join(".git/worktrees/tree");
    fs::create_dir_all(&admin).unwrap();
    fs::create_dir(&tree).unwrap();
    fs::write(admin.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
    fs::write(admin.join("commondir"), "../..\n").unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
    for (number, directory) in [(1, &main), (2, &tree)] {
        let path = fixture.folder(directory).join(format!("{}.jsonl", id(number)));
        fs::write(path, text(&[prompt("u", None, "Hi", directory)])).unwrap();
    }
    for directory in [&main, &tree] {
        let history = fixture.history.for_directory(directory);
        let both = history.list(ListFilter::new()).await.unwrap();
        assert_eq!(both.sessions.len(), 2, "{directory:?}");
        let own = ListFilter::new().include_worktrees(false);
        assert_eq!(history.list(own).await.unwrap().sessions.len(), 1, "{directory:?}");
        assert!(history.info(&id(1)).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn folder_with_another_hash_of_a_long_path_is_found() {
    let fixture = Fixture::new();
    let mut directory = fixture.work();
    for _ in 0..5 {
        directory.push("d".repeat(50));
    }
    fs::create_dir_all(&directory).unwrap();
    let folder = fixture.folder(&directory);
    let name = folder.file_name().unwrap().to_str().unwrap();
    let old = folder.with_file_name(format!("{}zzz", &name[..201]));
    fs::rename(&folder, &old).unwrap();
    let path = old.join(format!("{}.jsonl", id(1)));
    fs::write(&path, text(&[prompt("u", None, "Hi", &directory)])).unwrap();
    let history = fixture.history.for_directory(&directory);
    assert_eq!(ids(&history.list(ListFilter::new()).await.unwrap()), [id(1)]);
    fs::write(&path, text(&[prompt("u", None, "Hi", Path::new("/elsewhere"))])).unwrap();
    assert!(history.list(ListFilter::new()).await.unwrap().sessions.is_empty());
}

#[tokio::test]
async fn programmatic_and_continued_sessions_can_be_left_out() {
    let fixture = Fixture::new();
    let mut entry = prompt("u", None, "Hi", &fixture.work());
    entry["entrypoint"] = json!("sdk-ts");
    fixture.write(1, &[entry]);
    let continued = json!({"type": "continued-in", "continuedInSessionId": id(3).as_str()});
    fixture.write(2, &[prompt("u", None, "Hi", &fixture.work()), continued]);
    let history = &fixture.history;
    // The session in which the other one continues does not exist yet.
    assert_eq!(history.list(ListFilter::new()).await.unwrap().sessions.len(), 2);
    fixture.write(3, &[prompt("u", None, "Hi", &fixture.work())]);
    let mut all = ids(&history.list(ListFilter::new()).await.unwrap());
    all.sort();
    assert_eq!(all, [id(1), id(3)]);
    let filter = ListFilter::new().include_programmatic(false);
    assert_eq!(ids(&history.list(filter).await.unwrap()), [id(3)]);
}

#[tokio::test]
async fn newest_of_several_copies_is_used() {
    let fixture = Fixture::new();
    let here = fixture.write_at(1, 1_000_000);
    let elsewhere = fixture.folder(Path::new("/elsewhere")).join(here.file_name().unwrap());
    fs::write(&elsewhere, text(&[prompt("u", None, "Copy", Path::new("/elsewhere"))])).unwrap();
    set_modified(&elsewhere, 2_000_000);
    let page = fixture.history.list(ListFilter::new()).await.unwrap();
    assert_eq!(page.sessions.len(), 1);
    assert_eq!(page.sessions[0].path, Some(elsewhere));
    assert_eq!(fixture.history.info(&id(1)).await.unwrap().unwrap().summary, "Copy");
    let history = fixture.history.for_directory(fixture.work());
    assert_eq!(history.info(&id(1)).await.unwrap().unwrap().summary, "Hi");
}

#[test]
fn invisible_characters_of_a_skipped_file_are_escaped() {
    let skipped = SkippedFile {
        path: "/srv/a\u{202e}\u{3164}.jsonl".into(),
        error: std::io::Error::other("denied\u{1b}[2K").into(),
    };
    let text = "cannot read the transcript \"/srv/a\\u{202e}\\u{3164}.jsonl\": denied\\u{1b}[2K";
    assert_eq!(skipped.to_string(), text);
}
