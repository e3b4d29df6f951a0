//! Faulty servers, lost responses, stalled connections and damaged objects.

use std::time::Duration;

use claude_agent_kit::store::{
    Append, Epoch, List, Load, SessionStore, StoreError, StoreErrorKind,
};
use claude_agent_store::{S3Options, S3Store};
use libtest_mimic::Trial;

use super::fake::{Checks, Fake};
use super::fixture::{
    entry, head_of, key, kind, long_entry, new_prefix, objects, options, options_at, texts, trial,
    with_server,
};
use super::relay::{Action, Relay};
use tests_servers::Proxy;
use tests_servers::s3::{ACCESS_KEY, SECRET_KEY, Server, UnconditionalServer, url};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("servers_without_conditions_are_rejected", servers_without_conditions_are_rejected),
        trial("wrong_credentials_are_rejected", wrong_credentials_are_rejected),
        trial("missing_bucket_is_rejected", missing_bucket_is_rejected),
        trial("certificates_are_verified", certificates_are_verified),
        trial("unreachable_server_is_unavailable", unreachable_server_is_unavailable),
        trial("busy_server_is_tried_again", busy_server_is_tried_again),
        trial("errors_of_the_server_have_kinds", errors_of_the_server_have_kinds),
        trial(
            "own_write_with_a_lost_response_is_recognized",
            own_write_with_a_lost_response_is_recognized,
        ),
        trial(
            "lost_write_is_repeated_without_a_duplicate",
            lost_write_is_repeated_without_a_duplicate,
        ),
        trial(
            "stalled_append_is_repeated_without_a_duplicate",
            stalled_append_is_repeated_without_a_duplicate,
        ),
        trial("dropped_appends_are_whole_or_not_stored", dropped_appends_are_whole_or_not_stored),
        trial("damaged_objects_are_reported_as_corrupt", damaged_objects_are_reported_as_corrupt),
    ]
}

/// Checks that a text contains nothing that must not be shown.
fn assert_no_secret(error: &StoreError) {
    let mut shown = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        shown = format!("{shown} {error} {error:?}");
        cause = error.source();
    }
    for secret in [SECRET_KEY, "hunter2", "planted", "Signature="] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

async fn servers_without_conditions_are_rejected() {
    for (if_none_match, if_match, expected) in
        [(false, false, "If-None-Match"), (false, true, "If-None-Match"), (true, false, "If-Match")]
    {
        let fake = Fake::start(Checks { if_none_match, if_match }).await;
        let error = S3Store::open_with(options_at(fake.port, "a")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(fake.names(), [""; 0]);
    }
    let fake = Fake::start(Checks { if_none_match: true, if_match: true }).await;
    S3Store::open_with(options_at(fake.port, "a")).await.unwrap();
    assert_eq!(fake.names(), [""; 0]);
    // A server that knows the condition, and does not implement it.
    let relay = Relay::start(fake.port).await;
    relay.set(|_| Action::Fail(501, "NotImplemented"));
    let error = S3Store::open_with(options_at(relay.port(), "a")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("conditional writes"), "{error}");
    // A real server that ignores both.
    let server = UnconditionalServer::start().unwrap();
    let error = S3Store::open_with(options_at(server.port(), "a")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(error.to_string().contains("conditional writes"), "{error}");
    // Also on the real server, the test object is removed.
    let prefix = new_prefix();
    S3Store::open_with(options_at(with_server(Server::port), &prefix)).await.unwrap();
    assert_eq!(objects(&prefix), [""; 0]);
}

async fn wrong_credentials_are_rejected() {
    for (id, secret) in [(ACCESS_KEY, "hunter2"), ("hunter2", SECRET_KEY)] {
        let error = S3Store::open_with(options().credentials(id, secret)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("check the credentials"), "{error}");
        assert_no_secret(&error);
    }
    let store = S3Store::open_with(options()).await.unwrap();
    assert!(!format!("{store:?}").contains(SECRET_KEY));
    let location = store.location().unwrap();
    assert!(location.starts_with("S3 \"") && !location.contains(SECRET_KEY), "{location}");
}

async fn missing_bucket_is_rejected() {
    let port = with_server(Server::port);
    let url = url(port, "a").replace("s3://agents", "s3://missing");
    let options = S3Options::new(&url).unwrap().credentials(ACCESS_KEY, SECRET_KEY);
    let error = S3Store::open_with(options).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("create the bucket"), "{error}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}/missing/a")), "{error}");
}

async fn certificates_are_verified() {
    let endpoint = format!("https://127.0.0.1:{}", with_server(Server::https_port));
    let options = options().endpoint(endpoint);
    let error = S3Store::open_with(options.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("S3Options::root_certificates"), "{error}");
    let trusted = options.root_certificates(with_server(Server::certificate));
    let store = S3Store::open_with(trusted.clone()).await.unwrap();
    let long = long_entry(1, 1 << 20);
    store.append(&key(1), Append::new(std::slice::from_ref(&long))).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, [long.text().to_string()]);
    // The certificate is that of another host.
    let other = format!("https://127.0.0.2:{}", with_server(Server::https_port));
    assert_eq!(
        kind(S3Store::open_with(trusted.endpoint(other)).await),
        StoreErrorKind::Unavailable
    );
}

async fn unreachable_server_is_unavailable() {
    // Nothing listens on a port that was just closed.
    let port = Proxy::start(with_server(Server::port)).await.unwrap().port();
    let error = S3Store::open_with(options_at(port, "a")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}/agents/a")), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

async fn through_relay() -> (Relay, String, S3Store) {
    let relay = Relay::start(with_server(Server::port)).await;
    let prefix = new_prefix();
    let store = S3Store::open_with(options_at(relay.port(), &prefix)).await.unwrap();
    relay.take();
    (relay, prefix, store)
}

async fn busy_server_is_tried_again() {
    let (relay, _, store) = through_relay().await;
    let mut count = 0;
    relay.set(move |_| {
        count += 1;
        if count % 3 == 0 { Action::Pass } else { Action::Fail(503, "SlowDown") }
    });
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    store.append(&key(1), Append::new(&[entry("2")])).await.unwrap();
    relay.set(|_| Action::Fail(503, "SlowDown"));
    let error = store.append(&key(1), Append::new(&[entry("3")])).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("SlowDown"), "{error}");
    assert_no_secret(&error);
    relay.set(|_| Action::Pass);
    assert_eq!(store.append(&key(1), Append::new(&[entry("3")])).await.unwrap().skipped, 0);
    assert_eq!(texts(&store, &key(1)).await, ["1", "2", "3"]);
}

async fn errors_of_the_server_have_kinds() {
    let (relay, _, store) = through_relay().await;
    for (status, code, expected, help) in [
        (403, "RequestTimeTooSkewed", StoreErrorKind::Unavailable, "clock"),
        (403, "AccessDenied", StoreErrorKind::Rejected, "permissions"),
        (403, "SignatureDoesNotMatch", StoreErrorKind::Rejected, "credentials"),
        (400, "ExpiredToken", StoreErrorKind::Rejected, "ExpiredToken"),
        (301, "PermanentRedirect", StoreErrorKind::Rejected, "region"),
        (507, "XMinioStorageFull", StoreErrorKind::Full, "space"),
        (404, "NoSuchBucket", StoreErrorKind::Rejected, "bucket"),
        (500, "", StoreErrorKind::Unavailable, "status 500"),
    ] {
        relay.set(move |_| Action::Fail(status, code));
        let error = store.claim(&key(1)).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{error}");
        assert!(error.to_string().contains(help), "{error}");
        assert_no_secret(&error);
    }
    relay.set(|_| Action::Pass);
    assert_eq!(store.claim(&key(1)).await.unwrap(), Epoch::new(1));
}

async fn own_write_with_a_lost_response_is_recognized() {
    let (relay, _, store) = through_relay().await;
    for (round, is_large) in [(0, false), (1, true), (2, false)] {
        let mut is_lost = false;
        relay.set(move |request| {
            if request.is_head_write() && !is_lost {
                is_lost = true;
                return Action::LoseResponse;
            }
            Action::Pass
        });
        let epoch = store.claim(&key(1)).await.unwrap();
        assert_eq!(epoch, Epoch::new(round + 1));
        let mut is_lost = false;
        relay.set(move |request| {
            if request.method == "PUT" && !is_lost {
                is_lost = true;
                return Action::LoseResponse;
            }
            Action::Pass
        });
        let number = u32::try_from(round).unwrap();
        let batch = [long_entry(number, if is_large { 600_000 } else { 10 })];
        let appended = store.append(&key(1), Append::new(&batch).epoch(epoch)).await.unwrap();
        assert_eq!((appended.skipped, appended.last.get()), (0, round + 1));
    }
    assert_eq!(texts(&store, &key(1)).await.len(), 3);
}

/// All responses are lost, so that the append fails although it is stored. Then another host writes.
async fn lost_write_is_repeated_without_a_duplicate() {
    let (relay, prefix, store) = through_relay().await;
    let other = S3Store::open_with(options_at(with_server(Server::port), &prefix)).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    relay.set(|request| if request.is_head_write() { Action::LoseResponse } else { Action::Close });
    let batch = [entry("2"), entry("3")];
    let error = store.append(&key(1), Append::new(&batch)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    relay.set(|_| Action::Pass);
    other.append(&key(1), Append::new(&[entry("4")])).await.unwrap();
    let batch = [entry("2"), entry("3"), entry("5")];
    let appended = store.append(&key(1), Append::new(&batch)).await.unwrap();
    assert_eq!((appended.skipped, appended.last.get()), (2, 5));
    assert_eq!(texts(&other, &key(1)).await, ["1", "2", "3", "4", "5"]);
    // A claim whose response is lost has happened or not; the next one is greater in any case.
    relay.set(|request| if request.is_head_write() { Action::LoseResponse } else { Action::Close });
    store.claim(&key(1)).await.unwrap_err();
    relay.set(|_| Action::Pass);
    assert_eq!(other.claim(&key(1)).await.unwrap(), Epoch::new(2));
    let late = store.append(&key(1), Append::new(&[entry("6")]).epoch(Epoch::new(1))).await;
    assert_eq!(kind(late), StoreErrorKind::Superseded);
}

async fn stalled_append_is_repeated_without_a_duplicate() {
    let proxy = Proxy::start(with_server(Server::port)).await.unwrap();
    let options = options_at(proxy.port(), &new_prefix()).request_timeout(Duration::from_secs(2));
    let store = S3Store::open_with(options).await.unwrap();
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

async fn dropped_appends_are_whole_or_not_stored() {
    let (relay, _, store) = through_relay().await;
    for number in 0..40_u32 {
        let batch = [long_entry(number * 2, 40_000), long_entry(number * 2 + 1, 40_000)];
        let key = key(1);
        let append = store.append(&key, Append::new(&batch));
        // Dropped after some of its steps.
        let limit = Duration::from_micros(u64::from(number) * 200);
        if tokio::time::timeout(limit, append).await.is_err() {
            let found = texts(&store, &key).await.len();
            assert!(found == number as usize * 2 || found == number as usize * 2 + 2, "{found}");
        }
        store.append(&key, Append::new(&batch)).await.unwrap();
    }
    drop(relay);
}

async fn damaged_objects_are_reported_as_corrupt() {
    let prefix = new_prefix();
    let options = options_at(with_server(Server::port), &prefix);
    let store = S3Store::open_with(options.clone()).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1"), long_entry(2, 600_000)])).await.unwrap();
    store.append(&key(1), Append::new(&[entry("3")])).await.unwrap();
    let head = head_of(&prefix);
    let response = with_server(|server| server.filer("GET", &head, "")).unwrap();
    let text = &response[response.find("{\"format\"").unwrap()..];
    let put = |path: &str, text: &str| {
        with_server(|server| server.filer("PUT", path, text)).unwrap();
    };
    let long = format!("{{\"format\":1{}", " ".repeat(20_000));
    for damaged in [
        "",
        "{}",
        "\n\n\n",
        &text[..text.len() - 5],
        &text.replace("\"last\":3", "\"last\":1"),
        &long,
    ] {
        put(&head, damaged);
        for store in [&store, &S3Store::open_with(options.clone()).await.unwrap()] {
            let load = store.load(&key(1), Load::all()).await;
            assert_eq!(kind(load), StoreErrorKind::Corrupt, "{damaged:.40}");
            let append = store.append(&key(1), Append::new(&[entry("4")])).await;
            assert_eq!(kind(append), StoreErrorKind::Corrupt, "{damaged:.40}");
        }
    }
    let list = store.list(key(1).project_key(), List::new()).await;
    assert_eq!(kind(list), StoreErrorKind::Corrupt);
    put(&head, text);
    assert_eq!(texts(&store, &key(1)).await.len(), 3);
    // Names that are not those of sessions do not matter.
    put(&head.replace("00000001-", "x-"), "x");
    assert_eq!(store.list(key(1).project_key(), List::new()).await.unwrap().sessions.len(), 1);

    let part = objects(&prefix).into_iter().find(|path| path.contains("/parts/")).unwrap();
    for damaged in ["", "{}", "{\"subpaths\":[],\"entries\":[[1,0,\"a\",99]]}\n1\n"] {
        put(&part, damaged);
        let store = S3Store::open_with(options.clone()).await.unwrap();
        assert_eq!(kind(store.load(&key(1), Load::all()).await), StoreErrorKind::Corrupt);
        let append = store.append(&key(1), Append::new(&[entry("4")])).await;
        assert_eq!(kind(append), StoreErrorKind::Corrupt);
    }
    with_server(|server| server.filer("DELETE", &part, "")).unwrap();
    let store = S3Store::open_with(options).await.unwrap();
    let error = store.load(&key(1), Load::all()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("is missing"), "{error}");
    let append = store.append(&key(1), Append::new(&[entry("4")])).await;
    assert_eq!(kind(append), StoreErrorKind::Corrupt);
}
