//! Pipes that are slow, split lines into pieces, and break.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

use super::record::Record;
use super::rng::Rng;

/// How one direction of a pipe behaves.
pub(super) struct PipeBehavior {
    name: &'static str,
    rng: Rng,
    /// The largest chunk that is forwarded at once.
    chunk: usize,
    /// The probability of a delay, in percent.
    slow: u64,
    /// The number of bytes after which the pipe is cut.
    cut: Option<usize>,
    /// The probability, in percent, that a line is followed by one that is not part of the protocol.
    garbage: u64,
    /// How long it stays open after the other end was closed.
    held: Duration,
    /// Whether the reader gets an error at the end of the stream.
    pub(super) breaks: bool,
}

impl PipeBehavior {
    pub(super) fn pick(rng: &mut Rng, name: &'static str, healthy: bool) -> Self {
        let mut own = rng.branch();
        let cut = !healthy && own.chance(12);
        // Near the start, or anywhere.
        let reach = own.pick(&[300, 3_000, 20_000]);
        let held = name == "stdout" && !healthy && own.chance(10);
        Self {
            name,
            chunk: own.pick(&[1, 7, 50, 1_000, 4_096, 4_096]),
            slow: own.pick(&[0, 0, 5, 50]),
            cut: cut.then(|| own.between(0, reach)),
            garbage: if name == "stdout" && !healthy && own.chance(15) { 10 } else { 0 },
            held: if held { own.moment() } else { Duration::ZERO },
            breaks: name == "stdout" && !healthy && own.chance(10),
            rng: own,
        }
    }
}

/// Forwards bytes until one end is closed or the pipe is cut.
pub(super) async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut pipe: PipeBehavior,
    record: Record,
) {
    let mut buffer = [0; 4_096];
    let mut carried = 0;
    let mut slept = 0;
    loop {
        let left = pipe.cut.map_or(usize::MAX, |cut| cut - carried);
        if left == 0 {
            record.count(format!("fault: cut {}", pipe.name));
            return;
        }
        // Single bytes only during the handshake; more of them would take too long.
        let chunk = if carried < 3_000 { pipe.chunk } else { pipe.chunk.max(100) };
        let most = pipe.rng.between(1, chunk).min(left);
        let read = from.read(&mut buffer[..most]).await.unwrap_or(0);
        if read == 0 {
            break;
        }
        // Limits the number of delays, so that a run with single bytes finishes.
        if slept < 200 && pipe.rng.chance(pipe.slow) {
            slept += 1;
            sleep(pipe.rng.delay() / 10).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        carried += read;
        if buffer[read - 1] == b'\n' && pipe.rng.chance(pipe.garbage) {
            record.count("fault: garbage line");
            let line = pipe.rng.pick(&["no json\n", "{\"type\":\n", "[1]\n", "\u{fffd}{}\n"]);
            if to.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
    if pipe.held > Duration::ZERO {
        record.count("fault: stdout held open");
        sleep(pipe.held).await;
    }
}
