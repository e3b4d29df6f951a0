//! Files that are not what their names say.

#![cfg(unix)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::session_files::open;

/// Every call on a session that is not a regular file.
async fn assert_refused(history: &History, session: &SessionId) {
    let filter = MessageFilter::default();
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::HistoryIo, "{error}");
        assert!(error.to_string().contains("not a regular file"), "{error}");
        assert!(!error.is_retryable(), "{error}");
    };
    refused(history.info(session).await.unwrap_err());
    refused(history.messages(session, filter).await.unwrap_err());
    refused(history.last_messages(session, 1, filter).await.unwrap_err());
    refused(history.follow(session).await.unwrap_err());
    refused(history.rename(session, "t").await.unwrap_err());
    refused(history.fork(session, ForkOptions::new()).await.unwrap_err());
    refused(history.archive(session).await.unwrap_err());
    refused(history.delete(session).await.unwrap_err());
}

#[tokio::test]
async fn links_directories_and_pipes_are_not_sessions_and_never_block() {
    let fixture = Fixture::new();
    let regular = fixture.write_at(1, 1_000_000);
    let folder = regular.parent().unwrap();
    let path = |number| folder.join(format!("{}.jsonl", id(number)));
    symlink(&regular, path(2)).unwrap();
    fs::create_dir(path(3)).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(path(4)).status().unwrap();
    assert!(pipe.success());
    symlink("/nonexistent", path(5)).unwrap();
    fs::write(folder.join(OsStr::from_bytes(b"\xff\xfe.jsonl")), "{}\n").unwrap();
    fs::write(folder.join("notes.jsonl"), "{}\n").unwrap();
    fs::write(path(6), "").unwrap();
    let page = fixture.history.list(ListFilter::new()).await.unwrap();
    assert_eq!(ids(&page), [id(1)]);
    assert!(page.skipped.is_empty());
    for number in 2..=5 {
        assert_refused(&fixture.history, &id(number)).await;
    }
    // Empty files count as absent.
    assert_eq!(fixture.history.info(&id(6)).await.unwrap(), None);
    let error = fixture.history.open(&id(6)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
    assert!(path(2).is_symlink() && path(3).is_dir());
}

#[test]
fn pipe_that_takes_the_place_of_a_transcript_does_not_block() {
    let fixture = Fixture::new();
    let path = fixture.root().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = open::open(&path).unwrap_err();
    assert_eq!(error.to_string(), "not a regular file");
    assert!(open::open_append(&path).is_err());
    assert!(open::read(&path).is_err());
}

#[tokio::test]
async fn unreadable_file_is_skipped_with_its_reason() {
    let fixture = Fixture::new();
    fixture.write_at(1, 1_000_000);
    let path = fixture.write_at(2, 2_000_000);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        // Permissions do not apply to root.
        return;
    }
    let page = fixture.history.list(ListFilter::new()).await.unwrap();
    assert_eq!(ids(&page), [id(1)]);
    assert_eq!(page.skipped[0].path, path);
    assert!(page.skipped[0].to_string().contains("cannot read the transcript"));
    let error = fixture.history.info(&id(2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HistoryIo);
}

#[tokio::test]
async fn file_in_place_of_a_folder_is_tolerated() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.history.config_dir().unwrap()).unwrap();
    fs::write(fixture.history.config_dir().unwrap().join("projects"), "x").unwrap();
    fs::write(fixture.history.config_dir().unwrap().join("sessions"), "x").unwrap();
    assert!(fixture.history.list(ListFilter::new()).await.unwrap().sessions.is_empty());
    assert!(!fixture.history.is_live(&id(1)).await.unwrap());
    let error = fixture.history.open(&id(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConversationNotFound);
}
