//! The recording, entry by entry.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter};

use super::client::{Client, Heard};
use super::expected::{Expected, Place};
use super::ids::Ids;
use super::{Mismatch, Player, compare};
use crate::recording::{Channel, Entry, Exit, What};

/// One run of a player.
pub(super) struct Play<'a, I, O, E> {
    entries: &'a [Entry],
    lenient: bool,
    at_recorded_speed: bool,
    ids: Ids,
    client: Client<I>,
    /// Nothing once the client does not read it any more.
    stdout: Option<BufWriter<O>>,
    stderr: Option<BufWriter<E>>,
    expected: Expected,
    /// Recorded ids of requests that this client did not make.
    unsent: HashSet<String>,
    /// Whether the CLI has closed its stdout. What the client says then had no effect.
    is_over: bool,
}

/// What comes after an entry.
enum Next {
    Entry(usize),
    End(Exit),
}

impl<'a, I, O, E> Play<'a, I, O, E>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin,
{
    pub(super) fn new(
        player: &'a Player,
        ids: Ids,
        client: Client<I>,
        stdout: O,
        stderr: E,
    ) -> Self {
        let entries = &player.recording.entries;
        Self {
            entries,
            lenient: player.lenient,
            at_recorded_speed: player.at_recorded_speed,
            ids,
            client,
            stdout: Some(BufWriter::new(stdout)),
            stderr: Some(BufWriter::new(stderr)),
            expected: Expected::of(entries),
            unsent: HashSet::new(),
            is_over: false,
        }
    }

    pub(super) async fn run(mut self) -> Result<Exit, Mismatch> {
        let mut index = 0;
        let exit = loop {
            match self.play(index).await? {
                Next::Entry(next) => index = next,
                Next::End(exit) => break exit,
            }
        };
        self.flush().await;
        Ok(exit)
    }

    async fn play(&mut self, index: usize) -> Result<Next, Mismatch> {
        let Some(entry) = self.entries.get(index) else { return Ok(Next::End(Exit::Code(0))) };
        if self.at_recorded_speed && is_of_cli(&entry.what) {
            self.take_time(index).await;
        }
        match &entry.what {
            What::Received(line) => self.write_output(line, b"\n").await,
            What::Unfinished(Channel::Received, rest) => self.write_output(rest, b"").await,
            What::Stderr(line) => self.write_errors(line, b"\n").await,
            What::Unfinished(Channel::Stderr, rest) => self.write_errors(rest, b"").await,
            What::Sent(_) | What::Unfinished(Channel::Sent, _) => return self.hear(index).await,
            What::InputClosed => self.hear_the_end(index).await?,
            What::OutputClosed => self.close_output().await,
            What::Exited(exit) => return Ok(Next::End(*exit)),
        }
        Ok(Next::Entry(index + 1))
    }

    /// Waits as long as the CLI took since the entry before.
    async fn take_time(&mut self, index: usize) {
        let before = index.checked_sub(1).map_or(Duration::ZERO, |before| self.entries[before].at);
        self.flush().await;
        tokio::time::sleep(self.entries[index].at.saturating_sub(before)).await;
    }

    async fn write_output(&mut self, line: &Bytes, end: &[u8]) {
        if !self.unsent.is_empty()
            && compare::responds_to(line).is_some_and(|id| self.unsent.contains(&id))
        {
            return;
        }
        let line = self.ids.output(line);
        write(&mut self.stdout, &line, end).await;
    }

    async fn write_errors(&mut self, line: &Bytes, end: &[u8]) {
        let line = self.ids.errors(line);
        write(&mut self.stderr, &line, end).await;
    }

    async fn close_output(&mut self) {
        self.flush().await;
        if let Some(mut stdout) = self.stdout.take() {
            // The stream is dropped right after, which closes it whatever comes of this.
            drop(stdout.shutdown().await);
        }
        self.is_over = true;
    }

    /// The client waits for what was written, so nothing may stay in a buffer when it is its turn.
    async fn flush(&mut self) {
        flush(&mut self.stderr).await;
        flush(&mut self.stdout).await;
    }

    /// Waits for the client to say what it said here. Says where to go on.
    async fn hear(&mut self, index: usize) -> Result<Next, Mismatch> {
        while !self.is_over && self.expected.waits_for(index) {
            self.flush().await;
            let heard = self.client.next().await;
            match &heard {
                Heard::Closed if self.lenient => return Ok(Next::Entry(self.end_of_input(index))),
                Heard::Closed if self.expected.may_be_missing(index) => self.skip(index),
                _ => self.take(index, &heard)?,
            }
        }
        Ok(Next::Entry(index + 1))
    }

    /// The client has closed its input and will not say this any more.
    fn skip(&mut self, index: usize) {
        self.expected.settle(index);
        if let Some((line, _)) = spoken(&self.entries[index].what) {
            self.unsent.extend(compare::request_id(line));
        }
    }

    /// Takes what the client said while the player waits at this entry.
    fn take(&mut self, index: usize, heard: &Heard) -> Result<(), Mismatch> {
        let (Heard::Line(said) | Heard::Unfinished(said)) = heard else {
            return if self.lenient { Ok(()) } else { Err(self.mismatch(index, heard)) };
        };
        let place = if self.lenient {
            self.expected.of_kind(said).map_or(Place::Chance, Place::Entry)
        } else {
            self.expected.place(said, index)
        };
        let entry = match place {
            Place::Entry(entry) => entry,
            Place::Chance => return Ok(()),
            Place::Nowhere => return Err(self.mismatch(index, heard)),
        };
        self.expected.settle(entry);
        let Some((line, unfinished)) = spoken(&self.entries[entry].what) else { return Ok(()) };
        compare::tie(line, said, &mut self.ids);
        let as_whole = unfinished == matches!(heard, Heard::Unfinished(_));
        let same = as_whole && compare::same(line, said, &self.ids).is_ok();
        if self.lenient || same { Ok(()) } else { Err(self.mismatch(entry, heard)) }
    }

    /// Where the client closed its input, or else where the CLI ended.
    fn end_of_input(&self, from: usize) -> usize {
        let find = |ends: fn(&What) -> bool| {
            self.entries[from..].iter().position(|entry| ends(&entry.what))
        };
        let end = find(|what| matches!(what, What::InputClosed))
            .or_else(|| find(|what| matches!(what, What::Exited(_))));
        end.map_or(self.entries.len(), |end| from + end)
    }

    async fn hear_the_end(&mut self, index: usize) -> Result<(), Mismatch> {
        while !self.is_over {
            self.flush().await;
            match self.client.next().await {
                Heard::Closed => break,
                heard => self.take(index, &heard)?,
            }
        }
        Ok(())
    }

    fn mismatch(&self, index: usize, heard: &Heard) -> Mismatch {
        let quoted = |line: &[u8]| format!("`{}`", String::from_utf8_lossy(line));
        let expected = match spoken(&self.entries[index].what) {
            Some((line, false)) => quoted(line),
            Some((line, true)) => format!("{} without a line break", quoted(line)),
            None => "the end of the input".to_owned(),
        };
        let found = match heard {
            Heard::Line(line) => quoted(line),
            Heard::Unfinished(rest) => format!("{} without a line break", quoted(rest)),
            Heard::TooLong(size) => format!("a line of {size} bytes, which is too long"),
            Heard::Closed => "the end of the input".to_owned(),
        };
        let place = match (spoken(&self.entries[index].what), heard) {
            (Some((line, false)), Heard::Line(said)) => {
                compare::same(line, said, &self.ids).err().flatten()
            }
            _ => None,
        };
        // The header is the first line of the file.
        Mismatch::new(index + 2, expected, found).at(place)
    }
}

/// What the client said, if it was more than blanks, and whether it lacks its line break.
fn spoken(what: &What) -> Option<(&Bytes, bool)> {
    let (line, unfinished) = match what {
        What::Sent(line) => (line, false),
        What::Unfinished(Channel::Sent, rest) => (rest, true),
        _ => return None,
    };
    (!line.trim_ascii().is_empty()).then_some((line, unfinished))
}

fn is_of_cli(what: &What) -> bool {
    !matches!(what, What::Sent(_) | What::Unfinished(Channel::Sent, _) | What::InputClosed)
}

/// Writes to a stream that somebody reads; from the first failure on nobody does.
async fn write(to: &mut Option<BufWriter<impl AsyncWrite + Unpin>>, line: &[u8], end: &[u8]) {
    if let Some(open) = to
        && (open.write_all(line).await.is_err() || open.write_all(end).await.is_err())
    {
        *to = None;
    }
}

async fn flush(to: &mut Option<BufWriter<impl AsyncWrite + Unpin>>) {
    if let Some(open) = to
        && open.flush().await.is_err()
    {
        *to = None;
    }
}
