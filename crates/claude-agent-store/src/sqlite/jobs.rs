//! The thread of a store and its queue.

use std::path::Path;
use std::thread;

use claude_session_store::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::errors::{self, Fault};
use super::{SqliteOptions, schema};

/// The number of requests in the queue; further ones wait for room.
const QUEUE: usize = 64;

/// The queue to the thread of a store. The thread ends when all clones are dropped.
#[derive(Clone)]
pub(super) struct Jobs {
    queue: mpsc::Sender<Box<dyn Job>>,
}

impl Jobs {
    /// Starts the thread, which opens the file.
    pub(super) async fn start(options: SqliteOptions) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (opened, is_open) = oneshot::channel();
        let run = move || match schema::open(&options) {
            Ok(connection) => {
                // Without a caller, the queue is closed and the thread ends.
                drop(opened.send(Ok(())));
                serve(connection, jobs, &options.path);
            }
            Err(error) => {
                drop(opened.send(Err(error)));
            }
        };
        let thread = thread::Builder::new().name("session-store".to_owned());
        // The handle is dropped: joining the thread would block the host.
        thread.spawn(run).map(drop).map_err(errors::no_thread)?;
        is_open.await.map_err(|_| errors::gone())??;
        Ok(Self { queue })
    }

    /// Runs a request that changes nothing.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        run: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(false, run).await
    }

    /// Runs a request in a transaction. It may run twice, if the first transaction is rolled back.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        run: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(true, run).await
    }

    async fn run<T: Send + 'static>(
        &self,
        is_write: bool,
        run: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, result) = oneshot::channel();
        let job = Box::new(Request { is_write, run, result: None, reply });
        self.queue.send(job).await.map_err(|_| errors::gone())?;
        result.await.map_err(|_| errors::gone())?
    }
}

/// A request in the queue.
trait Job: Send {
    fn is_write(&self) -> bool;

    /// Whether the caller no longer waits.
    fn is_abandoned(&self) -> bool;

    /// Runs the request and keeps its result.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Replies with the kept result, or with the error of the transaction.
    fn finish(self: Box<Self>, transaction: Result<(), StoreError>);
}

struct Request<T, F> {
    is_write: bool,
    run: F,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Request<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> Result<T, Fault> + Send,
{
    fn is_write(&self) -> bool {
        self.is_write
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = Some(match (self.run)(connection) {
            Ok(value) => Ok(value),
            Err(Fault::Request(error)) => Err(error),
            Err(Fault::Database(error)) => return Err(error),
        });
        Ok(())
    }

    fn finish(self: Box<Self>, transaction: Result<(), StoreError>) {
        let kept = self.result.unwrap_or_else(|| Err(errors::gone()));
        // The caller may have been dropped while the request ran.
        drop(self.reply.send(transaction.and(kept)));
    }
}

/// Runs requests until all handles of the store are dropped.
fn serve(mut connection: Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, path: &Path) {
    let mut next = None;
    while let Some(mut job) = next.take().or_else(|| jobs.blocking_recv()) {
        if job.is_abandoned() {
            continue;
        }
        if !job.is_write() {
            let result = job.run(&connection);
            job.finish(result.map_err(|error| errors::database(path, error)));
            continue;
        }
        let mut group = vec![job];
        while group.len() < QUEUE {
            match jobs.try_recv() {
                Ok(job) if job.is_abandoned() => {}
                Ok(job) if job.is_write() => group.push(job),
                Ok(job) => {
                    next = Some(job);
                    break;
                }
                Err(_) => break,
            }
        }
        write(&mut connection, group, path);
    }
}

/// Commits a group of requests together, because every commit waits for the disk. If that fails, each request
/// gets its own transaction, so that one of them cannot fail the others.
fn write(connection: &mut Connection, mut group: Vec<Box<dyn Job>>, path: &Path) {
    if group.len() > 1 && commit(connection, &mut group).is_ok() {
        for job in group {
            job.finish(Ok(()));
        }
        return;
    }
    for job in group {
        let mut alone = [job];
        let result = commit(connection, &mut alone);
        let [job] = alone;
        job.finish(result.map_err(|error| errors::database(path, error)));
    }
}

/// Runs requests in one transaction, which is rolled back on an error.
fn commit(connection: &mut Connection, group: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // The transaction may have waited for another process.
    for job in group.iter_mut().filter(|job| !job.is_abandoned()) {
        job.run(&transaction)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc as blocking;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn requests_beyond_the_queue_wait_and_abandoned_ones_do_not_run() {
        let directory = tempfile::tempdir().unwrap();
        let jobs = Jobs::start(SqliteOptions::new(directory.path().join("db"))).await.unwrap();
        let (started, is_started) = blocking::channel();
        let (end, ends) = blocking::channel();
        let first = jobs.clone();
        let first = tokio::spawn(async move {
            let wait = move |_: &Connection| {
                started.send(()).unwrap();
                ends.recv().unwrap();
                Ok(())
            };
            first.read(wait).await
        });
        tokio::task::yield_now().await;
        is_started.recv().unwrap();

        let (ran, runs) = blocking::channel();
        let mut waiting = Vec::new();
        for number in 0..100 {
            let (jobs, ran) = (jobs.clone(), ran.clone());
            let mut request = Box::pin(async move {
                jobs.write(move |_| ran.send(number).map_err(|_| errors::gone().into())).await
            });
            let mut context = Context::from_waker(Waker::noop());
            assert!(request.as_mut().poll(&mut context).is_pending());
            waiting.push(request);
        }
        assert_eq!((jobs.queue.capacity(), jobs.queue.max_capacity()), (0, QUEUE));

        // Requests are dropped in the queue and before it, except for one of each.
        let mut number = 0;
        waiting.retain(|_| {
            number += 1;
            [10, 90].contains(&(number - 1))
        });
        end.send(()).unwrap();
        first.await.unwrap().unwrap();
        for request in waiting {
            pin!(request).await.unwrap();
        }
        assert_eq!(runs.try_iter().collect::<Vec<_>>(), [10, 90]);
    }
}
