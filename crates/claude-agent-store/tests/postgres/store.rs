//! What the store does on a server that works.

use std::time::Duration;

use claude_agent_kit::approval::{Approvals, Decision};
use claude_agent_kit::store::{
    Append, Epoch, List, Load, RecordFilter, RecordKind, RecordSelection, RecordStore, Retention,
    Sequence, SessionStore, StoreErrorKind, Subpath,
};
use claude_agent_store::{Encrypted, EncryptionKey, Keyring, PostgresOptions, PostgresStore};
use claude_session_store::conformance;
use libtest_mimic::Trial;
use tokio::task::JoinSet;

use super::fixture::{
    connect, entry, key, kind, new_schema, open, options, texts, trial, wait_for, with_server,
};
use super::records::approval;
use super::support::{list, owner, write};
use tests_servers::postgres::{PASSWORD, Server};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("postgres_store_conforms", postgres_store_conforms),
        trial("encrypted_store_in_postgres_conforms", encrypted_store_in_postgres_conforms),
        trial("sessions_survive_the_store", sessions_survive_the_store),
        trial("hosts_create_one_schema_at_once", hosts_create_one_schema_at_once),
        trial("hosts_append_to_one_session", hosts_append_to_one_session),
        trial("newer_schema_is_rejected", newer_schema_is_rejected),
        trial(
            "schemas_of_other_programs_are_not_changed",
            schemas_of_other_programs_are_not_changed,
        ),
        trial("database_without_unicode_is_rejected", database_without_unicode_is_rejected),
        trial("documented_privileges_are_sufficient", documented_privileges_are_sufficient),
        trial("certificates_are_verified", certificates_are_verified),
        trial("lists_and_pages_are_read_by_index", lists_and_pages_are_read_by_index),
        trial("long_pages_are_read_in_parts", long_pages_are_read_in_parts),
        trial("summaries_may_contain_nul", summaries_may_contain_nul),
        trial("damaged_entries_are_reported_as_corrupt", damaged_entries_are_reported_as_corrupt),
    ]
}

async fn postgres_store_conforms() {
    conformance::run(open).await.assert();
}

async fn encrypted_store_in_postgres_conforms() {
    let make = async || {
        let current = EncryptionKey::new("key-1", &[1; 32]).unwrap();
        Encrypted::new(open().await, Keyring::new(&[7; 32], current))
    };
    conformance::run(make).await.assert();
}

async fn sessions_survive_the_store() {
    let options = options();
    let store = PostgresStore::open_with(options.clone()).await.unwrap();
    let location = store.location().unwrap();
    assert!(location.starts_with("PostgreSQL \"") && !location.contains(PASSWORD), "{location}");
    assert_eq!(store.records_location().unwrap(), location);
    let old = store.claim(&key(1)).await.unwrap();
    let batch = [entry("1"), entry("2")];
    let append = Append::new(&batch).epoch(old).summary(Sequence::new(0), "{}");
    store.append(&key(1), append).await.unwrap();
    let row = store.list(key(1).project_key(), List::new()).await.unwrap();
    drop(store);

    let store = PostgresStore::open_with(options).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2"]);
    assert_eq!(store.list(key(1).project_key(), List::new()).await.unwrap(), row);
    assert!(store.claim(&key(1)).await.unwrap() > old);
    assert_eq!(store.append(&key(1), Append::new(&batch)).await.unwrap().skipped, 2);
}

async fn hosts_create_one_schema_at_once() {
    for _ in 0..3 {
        let options = options();
        let mut hosts = JoinSet::new();
        for number in 0..12 {
            let options = options.clone();
            hosts.spawn(async move {
                let store = PostgresStore::open_with(options).await.unwrap();
                assert_eq!(store.claim(&key(number)).await.unwrap(), Epoch::new(1));
            });
        }
        hosts.join_all().await;
        let client = connect().await;
        let table = format!("{}.claude_agent_store", schema(&options));
        let rows = client.query(&format!("SELECT version FROM {table}"), &[]).await.unwrap();
        assert_eq!(rows.len(), 1);
    }
}

pub(crate) fn schema(options: &PostgresOptions) -> String {
    let shown = format!("{options:?}");
    shown.split("schema: \"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// 32 writers on four hosts, while a fifth one takes over.
async fn hosts_append_to_one_session() {
    let options = options().max_connections(8);
    let reader = PostgresStore::open_with(options.clone()).await.unwrap();
    let old = reader.claim(&key(1)).await.unwrap();
    let mut writers = JoinSet::new();
    for host in 0..4 {
        let store = PostgresStore::open_with(options.clone()).await.unwrap();
        for writer in 0..8 {
            let store = store.clone();
            writers.spawn(async move {
                for number in 0..200 {
                    let texts = [0, 1].map(|at| format!("[{host},{writer},{number},{at}]"));
                    let batch = texts.each_ref().map(|text| entry(text));
                    let result = store.append(&key(1), Append::new(&batch).epoch(old)).await;
                    match result {
                        Ok(_) => {}
                        Err(error) if error.kind() == StoreErrorKind::Superseded => return number,
                        Err(error) => panic!("{error}"),
                    }
                }
                200
            });
        }
    }
    while reader
        .load(&key(1), Load::all().after(Sequence::new(100)))
        .await
        .unwrap()
        .entries
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
    reader.claim(&key(1)).await.unwrap();
    let at_the_claim = texts(&reader, &key(1)).await;
    let acknowledged: usize = writers.join_all().await.into_iter().sum();
    let found = texts(&reader, &key(1)).await;
    assert_eq!(found.len(), at_the_claim.len());
    assert_eq!(found.len(), acknowledged * 2);
    assert!(found.chunks(2).all(|pair| pair[0].replace(",0]", ",1]") == pair[1]));
}

async fn newer_schema_is_rejected() {
    let options = options();
    drop(PostgresStore::open_with(options.clone()).await.unwrap());
    let (client, table) = (connect().await, format!("{}.claude_agent_store", schema(&options)));
    let set = async |version: i32| {
        client.execute(&format!("UPDATE {table} SET version = {version}"), &[]).await.unwrap();
    };
    set(99).await;
    let error = PostgresStore::open_with(options.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("has version 99"), "{error}");
    set(3).await;
    PostgresStore::open_with(options).await.unwrap();
}

async fn schemas_of_other_programs_are_not_changed() {
    let (client, name) = (connect().await, new_schema());
    client
        .batch_execute(&format!("CREATE SCHEMA {name}; CREATE TABLE {name}.entry (a int)"))
        .await
        .unwrap();
    let result = PostgresStore::open_with(options().schema(&name)).await;
    assert_eq!(kind(result), StoreErrorKind::Rejected);
    let count = "SELECT count(*) FROM pg_class WHERE relnamespace = $1::text::regnamespace";
    let count: i64 = client.query_one(count, &[&name]).await.unwrap().get(0);
    assert_eq!(count, 1);
}

async fn database_without_unicode_is_rejected() {
    let client = connect().await;
    let create = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    client.execute(create, &[]).await.unwrap();
    let url = with_server(Server::url).replace("/postgres?", "/latin?");
    let options = PostgresOptions::new(&url).unwrap().password(PASSWORD);
    let error = PostgresStore::open_with(options).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("\"LATIN1\""), "{error}");
}

/// The statements are those of the guide: first what an administrator executes, then what the owner does.
async fn documented_privileges_are_sufficient() {
    let guide = include_str!("../../src/guide/store_servers_postgres.md");
    let mut statements = guide.split("```sql\n").skip(1);
    let mut next = || statements.next().unwrap().split("```").next().unwrap().to_owned();
    let (roles, grants) = (next(), next());
    let (client, schema) = (connect().await, new_schema());
    client.batch_execute(&roles.replace("DATABASE agents", "DATABASE postgres")).await.unwrap();
    let as_role = |role: &str, password: &str| {
        let url = with_server(Server::url).replace("tester@", &format!("{role}@"));
        PostgresOptions::new(&url).unwrap().password(password).schema(&schema)
    };
    drop(PostgresStore::open_with(as_role("agent_owner", "change me")).await.unwrap());
    let agent = as_role("agent", "change me too");
    let error = PostgresStore::open_with(agent.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(error.to_string().contains("permission denied"), "{error}");

    let grants = grants.replace("claude_agent_store", "@");
    let grants =
        grants.replace("@.@", &format!("{schema}.claude_agent_store")).replace('@', &schema);
    client.batch_execute(&format!("SET ROLE agent_owner; {grants}; RESET ROLE")).await.unwrap();
    let store = PostgresStore::open_with(agent.clone()).await.unwrap();
    let epoch = store.claim(&key(1)).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")]).epoch(epoch)).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1"]);
    store.list(key(1).project_key(), List::new()).await.unwrap();
    store.subpaths(&key(1)).await.unwrap();
    store.delete(&key(1), None).await.unwrap();
    let epoch = store.claim_records(&owner(key(1).session())).await.unwrap();
    let request = approval(1);
    assert!(write(&store, &request, Some(epoch)).await.unwrap());
    let approvals = Approvals::new("scope", store.clone());
    let decision = Decision::allow("ana@example.com");
    approvals.decide(&request.request.id, decision).await.unwrap();
    store.append(&key(1), Append::new(&[entry("2")])).await.unwrap();
    let retention = Retention::new("scope").sessions(store.clone(), Duration::ZERO);
    let retention = retention.records(store, Duration::ZERO);
    let report = retention.run().await.into_result().unwrap();
    // The decision is deleted with its session.
    assert_eq!((report.sessions, report.records), (1, 1));
    // The role cannot create anything.
    assert_eq!(
        kind(PostgresStore::open_with(agent.clone().schema(new_schema())).await),
        StoreErrorKind::Rejected
    );

    let error = PostgresStore::open_with(agent.password("hunter3")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter3"), "{error}");
}

async fn certificates_are_verified() {
    let url = with_server(Server::url).replace("sslmode=disable", "sslmode=require");
    let options = PostgresOptions::new(&url).unwrap().password(PASSWORD).schema(new_schema());
    let error = PostgresStore::open_with(options.clone()).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let trusted = options.root_certificates(with_server(Server::certificate));
    let store = PostgresStore::open_with(trusted.clone()).await.unwrap();
    let long = format!("{:?}", "x".repeat(1_000_000));
    store.append(&key(1), Append::new(&[entry(&long)])).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, [long]);
    let client = connect().await;
    let encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE ssl";
    let encrypted: i64 = client.query_one(encrypted, &[]).await.unwrap().get(0);
    assert!(encrypted >= 1);

    // The certificate is that of another host.
    let other = url.replace("127.0.0.1", "127.0.0.2");
    let other = PostgresOptions::new(&other).unwrap().password(PASSWORD);
    let other = other.root_certificates(with_server(Server::certificate));
    assert_eq!(kind(PostgresStore::open_with(other).await), StoreErrorKind::Unavailable);
}

/// Whole tables are never read, as the counters of the server show.
async fn lists_and_pages_are_read_by_index() {
    let options = options();
    drop(PostgresStore::open_with(options.clone()).await.unwrap());
    let (client, schema) = (connect().await, schema(&options));
    let fill = format!(
        "INSERT INTO {schema}.session (scope, project, session, main_last, modified_ms)
             SELECT 'scope', 'p' || n % 10, n::text, 1, n FROM generate_series(1, 20000) n;
         INSERT INTO {schema}.transcript (session, subpath)
             SELECT id, '' FROM {schema}.session;
         INSERT INTO {schema}.entry (session, sequence, transcript, entry_id, text)
             SELECT id % 100, id, id % 100, id, '1' FROM {schema}.session;
         INSERT INTO {schema}.record_owner (scope, owner) SELECT 'scope', session FROM {schema}.session;
         INSERT INTO {schema}.record (scope, kind, id, owner, version, is_open, due_at_ms, created_ms, request, body)
             SELECT 'scope', 'approval', 'x' || n, n % 100, 1, n % 2 = 0, n + 4e12, n, '', '{{}}'
             FROM generate_series(1, 20000) n;
         ANALYZE {schema}.session, {schema}.transcript, {schema}.entry, {schema}.record_owner,
             {schema}.record"
    );
    client.batch_execute(&fill).await.unwrap();
    drop(client);
    let before = scans_of(&schema).await;
    let store = PostgresStore::open_with(options).await.unwrap();
    let a = Subpath::new("a").unwrap();
    for number in 0..20 {
        let key = key(number);
        store.append(&key, Append::new(&[entry("1")])).await.unwrap();
        store.list(key.project_key(), List::new()).await.unwrap();
        for load in [Load::all(), Load::main(), Load::subpath(&a)] {
            store.load(&key, load).await.unwrap();
        }
        store.subpaths(&key).await.unwrap();
        store.delete(&key, None).await.unwrap();
        use_records(&store, number).await;
    }
    drop(store);
    assert_eq!(scans_of(&schema).await, before);
}

/// Sends each request for records once.
async fn use_records(store: &PostgresStore, number: u32) {
    let request = approval(number);
    let owner = owner(&request.request.session_id);
    let epoch = store.claim_records(&owner).await.unwrap();
    write(store, &request, None).await.unwrap();
    let earlier = Some(Epoch::new(epoch.get() - 1));
    assert_eq!(kind(write(store, &request, earlier).await), StoreErrorKind::Superseded);
    let id = request.request.id.as_str();
    for filter in [
        RecordFilter::Id { scope: "scope", id },
        RecordFilter::Of(&owner),
        RecordFilter::OpenOf(&owner),
        RecordFilter::In("scope"),
        RecordFilter::OpenIn("scope"),
        RecordFilter::Open,
        RecordFilter::Due,
    ] {
        list(store, filter).await.unwrap();
    }
    let selections = [
        RecordSelection::OpenOf(&owner),
        RecordSelection::Of(&owner),
        RecordSelection::ClosedBefore { scope: "other", time_ms: 9 },
        RecordSelection::In("other"),
    ];
    for selection in selections {
        store.delete_records(selection, Some(RecordKind::Approval), 10).await.unwrap();
    }
}

/// Returns how often each table was read as a whole, after all connections that use the schema have ended:
/// they report their counters then.
async fn scans_of(schema: &str) -> Vec<String> {
    let client = connect().await;
    let connections = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE query LIKE '%{schema}.%' AND pid <> pg_backend_pid()"
    );
    wait_for(&client, &connections, |count| count == 0).await;
    let scans = "SELECT relname || ' ' || seq_scan FROM pg_stat_user_tables
                 WHERE schemaname = $1 AND relname <> 'claude_agent_store' ORDER BY 1";
    let rows = connect().await.query(scans, &[&schema]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn long_pages_are_read_in_parts() {
    let store = open().await;
    let batch: Vec<_> = (0..2_500).map(|number| entry(&number.to_string())).collect();
    store.append(&key(1), Append::new(&batch)).await.unwrap();
    for (limit, max_bytes) in [
        (usize::MAX, usize::MAX),
        (2_500, usize::MAX),
        (2_499, 99_999),
        (1_000, 99_999),
        (2_000, 3_000),
    ] {
        let load = Load::all().limit(limit).max_bytes(max_bytes);
        let page = store.load(&key(1), load).await.unwrap();
        let mut bytes = 0;
        let fits = |entry: &&claude_agent_kit::store::NewEntry| {
            bytes += entry.text().len();
            bytes <= max_bytes
        };
        let expected = batch.iter().take(limit).take_while(fits).count();
        assert_eq!(page.entries.len(), expected, "{load:?}");
        assert_eq!(page.more, expected < batch.len(), "{load:?}");
        assert!(page.entries.iter().zip(&batch).all(|(found, new)| found.text == *new.text()));
    }
}

async fn summaries_may_contain_nul() {
    let store = open().await;
    let append = [entry("1")];
    let append = Append::new(&append).summary(Sequence::new(0), "a\0b");
    store.append(&key(1), append).await.unwrap();
    let list = store.list(key(1).project_key(), List::new()).await.unwrap();
    assert_eq!(list.sessions[0].summary.as_ref().unwrap().data, "a\0b");
}

async fn damaged_entries_are_reported_as_corrupt() {
    let options = options();
    let store = PostgresStore::open_with(options.clone()).await.unwrap();
    let (client, schema) = (connect().await, schema(&options));
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    for change in [
        format!("UPDATE {schema}.entry SET entry_id = ''"),
        format!(
            "UPDATE {schema}.entry SET entry_id = 'a'; UPDATE {schema}.transcript SET subpath = '../a'"
        ),
        format!(
            "UPDATE {schema}.transcript SET subpath = ''; UPDATE {schema}.entry SET sequence = -1"
        ),
        format!("DROP TABLE {schema}.entry"),
    ] {
        client.batch_execute(&change).await.unwrap();
        let load = Load::all().after(Sequence::new(0));
        let loaded = store.load(&key(1), load).await;
        if change.contains("-1") {
            // Before the first entry.
            assert_eq!(loaded.unwrap().entries, []);
        } else {
            assert_eq!(kind(loaded), StoreErrorKind::Corrupt, "{change}");
        }
    }
}
