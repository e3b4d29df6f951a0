//! Indexes transcripts, long ones on two threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use claude_wire::transcript::Index;

use super::CancelFlag;
use super::source::Source;
use crate::error::Result;
use crate::tasks;

/// How many bytes are indexed between two looks at whether the caller is gone. Not more, because glibc
/// keeps up to twice the largest block that was freed in every thread.
const CHUNK_BYTES: usize = 256 * 1024;
/// How many bytes are read at a time to find the end of a line, which is mostly near.
const NEAR_BYTES: usize = 16 * 1024;
/// The parts of a file that threads index in turn.
const PART_BYTES: u64 = 2 * 1024 * 1024;
/// From this size on a second thread pays off.
const PARALLEL_BYTES: u64 = 8 * 1024 * 1024;

/// Indexes a part of a file. Offsets in the index count from `start`.
pub(super) fn index(source: &Source, start: u64, end: u64, cancel: &CancelFlag) -> Result<Index> {
    let has_cores =
        || thread::available_parallelism().is_ok_and(|cores| cores > NonZero::<usize>::MIN);
    let is_parallel = end - start >= PARALLEL_BYTES && has_cores();
    let part_bytes = if is_parallel { PART_BYTES } else { (end - start).max(1) };
    let indexing = Indexing {
        source,
        start,
        end,
        part_bytes,
        cancel,
        next_part: AtomicU64::new(0),
        long_line: Mutex::default(),
        joined: Mutex::default(),
    };
    if is_parallel {
        let mut other = Ok(());
        let run = tasks::scoped(|| other = indexing.run());
        let own = thread::scope(|scope| {
            let second = thread::Builder::new().name("claude-history".to_owned());
            // If there is no second thread, this one indexes everything.
            let second = second.spawn_scoped(scope, run);
            let own = indexing.run();
            if let Ok(second) = second {
                tasks::join(second);
            }
            own
        });
        own.and(other)?;
    } else {
        indexing.run()?;
    }
    let joined = indexing.joined.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(joined.index.unwrap_or_default())
}

/// A file that is being indexed.
struct Indexing<'a> {
    source: &'a Source,
    start: u64,
    /// What is appended meanwhile is not read, so that this ends.
    end: u64,
    part_bytes: u64,
    cancel: &'a CancelFlag,
    next_part: AtomicU64,
    /// Held while a long line is buffered, so that there is one in memory.
    long_line: Mutex<()>,
    joined: Mutex<Joined>,
}

/// The parts that are indexed.
#[derive(Default)]
struct Joined {
    /// The number of parts in the index.
    count: u64,
    index: Option<Index>,
    /// Parts that come after one that is not ready. `None` if no line begins in a part.
    waiting: Vec<(u64, Option<Index>)>,
}

impl Joined {
    fn add(&mut self, number: u64, part: Option<Index>) {
        self.waiting.push((number, part));
        while let Some(at) = self.waiting.iter().position(|(number, _)| *number == self.count) {
            let (_, part) = self.waiting.swap_remove(at);
            self.count += 1;
            match (&mut self.index, part) {
                (Some(index), Some(part)) => index.append(part),
                (index @ None, part) => *index = part,
                (Some(_), None) => {}
            }
        }
    }
}

impl Indexing<'_> {
    /// Indexes one part after another until none is left.
    fn run(&self) -> Result<()> {
        let room = usize::try_from(self.end - self.start).unwrap_or(CHUNK_BYTES);
        let mut chunk = vec![0; CHUNK_BYTES.min(room)];
        loop {
            let number = self.next_part.fetch_add(1, Ordering::Relaxed);
            let offset = number.saturating_mul(self.part_bytes);
            if offset >= self.end - self.start {
                return Ok(());
            }
            let part = self.part(self.start + offset, &mut chunk);
            // The other thread has nothing left to do if this one failed.
            let stop = |_: &_| self.next_part.store(u64::MAX / 2, Ordering::Relaxed);
            lock(&self.joined).add(number, part.inspect_err(stop)?);
        }
    }

    /// Indexes the lines that begin in the part at `from`, also where they end in another part.
    fn part(&self, from: u64, chunk: &mut [u8]) -> Result<Option<Index>> {
        let to = (from + self.part_bytes).min(self.end);
        let (mut index, mut offset) = if from == self.start {
            (Index::new(), from)
        } else {
            match self.first_line(from, to, chunk)? {
                Some(offset) => (Index::new().starting_at(offset - self.start), offset),
                None => return Ok(None),
            }
        };
        let mut long_line = None;
        while offset < to || (offset < self.end && index.pending() > 0) {
            // The last line ends behind the part, and the one after it belongs to the next.
            let is_behind = offset >= to;
            let (limit, most) = if is_behind { (self.end, NEAR_BYTES) } else { (to, CHUNK_BYTES) };
            let read = self.read(offset, limit, most, chunk)?;
            let line_end = if is_behind { line_break(read) } else { None };
            let read = &read[..line_end.map_or(read.len(), |at| at + 1)];
            if read.is_empty() {
                break;
            }
            index.feed(read);
            offset += read.len() as u64;
            if index.pending() <= CHUNK_BYTES as u64 {
                long_line = None;
            } else if long_line.is_none() {
                long_line = Some(lock(&self.long_line));
            }
        }
        if index.pending() > 0 {
            index.finish();
        }
        Ok(Some(index))
    }

    /// Returns where the first line begins that begins in a part which is not the first.
    fn first_line(&self, from: u64, to: u64, chunk: &mut [u8]) -> Result<Option<u64>> {
        let mut offset = from - 1;
        // A line break at the end of the part begins a line in the next one.
        while offset + 1 < to {
            let read = self.read(offset, to - 1, NEAR_BYTES, chunk)?;
            if let Some(at) = line_break(read) {
                return Ok(Some(offset + at as u64 + 1));
            }
            if read.is_empty() {
                break;
            }
            offset += read.len() as u64;
        }
        Ok(None)
    }

    /// Reads up to `most` bytes before `limit`; none at the end of the file.
    fn read<'c>(
        &self,
        offset: u64,
        limit: u64,
        most: usize,
        chunk: &'c mut [u8],
    ) -> Result<&'c [u8]> {
        self.cancel.check()?;
        let most = most.min(chunk.len());
        let wanted = usize::try_from(limit - offset).map_or(most, |rest| rest.min(most));
        let read = self.source.read_at(&mut chunk[..wanted], offset)?;
        Ok(&chunk[..read])
    }
}

fn line_break(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// A panic of the other thread ends this one too, so that what it left is not used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
