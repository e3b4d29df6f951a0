//! Hosts that lose their session to another host, or stop because of their store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::approval::{ApprovalPolicy, Approvals, Decision};
use claude_agent_kit::store::{MemoryStore, OwnerKey, RecordStore as _};
use claude_agent_kit::{ErrorKind, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use tests_e2e::harness::Harness;
use tests_e2e::prove::{LOST_SESSIONS, lost_sessions, two_hosts};

use crate::helpers::{calls, on_both};
use crate::support::{HOST, in_time, real, run};

#[test]
fn the_cli_of_a_host_that_lost_its_session_starts_no_further_tools() {
    run(async {
        let harness = Harness::real(Script::new(), real()).await.unwrap();
        for _ in 0..LOST_SESSIONS.repetitions / 20 {
            let count = lost_sessions::count(&harness, Path::new(HOST)).await.unwrap();
            assert!(count.holds(), "{count}");
        }
    });
}

#[test]
fn a_host_that_lost_its_store_reports_no_success() {
    run(async {
        for seed in 0..two_hosts::AREA.repetitions as u64 / 12 {
            let harness = Harness::real(Script::new(), real()).await.unwrap();
            let count = two_hosts::count(&harness, two_hosts::loss(seed), 100 + seed).await;
            count.unwrap_or_else(|violation| panic!("{seed}: {violation}"));
        }
    });
}

fn one_command() -> Script {
    Script::new().when("run it", [calls(&["echo one >> executed"]), Reply::text("Done.")])
}

#[test]
fn a_run_whose_approvals_another_host_claimed_ends_with_superseded() {
    on_both(one_command, |harness| async move {
        let store = Arc::new(MemoryStore::new());
        let approvals = Approvals::new("tenant", store.clone());
        let waits = Duration::from_secs(600);
        let policy = ApprovalPolicy::new(approvals.clone()).tools(["Bash"]).park_after(waits);
        let options = harness.options().allowed_tools(["Bash"]).approvals(policy);
        let session = in_time(Session::start(options)).await.unwrap();
        let id = session.session_id().unwrap();
        let turn = session.send("run it").await.unwrap();
        let finish = tokio::spawn(turn.finish());
        let pending = in_time(async {
            loop {
                if let Some(pending) = approvals.pending().await.unwrap().pop() {
                    return pending;
                }
                tokio::task::yield_now().await;
            }
        });
        let request = pending.await.request;
        store.claim_records(&OwnerKey::session("tenant", &id).unwrap()).await.unwrap();
        approvals.decide(&request.id, Decision::allow("ana")).await.unwrap();
        let error = in_time(finish).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Superseded, "{error}");
        assert_eq!(in_time(session.stop()).await.unwrap_err().kind(), ErrorKind::Superseded);
        assert!(!harness.project().join("executed").exists());
    });
}
