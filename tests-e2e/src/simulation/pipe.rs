//! Pipes that are slow, break lines into pieces, and break.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

use super::draw::Draw;
use super::record::Record;

/// How one direction of a pipe behaves.
pub(super) struct Way {
    name: &'static str,
    draw: Draw,
    /// The most that goes through at once.
    chunk: usize,
    /// How often, in percent, something takes its time.
    slow: u64,
    /// After how many bytes it is cut.
    cut: Option<usize>,
    /// How often, in percent, a line is followed by one that is none of the protocol.
    garbage: u64,
    /// How long it stays open after the other end is closed.
    held: Duration,
    /// Whether its end is an error for who reads.
    pub(super) breaks: bool,
}

impl Way {
    pub(super) fn draw(draw: &mut Draw, name: &'static str, healthy: bool) -> Self {
        let mut own = draw.branch();
        let cut = !healthy && own.chance(12);
        // Near the beginning, or anywhere.
        let reach = own.pick(&[300, 3_000, 20_000]);
        let held = name == "output" && !healthy && own.chance(10);
        Self {
            name,
            chunk: own.pick(&[1, 7, 50, 1_000, 4_096, 4_096]),
            slow: own.pick(&[0, 0, 5, 50]),
            cut: cut.then(|| own.between(0, reach)),
            garbage: if name == "output" && !healthy && own.chance(15) { 10 } else { 0 },
            held: if held { own.moment() } else { Duration::ZERO },
            breaks: name == "output" && !healthy && own.chance(10),
            draw: own,
        }
    }
}

/// Carries bytes until one end is closed, or the cut.
pub(super) async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut way: Way,
    record: Record,
) {
    let mut buffer = [0; 4_096];
    let mut carried = 0;
    let mut slept = 0;
    loop {
        let left = way.cut.map_or(usize::MAX, |cut| cut - carried);
        if left == 0 {
            record.count(format!("fault: cut {}", way.name));
            return;
        }
        // Byte by byte only at first, where the handshake is: it takes long.
        let chunk = if carried < 3_000 { way.chunk } else { way.chunk.max(100) };
        let most = way.draw.between(1, chunk).min(left);
        let read = from.read(&mut buffer[..most]).await.unwrap_or(0);
        if read == 0 {
            break;
        }
        // Slow all the time it would take for ever, byte by byte.
        if slept < 200 && way.draw.chance(way.slow) {
            slept += 1;
            sleep(way.draw.delay() / 10).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        carried += read;
        if buffer[read - 1] == b'\n' && way.draw.chance(way.garbage) {
            record.count("fault: garbage line");
            let line = way.draw.pick(&["no json\n", "{\"type\":\n", "[1]\n", "\u{fffd}{}\n"]);
            if to.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
    if way.held > Duration::ZERO {
        record.count("fault: output held open");
        sleep(way.held).await;
    }
}
