//! A host that sends a single query.

use claude_agent_kit::{Options, Prompt, QueryStream, query};
use tokio::time::sleep;

use super::reading::Reader;
use super::rng::Rng;
use super::watcher::{Completion, Watcher};
use super::{HeldHandle, HostContext};

/// Sends a query, reads some or all of its items, and drops it.
pub(super) async fn run(context: &HostContext, options: Options, mut rng: Rng) {
    let watcher = &context.watcher;
    let prompt = Prompt::from("go on").with_id("00000000-0000-4000-8000-000000000001");
    let asking = query(prompt, options);
    let asking = Box::pin(asking);
    let stream = match watcher.run_or_drop("query", Completion::Guaranteed, &mut rng, asking).await
    {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => {
            return watcher.record.count(format!("not opened: {:?}", error.kind()));
        }
        None => return,
    };
    let mut reader = Reader::new(stream, true, watcher);
    if rng.chance(50) {
        let items = rng.between(0, 20);
        reader.read(items, &mut rng).await;
        sleep(rng.moment()).await;
    }
    match rng.between(0, 9) {
        0..=4 => reader.read(10_000, &mut rng).await,
        5 => close(&mut reader, watcher, &mut rng).await,
        6 | 7 => collect(&mut reader, watcher, &mut rng).await,
        8 => {
            if let Some(stream) = reader.stream.take() {
                context.hold(HeldHandle::Query(Box::new(stream)));
                sleep(rng.moment()).await;
            }
        }
        _ => {}
    }
    drop(reader);
    context.drop_held();
}

async fn close(reader: &mut Reader<QueryStream>, watcher: &Watcher, rng: &mut Rng) {
    let Some(stream) = &mut reader.stream else { return };
    let mut closed = false;
    for _ in 0..rng.between(1, 2) {
        let closing = stream.close();
        if watcher.run_or_drop("close", Completion::Guaranteed, rng, closing).await.is_some() {
            watcher.record.count("closed");
            closed = true;
        }
    }
    if !closed {
        return;
    }
    if watcher
        .run("query", Completion::Guaranteed, stream.next())
        .await
        .is_some_and(|item| item.is_some())
    {
        watcher.record.violation("a closed query returned an item");
    }
}

async fn collect(reader: &mut Reader<QueryStream>, watcher: &Watcher, rng: &mut Rng) {
    let Some(stream) = reader.stream.take() else { return };
    let completion = Completion::IfHealthy;
    let ended = match rng.between(0, 2) {
        0 => watcher
            .run_or_drop("collect", completion, rng, stream.collect())
            .await
            .map(|all| all.error.map(|error| error.kind())),
        1 => watcher
            .run_or_drop("collect_messages", completion, rng, stream.collect_messages())
            .await
            .map(|all| all.err().map(|error| error.kind())),
        _ => watcher
            .run_or_drop("final_result", completion, rng, stream.final_result())
            .await
            .map(|all| all.err().map(|error| error.kind())),
    };
    match ended {
        Some(Some(kind)) => watcher.record.count(format!("query ended: {kind:?}")),
        Some(None) => watcher.record.count("query ended: ok"),
        None => {}
    }
}
