//! The recording, entry by entry.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter};

use super::{
    Mismatch, Player,
    client::{Client, Heard},
    compare,
    ids::Ids,
};
use crate::recording::{Channel, Entry, Exit, What};

/// A CLI needs longer than this to leave after its input was closed. Where a recording shows less,
/// the CLI left of its own accord and the client closed the input because of that.
const LEAVING: Duration = Duration::from_millis(5);

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
    /// What a lenient player still waits for: entries and their kinds.
    awaited: VecDeque<(usize, String)>,
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
        let awaited = entries.iter().enumerate().filter_map(|(index, entry)| {
            spoken(&entry.what).map(|(line, _)| (index, compare::kind(line)))
        });
        Self {
            entries,
            lenient: player.lenient,
            at_recorded_speed: player.at_recorded_speed,
            ids,
            client,
            stdout: Some(BufWriter::new(stdout)),
            stderr: Some(BufWriter::new(stderr)),
            awaited: if player.lenient { awaited.collect() } else { VecDeque::new() },
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
        let line = self.ids.output(line);
        write(&mut self.stdout, &line, end).await;
    }

    async fn write_errors(&mut self, line: &Bytes, end: &[u8]) {
        let line = self.ids.errors(line);
        write(&mut self.stderr, &line, end).await;
    }

    /// The client waits for what was written, so nothing may stay in a buffer when it is its turn.
    async fn flush(&mut self) {
        flush(&mut self.stderr).await;
        flush(&mut self.stdout).await;
    }

    /// Waits for the client to say what it said here.
    async fn hear(&mut self, index: usize) -> Result<Next, Mismatch> {
        // Blank lines mean nothing, and the client's are skipped too.
        let Some((line, unfinished)) = spoken(&self.entries[index].what) else {
            return Ok(Next::Entry(index + 1));
        };
        self.flush().await;
        if self.lenient {
            return Ok(Next::Entry(self.hear_kind(index).await));
        }
        let heard = self.client.next().await;
        let said = match &heard {
            Heard::Line(said) if !unfinished => said,
            Heard::Unfinished(said) if unfinished => said,
            _ => return Err(self.mismatch(index, &heard)),
        };
        compare::tie(line, said, &mut self.ids);
        compare::same(line, said, &self.ids)
            .map_err(|place| self.mismatch(index, &heard).at(place))?;
        Ok(Next::Entry(index + 1))
    }

    /// Takes lines of the client until one of this entry's kind has come. Says where to go on: at
    /// the recorded end of the input if it never can come.
    async fn hear_kind(&mut self, index: usize) -> usize {
        while self.awaited.front().is_some_and(|(awaited, _)| *awaited <= index) {
            match self.client.next().await {
                Heard::Line(said) | Heard::Unfinished(said) => self.count(&said),
                Heard::TooLong(_) => {}
                Heard::Closed => return self.end_of_input(index),
            }
        }
        index + 1
    }

    /// Counts a line for the first entry of its kind that is still awaited.
    fn count(&mut self, said: &[u8]) {
        let kind = compare::kind(said);
        let place = self.awaited.iter().position(|(_, awaited)| *awaited == kind);
        if let Some((index, _)) = place.and_then(|place| self.awaited.remove(place))
            && let Some((line, _)) = spoken(&self.entries[index].what)
        {
            compare::tie(line, said, &mut self.ids);
        }
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
        if self.left_before(index) {
            return Ok(());
        }
        self.flush().await;
        loop {
            match self.client.next().await {
                Heard::Closed => return Ok(()),
                _ if self.lenient => {}
                heard => return Err(self.mismatch(index, &heard)),
            }
        }
    }

    /// Whether the CLI was leaving when the client closed its input.
    fn left_before(&self, index: usize) -> bool {
        let at = |index: usize| self.entries[index].at;
        let before = index.checked_sub(1).map_or(Duration::ZERO, at);
        let Some(Entry { at: end, what: What::Exited(_) }) = self.entries.get(index + 1) else {
            return false;
        };
        let (waited, left) = (at(index).saturating_sub(before), end.saturating_sub(at(index)));
        left < LEAVING && left < waited
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
        // The header is the first line of the file.
        Mismatch::new(index + 2, expected, found)
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
