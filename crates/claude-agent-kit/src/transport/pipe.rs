//! The pipe that the CLI talks through.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::ChildStdout;

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
    /// How many reads in a row got much.
    much: u8,
    /// What it held before it was wide.
    narrow: Option<usize>,
}

impl Pipe {
    pub(super) fn new(output: ChildStdout) -> Self {
        Self { output, much: 0, narrow: None }
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
        ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
        self.adapt(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::io::ioctl_fionread;
    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::process::{ChildStdin, ChildStdout};

    use super::*;

    /// Reads once, when so much is there to be read.
    async fn read(pipe: &mut Pipe, there: usize, space: &mut [u8]) -> usize {
        while ioctl_fionread(&pipe.output).unwrap() < there as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        pipe.read(space).await.unwrap()
    }

    #[tokio::test]
    async fn it_is_wide_while_there_is_much_to_read_and_only_then() {
        tokio::time::timeout(Duration::from_secs(60), widen_and_restore()).await.unwrap();
    }

    async fn widen_and_restore() {
        let mut echo = Command::new("cat");
        let mut echo = echo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = ChildStdin::from_std(echo.stdin.take().unwrap()).unwrap();
        let mut pipe = Pipe::new(ChildStdout::from_std(echo.stdout.take().unwrap()).unwrap());
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
        assert!(echo.wait().unwrap().success());
    }
}
