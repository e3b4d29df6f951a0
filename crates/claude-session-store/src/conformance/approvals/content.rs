//! Scopes and inputs that stores tend to change or to reject.

use crate::approval::{Approval, ApprovalFilter, ApprovalStatus, ApprovalWrite};
use claude_wire::Json;

use super::super::content::{every_character, unusual_json};
use super::super::keys::UNUSUAL;
use super::fixture::{
    Failure, Fixture, Outcome, approval, approval_id, expect, numbers, pending, session,
};

/// Stores an approval of the same session with the same ID in each scope, and checks that they are independent.
async fn check_scopes(fixture: &Fixture, scopes: &[String]) -> Outcome {
    let record = |scope: &str, at: usize, version| {
        let mut record = approval(scope, 1, 1, 1_000, ApprovalStatus::Pending, version);
        record.request.tool_name = format!("tool {at}");
        record
    };
    for (at, scope) in scopes.iter().enumerate() {
        fixture.insert(&record(scope, at, 1)).await?;
        fixture.host(0).claim_approvals(scope, &session(1)).await?;
    }
    for (at, scope) in scopes.iter().enumerate() {
        let next = record(scope, at, 2);
        let is_written = fixture.write(ApprovalWrite::update(&next)).await?;
        expect(&format!("the update in {scope:?}"), &is_written, &true)?;
    }
    for (at, scope) in scopes.iter().enumerate() {
        let expected = vec![record(scope, at, 2)];
        let (id, session) = (approval_id(1), session(1));
        let filters =
            [ApprovalFilter::Id(&id), ApprovalFilter::OpenOf(&session), ApprovalFilter::Pending];
        for filter in filters {
            let found = fixture.list_from(scope, filter, 100).await?;
            expect(&format!("{filter:?} in {scope:?}"), &found, &expected)?;
        }
    }
    Ok(())
}

pub(super) async fn scopes_of_approvals_are_isolated(fixture: Fixture) -> Outcome {
    let mut scopes: Vec<String> = UNUSUAL.into_iter().map(str::to_owned).collect();
    for separator in ["/", ":", ".", "|", ",", "\u{1f}"] {
        scopes.push(format!("x{separator}y"));
    }
    check_scopes(&fixture, &scopes).await
}

pub(super) async fn longest_scopes_of_approvals_are_accepted(fixture: Fixture) -> Outcome {
    let long = "é".repeat(256);
    let other = format!("{}e", &long[..510]);
    check_scopes(&fixture, &[long, other]).await
}

/// Stores approvals with these inputs, and checks that they are returned byte for byte.
async fn check_inputs(fixture: &Fixture, inputs: Vec<String>) -> Outcome {
    let mut stored: Vec<Approval> = Vec::new();
    for (number, input) in (0..).zip(inputs) {
        let mut record = pending(number);
        let text = format!("{{\"value\":{input}}}");
        record.request.input = Json::from_text(text).map_err(|error| Failure(error.to_string()))?;
        fixture.insert(&record).await?;
        stored.push(record);
    }
    let found = fixture.list(ApprovalFilter::Pending, 10).await?;
    expect("the approvals", &numbers(&found), &numbers(&stored))?;
    for (found, stored) in found.iter().zip(&stored) {
        expect("the input", &found.request.input.text(), &stored.request.input.text())?;
    }
    Ok(())
}

pub(super) async fn inputs_are_kept_byte_for_byte(fixture: Fixture) -> Outcome {
    let inputs = unusual_json().into_iter().map(|text| text.trim().to_owned());
    check_inputs(&fixture, inputs.collect()).await
}

pub(super) async fn inputs_keep_every_unicode_character(fixture: Fixture) -> Outcome {
    check_inputs(&fixture, every_character()).await
}

pub(super) async fn input_of_8_megabytes_is_stored(fixture: Fixture) -> Outcome {
    check_inputs(&fixture, vec![format!("{:?}", "0123456789abcdeé".repeat(500_000))]).await
}
