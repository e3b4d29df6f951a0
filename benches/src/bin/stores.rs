//! This SDK with session stores.

use std::sync::Arc;
use std::time::Instant;

use claude_agent_kit::history::{History, ListFilter, MessageFilter};
use claude_agent_kit::store::{
    Append, MemoryStore, NewEntry, SessionKey, SessionStore, StoreOptions,
};
use claude_agent_kit::{Conversation, Options, Session, SessionId};
use claude_agent_store::{PostgresOptions, PostgresStore, S3Options, S3Store, SqliteStore};
use claude_benches::stores::{Figures, StoreTask, peak_mib, run_store_subject};
use claude_benches::{Outcome, median};

/// The writers of the largest task, each of which has a connection.
const MAX_WRITERS: usize = 32;

/// The sessions that are copied at once.
const COPIES: usize = 16;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    run_store_subject(|task| match runtime {
        Ok(runtime) => runtime.block_on(perform(task)),
        Err(error) => Err(error.to_string().into()),
    });
}

/// The store of a task. The one on S3 also counts its requests.
struct Opened {
    store: Arc<dyn SessionStore>,
    s3: Option<S3Store>,
}

impl Opened {
    fn requests(&self) -> u64 {
        self.s3.as_ref().map_or(0, S3Store::request_count)
    }
}

async fn open(task: &StoreTask) -> Outcome<Opened> {
    let store: Arc<dyn SessionStore> = match task.store.as_str() {
        "sqlite" => {
            Arc::new(SqliteStore::open(task.config.join(format!("{}.db", task.name))).await?)
        }
        "postgres" => {
            let options = PostgresOptions::new(&task.url)?.schema(&task.name);
            Arc::new(PostgresStore::open_with(options.max_connections(MAX_WRITERS)).await?)
        }
        "s3" => {
            let (bucket, endpoint) = task.url.split_once('?').ok_or("no endpoint")?;
            let options = S3Options::new(&format!("{bucket}{}?{endpoint}", task.name))?;
            let store = S3Store::open_with(options.credentials_from_environment()).await?;
            return Ok(Opened { store: Arc::new(store.clone()), s3: Some(store) });
        }
        _ => Arc::new(MemoryStore::new()),
    };
    Ok(Opened { store, s3: None })
}

async fn perform(task: &StoreTask) -> Outcome<Figures> {
    let opened = open(task).await?;
    let store = opened.store.clone();
    if task.store == "memory" {
        match task.operation.as_str() {
            "read" | "resume" => drop(import(task, &store).await?),
            "list" => drop(fill(task, &store).await?),
            _ => {}
        }
    }
    let began = Instant::now();
    let count = match task.operation.as_str() {
        "append" => append(task, store, 1).await?,
        "append32" => append(task, store, MAX_WRITERS).await?,
        "import" => import(task, &store).await?,
        "read" => read(task, &store).await?,
        "fill" => fill(task, &store).await?,
        "list" => histories(task, &store).1.list(ListFilter::default()).await?.sessions.len(),
        "resume" => return resume(task, store).await,
        "turn" => return turns(task, &opened).await,
        other => return Err(format!("unknown operation: \"{other}\"").into()),
    };
    Ok(Figures { count, wall: began.elapsed().as_secs_f64(), ..Figures::default() })
}

/// Appends one entry at a time, each writer to a session of its own.
async fn append(task: &StoreTask, store: Arc<dyn SessionStore>, writers: usize) -> Outcome<usize> {
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
    Ok(count)
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

/// Copies all sessions of the directory, several at once.
async fn fill(task: &StoreTask, store: &Arc<dyn SessionStore>) -> Outcome<usize> {
    let (disk, stored, _) = histories(task, store);
    let sessions = disk.list(ListFilter::default()).await?.sessions;
    let ids: Arc<[SessionId]> = sessions.into_iter().map(|session| session.session_id).collect();
    let mut running = Vec::new();
    for first in 0..COPIES {
        let (disk, stored, ids) = (disk.clone(), stored.clone(), ids.clone());
        running.push(tokio::spawn(async move {
            for id in ids.iter().skip(first).step_by(COPIES) {
                disk.copy_to(id, &stored).await?;
            }
            Ok::<(), claude_agent_kit::Error>(())
        }));
    }
    for copies in running {
        copies.await??;
    }
    Ok(ids.len())
}

/// Starts a session that continues the stored one, after one that continues none. The CLI reads no transcript.
async fn resume(task: &StoreTask, store: Arc<dyn SessionStore>) -> Outcome<Figures> {
    // On a machine that does not have the transcript.
    let config = task.config.join("another-machine");
    std::fs::create_dir_all(&config)?;
    let options = Options::new()
        .cli_path(&task.cli)
        .cwd(&task.directory)
        .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
        .store(StoreOptions::new("bench", store));
    Session::start(options.clone()).await?.stop().await?;
    let (baseline, began) = (peak_mib()?, Instant::now());
    let conversation = Conversation::resume(task.session.as_str());
    let session = Session::start(options.conversation(conversation)).await?;
    let wall = began.elapsed().as_secs_f64();
    session.stop().await?;
    Ok(Figures { count: 1, wall, baseline, ..Figures::default() })
}

async fn turns(task: &StoreTask, opened: &Opened) -> Outcome<Figures> {
    let options = Options::new().cli_path(&task.cli).cwd(&task.directory);
    let mirrored = options.clone().store(StoreOptions::new("bench", opened.store.clone()));
    let sessions = [Session::start(mirrored).await?, Session::start(options).await?];
    let (mut times, mut first) = ([Vec::new(), Vec::new()], 0);
    for turn in 0..=task.count {
        if turn == 1 {
            first = opened.requests();
        }
        for (session, times) in sessions.iter().zip(&mut times) {
            let began = Instant::now();
            session.send("hi").await?.finish().await?;
            if turn > 0 {
                times.push(began.elapsed().as_secs_f64());
            }
        }
    }
    let requests = f64::from(u32::try_from(opened.requests() - first)?)
        / f64::from(u32::try_from(task.count)?);
    for session in sessions {
        session.stop().await?;
    }
    let [with, without] = times;
    let (wall, without) = (median(with)?, Some(median(without)?));
    Ok(Figures { count: task.count, wall, without, requests, baseline: 0.0 })
}
