//! The store in memory.

use claude_agent_kit::store::MemoryStore;
use claude_agent_store::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    conformance::run(async || MemoryStore::new()).await.assert();
}
