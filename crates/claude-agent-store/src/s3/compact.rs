//! Compaction: many small parts become few large ones.
//!
//! Parts that no head names are deleted here too: those of an append that failed, and those of a compaction that
//! was killed before it could delete them. They are listed *before* the head is written, and deleted afterwards.
//! So a part that another host has just written is never deleted while its head can still be written: that write
//! has the condition that the head is the earlier one.

use std::ops::Range;

use claude_session_store::{SessionKey, StoreError, StoreErrorKind};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use super::append::{MAX_PART, write_parts};
use super::head::{Head, Part};
use super::{PARALLEL, Shared, errors};

/// The number of parts of a small session.
const PARTS: u64 = 16;

/// A session may have one more part for each of this many bytes.
const BYTES_PER_PART: u64 = 2 << 20;

/// Objects of a session that existed before a write of its head.
pub(super) struct Garbage(Vec<Path>);

impl Garbage {
    pub(super) async fn find(shared: &Shared, key: &SessionKey) -> Result<Self, StoreError> {
        let listed = shared.objects.list(&shared.objects.parts(key)).await?;
        Ok(Self(listed.into_iter().map(|object| object.path).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Deletes what the head, which must have been written, does not name.
    pub(super) async fn delete(
        mut self,
        shared: &Shared,
        key: &SessionKey,
        head: &Head,
    ) -> Result<(), StoreError> {
        let folder = shared.objects.parts(key);
        let used: Vec<Path> =
            head.parts.iter().map(|part| folder.clone().join(&*part.id)).collect();
        self.0.retain(|path| !used.contains(path));
        if self.is_empty() { Ok(()) } else { shared.objects.delete(self.0).await }
    }
}

/// Merges parts if there are too many of them. The head has to be written afterwards.
pub(super) async fn compact(
    shared: &Shared,
    key: &SessionKey,
    head: &mut Head,
) -> Result<Option<Garbage>, StoreError> {
    let bytes: u64 = head.parts.iter().map(|part| part.bytes).sum();
    if head.parts.len() as u64 <= PARTS + bytes / BYTES_PER_PART {
        return Ok(None);
    }
    let garbage = Garbage::find(shared, key).await?;
    let range = longest_run(&head.parts);
    let merged = match merge(shared, key, &head.parts[range.clone()]).await {
        Ok(merged) => merged,
        // The head may be outdated. If it is not, whoever loads the session gets the error.
        Err(error) if error.kind() == StoreErrorKind::Corrupt => return Ok(None),
        Err(error) => return Err(error),
    };
    head.parts.splice(range, merged);
    Ok(Some(garbage))
}

async fn merge(shared: &Shared, key: &SessionKey, parts: &[Part]) -> Result<Vec<Part>, StoreError> {
    let read = futures_util::stream::iter(parts.to_vec())
        .map(|part| async move {
            let entries = shared.read_entries(key, &part).await?;
            entries.ok_or_else(errors::missing_part)
        })
        .buffered(PARALLEL);
    let entries: Vec<_> = read.try_collect::<Vec<_>>().await?.into_iter().flatten().collect();
    write_parts(shared, key, &entries).await
}

/// Returns the most consecutive parts that fit into one; the last ones of several.
fn longest_run(parts: &[Part]) -> Range<usize> {
    let (mut best, mut start, mut bytes) = (0..0, 0, 0_u64);
    for (end, part) in parts.iter().enumerate() {
        bytes = bytes.saturating_add(part.bytes);
        while bytes > MAX_PART as u64 && start < end {
            bytes -= parts[start].bytes;
            start += 1;
        }
        if end + 1 - start >= best.len() {
            best = start..end + 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(megabytes: &[u64]) -> Vec<Part> {
        let part = |bytes: &u64| Part {
            id: "a".to_owned(),
            first: 1,
            last: 1,
            index_bytes: 0,
            bytes: bytes << 20,
        };
        megabytes.iter().map(part).collect()
    }

    #[test]
    fn the_most_parts_that_fit_are_merged() {
        for (sizes, expected) in [
            (&[8, 8, 1, 1, 1][..], 2..5),
            (&[1, 1, 1, 8, 1, 1], 0..3),
            (&[1, 1, 8, 1, 1], 3..5),
            (&[9, 9, 4, 4], 2..4),
            (&[1, 7, 1, 7], 2..4),
        ] {
            assert_eq!(longest_run(&parts(sizes)), expected, "{sizes:?}");
        }
    }

    /// Whatever the sizes of the appends are, merging ends with few parts.
    #[test]
    fn merging_bounds_the_number_of_parts() {
        let mut random = 1_u64;
        let (mut sizes, mut total) = (Vec::new(), 0_u64);
        for _ in 0..2_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let small = (64 << 10) + (random >> 40) % (256 << 10);
            let size = if random >> 60 == 0 { 3 << 20 } else { small };
            sizes.extend(parts(&[0]).into_iter().map(|part| Part { bytes: size, ..part }));
            let bytes: u64 = sizes.iter().map(|part| part.bytes).sum();
            if sizes.len() as u64 > PARTS + bytes / BYTES_PER_PART {
                let range = longest_run(&sizes);
                assert!(range.len() > 1);
                total += range.len() as u64;
                let merged: u64 = sizes[range.clone()].iter().map(|part| part.bytes).sum();
                let part = Part { bytes: merged, ..sizes[range.start].clone() };
                sizes.splice(range, [part]);
            }
            assert!(sizes.len() as u64 <= PARTS + bytes / BYTES_PER_PART);
        }
        // Each part is merged less than twice on average.
        assert!(total < 4_000, "{total}");
    }
}
