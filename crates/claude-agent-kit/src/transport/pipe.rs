//! The pipes to and from the CLI.
//!
//! When the process has exited, all of its output is in the pipe, although the runtime may not have
//! received the readiness event yet. The pipe is then read without waiting for the runtime, so that a
//! delayed EOF is not mistaken for a pipe that another process holds open.

use std::io;
#[cfg(unix)]
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::ChildStdin;

use crate::process::Process;

/// The CLI's stdin. Writing to a closed stdin is an error and never terminates the host.
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

/// The maximum number of bytes read at once from a pipe whose process has exited.
#[cfg(unix)]
const REST_BYTES: usize = 64 * 1024;

/// The CLI's stdout or stderr.
pub(super) struct OutputPipe<P> {
    pipe: P,
    process: Process,
}

impl<P> OutputPipe<P> {
    pub(super) fn new(pipe: P, process: Process) -> Self {
        Self { pipe, process }
    }
}

impl<P: AsyncRead + AsFd + Unpin> AsyncRead for OutputPipe<P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.pipe).poll_read(context, buffer) {
            Poll::Pending => poll_rest(&self.pipe, &self.process, context, buffer),
            read @ Poll::Ready(_) => read,
        }
    }
}

/// Reads the remaining output of a process that has exited.
#[cfg(unix)]
fn poll_rest(
    pipe: &impl AsFd,
    process: &Process,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    use rustix::io::Errno;

    if !process.has_ended() {
        return Poll::Pending;
    }
    // Another process may fill the pipe endlessly; yield to other tasks all the same.
    let turn = std::task::ready!(tokio::task::coop::poll_proceed(context));
    let most = buffer.remaining().min(REST_BYTES);
    loop {
        match rustix::io::read(pipe, buffer.initialize_unfilled_to(most)) {
            Ok(read) => {
                buffer.advance(read);
                turn.made_progress();
                return Poll::Ready(Ok(()));
            }
            // Another process holds the pipe open; the runtime reports further output.
            Err(Errno::AGAIN) => return Poll::Pending,
            Err(Errno::INTR) => {}
            Err(error) => return Poll::Ready(Err(error.into())),
        }
    }
}

/// Other systems have no file descriptors.
#[cfg(not(unix))]
trait AsFd {}

#[cfg(not(unix))]
impl<T> AsFd for T {}

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

    use claude_agent_core::session::GracePeriods;
    use rustix::io::ioctl_fionread;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::process::{ChildStderr, ChildStdout};

    use super::*;
    use crate::process::{Started, tests};

    type Pipe = OutputPipe<ChildStdout>;

    /// Returns stdout and stdin of a shell that runs `script`.
    async fn shell(script: &str) -> (Pipe, ChildStdin) {
        let (output, _, input) = all_of(script).await;
        (output, input)
    }

    async fn all_of(script: &str) -> (Pipe, OutputPipe<ChildStderr>, ChildStdin) {
        let Started { process, stdin, stdout, stderr } =
            Process::start(tests::shell(script), GracePeriods::default()).await.unwrap();
        let output = OutputPipe::new(ChildStdout::from_std(stdout).unwrap(), process.clone());
        let errors = OutputPipe::new(ChildStderr::from_std(stderr).unwrap(), process);
        (output, errors, ChildStdin::from_std(stdin).unwrap())
    }

    /// Polls until so many bytes can be read: no event reports more data in a pipe that is not empty.
    async fn there(pipe: &Pipe, bytes: usize) {
        while ioctl_fionread(&pipe.pipe).unwrap() < bytes as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn remaining_output_is_read_before_the_runtime_reports_it() {
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
        // The runtime's only thread is blocked, so it receives no events.
        let began = std::time::Instant::now();
        while pipe.process.exit_status().is_none() {
            assert!(began.elapsed() < Duration::from_secs(120));
            std::thread::yield_now();
        }
        assert_eq!([poll(&mut pipe), poll(&mut pipe)], [Poll::Ready(11), Poll::Ready(0)]);
        assert_eq!([poll(&mut errors), poll(&mut errors)], [Poll::Ready(10), Poll::Ready(0)]);
    }

    #[tokio::test]
    async fn endless_output_does_not_starve_other_tasks() {
        let (mut pipe, mut errors, _input) = all_of("yes & echo $! >&2; exit 0").await;
        pipe.process.wait().await.unwrap();
        let mut space = [0; 10];
        let length = errors.read(&mut space).await.unwrap();
        let endless = String::from_utf8_lossy(&space[..length]).trim().to_owned();
        there(&pipe, REST_BYTES).await;
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        // Each read finds data and never waits.
        for _ in 0..2_000 {
            assert_eq!(pipe.read(&mut space).await.unwrap(), space.len());
        }
        assert!(turns.load(Ordering::Relaxed) > 2);
        other.abort();
        assert!(Command::new("kill").arg(endless).status().unwrap().success());
    }

    #[tokio::test]
    async fn output_held_open_by_another_process_is_awaited() {
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
    fn a_closed_stdin_is_an_error_in_a_host_with_default_sigpipe() {
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
