//! Replays a recording entry by entry.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter};

use super::expected::{ExpectedLines, LineMatch};
use super::id_map::IdMap;
use super::input::{ClientInput, ClientReader};
use super::{Mismatch, Player, compare};
use crate::recording::{Channel, Entry, EntryKind, Exit};

/// A running replay.
pub(super) struct RecordingReplay<'a, I, O, E> {
    entries: &'a [Entry],
    lenient: bool,
    at_recorded_speed: bool,
    ids: IdMap,
    client: ClientReader<I>,
    /// `None` once the client has closed its end.
    stdout: Option<BufWriter<O>>,
    stderr: Option<BufWriter<E>>,
    expected: ExpectedLines,
    /// The recorded ids of requests that this client did not send.
    skipped_requests: HashSet<String>,
    /// Whether the recorded CLI has closed its stdout; later lines of the client have no effect.
    stdout_closed: bool,
}

/// What follows an entry.
enum ReplayStep {
    Entry(usize),
    End(Exit),
}

impl<'a, I, O, E> RecordingReplay<'a, I, O, E>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin,
{
    pub(super) fn new(
        player: &'a Player,
        ids: IdMap,
        client: ClientReader<I>,
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
            expected: ExpectedLines::from_entries(entries),
            skipped_requests: HashSet::new(),
            stdout_closed: false,
        }
    }

    pub(super) async fn run(mut self) -> Result<Exit, Mismatch> {
        let mut index = 0;
        let exit = loop {
            match self.step(index).await? {
                ReplayStep::Entry(next) => index = next,
                ReplayStep::End(exit) => break exit,
            }
        };
        self.flush().await;
        Ok(exit)
    }

    async fn step(&mut self, index: usize) -> Result<ReplayStep, Mismatch> {
        let Some(entry) = self.entries.get(index) else {
            return Ok(ReplayStep::End(Exit::Code(0)));
        };
        if self.at_recorded_speed && is_from_cli(&entry.kind) {
            self.wait_recorded_time(index).await;
        }
        match &entry.kind {
            EntryKind::Received(line) => self.write_stdout(line, b"\n").await,
            EntryKind::Unfinished(Channel::Received, rest) => self.write_stdout(rest, b"").await,
            EntryKind::Stderr(line) => self.write_stderr(line, b"\n").await,
            EntryKind::Unfinished(Channel::Stderr, rest) => self.write_stderr(rest, b"").await,
            EntryKind::Sent(_) | EntryKind::Unfinished(Channel::Sent, _) => {
                return self.receive(index).await;
            }
            EntryKind::StdinClosed => self.receive_eof(index).await?,
            EntryKind::StdoutClosed => self.close_stdout().await,
            EntryKind::Exited(exit) => return Ok(ReplayStep::End(*exit)),
        }
        Ok(ReplayStep::Entry(index + 1))
    }

    /// Waits for the recorded time between this entry and the previous one.
    async fn wait_recorded_time(&mut self, index: usize) {
        let before = index.checked_sub(1).map_or(Duration::ZERO, |before| self.entries[before].at);
        self.flush().await;
        tokio::time::sleep(self.entries[index].at.saturating_sub(before)).await;
    }

    async fn write_stdout(&mut self, line: &Bytes, end: &[u8]) {
        if !self.skipped_requests.is_empty()
            && compare::responds_to(line).is_some_and(|id| self.skipped_requests.contains(&id))
        {
            return;
        }
        let line = self.ids.map_stdout(line);
        write(&mut self.stdout, &line, end).await;
    }

    async fn write_stderr(&mut self, line: &Bytes, end: &[u8]) {
        let line = self.ids.map_stderr(line);
        write(&mut self.stderr, &line, end).await;
    }

    async fn close_stdout(&mut self) {
        self.flush().await;
        if let Some(mut stdout) = self.stdout.take() {
            // The stream is dropped right after, which closes it even if this fails.
            drop(stdout.shutdown().await);
        }
        self.stdout_closed = true;
    }

    /// Flushes both streams. Must be called before waiting for the client, which may itself wait for
    /// buffered lines.
    async fn flush(&mut self) {
        flush(&mut self.stderr).await;
        flush(&mut self.stdout).await;
    }

    /// Waits until the client has sent the line of this entry; returns the next entry.
    async fn receive(&mut self, index: usize) -> Result<ReplayStep, Mismatch> {
        while !self.stdout_closed && self.expected.waits_for(index) {
            self.flush().await;
            let input = self.client.next().await;
            match &input {
                ClientInput::Closed if self.lenient => {
                    return Ok(ReplayStep::Entry(self.eof_index(index)));
                }
                ClientInput::Closed if self.expected.may_be_missing(index) => self.skip(index),
                _ => self.match_input(index, &input)?,
            }
        }
        Ok(ReplayStep::Entry(index + 1))
    }

    /// Skips a line that the client did not send before it closed stdin.
    fn skip(&mut self, index: usize) {
        self.expected.settle(index);
        if let Some((line, _)) = client_line(&self.entries[index].kind) {
            self.skipped_requests.extend(compare::request_id(line));
        }
    }

    /// Handles a line that arrives while the player waits at this entry.
    fn match_input(&mut self, index: usize, input: &ClientInput) -> Result<(), Mismatch> {
        let (ClientInput::Line(sent) | ClientInput::Unfinished(sent)) = input else {
            return if self.lenient { Ok(()) } else { Err(self.mismatch(index, input)) };
        };
        let matched = if self.lenient {
            self.expected.of_kind(sent).map_or(LineMatch::Timing, LineMatch::Entry)
        } else {
            self.expected.match_line(sent, index)
        };
        let entry = match matched {
            LineMatch::Entry(entry) => entry,
            LineMatch::Timing => return Ok(()),
            LineMatch::Unexpected => return Err(self.mismatch(index, input)),
        };
        self.expected.settle(entry);
        let Some((line, unfinished)) = client_line(&self.entries[entry].kind) else {
            return Ok(());
        };
        compare::bind(line, sent, &mut self.ids);
        let same_ending = unfinished == matches!(input, ClientInput::Unfinished(_));
        let same = same_ending && compare::same(line, sent, &self.ids).is_ok();
        if self.lenient || same { Ok(()) } else { Err(self.mismatch(entry, input)) }
    }

    /// Returns the index of the entry for EOF on stdin, or else of the exit of the CLI.
    fn eof_index(&self, from: usize) -> usize {
        let find = |ends: fn(&EntryKind) -> bool| {
            self.entries[from..].iter().position(|entry| ends(&entry.kind))
        };
        let end = find(|kind| matches!(kind, EntryKind::StdinClosed))
            .or_else(|| find(|kind| matches!(kind, EntryKind::Exited(_))));
        end.map_or(self.entries.len(), |end| from + end)
    }

    async fn receive_eof(&mut self, index: usize) -> Result<(), Mismatch> {
        while !self.stdout_closed {
            self.flush().await;
            match self.client.next().await {
                ClientInput::Closed => break,
                input => self.match_input(index, &input)?,
            }
        }
        Ok(())
    }

    fn mismatch(&self, index: usize, input: &ClientInput) -> Mismatch {
        let quoted = |line: &[u8]| format!("`{}`", String::from_utf8_lossy(line));
        let expected = match client_line(&self.entries[index].kind) {
            Some((line, false)) => quoted(line),
            Some((line, true)) => format!("{} without a newline", quoted(line)),
            None => "EOF".to_owned(),
        };
        let found = match input {
            ClientInput::Line(line) => quoted(line),
            ClientInput::Unfinished(rest) => format!("{} without a newline", quoted(rest)),
            ClientInput::TooLong(size) => {
                format!("a line of {size} bytes, which exceeds the limit")
            }
            ClientInput::Closed => "EOF".to_owned(),
        };
        let place = match (client_line(&self.entries[index].kind), input) {
            (Some((line, false)), ClientInput::Line(sent)) => {
                compare::same(line, sent, &self.ids).err().flatten()
            }
            _ => None,
        };
        // The header is the first line of the file.
        Mismatch::new(index + 2, expected, found).at(place)
    }
}

/// Returns the line of the client, unless it is blank, and whether it lacks its newline.
fn client_line(kind: &EntryKind) -> Option<(&Bytes, bool)> {
    let (line, unfinished) = match kind {
        EntryKind::Sent(line) => (line, false),
        EntryKind::Unfinished(Channel::Sent, rest) => (rest, true),
        _ => return None,
    };
    (!line.trim_ascii().is_empty()).then_some((line, unfinished))
}

fn is_from_cli(kind: &EntryKind) -> bool {
    !matches!(
        kind,
        EntryKind::Sent(_) | EntryKind::Unfinished(Channel::Sent, _) | EntryKind::StdinClosed
    )
}

/// Writes to a stream; after the first error the stream counts as closed.
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
