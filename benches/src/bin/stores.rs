//! This SDK with session stores.

use std::sync::Arc;
use std::time::Instant;

use claude_agent_kit::history::{History, MessageFilter};
use claude_agent_kit::store::{
    Append, MemoryStore, NewEntry, SessionKey, SessionStore, StoreOptions,
};
use claude_agent_kit::{Options, Session, SessionId};
use claude_agent_store::SqliteStore;
use claude_benches::stores::{Figures, StoreTask, run_store_subject};
use claude_benches::{Outcome, median};

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    run_store_subject(|task| match runtime {
        Ok(runtime) => runtime.block_on(perform(task)),
        Err(error) => Err(error.to_string().into()),
    });
}

async fn perform(task: &StoreTask) -> Outcome<Figures> {
    let store: Arc<dyn SessionStore> = match task.store.as_str() {
        "sqlite" => Arc::new(SqliteStore::open(task.config.join("sessions.db")).await?),
        _ => Arc::new(MemoryStore::new()),
    };
    match task.operation.as_str() {
        "append" => append(task, store, 1).await,
        "append32" => append(task, store, 32).await,
        "import" => {
            let began = Instant::now();
            let copied = import(task, &store).await?;
            Ok((copied, began.elapsed().as_secs_f64(), None))
        }
        "read" => {
            if task.store == "memory" {
                import(task, &store).await?;
            }
            let began = Instant::now();
            let count = read(task, &store).await?;
            Ok((count, began.elapsed().as_secs_f64(), None))
        }
        "turn" => turns(task, store).await,
        other => Err(format!("unknown operation: \"{other}\"").into()),
    }
}

/// Appends one entry at a time, each writer to a session of its own.
async fn append(
    task: &StoreTask,
    store: Arc<dyn SessionStore>,
    writers: usize,
) -> Outcome<Figures> {
    let began = Instant::now();
    let mut running = Vec::new();
    for writer in 0..writers {
        let (store, count) = (store.clone(), task.count / writers);
        running.push(tokio::spawn(async move {
            let id = format!("00000000-0000-4000-8000-{writer:012}");
            let key = SessionKey::new("bench", "project", id)?;
            let epoch = store.claim(&key).await?;
            for number in 0..count {
                let text = format!(
                    r#"{{"type":"user","uuid":"00000000-0000-4000-8000-{number:012}","message":{{"role":"user","content":"{}"}}}}"#,
                    "x".repeat(400)
                );
                let entries = [NewEntry::new(None, text, 0)?];
                store.append(&key, Append::new(&entries).epoch(epoch)).await?;
            }
            Ok::<usize, claude_agent_kit::store::StoreError>(count)
        }));
    }
    let mut count = 0;
    for writer in running {
        count += writer.await??;
    }
    Ok((count, began.elapsed().as_secs_f64(), None))
}

fn histories(task: &StoreTask, store: &Arc<dyn SessionStore>) -> (History, History, SessionId) {
    let disk = History::at(&task.config).for_directory(&task.directory);
    let options = StoreOptions::new("bench", store.clone());
    let stored = History::in_store(&options).for_directory(&task.directory);
    (disk, stored, SessionId::from(task.session.as_str()))
}

async fn import(task: &StoreTask, store: &Arc<dyn SessionStore>) -> Outcome<usize> {
    let (disk, stored, id) = histories(task, store);
    Ok(usize::try_from(disk.copy_to(&id, &stored).await?.copied)?)
}

async fn read(task: &StoreTask, store: &Arc<dyn SessionStore>) -> Outcome<usize> {
    let (_, stored, id) = histories(task, store);
    let mut messages = stored.messages(&id, MessageFilter::default()).await?;
    let mut count = 0;
    while let Some(message) = messages.next().await {
        message?;
        count += 1;
    }
    Ok(count)
}

async fn turns(task: &StoreTask, store: Arc<dyn SessionStore>) -> Outcome<Figures> {
    let options = Options::new().cli_path(&task.cli).cwd(&task.directory);
    let mirrored = options.clone().store(StoreOptions::new("bench", store));
    let sessions = [Session::start(mirrored).await?, Session::start(options).await?];
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..=task.count {
        for (session, times) in sessions.iter().zip(&mut times) {
            let began = Instant::now();
            session.send("hi").await?.finish().await?;
            if turn > 0 {
                times.push(began.elapsed().as_secs_f64());
            }
        }
    }
    for session in sessions {
        session.stop().await?;
    }
    let [with, without] = times;
    Ok((task.count, median(with)?, Some(median(without)?)))
}
