//! Findings of the doctor.

use super::Messages;
use crate::doctor::examples::example_findings;

pub(super) fn add(messages: &mut Messages) {
    messages.section("Findings of the doctor");
    let folder = tempfile::tempdir().unwrap();
    messages.replace(folder.path(), "/home/me");
    for finding in example_findings(folder.path()) {
        messages.finding(&finding);
    }
}
