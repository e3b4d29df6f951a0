//! Pages of entries.

use crate::{Load, Sequence};

use super::fixture::{Fixture, Outcome, ensure, entries, entry, entry_of, expect, subpath, texts};

pub(super) async fn page_ends_at_the_limit_of_entries(fixture: Fixture) -> Outcome {
    let all: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    fixture.append(&all.iter().map(|text| entry(text)).collect::<Vec<_>>()).await?;
    for load in [Load::all(), Load::main()] {
        for limit in [1, 3, 5, 10, 11, usize::MAX] {
            let page = fixture.store.load(&fixture.key, load.limit(limit)).await?;
            expect("the entries of a page", &page.entries.len(), &limit.min(10))?;
            expect("whether there are more entries", &page.more, &(limit < 10))?;
            expect("all pages", &fixture.texts(load.limit(limit)).await?, &all)?;
        }
    }
    Ok(())
}

pub(super) async fn page_ends_at_the_limit_of_bytes(fixture: Fixture) -> Outcome {
    // Every text has 8 bytes, one of them as four characters.
    fixture.append(&entries(&["10000000", "\"ééé\"", "30000000"])).await?;
    for load in [Load::all(), Load::main()] {
        for (max_bytes, count) in [(8, 1), (15, 1), (16, 2), (23, 2), (24, 3), (usize::MAX, 3)] {
            let page = fixture.store.load(&fixture.key, load.max_bytes(max_bytes)).await?;
            expect("the entries of a page", &page.entries.len(), &count)?;
            expect("whether there are more entries", &page.more, &(count < 3))?;
            expect("all pages", &fixture.texts(load.max_bytes(max_bytes)).await?.len(), &3)?;
        }
    }
    Ok(())
}

pub(super) async fn page_has_at_least_one_entry(fixture: Fixture) -> Outcome {
    let long = format!("{:?}", "x".repeat(10_000));
    fixture.append(&[entry(&long), entry("1"), entry("2")]).await?;
    for load in [Load::all().max_bytes(0), Load::main().max_bytes(100), Load::main().limit(0)] {
        let page = fixture.store.load(&fixture.key, load).await?;
        expect("the entries of a page", &page.entries.len(), &1)?;
        ensure!(page.more, "a page that is not the last one has no next one");
        expect("all pages", &fixture.texts(load).await?, &[&*long, "1", "2"])?;
    }
    Ok(())
}

pub(super) async fn load_after_the_end_is_empty(fixture: Fixture) -> Outcome {
    let a = subpath("subagents/a");
    let last = fixture.append(&[entry("1"), entry_of(Some(&a), "2")]).await?.last;
    for after in [last, Sequence::new(last.get() + 1), Sequence::new(u64::MAX)] {
        for load in [Load::all(), Load::main(), Load::subpath(&a)] {
            let page = fixture.store.load(&fixture.key, load.after(after)).await?;
            ensure!(page.entries.is_empty() && !page.more, "entries after the last one");
        }
    }
    Ok(())
}

pub(super) async fn pages_of_a_subpath_continue_after_other_transcripts(
    fixture: Fixture,
) -> Outcome {
    let a = subpath("subagents/a");
    let mut batch = Vec::new();
    for number in 0..20 {
        batch.push(entry_of(Some(&a).filter(|_| number % 4 == 0), &number.to_string()));
    }
    fixture.append(&batch).await?;
    for limit in [1, 2, 5] {
        let found = fixture.load_from(&fixture.key, Load::subpath(&a).limit(limit)).await?;
        expect("the entries of a subpath", &texts(&found), &["0", "4", "8", "12", "16"])?;
    }
    Ok(())
}
