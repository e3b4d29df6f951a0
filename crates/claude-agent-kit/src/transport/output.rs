//! Runs a program and captures its output.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use claude_agent_core::session::{GracePeriods, ShutdownStep};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{ChildStderr, ChildStdout};

use super::local::with_io;
use super::pipe::OutputPipe;
use crate::process::{Alarm, Process, Spec, Started};
use crate::tasks::BoxFuture;

/// The maximum number of bytes that are read; the rest of the output is discarded.
const MAX_BYTES: usize = 64 * 1024;

/// How often, and how far apart, an executable that is being written is started again.
const BUSY_TRIES: usize = if cfg!(test) { 2_000 } else { 20 };
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The grace periods for a program whose output is no longer needed: most exit on their own immediately.
const GRACE: GracePeriods = GracePeriods {
    interrupt: Duration::ZERO,
    exit: Duration::from_millis(500),
    terminate: Duration::from_secs(1),
};

/// The output of a program and its exit status.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    /// `None` if the program still runs, or if the status is lost because the host ignores SIGCHLD.
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) timed_out: bool,
}

/// Runs a program until it prints a complete line that `is_answer` accepts, closes stdout after
/// printing something, exits, or `timeout` elapses.
///
/// Returns without waiting for a process that outlives its answer or holds stdout open. The program
/// and its process group are ended in the background, even if the future is dropped.
///
/// # Errors
/// When the program cannot be started.
pub(crate) fn output(
    spec: &Spec,
    timeout: Duration,
    is_answer: fn(&str) -> bool,
) -> BoxFuture<'_, io::Result<Output>> {
    Box::pin(async move {
        let deadline = Instant::now() + timeout;
        let Some(started) = before(deadline, start(spec)).await? else {
            return Ok(Output { stdout: String::new(), exit: None, timed_out: true });
        };
        let mut capture = Capture::new(started?, is_answer)?;
        let timed_out = before(deadline, poll_fn(|cx| capture.poll(cx))).await?.is_none();
        if timed_out {
            capture.process.shut_down(ShutdownStep::Terminate);
        }
        Ok(Output {
            stdout: String::from_utf8_lossy(&capture.stdout).into_owned(),
            exit: capture.process.exit_status(),
            timed_out,
        })
    })
}

/// Waits for a future until `deadline` on the system clock; returns `None` after that.
///
/// Processes follow that clock even if a test has paused its runtime's clock.
///
/// # Errors
/// When the thread that watches deadlines cannot be started.
pub(crate) async fn before<T>(
    deadline: Instant,
    future: impl Future<Output = T>,
) -> io::Result<Option<T>> {
    let mut future = pin!(future);
    let mut deadline = Deadline { at: deadline, alarm: None };
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Ok(Some(value))),
        Poll::Pending => deadline.poll(context).map_ok(|()| None),
    })
    .await
}

/// A time on the system clock that a task waits for.
struct Deadline {
    at: Instant,
    alarm: Option<(Alarm, Waker)>,
}

impl Deadline {
    fn poll(&mut self, context: &Context<'_>) -> Poll<io::Result<()>> {
        if Instant::now() >= self.at {
            return Poll::Ready(Ok(()));
        }
        let waker = context.waker();
        if !self.alarm.as_ref().is_some_and(|(_, set)| set.will_wake(waker)) {
            self.alarm = Some((Alarm::set(self.at, waker)?, waker.clone()));
        }
        Poll::Pending
    }
}

/// Starts a program, and waits a moment for one that is being written: by an installer, or by a
/// child of this process that has inherited the descriptor and not called `exec` yet.
async fn start(spec: &Spec) -> io::Result<Started> {
    for _ in 0..BUSY_TRIES {
        match Process::start(spec.clone(), GRACE).await {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                before(Instant::now() + BUSY_PAUSE, pending::<()>()).await?;
            }
            started => return started,
        }
    }
    Process::start(spec.clone(), GRACE).await
}

/// A program whose output is read. Dropping it ends the program.
struct Capture {
    process: Process,
    exit: Pin<Box<dyn Future<Output = ()> + Send>>,
    has_exited: bool,
    pipe: OutputPipe<ChildStdout>,
    /// Read and discarded, so that a program that writes much to it does not block.
    stderr: Option<OutputPipe<ChildStderr>>,
    stdout: Vec<u8>,
    /// The end of the last complete line that was examined.
    seen: usize,
    is_answer: fn(&str) -> bool,
}

impl Capture {
    fn new(started: Started, is_answer: fn(&str) -> bool) -> io::Result<Self> {
        // Dropping stdin closes it: the program has nothing to read.
        let Started { process, stdin: _, stdout, stderr } = started;
        let waited_for = process.clone();
        let (stdout, stderr) =
            with_io(|| Ok((ChildStdout::from_std(stdout)?, ChildStderr::from_std(stderr)?)))?;
        Ok(Self {
            pipe: OutputPipe::new(stdout, process.clone()),
            stderr: Some(OutputPipe::new(stderr, process.clone())),
            // The process has ended even if its status is unknown.
            exit: Box::pin(async move { drop(waited_for.wait().await) }),
            process,
            has_exited: false,
            stdout: Vec::new(),
            seen: 0,
            is_answer,
        })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Checked before stdout is read: the pipe then contains everything an exited process has written.
        self.has_exited = self.has_exited || self.exit.as_mut().poll(context).is_ready();
        let is_closed = loop {
            if self.has_answer() || self.stdout.len() >= MAX_BYTES {
                return Poll::Ready(());
            }
            match read(&mut self.pipe, context) {
                Poll::Ready(bytes) if bytes.is_empty() => break true,
                Poll::Ready(bytes) => self.stdout.extend_from_slice(&bytes),
                Poll::Pending => break false,
            }
        };
        self.discard_stderr(context);
        let is_silent = self.stdout.trim_ascii().is_empty();
        if self.has_exited || is_closed && !is_silent { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns whether a complete line is the answer. Examines each line once.
    fn has_answer(&mut self) -> bool {
        while let Some(length) = self.stdout[self.seen..].iter().position(|byte| *byte == b'\n') {
            let line = &self.stdout[self.seen..self.seen + length];
            self.seen += length + 1;
            if (self.is_answer)(&String::from_utf8_lossy(line)) {
                return true;
            }
        }
        false
    }

    fn discard_stderr(&mut self, context: &mut Context<'_>) {
        while let Some(stderr) = &mut self.stderr {
            match read(stderr, context) {
                Poll::Ready(bytes) if bytes.is_empty() => self.stderr = None,
                Poll::Ready(_) => {}
                Poll::Pending => return,
            }
        }
    }
}

/// Reads some bytes; none at EOF. A read error counts as EOF.
fn read(stream: &mut (impl AsyncRead + Unpin), context: &mut Context<'_>) -> Poll<Vec<u8>> {
    let mut space = [0; 4096];
    let mut buffer = ReadBuf::new(&mut space);
    Pin::new(stream).poll_read(context, &mut buffer).map(|result| match result {
        Ok(()) => buffer.filled().to_vec(),
        Err(_) => Vec::new(),
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::process::tests::shell;

    /// A generous bound against hanging.
    const LIMIT: Duration = Duration::from_secs(120);

    fn is_number(line: &str) -> bool {
        line.parse::<u32>().is_ok()
    }

    async fn run(script: &str, timeout: Duration) -> Output {
        let spec = shell(script);
        tokio::time::timeout(LIMIT * 2, output(&spec, timeout, is_number)).await.unwrap().unwrap()
    }

    /// Polls until a process has ended; nothing signals that.
    async fn is_gone(pid: &str) {
        let began = Instant::now();
        while Path::new("/proc").join(pid.trim()).exists() {
            assert!(began.elapsed() < LIMIT, "{pid} still runs");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn output_and_status_are_returned() {
        let done = run("echo a; echo b >&2; exit 7", LIMIT).await;
        assert_eq!((done.stdout.as_str(), done.timed_out), ("a\n", false));
        let silent = run("exit 7", LIMIT).await;
        assert_eq!(silent.exit.unwrap().code(), Some(7));
    }

    #[tokio::test]
    async fn an_answer_is_taken_from_a_process_that_lives_on_and_is_ended() {
        for script in ["echo $$; exec sleep 600", "echo $$; exec >&-; exec sleep 600"] {
            let done = run(script, LIMIT * 3).await;
            assert!(!done.timed_out);
            is_gone(&done.stdout).await;
        }
    }

    #[tokio::test]
    async fn a_line_is_an_answer_only_when_it_is_complete() {
        let done = run("echo words; printf 1; sleep 0.1; echo 23; echo 4; exec sleep 600", LIMIT);
        assert!(done.await.stdout.starts_with("words\n123\n"));
    }

    #[tokio::test]
    async fn a_stdout_that_a_leftover_process_holds_open_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        for printed in ["echo 12", "printf 12", "echo words", "true"] {
            let script = format!("sleep 600 & echo $! > {}; {printed}", pid.display());
            let done = run(&script, LIMIT * 3).await;
            assert!(!done.timed_out, "{printed}");
            let leftover = fs::read_to_string(&pid).unwrap();
            // It is gone already if the shell took so long to exit that its group was ended.
            std::process::Command::new("kill").arg(leftover.trim()).output().unwrap();
        }
    }

    #[tokio::test]
    async fn a_process_that_takes_too_long_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait; true", pid.display());
        // Long enough for the script to have a child, on a machine that may be busy.
        let mut timeout = Duration::from_millis(500);
        while !pid.exists() {
            assert!(timeout < LIMIT);
            let done = run(&script, timeout).await;
            assert!(done.timed_out && done.stdout.is_empty());
            timeout *= 2;
        }
        is_gone(&fs::read_to_string(&pid).unwrap()).await;
    }

    #[tokio::test]
    async fn dropping_the_future_ends_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let spec = shell(&format!("echo $$ > {}; exec sleep 600", pid.display()));
        let written = || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'));
        {
            let mut running = pin!(output(&spec, LIMIT * 3, is_number));
            let began = Instant::now();
            while !written() {
                assert!(began.elapsed() < LIMIT);
                let step = tokio::time::timeout(Duration::from_millis(5), running.as_mut());
                assert!(step.await.is_err());
            }
        }
        is_gone(&fs::read_to_string(&pid).unwrap()).await;
    }

    #[tokio::test]
    async fn endless_output_on_either_stream_is_bounded() {
        let done = run("yes >&2 & yes x", LIMIT).await;
        assert!(done.stdout.len() >= MAX_BYTES && done.stdout.len() < 2 * MAX_BYTES);
        let done = run("yes >&2 & echo 5; wait", LIMIT).await;
        assert_eq!(done.stdout, "5\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_does_not_cut_the_timeout_short() {
        let output = output(&shell("sleep 0.1; echo 5"), LIMIT, is_number).await.unwrap();
        assert_eq!(output.stdout, "5\n");
    }

    #[tokio::test]
    async fn an_executable_that_is_being_written_is_waited_for() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "#!/bin/sh\necho 5\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let spec = Spec { program: path, arguments: Vec::new(), ..shell("") };
        let mut running = pin!(output(&spec, LIMIT, is_number));
        let early = tokio::time::timeout(Duration::from_millis(50), running.as_mut()).await;
        assert!(early.is_err(), "{early:?}");
        drop(writer);
        assert_eq!(running.await.unwrap().stdout, "5\n");
    }
}
