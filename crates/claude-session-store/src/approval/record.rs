//! Approvals and their states.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};

use super::decision::Decision;
use super::fields::Fields;
use super::request::ApprovalRequest;
use crate::Epoch;
use crate::json_object::JsonObject;
use claude_wire::id::ToolUseId;
use claude_wire::visible::visible_message;

/// How long a decision can be used if its request has no expiry. A decision that the model does not use would otherwise
/// stay open for ever.
const DECISION_LIFETIME_DAYS: u64 = 30;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// The state of an approval.
///
/// ```text
/// Pending ── decide ──> Decided ── use ──> Started ── result ──> Finished
///    │                     │                  └── host lost ──> OutcomeUnknown
///    ├── expiry ──> Expired <── expiry ──┘
///    └── the call is gone ──> Withdrawn
/// ```
///
/// A denial goes from `Decided` to `Finished` when it is sent to the CLI. A decision that was used for a call that
/// did not run goes back to `Decided`, and a withdrawn call that is issued again to `Pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "every state must be handled")]
pub enum ApprovalStatus {
    /// An approver has to decide.
    Pending,
    /// The decision was made, and no call has used it yet.
    Decided,
    /// The call was allowed and may be running. Its result is not known yet.
    Started,
    /// The call has its result, or its denial was delivered.
    Finished,
    /// The call was allowed, and the host was lost before its result was known: the tool may have run or not.
    /// It is never run again without another approval.
    OutcomeUnknown,
    /// The request expired. The call is denied.
    Expired,
    /// The call will not run: it was interrupted, or denied by another hook.
    Withdrawn,
}

impl ApprovalStatus {
    const ALL: [Self; 7] = [
        Self::Pending,
        Self::Decided,
        Self::Started,
        Self::Finished,
        Self::OutcomeUnknown,
        Self::Expired,
        Self::Withdrawn,
    ];

    /// Returns the name of the state in snake case, such as `outcome_unknown`. The name does not change.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Decided => "decided",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Returns whether the approval can still change: it is pending, decided or started.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Decided | Self::Started)
    }
}

impl fmt::Display for ApprovalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ApprovalStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ApprovalStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let status = Self::ALL.into_iter().find(|status| status.as_str() == name);
        status.ok_or_else(|| D::Error::custom(format!("unknown status: {name:?}")))
    }
}

/// A request for approval, its state and its decision: the record that an
/// [`RecordStore`](crate::record::RecordStore) keeps.
///
/// Serializes as one JSON object; fields without a value are left out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Approval {
    /// The request.
    pub request: ApprovalRequest,
    /// The state.
    pub status: ApprovalStatus,
    /// The decision.
    pub decision: Option<Decision>,
    /// The time of the decision in milliseconds since the Unix epoch, on the clock of the store.
    pub decided_at_ms: Option<u64>,
    /// Whether the turn that made the request has ended: the conversation has to be resumed to use the decision.
    /// False while the run waits, and also if the host was lost meanwhile.
    pub is_parked: bool,
    /// The epoch of the run that started the call.
    pub started_in: Option<Epoch>,
    /// The call that was started: the requested one, or a later one with the same input.
    pub started_for: Option<ToolUseId>,
    /// Counts the changes; a store compares it.
    pub version: u64,
}

/// Why a decision was not accepted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The approval was decided before.
    AlreadyDecided(Decision),
    /// The request expired.
    Expired,
    /// The call will not run: it was interrupted, or denied by another hook.
    Withdrawn,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyDecided(decision) => {
                let verdict = if decision.is_allowed() { "allowed" } else { "denied" };
                let by = format!("{:?}", decision.by());
                write!(f, "the tool call was already {verdict} by {}", visible_message(&by))
            }
            Self::Expired => f.write_str("the request for approval expired"),
            Self::Withdrawn => f.write_str("the tool call was interrupted or denied by a hook"),
        }
    }
}

/// What a call gets from an approval.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "every case must be handled")]
pub enum ApprovalUse {
    /// The approval is still pending.
    Pending,
    /// The decision applies, after this change is stored.
    Decision(Decision, Approval),
    /// The request has expired, after this change is stored.
    Expired(Approval),
    /// The decision was used before.
    Used,
}

impl Approval {
    /// Creates the pending approval of a request.
    pub fn new(request: ApprovalRequest) -> Self {
        Self {
            request,
            status: ApprovalStatus::Pending,
            decision: None,
            decided_at_ms: None,
            is_parked: false,
            started_in: None,
            started_for: None,
            version: 1,
        }
    }

    /// Returns whether the request has expired, on the clock of the store: its decision can no longer be made or used.
    ///
    /// A decision about a request without an [expiry](ApprovalRequest::expires_at_ms) expires 30 days after it was
    /// made, if no call has used it.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        match self.status {
            ApprovalStatus::Pending => self.request.is_expired(now_ms),
            ApprovalStatus::Decided => {
                self.request.is_expired(now_ms) || self.is_decision_outdated(now_ms)
            }
            status => status == ApprovalStatus::Expired,
        }
    }

    /// Returns whether the decision was not used for so long that it ends.
    fn is_decision_outdated(&self, now_ms: u64) -> bool {
        let decided_at = self.decided_at_ms.unwrap_or(self.request.requested_at_ms);
        self.status == ApprovalStatus::Decided
            && self.request.expires_at_ms.is_none()
            && decided_at.saturating_add(DECISION_LIFETIME_DAYS * DAY_MS) <= now_ms
    }

    /// Returns whether a resume of the conversation has something to do because of this approval: it uses the decision,
    /// or tells the model that the request expired.
    pub fn is_resumable(&self, now_ms: u64) -> bool {
        self.is_parked
            && match self.status {
                ApprovalStatus::Pending => self.request.is_expired(now_ms),
                ApprovalStatus::Decided => !self.is_decision_outdated(now_ms),
                _ => false,
            }
    }

    /// Returns whether a run may be alive that uses this approval: it waits for the decision, or its call runs.
    pub fn is_in_use(&self) -> bool {
        match self.status {
            ApprovalStatus::Pending | ApprovalStatus::Decided => !self.is_parked,
            status => status == ApprovalStatus::Started,
        }
    }

    /// Returns the number of changes; a store compares it.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn with_status(&self, status: ApprovalStatus) -> Self {
        Self { status, version: self.version + 1, ..self.clone() }
    }

    /// Decides. Only the first decision before the expiry is accepted.
    ///
    /// # Errors
    /// Returns why the decision is not accepted.
    pub fn decide(&self, decision: Decision, now_ms: u64) -> Result<Self, Refusal> {
        match (&self.decision, self.status) {
            (Some(earlier), _) => Err(Refusal::AlreadyDecided(earlier.clone())),
            _ if self.is_expired(now_ms) => Err(Refusal::Expired),
            (None, ApprovalStatus::Pending) => {
                let decided = self.with_status(ApprovalStatus::Decided);
                Ok(Self { decision: Some(decision), decided_at_ms: Some(now_ms), ..decided })
            }
            (None, _) => Err(Refusal::Withdrawn),
        }
    }

    /// Uses the decision for a call, in the run with this epoch. A decision is used at most once.
    pub fn consume(&self, call: &ToolUseId, epoch: Epoch, now_ms: u64) -> ApprovalUse {
        match (self.status, &self.decision) {
            _ if self.is_expired(now_ms) => {
                ApprovalUse::Expired(self.expire(now_ms).unwrap_or_else(|| self.clone()))
            }
            (ApprovalStatus::Decided, Some(decision)) if decision.is_allowed() => {
                let started = self.with_status(ApprovalStatus::Started);
                let (started_in, started_for) = (Some(epoch), Some(call.clone()));
                ApprovalUse::Decision(decision.clone(), Self { started_in, started_for, ..started })
            }
            (ApprovalStatus::Decided, Some(decision)) => {
                ApprovalUse::Decision(decision.clone(), self.with_status(ApprovalStatus::Finished))
            }
            // A denial can be repeated: nothing runs.
            (ApprovalStatus::Finished, Some(decision)) if !decision.is_allowed() => {
                ApprovalUse::Decision(decision.clone(), self.clone())
            }
            (ApprovalStatus::Pending, _) => ApprovalUse::Pending,
            _ => ApprovalUse::Used,
        }
    }

    /// Returns whether this call used the decision, in the run with this epoch.
    pub fn is_used_by(&self, call: &ToolUseId, epoch: Epoch) -> bool {
        self.status == ApprovalStatus::Started
            && self.started_in == Some(epoch)
            && self.started_for.as_ref() == Some(call)
    }

    /// Records that the request expired.
    pub fn expire(&self, now_ms: u64) -> Option<Self> {
        let is_new = self.status != ApprovalStatus::Expired && self.is_expired(now_ms);
        is_new.then(|| self.with_status(ApprovalStatus::Expired))
    }

    /// Gives the decision back: the run used it for this call, and did not tell the CLI.
    pub fn release(&self, call: &ToolUseId, epoch: Epoch) -> Option<Self> {
        let (started_in, started_for) = (None, None);
        let is_used = self.is_used_by(call, epoch);
        is_used.then(|| Self {
            started_in,
            started_for,
            ..self.with_status(ApprovalStatus::Decided)
        })
    }

    /// Records the result of the call, in the run that started it.
    pub fn finish(&self, epoch: Epoch) -> Option<Self> {
        let is_own = self.status == ApprovalStatus::Started && self.started_in == Some(epoch);
        is_own.then(|| self.with_status(ApprovalStatus::Finished))
    }

    /// Records that the host that started the call is gone, if that was an earlier one.
    pub fn lose(&self, epoch: Epoch) -> Option<Self> {
        let is_earlier = self.started_in.is_some_and(|started| started < epoch);
        let is_lost = self.status == ApprovalStatus::Started && is_earlier;
        is_lost.then(|| self.with_status(ApprovalStatus::OutcomeUnknown))
    }

    /// Records that the call will not run.
    pub fn withdraw(&self) -> Option<Self> {
        (self.status == ApprovalStatus::Pending)
            .then(|| self.with_status(ApprovalStatus::Withdrawn))
    }

    /// Requests the approval of a withdrawn call again.
    pub fn renew(&self, request: ApprovalRequest) -> Option<Self> {
        let is_withdrawn = self.status == ApprovalStatus::Withdrawn;
        let is_parked = false;
        is_withdrawn.then(|| Self {
            request,
            is_parked,
            ..self.with_status(ApprovalStatus::Pending)
        })
    }

    /// Records that a run waits for the decision again.
    pub fn unpark(&self) -> Option<Self> {
        let is_parked = self.status == ApprovalStatus::Pending && self.is_parked;
        is_parked.then(|| Self { is_parked: false, ..self.with_status(self.status) })
    }

    /// Records that the run no longer waits for the decision.
    pub fn park(&self) -> Option<Self> {
        let is_waiting = matches!(self.status, ApprovalStatus::Pending | ApprovalStatus::Decided)
            && !self.is_parked;
        is_waiting.then(|| Self { is_parked: true, ..self.with_status(self.status) })
    }
}

impl Serialize for Approval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "approval")?;
        object.field("request", &self.request)?;
        object.field("status", &self.status)?;
        object.optional("decision", self.decision.as_ref())?;
        object.optional("decided_at_ms", self.decided_at_ms.as_ref())?;
        object.field("is_parked", &self.is_parked)?;
        object.optional("started_in", self.started_in.as_ref())?;
        object.optional("started_for", self.started_for.as_ref())?;
        object.field("version", &self.version)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for Approval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::read(deserializer)?;
        Ok(Self {
            request: fields.required("request")?,
            status: fields.required("status")?,
            decision: fields.optional("decision")?,
            decided_at_ms: fields.optional("decided_at_ms")?,
            is_parked: fields.required("is_parked")?,
            started_in: fields.optional("started_in")?.map(Epoch::new),
            started_for: fields.optional("started_for")?,
            version: fields.required("version")?,
        })
    }
}
