//! Locks, dropped requests and stalled connections.

use std::time::Duration;

use claude_agent_kit::store::{Append, SessionStore, StoreErrorKind};
use claude_agent_store::{PostgresOptions, PostgresStore};
use libtest_mimic::Trial;

use super::fixture::{
    connect, entry, key, kind, new_schema, open, options, options_for, texts, trial, wait_for,
    with_server,
};
use tests_servers::Proxy;
use tests_servers::postgres::Server;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("takeover_waits_for_an_append_in_flight", takeover_waits_for_an_append_in_flight),
        trial("locked_session_is_unavailable", locked_session_is_unavailable),
        trial("dropped_requests_leave_no_transaction", dropped_requests_leave_no_transaction),
        trial(
            "full_server_rejects_appends_until_there_is_room",
            full_server_rejects_appends_until_there_is_room,
        ),
        trial("closed_connections_are_replaced", closed_connections_are_replaced),
        trial("unreachable_server_is_unavailable", unreachable_server_is_unavailable),
        trial(
            "stalled_append_is_repeated_without_a_duplicate",
            stalled_append_is_repeated_without_a_duplicate,
        ),
        trial(
            "lost_response_is_repeated_without_a_duplicate",
            lost_response_is_repeated_without_a_duplicate,
        ),
    ]
}

/// Executes an append of the current owner in a transaction, and leaves it open.
fn open_append(schema: &str) -> String {
    format!(
        "BEGIN; SELECT {schema}.append('scope', 'project', '{}', 1, ARRAY[''], ARRAY[1], ARRAY['id'],
             ARRAY['\"in flight\"'], NULL, NULL, '60s')",
        key(1).session()
    )
}

/// The number of requests that wait for a lock of a table in this schema.
fn waiting(schema: &str) -> String {
    format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}.%'"
    )
}

async fn takeover_waits_for_an_append_in_flight() {
    let store = open().await;
    let (client, other) = (connect().await, connect().await);
    let old = store.claim(&key(1)).await.unwrap();
    client.batch_execute(&open_append(store.schema())).await.unwrap();
    let claim = {
        let store = store.clone();
        tokio::spawn(async move { store.claim(&key(1)).await })
    };
    wait_for(&other, &waiting(store.schema()), |count| count == 1).await;
    // Readers do not wait, and do not see the entry.
    assert_eq!(texts(&store, &key(1)).await, [""; 0]);
    assert!(!claim.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    let new = claim.await.unwrap().unwrap();
    assert!(new > old);
    assert_eq!(texts(&store, &key(1)).await, ["\"in flight\""]);
    let late = store.append(&key(1), Append::new(&[entry("1")]).epoch(old)).await;
    assert_eq!(kind(late), StoreErrorKind::Superseded);
}

async fn locked_session_is_unavailable() {
    let options = options();
    let patient = PostgresStore::open_with(options.clone()).await.unwrap();
    let hasty = options.request_timeout(Duration::from_secs(3)).max_connections(1);
    let hasty = PostgresStore::open_with(hasty).await.unwrap();
    let client = connect().await;
    patient.claim(&key(1)).await.unwrap();
    client.batch_execute(&open_append(patient.schema())).await.unwrap();
    let error = hasty.append(&key(1), Append::new(&[entry("1")])).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("lock timeout"), "{error}");
    // Other sessions are not affected.
    hasty.append(&key(2), Append::new(&[entry("1")])).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    hasty.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    assert_eq!(texts(&hasty, &key(1)).await, ["1"]);
}

async fn dropped_requests_leave_no_transaction() {
    let store = PostgresStore::open_with(options().max_connections(3)).await.unwrap();
    let (client, other) = (connect().await, connect().await);
    store.claim(&key(1)).await.unwrap();
    client.batch_execute(&open_append(store.schema())).await.unwrap();
    let mut requests = Vec::new();
    for number in 0..3 {
        let store = store.clone();
        requests.push(tokio::spawn(async move {
            let batch = [entry(&number.to_string())];
            store.append(&key(1), Append::new(&batch)).await
        }));
    }
    wait_for(&other, &waiting(store.schema()), |count| count == 3).await;
    for request in requests {
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
    }
    // The connections of the dropped requests are free again, although the server is still busy with them.
    store.append(&key(2), Append::new(&[entry("1")])).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{}.%' AND pid <> pg_backend_pid()
             AND state <> 'idle'",
        store.schema()
    );
    wait_for(&other, &open, |count| count == 0).await;
    // Executed or not, they are whole and can be repeated.
    let batch = ["0", "1", "2"].map(entry);
    store.append(&key(1), Append::new(&batch)).await.unwrap();
    let mut found = texts(&store, &key(1)).await;
    found.sort();
    assert_eq!(found, ["0", "1", "2"]);
}

/// A trigger reports what a server without disk space reports, after some entries of the batch were inserted.
async fn full_server_rejects_appends_until_there_is_room() {
    let store = open().await;
    let (client, schema) = (connect().await, store.schema());
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    let fill = format!(
        "CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF new.text = '3' THEN RAISE 'could not extend file' USING ERRCODE = '53100'; END IF;
             RETURN new;
         END $$;
         CREATE TRIGGER is_full BEFORE INSERT ON {schema}.entry
             FOR EACH ROW EXECUTE FUNCTION {schema}.full()"
    );
    client.batch_execute(&fill).await.unwrap();
    let batch = ["2", "3"].map(entry);
    let error = store.append(&key(1), Append::new(&batch)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (StoreErrorKind::Full, true), "{error}");
    assert_eq!(texts(&store, &key(1)).await, ["1"]);
    client.batch_execute(&format!("DROP TRIGGER is_full ON {schema}.entry")).await.unwrap();
    store.append(&key(1), Append::new(&batch)).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2", "3"]);
}

/// As after a restart of the server, or when a pooler closes idle connections.
async fn closed_connections_are_replaced() {
    let store = open().await;
    let client = connect().await;
    for number in 0..5 {
        let batch = [entry(&number.to_string())];
        store.append(&key(1), Append::new(&batch)).await.unwrap();
        let close = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE query LIKE '%{}.%' AND pid <> pg_backend_pid()",
            store.schema()
        );
        client.query_one(&close, &[]).await.unwrap();
    }
    assert_eq!(texts(&store, &key(1)).await, ["0", "1", "2", "3", "4"]);
}

async fn unreachable_server_is_unavailable() {
    // Nothing listens on a port that was just closed.
    let port = Proxy::start(with_server(Server::port)).await.unwrap().port();
    let url = with_server(|server| server.url_at(port));
    let error = PostgresStore::open_with(options_for(&url)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}/postgres")), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

async fn through(proxy: &Proxy) -> (PostgresOptions, PostgresStore) {
    let url = with_server(|server| server.url_at(proxy.port()));
    let options = options_for(&url).schema(new_schema()).request_timeout(Duration::from_secs(2));
    let store = PostgresStore::open_with(options.clone()).await.unwrap();
    (options, store)
}

async fn stalled_append_is_repeated_without_a_duplicate() {
    let proxy = Proxy::start(with_server(Server::port)).await.unwrap();
    let (_, store) = through(&proxy).await;
    let batch = [entry("1"), entry("2")];
    store.append(&key(1), Append::new(&batch[..1])).await.unwrap();
    proxy.stall(true);
    let error = store.append(&key(1), Append::new(&batch)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("did not respond within 2s"), "{error}");
    // What was stalled is delivered later, or never.
    proxy.stall(false);
    store.append(&key(1), Append::new(&batch)).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2"]);
}

async fn lost_response_is_repeated_without_a_duplicate() {
    let proxy = Proxy::start(with_server(Server::port)).await.unwrap();
    let (options, store) = through(&proxy).await;
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    // The server gets the request, and the client does not get the response.
    proxy.stall_responses(true);
    let request = {
        let store = store.clone();
        tokio::spawn(async move { store.append(&key(1), Append::new(&[entry("2")])).await })
    };
    let url = with_server(Server::url);
    let schema = store.schema().to_owned();
    let direct = PostgresStore::open_with(options_for(&url).schema(schema)).await.unwrap();
    while texts(&direct, &key(1)).await.len() < 2 {
        tokio::task::yield_now().await;
    }
    proxy.close();
    let error = request.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");

    let proxy = Proxy::start(with_server(Server::port)).await.unwrap();
    drop((options, store));
    let (_, store) = through(&proxy).await;
    drop(store);
    let appended = direct.append(&key(1), Append::new(&[entry("2"), entry("3")])).await.unwrap();
    assert_eq!(appended.skipped, 1);
    assert_eq!(texts(&direct, &key(1)).await, ["1", "2", "3"]);
}
