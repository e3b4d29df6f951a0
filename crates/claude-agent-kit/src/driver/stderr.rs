//! Stderr is always read, whatever the rest does: a CLI that cannot complain would stand still.

use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::lock::lock;
use crate::mask::Mask;
use crate::options::OnStderr;
use crate::panics;
use crate::stderr::{StderrLines, StderrTail};

/// After the end stderr is read on until so long nothing came, and so long at most: another process
/// may hold it open.
const QUIET: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(2);

/// Reads stderr in a task of its own, so that a callback that takes its time delays nothing else.
pub(crate) struct StderrReader {
    heard: Arc<Heard>,
    mask: Mask,
    /// The masked tail, with the numbers of reads and of secrets at that time. Many operations that
    /// fail at once are told the same.
    masked: Option<(u64, usize, Arc<str>)>,
    task: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Heard {
    tail: Mutex<StderrTail>,
    reads: AtomicU64,
    /// Read what is there, and then no more.
    last_call: Notify,
}

impl StderrReader {
    /// Starts reading, on the runtime of the caller.
    pub(crate) fn start(
        errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
        mask: Mask,
        callback: Option<OnStderr>,
    ) -> Self {
        let heard = Arc::new(Heard::default());
        let task = errors.map(|errors| {
            let listener = Listener { callback, lines: StderrLines::new(mask.clone()) };
            tokio::spawn(read(errors, heard.clone(), listener))
        });
        Self { heard, mask, masked: None, task }
    }

    /// Waits for the rest of it, unless somebody else holds it open.
    pub(crate) async fn finish(&mut self) {
        let Some(mut task) = self.task.take() else { return };
        let latest = Instant::now() + MOST;
        loop {
            let reads = self.heard.reads.load(Ordering::Relaxed);
            if tokio::time::timeout(QUIET, &mut task).await.is_ok() {
                return;
            }
            let quiet = reads == self.heard.reads.load(Ordering::Relaxed);
            if quiet || Instant::now() > latest {
                break;
            }
        }
        // The time may have passed because the machine stood still: only the reader knows whether
        // nothing is left.
        self.heard.last_call.notify_one();
        let latest = latest.max(Instant::now() + QUIET);
        if tokio::time::timeout_at(latest, &mut task).await.is_err() {
            task.abort();
        }
    }

    /// Returns the end of stderr without secrets.
    pub(crate) fn tail(&mut self) -> Arc<str> {
        let (reads, secrets) = (self.heard.reads.load(Ordering::Relaxed), self.mask.len());
        if let Some((before, known, tail)) = &self.masked
            && (*before, *known) == (reads, secrets)
        {
            return tail.clone();
        }
        let kept = self.heard.lock().copy();
        let tail: Arc<str> = kept.masked(&self.mask).into();
        self.masked = Some((reads, secrets, tail.clone()));
        tail
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Passes the lines on to the callback, if there is one.
struct Listener {
    callback: Option<OnStderr>,
    lines: StderrLines,
}

impl Listener {
    fn push(&mut self, bytes: &[u8]) {
        self.with_lines(|lines, on_line| lines.push(bytes, on_line));
    }

    fn finish(&mut self) {
        self.with_lines(|lines, on_line| lines.finish(on_line));
    }

    fn with_lines(&mut self, pass: impl FnOnce(&mut StderrLines, &mut dyn FnMut(&str))) {
        let callback = &mut self.callback;
        if callback.is_none() {
            return;
        }
        pass(&mut self.lines, &mut |line| {
            let Some(call) = &*callback else { return };
            if panics::catch(|| call(line)).is_err() {
                tracing::warn!("the `on_stderr` callback panicked and is not called again");
                panics::discard(callback.take());
            }
        });
    }
}

async fn read(
    mut errors: Box<dyn AsyncRead + Send + Unpin>,
    heard: Arc<Heard>,
    mut listener: Listener,
) {
    // An error is as good as the end: there is nothing to read any more.
    let mut last_call = pin!(heard.last_call.notified());
    let mut next = |context: &mut Context<'_>| match poll_read(&mut errors, &heard, context) {
        Poll::Pending => last_call.as_mut().poll(context).map(|()| None),
        read @ Poll::Ready(_) => read,
    };
    while let Some(bytes) = poll_fn(&mut next).await {
        listener.push(&bytes);
    }
    listener.finish();
}

/// Reads once; `None` at the end. The space lives on the stack, so that a silent stderr costs none.
fn poll_read(
    errors: &mut Box<dyn AsyncRead + Send + Unpin>,
    heard: &Heard,
    context: &mut Context<'_>,
) -> Poll<Option<Vec<u8>>> {
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut buffer = ReadBuf::uninit(&mut space);
    match ready!(Pin::new(errors).poll_read(context, &mut buffer)) {
        Ok(()) if !buffer.filled().is_empty() => {
            heard.lock().push(buffer.filled());
            heard.reads.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(buffer.filled().to_vec()))
        }
        _ => Poll::Ready(None),
    }
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, StderrTail> {
        lock(&self.tail)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Says this when the time has come, and nothing more.
    struct Late(Pin<Box<tokio::time::Sleep>>, Option<&'static str>);

    impl AsyncRead for Late {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            ready!(self.0.as_mut().poll(context));
            match self.1.take() {
                Some(text) => {
                    buffer.put_slice(text.as_bytes());
                    Poll::Ready(Ok(()))
                }
                None => Poll::Pending,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_at_the_last_moment_is_heard() {
        let told = Arc::new(Mutex::new(String::new()));
        let lines = told.clone();
        let callback: OnStderr =
            Arc::new(move |line: &str| writeln!(lines.lock().unwrap(), "{line}").unwrap());
        // As after a stall: the time is up and there is something to read, both at once.
        let errors = Late(Box::pin(tokio::time::sleep(QUIET)), Some("why\nit di"));
        let mut reader =
            StderrReader::start(Some(Box::new(errors)), Mask::default(), Some(callback));
        reader.finish().await;
        assert_eq!(&*reader.tail(), "why\nit di");
        assert_eq!(*told.lock().unwrap(), "why\nit di\n");
    }

    /// A payload that panics when it is dropped.
    struct Grenade;

    impl Drop for Grenade {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stderr_is_read_on_after_a_callback_panicked_whatever_the_payload() {
        let calls = Arc::new(AtomicU64::new(0));
        let counted = calls.clone();
        let callback: OnStderr = Arc::new(move |_: &str| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::panic::panic_any(Grenade);
        });
        let (mut writer, errors) = tokio::io::duplex(64);
        let mut reader =
            StderrReader::start(Some(Box::new(errors)), Mask::default(), Some(callback));
        for text in ["one\n", "two\n", "three\n"] {
            tokio::io::AsyncWriteExt::write_all(&mut writer, text.as_bytes()).await.unwrap();
            // Each is read by itself.
            tokio::time::sleep(QUIET).await;
        }
        drop(writer);
        reader.finish().await;
        assert_eq!(&*reader.tail(), "one\ntwo\nthree\n");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn the_tail_is_masked_again_only_after_a_read_or_a_new_secret() {
        let mask = Mask::default();
        let mut reader = StderrReader::start(None, mask.clone(), None);
        reader.heard.lock().push(b"hush-hush");
        let first = reader.tail();
        assert!(Arc::ptr_eq(&first, &reader.tail()));
        mask.learn(["hush-hush".to_owned()]);
        assert_eq!(&*reader.tail(), "***");
        reader.heard.lock().push(b" more");
        reader.heard.reads.fetch_add(1, Ordering::Relaxed);
        assert_eq!(&*reader.tail(), "*** more");
    }
}
