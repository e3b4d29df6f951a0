//! The check of a server when a store is opened.

use claude_session_store::StoreError;
use object_store::path::Path;

use super::errors;
use super::objects::{Objects, unique};

/// Checks that the server rejects writes whose condition is not met: without that, two hosts would overwrite the
/// entries of each other. Returns how much the clock of the server is ahead of this one, in milliseconds.
pub(super) async fn probe(objects: &Objects) -> Result<i64, StoreError> {
    let path = objects.top(&format!("probe-{}", unique()));
    let result = check(objects, &path).await;
    // Also after a failure; its error is the one to report.
    let deleted = objects.delete(vec![path]).await;
    let ahead_ms = result?;
    deleted.map(|()| ahead_ms)
}

async fn check(objects: &Objects, path: &Path) -> Result<i64, StoreError> {
    let (create, update) = ("If-None-Match: *", "If-Match");
    let fails = |header, cause| errors::no_conditions(objects.target(), header, cause);
    let write = async |text: &str, etag: Option<&str>| {
        objects.write_if(path, text.as_bytes().to_vec(), etag).await
    };
    let first = write("1", None).await?;
    let first = first.ok_or_else(|| fails(create, "a new object was rejected"))?;
    if first.is_empty() {
        return Err(fails(update, "the response has no `ETag`"));
    }
    if write("2", None).await?.is_some() {
        return Err(fails(create, "an existing object was overwritten"));
    }
    let second = write("3", Some(&first)).await?;
    let second = second.ok_or_else(|| fails(update, "the current `ETag` was rejected"))?;
    if second == first {
        return Err(fails(update, "the `ETag` did not change with the object"));
    }
    if write("4", Some(&first)).await?.is_some() {
        return Err(fails(update, "an object with another `ETag` was overwritten"));
    }
    let server = i64::try_from(objects.modified_ms(path).await?).unwrap_or_default();
    let here = i64::try_from(super::now_ms()).unwrap_or_default();
    Ok(ahead(server, here))
}

/// Returns the difference of two clocks, or 0 if it can be the duration of a request and the precision of the
/// server's one, which is a second.
fn ahead(server: i64, here: i64) -> i64 {
    let ahead = server.saturating_sub(here);
    if ahead.abs() < 5_000 { 0 } else { ahead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_of_clocks_are_ignored() {
        assert_eq!([ahead(10_000, 14_999), ahead(10_000, 5_001)], [0, 0]);
        assert_eq!([ahead(10_000, 15_000), ahead(100_000, 10_000)], [-5_000, 90_000]);
    }
}
