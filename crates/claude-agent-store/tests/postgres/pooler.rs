//! The store behind PgBouncer.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_kit::approval::{Approvals, Decision};
use claude_agent_kit::store::{Append, List, RecordStore, SessionStore};
use claude_agent_store::PostgresStore;
use claude_session_store::conformance;
use libtest_mimic::Trial;
use tempfile::TempDir;

use super::fixture::{entry, key, options_for, texts, trial, with_server};
use super::records::approval;
use super::support::{owner, write};
use tests_servers::postgres::{self, PASSWORD, Server, USER};

pub(crate) fn trials() -> Vec<Trial> {
    let is_missing = program().is_none() && postgres::install("pgbouncer").is_err();
    vec![
        trial(
            "store_conforms_behind_a_pooler_in_transaction_mode",
            store_conforms_behind_a_pooler_in_transaction_mode,
        )
        .with_ignored_flag(is_missing),
        trial(
            "records_conform_behind_a_pooler_in_transaction_mode",
            records_conform_behind_a_pooler_in_transaction_mode,
        )
        .with_ignored_flag(is_missing),
        trial(
            "every_request_works_behind_a_pooler_in_statement_mode",
            every_request_works_behind_a_pooler_in_statement_mode,
        )
        .with_ignored_flag(is_missing),
    ]
}

fn program() -> Option<PathBuf> {
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
}

/// A running pooler. Dropping it stops the pooler.
struct Pooler {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    async fn start(mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let users = folder.path().join("users.txt");
        fs::write(&users, format!("\"{USER}\" \"{PASSWORD}\"\n")).unwrap();
        let to = with_server(Server::port);
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={to}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\n\
             pool_mode = {mode}\ndefault_pool_size = 3\n",
            users.display()
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(program().unwrap());
        if let Some((user, group)) = postgres::other_user().unwrap() {
            for path in [folder.path(), &users, &file] {
                std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
            }
            command.uid(user).gid(group);
        }
        command.arg("--quiet").arg(&file).stdin(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let pooler = Self { process, port, _folder: folder };
        let start = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(30), "the pooler does not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        pooler
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The store has more connections to the pooler than the pooler has to the server.
async fn store_conforms_behind_a_pooler_in_transaction_mode() {
    let pooler = Pooler::start("transaction").await;
    let url = with_server(|server| server.url_at(pooler.port));
    conformance::run(async || PostgresStore::open_with(options_for(&url)).await.unwrap())
        .await
        .assert();
}

/// Notifications do not arrive, so that changes by the other host are found by looking for them.
async fn records_conform_behind_a_pooler_in_transaction_mode() {
    let pooler = Pooler::start("transaction").await;
    let url = with_server(|server| server.url_at(pooler.port));
    let hosts = async || {
        let options = options_for(&url);
        let one = PostgresStore::open_with(options.clone()).await.unwrap();
        [one, PostgresStore::open_with(options).await.unwrap()]
    };
    conformance::run_records(hosts).await.assert();
}

/// In this mode, a transaction of several statements is an error.
async fn every_request_works_behind_a_pooler_in_statement_mode() {
    let pooler = Pooler::start("statement").await;
    let url = with_server(|server| server.url_at(pooler.port));
    let store = PostgresStore::open_with(options_for(&url)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let store = store.clone();
        tasks.spawn(async move {
            let epoch = store.claim(&key(number)).await.unwrap();
            let batch = ["1", "2"].map(entry);
            store.append(&key(number), Append::new(&batch).epoch(epoch)).await.unwrap();
            assert_eq!(texts(&store, &key(number)).await, ["1", "2"]);
            store.subpaths(&key(number)).await.unwrap();
            store.list(key(number).project_key(), List::new()).await.unwrap();
            store.delete(&key(number), None).await.unwrap();
            assert_eq!(texts(&store, &key(number)).await, [""; 0]);

            let epoch = store.claim_records(&owner(key(number).session())).await.unwrap();
            assert!(epoch.get() > 0);
            let request = approval(number);
            write(&store, &request, None).await.unwrap();
            let approvals = Approvals::new("scope", store);
            let decision = Decision::deny("ana@example.com", "no");
            approvals.decide(&request.request.id, decision).await.unwrap();
            assert!(approvals.changed(&request).await.unwrap().unwrap().decision.is_some());
        });
    }
    tasks.join_all().await;
}
