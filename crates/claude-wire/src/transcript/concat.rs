//! Indexes of parts of a transcript, so that several threads can index it.

use super::index::Index;
use super::row::{self, ParentPlace, ParentRef};

impl Index {
    /// Sets the offset of the first byte that is fed, at which a line must begin. Default: zero. Has
    /// no effect when bytes were fed before.
    #[must_use]
    pub fn starting_at(mut self, offset: u64) -> Self {
        if self.position() == 0 {
            self.line.start = offset;
        }
        self
    }

    /// Appends the index of the bytes that follow, which must begin with a line. The result is that of
    /// one index that was fed both. Bytes that wait for the end of their line are lost here, and kept
    /// in `next`.
    ///
    /// ```
    /// use claude_wire::transcript::Index;
    ///
    /// let lines = [
    ///     br#"{"parentUuid":null,"type":"user","uuid":"u1","message":{"content":"Hi"}}
    /// "#.as_slice(),
    ///     br#"{"parentUuid":"u1","type":"assistant","uuid":"a1","message":{"content":[]}}
    /// "#,
    /// ];
    /// let mut whole = Index::new();
    /// whole.feed(lines[0]);
    /// let mut next = Index::new().starting_at(whole.position());
    /// next.feed(lines[1]);
    /// whole.append(next);
    /// assert_eq!(whole.tree().conversation().len(), 2);
    /// ```
    pub fn append(&mut self, next: Self) {
        let base = self.row_count();
        let Self { rows, other_parents, boundaries, more_tools, issues, line, .. } = next;
        for mut row in rows.into_rows() {
            if self.row_count() >= row::MAX_ROWS {
                break;
            }
            if row.has(row::HAS_PARENT) {
                row.parent = match row.parent.place() {
                    ParentPlace::Row(at) => ParentRef::new(ParentPlace::Row(base + at)),
                    // The parent may be one of the last rows here.
                    ParentPlace::Other(at) => self.parent_ref(other_parents[at as usize]),
                };
            }
            self.rows.push(row);
        }
        let count = self.row_count();
        for mut boundary in boundaries {
            boundary.row += base;
            if boundary.row < count {
                self.boundaries.push(boundary);
            }
        }
        for (row, tool) in more_tools {
            if base + row < count {
                self.more_tools.push((base + row, tool));
            }
        }
        self.issues.extend(issues);
        self.line = line;
    }
}
