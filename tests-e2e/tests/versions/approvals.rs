//! Approvals on the CLIs before the newest: the tests of sessions use only the newest one.

use claude_agent_testkit::mock_api::Script;
use tests_e2e::harness::Harness;
use tests_e2e::prove::continuations::{self, KINDS, Kind};
use tests_e2e::real_cli::{self, InstalledCli};

use crate::support::{cache_version, in_time, run};

/// Parks, approves and continues a conversation of each kind. The kinds run at once, because most of the time is spent
/// waiting.
async fn continue_each(cli: &InstalledCli) {
    let play = async |kind: Kind| {
        let harness = Harness::real(Script::new(), cli).await.unwrap();
        let played = in_time(continuations::play(harness, kind)).await;
        played.unwrap_or_else(|violation| panic!("{}, {kind:?}: {violation}", cli.version));
    };
    let [call, server, agent] = KINDS;
    tokio::join!(play(call), play(server), play(agent));
}

#[test]
fn parked_calls_are_resumed_on_clis_before_the_newest() {
    run(async {
        for version in real_cli::approval_versions() {
            let cli = real_cli::install_version(&version).unwrap();
            cache_version(&cli);
            continue_each(&cli).await;
        }
    });
}
