//! The store in memory.

use claude_session_store::{MemoryStore, conformance};

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    conformance::run(async || MemoryStore::new()).await.assert();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_in_memory_conform() {
    let hosts = async || {
        let store = MemoryStore::new();
        [store.clone(), store]
    };
    conformance::run_records(hosts).await.assert();
}
