//! Records, such as approvals, on a server that works, and while connections are lost.

use std::time::Duration;

use claude_agent_kit::approval::{Approval, Approvals, Decision};
use claude_agent_kit::store::{
    Append, Epoch, RecordFilter, RecordKind, RecordStore, RecordWatch, SessionStore, StoreErrorKind,
};
use claude_agent_store::PostgresStore;
use claude_session_store::conformance;
use libtest_mimic::Trial;

use super::fixture::{connect, entry, key, kind, open, options, texts, trial, wait_for};
use super::store::schema;
use super::support::{list, owner, write};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("records_in_postgres_conform", records_in_postgres_conform),
        trial("approvals_survive_the_store", approvals_survive_the_store),
        trial("schema_of_version_2_is_updated", schema_of_version_2_is_updated),
        trial(
            "host_of_version_2_does_not_see_a_second_copy_of_approvals",
            host_of_version_2_does_not_see_a_second_copy_of_approvals,
        ),
        trial(
            "update_of_the_schema_waits_for_a_write_in_flight",
            update_of_the_schema_waits_for_a_write_in_flight,
        ),
        trial("change_of_another_host_ends_a_watch", change_of_another_host_ends_a_watch),
        trial("watch_outside_of_a_runtime_is_no_panic", watch_outside_of_a_runtime_is_no_panic),
        trial("takeover_waits_for_a_write_in_flight", takeover_waits_for_a_write_in_flight),
        trial("repeated_write_is_recognized", repeated_write_is_recognized),
        trial("decision_of_another_host_is_notified", decision_of_another_host_is_notified),
        trial(
            "damaged_approvals_are_reported_as_corrupt",
            damaged_approvals_are_reported_as_corrupt,
        ),
        trial("damaged_approvals_do_not_hide_the_others", damaged_approvals_do_not_hide_the_others),
    ]
}

async fn records_in_postgres_conform() {
    let hosts = async || {
        let options = options();
        let one = PostgresStore::open_with(options.clone()).await.unwrap();
        [one, PostgresStore::open_with(options).await.unwrap()]
    };
    conformance::run_records(hosts).await.assert();
}

/// Returns an approval as the kit would request it.
pub(crate) fn approval(number: u32) -> Approval {
    let text = format!(
        r#"{{"request":{{"id":"{number:08x}-0000-4000-8000-000000000000","scope":"scope",
             "session_id":"{}","tool_use_id":"toolu_1","tool_name":"Bash","input":{{}},
             "requested_at_ms":1}},"status":"pending","is_parked":false,"version":1}}"#,
        key(1).session()
    );
    serde_json::from_str(&text).unwrap()
}

async fn approvals_survive_the_store() {
    let options = options();
    let store = PostgresStore::open_with(options.clone()).await.unwrap();
    let old = store.claim_records(&owner(key(1).session())).await.unwrap();
    let request = approval(1);
    assert!(write(&store, &request, Some(old)).await.unwrap());
    let id = &request.request.id;
    let decision = Decision::allow("ana@example.com");
    let decided = Approvals::new("scope", store.clone()).decide(id, decision).await.unwrap();
    drop(store);

    let store = PostgresStore::open_with(options).await.unwrap();
    let approvals = Approvals::new("scope", store.clone());
    assert_eq!(approvals.get(id).await.unwrap(), Some(decided));
    assert!(store.claim_records(&owner(key(1).session())).await.unwrap() > old);
    assert_eq!(kind(write(&store, &request, Some(old)).await), StoreErrorKind::Superseded);
}

/// Creates a schema as version 2 left it, with approvals and an owner.
async fn create_version_2(schema: &str) {
    let statement = |version: &str| version.replace("__schema__", schema);
    let (first, second) = (
        statement(include_str!("../../src/postgres/schema_1.sql")),
        statement(include_str!("../../src/postgres/schema_2.sql")),
    );
    let client = connect().await;
    let create = format!("CREATE SCHEMA {schema}; DO $m$ BEGIN {first} {second} END $m$;");
    client.batch_execute(&create).await.unwrap();
    let owner =
        format!("INSERT INTO {schema}.approval_owner VALUES ('scope', '{}', 7)", key(1).session());
    client.batch_execute(&owner).await.unwrap();
    for (number, time) in [(1, 30), (2, 10), (3, 20)] {
        client.batch_execute(&insert_as_version_2(schema, number, time)).await.unwrap();
    }
}

/// Returns the statement with which a host of version 2 stores a request.
fn insert_as_version_2(schema: &str, number: u32, requested_at_ms: u64) -> String {
    let approval = approval(number);
    let body = serde_json::to_string(&approval).unwrap();
    format!(
        "SELECT o_is_written FROM {schema}.write_approval('scope', '{}', '{}', {requested_at_ms}, true, true, 1,
             'request {number}', '{body}', NULL, NULL, '60s')",
        approval.request.id, approval.request.session_id
    )
}

async fn schema_of_version_2_is_updated() {
    let options = options();
    let schema = schema(&options);
    create_version_2(&schema).await;
    let mut hosts = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let options = options.clone();
        hosts.spawn(async move {
            let store = PostgresStore::open_with(options).await.unwrap();
            let approvals = Approvals::new("scope", store.clone());
            assert_eq!(approvals.pending().await.unwrap(), [2, 3, 1].map(approval));
            store.claim_records(&owner(key(1).session())).await.unwrap()
        });
    }
    let mut epochs = hosts.join_all().await;
    epochs.sort();
    assert_eq!(epochs, [8, 9, 10, 11, 12, 13].map(Epoch::new));
    let store = PostgresStore::open_with(options).await.unwrap();
    let page = list(&store, RecordFilter::In("scope")).await.unwrap();
    let times: Vec<u64> = page.records.iter().map(|record| record.created_ms).collect();
    assert_eq!(times, [10, 20, 30]);
    let late = write(&store, &approval(4), Some(Epoch::new(7))).await;
    assert_eq!(kind(late), StoreErrorKind::Superseded);
    let approvals = Approvals::new("scope", store);
    let id = approval(1).request.id;
    let decided = approvals.decide(&id, Decision::allow("ana@example.com")).await.unwrap();
    assert_eq!(approvals.get(&id).await.unwrap(), Some(decided));
    let versions = format!("SELECT version FROM {schema}.claude_agent_store");
    let rows = connect().await.query(&versions, &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [3]);
}

/// A host of version 2 that is connected goes on with transcripts. Its requests for approvals fail, so that calls are
/// denied: two copies could both be used.
async fn host_of_version_2_does_not_see_a_second_copy_of_approvals() {
    let options = options();
    let schema = schema(&options);
    create_version_2(&schema).await;
    let old = connect().await;
    let store = PostgresStore::open_with(options).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    let claim = format!("SELECT {schema}.claim('scope', 'project', '{}', '60s')", key(1).session());
    old.batch_execute(&claim).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1"]);
    for statement in [
        insert_as_version_2(&schema, 9, 1),
        format!("SELECT {schema}.claim_approvals('scope', 'x', '60s')"),
        format!("SELECT body FROM {schema}.approval"),
    ] {
        assert!(old.batch_execute(&statement).await.is_err(), "{statement}");
    }
    assert_eq!(list(&store, RecordFilter::Open).await.unwrap().records.len(), 3);
}

/// A decision that a host of version 2 has consumed must not be usable again.
async fn update_of_the_schema_waits_for_a_write_in_flight() {
    let options = options();
    let schema = schema(&options);
    create_version_2(&schema).await;
    let (old, other) = (connect().await, connect().await);
    let approvals = approval(1);
    let mut consumed = serde_json::to_value(&approvals).unwrap();
    (consumed["status"], consumed["version"]) = ("finished".into(), 2.into());
    let consume = format!(
        "BEGIN; SELECT {schema}.write_approval('scope', '{}', '{}', 30, false, false, 2, 'late', '{consumed}', 1,
             7, '60s')",
        approvals.request.id, approvals.request.session_id
    );
    old.batch_execute(&consume).await.unwrap();
    let opening = tokio::spawn(PostgresStore::open_with(options));
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}.%'"
    );
    wait_for(&other, &waiting, |count| count == 1).await;
    old.batch_execute("COMMIT").await.unwrap();
    let store = opening.await.unwrap().unwrap();
    let page = list(&store, RecordFilter::OpenIn("scope")).await.unwrap();
    assert_eq!(page.records.len(), 2, "{page:?}");
    let found = Approvals::new("scope", store).get(&approvals.request.id).await.unwrap().unwrap();
    assert_eq!(found.version(), 2);
}

/// Without looking again: the server tells.
async fn change_of_another_host_ends_a_watch() {
    let options = options();
    let [one, other] = [
        PostgresStore::open_with(options.clone()).await.unwrap(),
        PostgresStore::open_with(options).await.unwrap(),
    ];
    let key = Approval::record_key("scope", &approval(1).request.id).unwrap();
    write(&other, &approval(1), None).await.unwrap();
    // Starts to listen.
    drop(one.records_changed(RecordWatch::Kind(RecordKind::Approval)));
    let slow = Duration::from_secs(1);
    let listens = async {
        while one.poll_interval() < slow {
            drop(one.records_changed(RecordWatch::Kind(RecordKind::Approval)));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), listens).await.unwrap();
    let watches = [
        RecordWatch::Record { key: &key, version: 1 },
        RecordWatch::Scope { scope: "scope", kind: RecordKind::Approval },
        RecordWatch::Kind(RecordKind::Approval),
    ];
    // Before the change, although they are polled after it.
    let watches = watches.map(|watch| one.records_changed(watch));
    Approvals::new("scope", other)
        .decide(&approval(1).request.id, Decision::allow("ana@example.com"))
        .await
        .unwrap();
    for watch in watches {
        tokio::time::timeout(Duration::from_secs(30), watch).await.unwrap().unwrap();
    }
}

async fn watch_outside_of_a_runtime_is_no_panic() {
    let approvals = Approvals::new("scope", open().await);
    let watch = std::thread::scope(|scope| scope.spawn(|| drop(approvals.watch())).join());
    assert!(watch.is_ok());
}

/// Returns the statement that inserts an approval of the first owner.
fn insert(schema: &str, request: &str) -> String {
    let change = approval(1).to_change().unwrap();
    let (id, owner, body) = (change.key.id(), &change.owner, &change.body);
    format!(
        "SELECT o_is_written FROM {schema}.write_records('scope', '{owner}', 1, '{{scope}}', '{{approval}}',
             '{{{id}}}', '{{{owner}}}', '{{NULL}}', '{{true}}', '{{NULL}}',
             ARRAY[convert_to('{body}', 'UTF8')], '{request}', '60s')"
    )
}

async fn takeover_waits_for_a_write_in_flight() {
    let store = open().await;
    let (client, other) = (connect().await, connect().await);
    let session = owner(key(1).session());
    let old = store.claim_records(&session).await.unwrap();
    let begin = format!("BEGIN; {}", insert(store.schema(), "a"));
    client.batch_execute(&begin).await.unwrap();
    let claim = {
        let (store, session) = (store.clone(), session.clone());
        tokio::spawn(async move { store.claim_records(&session).await })
    };
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%{}.%'",
        store.schema()
    );
    wait_for(&other, &waiting, |count| count == 1).await;
    let approvals = Approvals::new("scope", store.clone());
    assert_eq!(approvals.pending().await.unwrap(), []);
    assert!(!claim.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    assert!(claim.await.unwrap().unwrap() > old);
    assert_eq!(approvals.pending().await.unwrap(), [approval(1)]);
    let late = write(&store, &approval(2), Some(old)).await;
    assert_eq!(kind(late), StoreErrorKind::Superseded);
}

/// A connection that was lost between the commit and the response makes the store repeat its request.
async fn repeated_write_is_recognized() {
    let store = open().await;
    let client = connect().await;
    store.claim_records(&owner(key(1).session())).await.unwrap();
    for (request, is_written) in [("a", true), ("a", true), ("b", false), ("a", true)] {
        let row = client.query_one(&insert(store.schema(), request), &[]).await.unwrap();
        assert_eq!(row.get::<_, bool>(0), is_written, "{request}");
    }
    assert_eq!(Approvals::new("scope", store).pending().await.unwrap().len(), 1);
}

async fn decision_of_another_host_is_notified() {
    let options = options();
    let [one, other] = [
        PostgresStore::open_with(options.clone()).await.unwrap(),
        PostgresStore::open_with(options).await.unwrap(),
    ];
    let client = connect().await;
    let listening =
        format!("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN {}'", one.schema());
    let approvals = Approvals::new("scope", one.clone());
    let decide = async |number: u32| {
        let request = approval(number);
        write(&other, &request, None).await.unwrap();
        let waiting = {
            let (approvals, request) = (approvals.clone(), request.clone());
            tokio::spawn(async move { approvals.changed(&request).await })
        };
        wait_for(&client, &listening, |count| count == 1).await;
        let by = Decision::allow("ana@example.com");
        let others = Approvals::new("scope", other.clone());
        let decided = others.decide(&request.request.id, by).await.unwrap();
        let found = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert_eq!(found.unwrap().unwrap().unwrap(), Some(decided));
    };
    decide(1).await;
    decide(2).await;
    // Another connection is opened when the first one is lost.
    let close = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE query = 'LISTEN {}'",
        one.schema()
    );
    assert_eq!(client.query_one(&close, &[]).await.unwrap().get::<_, i64>(0), 1);
    wait_for(&client, &listening, |count| count == 0).await;
    decide(3).await;
    // It is closed with the store.
    drop((one, approvals.clone()));
    drop(approvals);
    wait_for(&client, &listening, |count| count == 0).await;
}

async fn damaged_approvals_are_reported_as_corrupt() {
    let store = open().await;
    write(&store, &approval(1), None).await.unwrap();
    let (client, schema) = (connect().await, store.schema().to_owned());
    let approvals = Approvals::new("scope", store);
    for change in
        [format!("UPDATE {schema}.record SET body = '{{}}'"), format!("DROP TABLE {schema}.record")]
    {
        client.batch_execute(&change).await.unwrap();
        let found = approvals.get(&approval(1).request.id).await;
        assert_eq!(kind(found), StoreErrorKind::Corrupt, "{change}");
    }
    assert_eq!(kind(approvals.pending().await), StoreErrorKind::Corrupt);
}

async fn damaged_approvals_do_not_hide_the_others() {
    let store = open().await;
    for number in 1..=9 {
        write(&store, &approval(number), None).await.unwrap();
    }
    let (client, schema) = (connect().await, store.schema().to_owned());
    let damage = format!("UPDATE {schema}.record SET body = '{{}}' WHERE id LIKE '00000005%'");
    client.batch_execute(&damage).await.unwrap();
    let approvals = Approvals::new("scope", store.clone());
    let listed = approvals.list_pending().await.unwrap();
    assert_eq!(listed.approvals, [1, 2, 3, 4, 6, 7, 8, 9].map(approval));
    let damaged = &approval(5).request.id;
    assert_eq!(listed.unreadable.len(), 1);
    assert_eq!(listed.unreadable[0].id, *damaged);
    assert_eq!(kind(approvals.get(damaged).await), StoreErrorKind::Corrupt);
    // A run that looks for its own requests must not miss one: its list fails.
    assert_eq!(kind(approvals.park(key(1).session()).await), StoreErrorKind::Corrupt);
    let damage = format!("UPDATE {schema}.record SET version = -1 WHERE id LIKE '00000005%'");
    client.batch_execute(&damage).await.unwrap();
    assert_eq!(approvals.list_pending().await.unwrap().unreadable.len(), 1);
    let session = owner(key(1).session());
    assert_eq!(kind(list(&store, RecordFilter::OpenOf(&session)).await), StoreErrorKind::Corrupt);
}
