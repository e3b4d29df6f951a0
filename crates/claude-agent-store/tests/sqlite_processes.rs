//! Several processes on one SQLite file, and processes that are killed. The program starts itself as their
//! child processes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test program")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use claude_agent_kit::store::{Append, Epoch, List, NewEntry, SessionStore, StoreErrorKind};
use claude_agent_store::SqliteStore;
use libtest_mimic::{Arguments, Trial};
use support::{entry, key, texts};

/// The variable that makes this program a child process.
const CHILD: &str = "CLAUDE_STORE_CHILD";

const PROCESSES: u32 = 4;
const APPENDS: u32 = 1_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if std::env::var_os(CHILD).is_some() {
        block_on(child(&arguments));
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        trial("four_processes_append_to_one_session", four_processes_append_to_one_session),
        trial("of_two_claimers_one_wins", of_two_claimers_one_wins),
        trial(
            "killed_process_loses_nothing_acknowledged",
            killed_process_loses_nothing_acknowledged,
        ),
        trial("processes_create_one_file_at_a_time", processes_create_one_file_at_a_time),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Returns the `number`th batch of a process.
fn batch(process: u32, number: u32) -> [NewEntry; 2] {
    [entry(&format!("[{process},{number},0]")), entry(&format!("[{process},{number},1]"))]
}

/// Starts this program as a child process.
fn start(path: &Path, arguments: &[&str]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg(path)
        .args(arguments)
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs as a child process: `<path> <command> <process>`.
async fn child(arguments: &[String]) {
    let [path, command, process] = arguments else { panic!("{arguments:?}") };
    let process: u32 = process.parse().unwrap();
    let store = SqliteStore::open(PathBuf::from(path)).await.unwrap();
    match command.as_str() {
        "append" => {
            for number in 0..APPENDS {
                let appended =
                    store.append(&key(1), Append::new(&batch(process, number))).await.unwrap();
                assert_eq!(appended.skipped, 0);
            }
        }
        // Prints every acknowledged batch, until the process is killed.
        "acknowledge" => {
            for number in 0.. {
                store.append(&key(1), Append::new(&batch(process, number))).await.unwrap();
                println!("{number}");
            }
        }
        // Prints the epoch, appends as the owner, and prints the number of accepted appends.
        "claim" => {
            let epoch = store.claim(&key(1)).await.unwrap();
            println!("{epoch}");
            for number in 0..500 {
                let batch = batch(process, number);
                match store.append(&key(1), Append::new(&batch).epoch(epoch)).await {
                    Ok(_) => {}
                    Err(error) => {
                        assert_eq!(error.kind(), StoreErrorKind::Superseded, "{error}");
                        println!("{number}");
                        return;
                    }
                }
            }
            println!("500");
        }
        "open" => drop(store.claim(&key(process)).await.unwrap()),
        command => panic!("{command}"),
    }
}

fn open(path: &Path) -> SqliteStore {
    block_on(SqliteStore::open(path)).unwrap()
}

fn four_processes_append_to_one_session() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let children: Vec<Child> =
        (0..PROCESSES).map(|process| start(&path, &["append", &process.to_string()])).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
    }
    let found = block_on(texts(&open(&path), &key(1)));
    assert_eq!(found.len(), (PROCESSES * APPENDS * 2) as usize);
    for process in 0..PROCESSES {
        let start = format!("[{process},");
        let own: Vec<&String> = found.iter().filter(|text| text.starts_with(&start)).collect();
        let expected = (0..APPENDS).flat_map(|number| batch(process, number));
        assert!(own.into_iter().zip(expected).all(|(found, new)| **found == **new.text()));
    }
    // Batches are atomic, so those of other processes are not between their entries.
    assert!(found.chunks(2).all(|pair| pair[0].replace(",0]", ",1]") == pair[1]));
}

fn of_two_claimers_one_wins() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        // The file exists, so that both begin at about the same time.
        let store = open(&path);
        let children = ["0", "1"].map(|process| start(&path, &["claim", process]));
        let mut results = children.map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", output.status);
            let output = String::from_utf8(output.stdout).unwrap();
            let numbers: Vec<u64> = output.lines().map(|line| line.parse().unwrap()).collect();
            (Epoch::new(numbers[0]), numbers[1])
        });
        results.sort();
        let [(first, accepted), (second, all)] = results;
        assert_eq!((first, second), (Epoch::new(1), Epoch::new(2)));
        assert_eq!(all, 500);
        // Exactly the acknowledged appends are stored, and none of the first owner after the claim.
        let found = block_on(texts(&store, &key(1)));
        assert_eq!(found.len() as u64, (accepted + all) * 2);
        let owners: Vec<char> = found.iter().filter_map(|text| text.chars().nth(1)).collect();
        let changes = owners.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, usize::from(accepted > 0));
    }
}

/// A process is killed in the middle of appends, at different moments. Whatever it had acknowledged is stored,
/// batches are whole, and a process that sends everything again stores nothing twice.
fn killed_process_loses_nothing_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for process in 0..12 {
        let mut child = start(&path, &["acknowledge", &process.to_string()]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..=process * 7 {
            lines.next().unwrap().unwrap();
        }
        // SIGKILL on Unix.
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged =
            process * 7 + 1 + u32::try_from(lines.map_while(Result::ok).count()).unwrap();

        let store = open(&path);
        let found = block_on(texts(&store, &key(1)));
        let start = format!("[{process},");
        let own =
            u32::try_from(found.iter().filter(|text| text.starts_with(&start)).count()).unwrap();
        assert!(
            own % 2 == 0 && own / 2 >= acknowledged,
            "{own} stored, {acknowledged} acknowledged"
        );
        // At most one append was in flight.
        assert!(own / 2 <= acknowledged + 1, "{own} stored, {acknowledged} acknowledged");
        for number in 0..acknowledged + 5 {
            let batch = batch(process, number);
            let appended = block_on(store.append(&key(1), Append::new(&batch))).unwrap();
            assert_eq!(appended.skipped, if number < own / 2 { 2 } else { 0 });
            expected.extend(batch.map(|entry| entry.text().to_string()));
        }
        let found = block_on(texts(&store, &key(1)));
        assert_eq!(found.len(), expected.len());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
        assert_integrity(&path);
    }
}

fn assert_integrity(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let result: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(result, "ok");
}

fn processes_create_one_file_at_a_time() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        let children: Vec<Child> =
            (0..8).map(|process| start(&path, &["open", &process.to_string()])).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", output.status);
        }
        let store = open(&path);
        for number in 0..8 {
            assert_eq!(block_on(store.claim(&key(number))).unwrap(), Epoch::new(2));
        }
        let page = block_on(store.list(key(1).project_key(), List::new())).unwrap();
        assert_eq!(page.sessions, []);
    }
}
