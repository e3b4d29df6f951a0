//! The pipes that the CLI talks through.
//!
//! When the process has ended, all that it said is there, although the runtime may not have heard of
//! it yet: then it is read without asking the runtime. An end that is only late to be told must not
//! look like a pipe that somebody else holds open.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::process::Process;

/// The CLI's stdin. Writing to a CLI that has closed it is an error, and never ends the host.
pub(super) struct Stdin(ChildStdin);

impl Stdin {
    pub(super) fn new(stdin: ChildStdin) -> Self {
        Self(stdin)
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stdin = Pin::new(&mut self.0);
        #[cfg(target_os = "linux")]
        return crate::process::without_sigpipe(|| stdin.poll_write(context, bytes));
        #[cfg(not(target_os = "linux"))]
        stdin.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// What a pipe holds usually.
const USUAL: usize = 64 * 1024;

/// What it holds while the CLI has much to say.
#[cfg(target_os = "linux")]
const WIDE: usize = 256 * 1024;

/// So many reads in a row that got much make it wide.
const READS: u8 = 4;

/// The CLI's output. Who writes into a pipe and who reads from it sleep by turns when it is full and
/// empty again and again; a wider one has them do so less often. Narrow again it leaves its room to
/// others: what all pipes of a user may hold has a limit.
pub(super) struct Pipe {
    output: ChildStdout,
    process: Process,
    /// How many reads in a row got much.
    much: u8,
    /// What it held before it was wide.
    narrow: Option<usize>,
}

impl Pipe {
    pub(super) fn new(output: ChildStdout, process: Process) -> Self {
        Self { output, process, much: 0, narrow: None }
    }

    /// Follows how much was read.
    fn adapt(&mut self, read: usize) {
        match self.narrow {
            None if read >= USUAL / 2 => {
                self.much += 1;
                if self.much == READS {
                    self.widen();
                }
            }
            None => self.much = 0,
            Some(narrow) if read < USUAL / 16 => self.restore(narrow),
            Some(_) => {}
        }
    }

    #[cfg(target_os = "linux")]
    fn widen(&mut self) {
        use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

        // Where the limit is reached it stays as it is; the next run of reads asks again.
        self.much = 0;
        if let Ok(now) = fcntl_getpipe_size(&self.output)
            && now < WIDE
            && fcntl_setpipe_size(&self.output, WIDE).is_ok()
        {
            self.narrow = Some(now);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn widen(&mut self) {
        self.much = 0;
    }

    #[cfg(target_os = "linux")]
    fn restore(&mut self, narrow: usize) {
        // It cannot be while it holds more than that; the next read that gets little tries again.
        if rustix::pipe::fcntl_setpipe_size(&self.output, narrow).is_ok() {
            self.narrow = None;
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn restore(&mut self, _narrow: usize) {
        self.narrow = None;
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.output).poll_read(context, buffer) {
            Poll::Pending => ready!(poll_rest(&self.output, &self.process, context, buffer))?,
            Poll::Ready(read) => read?,
        }
        self.adapt(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

/// What the CLI complains about.
pub(super) struct Errors {
    errors: ChildStderr,
    process: Process,
}

impl Errors {
    pub(super) fn new(errors: ChildStderr, process: Process) -> Self {
        Self { errors, process }
    }
}

impl AsyncRead for Errors {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.errors).poll_read(context, buffer) {
            Poll::Pending => poll_rest(&self.errors, &self.process, context, buffer),
            read @ Poll::Ready(_) => read,
        }
    }
}

/// Reads what a process that has ended left behind.
#[cfg(unix)]
fn poll_rest(
    pipe: &impl std::os::fd::AsFd,
    process: &Process,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    use rustix::io::Errno;

    if !process.has_ended() {
        return Poll::Pending;
    }
    // Somebody who holds it open may fill it without end: others have their turns all the same.
    let turn = ready!(tokio::task::coop::poll_proceed(context));
    let most = buffer.remaining().min(USUAL);
    loop {
        match rustix::io::read(pipe, buffer.initialize_unfilled_to(most)) {
            Ok(read) => {
                buffer.advance(read);
                turn.made_progress();
                return Poll::Ready(Ok(()));
            }
            // Somebody else holds it open; the runtime tells of more.
            Err(Errno::AGAIN) => return Poll::Pending,
            Err(Errno::INTR) => {}
            Err(error) => return Poll::Ready(Err(error.into())),
        }
    }
}

#[cfg(not(unix))]
fn poll_rest<T>(
    _: &T,
    _: &Process,
    _: &mut Context<'_>,
    _: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    Poll::Pending
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use rustix::io::ioctl_fionread;
    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use claude_wire::session::GracePeriods;

    use crate::process::{Started, tests};

    /// A shell that runs this, its output and its input.
    async fn shell(script: &str) -> (Pipe, ChildStdin) {
        let (output, _, input) = all_of(script).await;
        (output, input)
    }

    async fn all_of(script: &str) -> (Pipe, Errors, ChildStdin) {
        let Started { process, stdin, stdout, stderr } =
            Process::start(tests::shell(script), GracePeriods::default()).await.unwrap();
        let output = Pipe::new(ChildStdout::from_std(stdout).unwrap(), process.clone());
        let errors = Errors::new(ChildStderr::from_std(stderr).unwrap(), process);
        (output, errors, ChildStdin::from_std(stdin).unwrap())
    }

    /// Waits until so much is there to be read. Nobody tells of more in a pipe that is not empty.
    async fn there(pipe: &Pipe, bytes: usize) {
        while ioctl_fionread(&pipe.output).unwrap() < bytes as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Reads once, when so much is there to be read.
    async fn read(pipe: &mut Pipe, bytes: usize, space: &mut [u8]) -> usize {
        there(pipe, bytes).await;
        pipe.read(space).await.unwrap()
    }

    #[tokio::test]
    async fn it_is_wide_while_there_is_much_to_read_and_only_then() {
        tokio::time::timeout(Duration::from_secs(60), widen_and_restore()).await.unwrap();
    }

    async fn widen_and_restore() {
        let (mut pipe, mut input) = shell("exec cat").await;
        let width = |pipe: &Pipe| fcntl_getpipe_size(&pipe.output).unwrap();
        let writer = tokio::spawn(async move {
            input.write_all(&vec![b'x'; 8 * WIDE]).await.unwrap();
            input
        });
        let mut space = vec![0; WIDE];
        // Some at a time are not much, however many come.
        let mut taken = 0;
        for _ in 0..3 * READS {
            taken += read(&mut pipe, USUAL / 2, &mut space[..1000]).await;
        }
        assert_eq!(width(&pipe), USUAL);
        for _ in 0..READS {
            assert_eq!(width(&pipe), USUAL);
            taken += read(&mut pipe, USUAL / 2, &mut space).await;
        }
        assert_eq!(width(&pipe), WIDE);
        while taken + USUAL < 8 * WIDE {
            taken += read(&mut pipe, USUAL / 2, &mut space).await;
            assert_eq!(width(&pipe), WIDE);
        }
        let mut input = writer.await.unwrap();
        while taken < 8 * WIDE {
            taken += pipe.read(&mut space).await.unwrap();
        }
        input.write_all(b"a little").await.unwrap();
        assert_eq!(read(&mut pipe, 8, &mut space).await, 8);
        assert_eq!(width(&pipe), USUAL);
        drop(input);
        assert_eq!(pipe.read(&mut space).await.unwrap(), 0);
        pipe.process.wait().await.unwrap();
        assert!(pipe.process.exit_status().unwrap().success());
    }

    #[tokio::test]
    async fn what_a_process_left_is_read_before_the_runtime_has_heard_of_it() {
        fn poll(pipe: &mut (impl AsyncRead + Unpin)) -> Poll<usize> {
            let mut space = [0; 100];
            let mut buffer = ReadBuf::new(&mut space);
            let mut context = Context::from_waker(std::task::Waker::noop());
            let read = Pin::new(pipe).poll_read(&mut context, &mut buffer);
            read.map(|read| read.map(|()| buffer.filled().len()).unwrap())
        }
        let script = "read -r line; echo 'last words'; echo complaint >&2";
        let (mut pipe, mut errors, input) = all_of(script).await;
        assert!(poll(&mut pipe).is_pending() && poll(&mut errors).is_pending());
        drop(input);
        // The thread of this runtime is held up, and with it all that the runtime hears.
        let began = std::time::Instant::now();
        while pipe.process.exit_status().is_none() {
            assert!(began.elapsed() < Duration::from_secs(120));
            std::thread::yield_now();
        }
        assert_eq!([poll(&mut pipe), poll(&mut pipe)], [Poll::Ready(11), Poll::Ready(0)]);
        assert_eq!([poll(&mut errors), poll(&mut errors)], [Poll::Ready(10), Poll::Ready(0)]);
    }

    #[tokio::test]
    async fn who_fills_it_without_end_leaves_turns_to_others() {
        let (mut pipe, mut errors, _input) = all_of("yes & echo $! >&2; exit 0").await;
        pipe.process.wait().await.unwrap();
        let mut space = [0; 10];
        let length = errors.read(&mut space).await.unwrap();
        let endless = String::from_utf8_lossy(&space[..length]).trim().to_owned();
        there(&pipe, USUAL).await;
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        // There is something to be read each time, and nothing that it would have to wait for.
        for _ in 0..2_000 {
            assert_eq!(pipe.read(&mut space).await.unwrap(), space.len());
        }
        assert!(turns.load(Ordering::Relaxed) > 2);
        other.abort();
        assert!(Command::new("kill").arg(endless).status().unwrap().success());
    }

    #[tokio::test]
    async fn an_output_that_somebody_else_holds_open_is_waited_for() {
        let (mut pipe, input) = shell("exec 3<&0; (read -r line <&3; echo more) & exit 0").await;
        pipe.process.wait().await.unwrap();
        let mut space = [0; 100];
        let early = tokio::time::timeout(Duration::from_millis(50), pipe.read(&mut space)).await;
        assert!(early.is_err(), "{early:?}");
        drop(input);
        let rest = async { (pipe.read(&mut space).await.unwrap(), &space[..5]) };
        let rest = tokio::time::timeout(Duration::from_secs(120), rest).await.unwrap();
        assert_eq!(rest, (5, &b"more\n"[..]));
    }

    #[test]
    fn in_a_host_that_sigpipe_ends_a_closed_stdin_is_an_error() {
        use crate::process::fixture::{default_sigpipe, in_fork};

        in_fork(|| {
            default_sigpipe();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let (mut output, stdin) = shell("exec 0<&-; echo closed; exec sleep 300").await;
                let mut space = [0; 7];
                output.read_exact(&mut space).await.unwrap();
                let mut stdin = Stdin::new(stdin);
                for _ in 0..3 {
                    let error = stdin.write_all(b"hello").await.unwrap_err();
                    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
                }
            });
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            for none in ["SigPnd:\t0000000000000000", "SigBlk:\t0000000000000000"] {
                assert!(status.contains(none), "{status}");
            }
        });
    }
}
