//! A host that asks once.

use claude_agent_kit::{Options, Prompt, QueryStream, query};
use tokio::time::sleep;

use super::draw::Draw;
use super::fate::{Promise, Waiting};
use super::reading::Reader;
use super::{HostContext, Kept};

/// Asks, reads some of the answer or all, and lets go.
pub(super) async fn play(context: &HostContext, options: Options, mut draw: Draw) {
    let waiting = &context.waiting;
    let prompt = Prompt::from("go on").with_id("00000000-0000-4000-8000-000000000001");
    let asking = query(prompt, options);
    let asking = Box::pin(asking);
    let stream = match waiting.mortal("query", Promise::Kept, &mut draw, asking).await {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => {
            return waiting.record.count(format!("not opened: {:?}", error.kind()));
        }
        None => return,
    };
    let mut reader = Reader::new(stream, true, waiting);
    if draw.chance(50) {
        let items = draw.between(0, 20);
        reader.read(items, &mut draw).await;
        sleep(draw.moment()).await;
    }
    match draw.between(0, 9) {
        0..=4 => reader.read(10_000, &mut draw).await,
        5 => close(&mut reader, waiting, &mut draw).await,
        6 | 7 => collect(&mut reader, waiting, &mut draw).await,
        8 => {
            if let Some(stream) = reader.stream.take() {
                context.keep(Kept::Query(Box::new(stream)));
                sleep(draw.moment()).await;
            }
        }
        _ => {}
    }
    drop(reader);
    context.let_go();
}

async fn close(reader: &mut Reader<QueryStream>, waiting: &Waiting, draw: &mut Draw) {
    let Some(stream) = &mut reader.stream else { return };
    let mut closed = false;
    for _ in 0..draw.between(1, 2) {
        let closing = stream.close();
        if waiting.mortal("close", Promise::Kept, draw, closing).await.is_some() {
            waiting.record.count("closed");
            closed = true;
        }
    }
    if !closed {
        return;
    }
    if waiting
        .patient("query", Promise::Kept, stream.next())
        .await
        .is_some_and(|item| item.is_some())
    {
        waiting.record.violation("a query that was closed gave an item");
    }
}

async fn collect(reader: &mut Reader<QueryStream>, waiting: &Waiting, draw: &mut Draw) {
    let Some(stream) = reader.stream.take() else { return };
    let promise = Promise::IfHealthy;
    let ended = match draw.between(0, 2) {
        0 => waiting
            .mortal("collect", promise, draw, stream.collect())
            .await
            .map(|all| all.error.map(|error| error.kind())),
        1 => waiting
            .mortal("collect_messages", promise, draw, stream.collect_messages())
            .await
            .map(|all| all.err().map(|error| error.kind())),
        _ => waiting
            .mortal("final_result", promise, draw, stream.final_result())
            .await
            .map(|all| all.err().map(|error| error.kind())),
    };
    match ended {
        Some(Some(kind)) => waiting.record.count(format!("query ended: {kind:?}")),
        Some(None) => waiting.record.count("query ended: well"),
        None => {}
    }
}
