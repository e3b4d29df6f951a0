//! Decisions of approvers.

use claude_wire::Json;
use claude_wire::control::PermissionUpdate;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};

use super::fields::Fields;
use crate::json_object::JsonObject;

/// The decision of an approver about a tool call.
///
/// ```
/// use claude_session_store::approval::Decision;
/// use claude_wire::control::PermissionUpdate;
/// use serde_json::json;
///
/// let plain = Decision::allow("ana@example.com");
/// let changed = Decision::allow("ana@example.com").with_input(json!({"command": "make test"}));
/// let always = Decision::allow("ana@example.com")
///     .with_permissions([PermissionUpdate::allow("Bash", "make test")]);
/// let denied = Decision::deny("ana@example.com", "not on a Friday");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Decision {
    by: String,
    verdict: Verdict,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "a host must carry out every verdict")]
pub enum Verdict {
    /// The call runs once.
    Allow {
        /// The input with which the tool runs; `None` for the requested one.
        input: Option<Json>,
        /// Changes of the permission rules of the session.
        permissions: Vec<PermissionUpdate>,
    },
    /// The call does not run.
    Deny {
        /// The reason, which the model reads.
        message: String,
    },
}

impl Decision {
    /// Allows the call, once. `by` names the approver.
    pub fn allow(by: impl Into<String>) -> Self {
        let verdict = Verdict::Allow { input: None, permissions: Vec::new() };
        Self { by: by.into(), verdict }
    }

    /// Denies the call. `by` names the approver; the model reads the message.
    pub fn deny(by: impl Into<String>, message: impl Into<String>) -> Self {
        Self { by: by.into(), verdict: Verdict::Deny { message: message.into() } }
    }

    /// Replaces all arguments of the call. Has no effect on a denial.
    pub fn with_input(mut self, new: impl Into<Json>) -> Self {
        if let Verdict::Allow { input, .. } = &mut self.verdict {
            *input = Some(new.into());
        }
        self
    }

    /// Changes permission rules as well. Replaces earlier updates; has no effect on a denial.
    pub fn with_permissions(mut self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        if let Verdict::Allow { permissions, .. } = &mut self.verdict {
            *permissions = updates.into_iter().collect();
        }
        self
    }

    /// Returns the name of the approver.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Returns what was decided.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns whether the call is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allow { .. })
    }
}

impl Serialize for Decision {
    /// Serializes as `{"by":…,"verdict":"allow","input":{…},"permissions":[…]}` or
    /// `{"by":…,"verdict":"deny","message":…}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::untagged(serializer)?;
        object.field("by", &self.by)?;
        match &self.verdict {
            Verdict::Allow { input, permissions } => {
                object.field("verdict", "allow")?;
                object.optional("input", input.as_ref())?;
                object.list("permissions", permissions)?;
            }
            Verdict::Deny { message } => {
                object.field("verdict", "deny")?;
                object.field("message", message)?;
            }
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::read(deserializer)?;
        let verdict: String = fields.required("verdict")?;
        let verdict = match verdict.as_str() {
            "allow" => Verdict::Allow {
                input: fields.optional("input")?,
                permissions: fields.optional("permissions")?.unwrap_or_default(),
            },
            "deny" => Verdict::Deny { message: fields.required("message")? },
            // A verdict of a later version must not be read as another one.
            other => return Err(D::Error::unknown_variant(other, &["allow", "deny"])),
        };
        Ok(Self { by: fields.required("by")?, verdict })
    }
}
