//! The rows of an index, in pieces: a single vector would hold up to twice what it needs.

use super::row::Row;

const PIECE: usize = 1024;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    pieces: Vec<Vec<Row>>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    pub(super) fn push(&mut self, row: Row) {
        if self.pieces.last().is_none_or(|last| last.len() == PIECE) {
            // Short transcripts are many, so the first piece grows with what it holds.
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(room));
        }
        if let Some(last) = self.pieces.last_mut() {
            last.push(row);
        }
    }

    /// Takes the rows one after the other, and frees those that were taken.
    pub(super) fn into_rows(self) -> impl Iterator<Item = Row> {
        self.pieces.into_iter().flatten()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.pieces.iter().flatten()
    }

    /// The bytes that the rows take, unused capacity included.
    pub(super) fn memory(&self) -> usize {
        let rows: usize = self.pieces.iter().map(|piece| piece.capacity() * size_of::<Row>()).sum();
        rows + self.pieces.capacity() * size_of::<Vec<Row>>()
    }
}

impl std::ops::Index<u32> for Rows {
    type Output = Row;

    fn index(&self, index: u32) -> &Row {
        let index = index as usize;
        &self.pieces[index / PIECE][index % PIECE]
    }
}
