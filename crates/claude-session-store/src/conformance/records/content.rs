//! Keys and texts that stores tend to change or to reject.

use crate::record::{OwnerKey, RecordChange, RecordFilter, RecordKey};

use super::super::content::{every_character, unusual_json};
use super::super::keys::UNUSUAL;
use super::fixture::{Fixture, KIND, Outcome, SCOPE, expect, expect_record, id, pending};

/// Stores a record with the same owner and ID in each scope, and checks that they are independent.
async fn check_scopes(fixture: &Fixture, scopes: &[String]) -> Outcome {
    let insert = |scope: &str, at: usize| {
        let key = RecordKey::new(scope, KIND, &id(1))?;
        let owner = OwnerKey::new(scope, &id(1))?;
        RecordChange::insert(key, &owner, format!("record {at}")).map(RecordChange::open)
    };
    for (at, scope) in scopes.iter().enumerate() {
        fixture.insert(insert(scope, at)?).await?;
        fixture.host(0).claim_records(&OwnerKey::new(scope, &id(1))?).await?;
    }
    for (at, scope) in scopes.iter().enumerate() {
        let mut next = insert(scope, at)?;
        next.replaces = Some(1);
        let is_written = fixture.write(&[next]).await?;
        expect(&format!("the update in {scope:?}"), &is_written, &true)?;
    }
    for (at, scope) in scopes.iter().enumerate() {
        let mut expected = insert(scope, at)?;
        expected.replaces = Some(1);
        let (id, owner) = (id(1), OwnerKey::new(scope, &id(1))?);
        let filters = [
            RecordFilter::Id { scope, id: &id },
            RecordFilter::OpenOf(&owner),
            RecordFilter::In(scope),
            RecordFilter::OpenIn(scope),
        ];
        for filter in filters {
            let found = fixture.list(filter, 100).await?;
            expect(&format!("the number for {filter:?}"), &found.len(), &1)?;
            expect_record(found.first(), &expected)?;
        }
    }
    Ok(())
}

fn unusual() -> Vec<String> {
    let mut texts: Vec<String> = UNUSUAL.into_iter().map(str::to_owned).collect();
    for separator in ["/", ":", ".", "|", ",", "\u{1f}"] {
        texts.push(format!("x{separator}y"));
    }
    texts
}

pub(super) async fn scopes_of_records_are_isolated(fixture: Fixture) -> Outcome {
    let mut scopes = unusual();
    scopes.push(crate::record::FLEET_SCOPE.to_owned());
    check_scopes(&fixture, &scopes).await
}

pub(super) async fn owners_and_ids_are_compared_byte_for_byte(fixture: Fixture) -> Outcome {
    for text in unusual() {
        let (key, owner) = (RecordKey::new(SCOPE, KIND, &text)?, OwnerKey::new(SCOPE, &text)?);
        let change = RecordChange::insert(key, &owner, "{}")?.open();
        fixture.insert(change.clone()).await?;
        for filter in [RecordFilter::Id { scope: SCOPE, id: &text }, RecordFilter::Of(&owner)] {
            let found = fixture.list(filter, 100).await?;
            expect(&format!("the number for {filter:?}"), &found.len(), &1)?;
            expect_record(found.first(), &change)?;
        }
    }
    Ok(())
}

pub(super) async fn longest_keys_of_records_are_accepted(fixture: Fixture) -> Outcome {
    let long = "é".repeat(256);
    let other = format!("{}e", &long[..510]);
    check_scopes(&fixture, &[long.clone(), other]).await?;
    let owner = OwnerKey::new(&long, &long)?;
    let change = RecordChange::insert(RecordKey::new(&long, KIND, &long)?, &owner, "{}")?;
    expect_record(Some(&fixture.insert(change.clone()).await?), &change)
}

/// Stores records with these texts, and checks that they are returned byte for byte.
async fn check_bodies(fixture: &Fixture, bodies: Vec<String>) -> Outcome {
    for (number, body) in (0..).zip(&bodies) {
        let mut change = pending(number);
        change.body = body.as_str().into();
        fixture.insert(change).await?;
    }
    let found = fixture.list(RecordFilter::OpenIn(SCOPE), 10).await?;
    expect("the number of records", &found.len(), &bodies.len())?;
    for (found, body) in found.iter().zip(&bodies) {
        expect("the body", &&*found.body, &body.as_str())?;
    }
    Ok(())
}

pub(super) async fn bodies_are_kept_byte_for_byte(fixture: Fixture) -> Outcome {
    let mut bodies: Vec<String> = unusual_json();
    bodies.extend(["", " ", "not JSON", "\u{feff}x"].map(str::to_owned));
    check_bodies(&fixture, bodies).await
}

pub(super) async fn bodies_keep_every_unicode_character(fixture: Fixture) -> Outcome {
    check_bodies(&fixture, every_character()).await
}

pub(super) async fn body_of_8_megabytes_is_stored(fixture: Fixture) -> Outcome {
    check_bodies(&fixture, vec!["0123456789abcdeé".repeat(500_000)]).await
}
