//! Reads stderr continuously: a CLI whose stderr pipe is full would block.

use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Span;

use crate::lock::lock;
use crate::mask::Mask;
use crate::options::OnStderr;
use crate::panics;
use crate::stderr::{StderrLines, StderrTail};
use crate::tasks;

/// After the exit, stderr is read until it has been quiet for `QUIET`, and for `MAX_WAIT` at most:
/// another process may hold it open.
const QUIET: Duration = Duration::from_millis(100);
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Reads stderr in its own task, so that a slow callback delays nothing else.
pub(crate) struct StderrReader {
    state: Arc<StderrState>,
    mask: Mask,
    /// The masked tail, with the number of reads and secrets it was computed from: operations that
    /// fail together share it.
    masked: Option<(u64, usize, Arc<str>)>,
    task: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct StderrState {
    tail: Mutex<StderrTail>,
    reads: AtomicU64,
    /// Read what is available, then stop.
    last_call: Notify,
}

impl StderrReader {
    /// Starts reading on the caller's runtime.
    pub(crate) fn start(
        errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
        mask: Mask,
        callback: Option<OnStderr>,
    ) -> Self {
        let state = Arc::new(StderrState::default());
        let task = errors.map(|errors| {
            let listener = Listener { callback, lines: StderrLines::new(mask.clone()) };
            let read = Box::pin(read(errors, state.clone(), listener));
            tasks::spawn(&Handle::current(), Span::none(), read)
        });
        Self { state, mask, masked: None, task }
    }

    /// Waits for the rest of stderr, unless another process holds it open.
    pub(crate) async fn finish(&mut self) {
        let Some(mut task) = self.task.take() else { return };
        let latest = Instant::now() + MAX_WAIT;
        loop {
            let reads = self.state.reads.load(Ordering::Relaxed);
            if tokio::time::timeout(QUIET, &mut task).await.is_ok() {
                return;
            }
            let quiet = reads == self.state.reads.load(Ordering::Relaxed);
            if quiet || Instant::now() > latest {
                break;
            }
        }
        // The deadline may have passed because the whole system was suspended: only the reader knows
        // whether anything is left.
        self.state.last_call.notify_one();
        let latest = latest.max(Instant::now() + QUIET);
        if tokio::time::timeout_at(latest, &mut task).await.is_err() {
            task.abort();
        }
    }

    /// Returns the tail of stderr with secrets masked.
    pub(crate) fn tail(&mut self) -> Arc<str> {
        let (reads, secrets) = (self.state.reads.load(Ordering::Relaxed), self.mask.len());
        if let Some((before, known, tail)) = &self.masked
            && (*before, *known) == (reads, secrets)
        {
            return tail.clone();
        }
        let kept = self.state.lock().copy();
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

/// Passes lines to the `on_stderr` callback, if one is registered.
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
    state: Arc<StderrState>,
    mut listener: Listener,
) {
    // A read error is treated as EOF: nothing more can be read.
    let mut last_call = pin!(state.last_call.notified());
    let mut next = |context: &mut Context<'_>| match poll_read(&mut errors, &state, context) {
        Poll::Pending => last_call.as_mut().poll(context).map(|()| None),
        read @ Poll::Ready(_) => read,
    };
    while let Some(bytes) = poll_fn(&mut next).await {
        listener.push(&bytes);
    }
    listener.finish();
}

/// Reads once; returns `None` at EOF. The buffer is on the stack, so a silent stderr uses no memory.
fn poll_read(
    errors: &mut Box<dyn AsyncRead + Send + Unpin>,
    state: &StderrState,
    context: &mut Context<'_>,
) -> Poll<Option<Vec<u8>>> {
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut buffer = ReadBuf::uninit(&mut space);
    match ready!(Pin::new(errors).poll_read(context, &mut buffer)) {
        Ok(()) if !buffer.filled().is_empty() => {
            state.lock().push(buffer.filled());
            state.reads.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(buffer.filled().to_vec()))
        }
        _ => Poll::Ready(None),
    }
}

impl StderrState {
    fn lock(&self) -> MutexGuard<'_, StderrTail> {
        lock(&self.tail)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A stream that yields its text once the timer fires.
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
    async fn output_at_the_deadline_is_read() {
        let lines_read = Arc::new(Mutex::new(String::new()));
        let lines = lines_read.clone();
        let callback: OnStderr =
            Arc::new(move |line: &str| writeln!(lines.lock().unwrap(), "{line}").unwrap());
        // As after a stall: the deadline has passed and there is something to read.
        let errors = Late(Box::pin(tokio::time::sleep(QUIET)), Some("why\nit di"));
        let mut reader =
            StderrReader::start(Some(Box::new(errors)), Mask::default(), Some(callback));
        reader.finish().await;
        assert_eq!(&*reader.tail(), "why\nit di");
        assert_eq!(*lines_read.lock().unwrap(), "why\nit di\n");
    }

    /// A panic payload that panics when dropped.
    struct Grenade;

    impl Drop for Grenade {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stderr_is_read_after_a_callback_panicked_with_any_payload() {
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
            // Each line is read separately.
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
        reader.state.lock().push(b"hush-hush");
        let first = reader.tail();
        assert!(Arc::ptr_eq(&first, &reader.tail()));
        mask.learn(["hush-hush".to_owned()]);
        assert_eq!(&*reader.tail(), "***");
        reader.state.lock().push(b" more");
        reader.state.reads.fetch_add(1, Ordering::Relaxed);
        assert_eq!(&*reader.tail(), "*** more");
    }
}
