//! Which tool calls need approval.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claude_wire::launch::Problem;

use super::inbox::Approvals;
use crate::callback::{BoxError, IntoCallbackResult, sealed};
use crate::hook::input::PreToolUseInput;
use crate::store::ProjectKey;
use crate::tasks::BoxFuture;

/// How long a run waits for a decision before it parks.
const PARK_AFTER: Duration = Duration::from_secs(60);

/// What happens to a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalRule {
    /// The permission rules and the permission callback decide, as without a policy.
    Continue,
    /// The call runs, unless another hook or a rule denies it.
    Allow,
    /// The call does not run. The model reads the text.
    Deny(String),
    /// An approver decides.
    Require,
    /// An approver decides within this time. Takes precedence over [`ApprovalPolicy::expires_after`].
    RequireWithin(Duration),
}

impl sealed::Sealed for ApprovalRule {}

impl IntoCallbackResult<ApprovalRule> for ApprovalRule {
    fn into_result(self) -> Result<ApprovalRule, BoxError> {
        Ok(self)
    }
}

type Decide = Arc<
    dyn Fn(PreToolUseInput) -> BoxFuture<'static, Result<ApprovalRule, BoxError>> + Send + Sync,
>;

/// Which tool calls need the approval of a user, and for how long, for
/// [`Options::approvals`](crate::Options::approvals). By default, every tool call does.
///
/// ```
/// use std::time::Duration;
///
/// use claude_agent_kit::Options;
/// use claude_agent_kit::approval::{ApprovalPolicy, Approvals};
/// use claude_agent_kit::store::MemoryStore;
///
/// let approvals = Approvals::new("tenant-1", MemoryStore::new());
/// let policy = ApprovalPolicy::new(approvals)
///     .tools(["Bash", "Write", "mcp__deploy__*"])
///     .expires_after(Duration::from_secs(24 * 3600));
/// let options = Options::new().approvals(policy);
/// ```
#[derive(Clone)]
#[must_use = "setters return the changed value"]
pub struct ApprovalPolicy {
    pub(super) approvals: Approvals,
    tools: Option<Vec<String>>,
    decide: Option<Decide>,
    pub(super) expires_after: Option<Duration>,
    pub(super) park_after: Duration,
    /// Directories of earlier hosts, and the same ones here.
    directories: Vec<(PathBuf, PathBuf)>,
}

impl ApprovalPolicy {
    /// Requires an approval for every tool call.
    pub fn new(approvals: Approvals) -> Self {
        let (tools, decide, expires_after) = (None, None, None);
        let (park_after, directories) = (PARK_AFTER, Vec::new());
        Self { approvals, tools, decide, expires_after, park_after, directories }
    }

    /// Requires an approval for calls of these tools only. A name that ends with `*` stands for all names that begin
    /// like it. Other calls are decided by the permission rules. Replaces earlier names. Default: all tools.
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a callback that decides what happens to each call of the [tools](Self::tools). Replaces an earlier one.
    /// Default: an approver decides.
    ///
    /// If the callback fails or panics, the call is denied.
    ///
    /// ```
    /// use claude_agent_kit::ToolInput;
    /// use claude_agent_kit::approval::{ApprovalPolicy, ApprovalRule, Approvals};
    /// use claude_agent_kit::store::MemoryStore;
    ///
    /// let policy = ApprovalPolicy::new(Approvals::new("tenant-1", MemoryStore::new())).decide_with(
    ///     |call| async move {
    ///         match call.tool_input() {
    ///             ToolInput::Bash(bash) if bash.command == "cargo test" => ApprovalRule::Allow,
    ///             ToolInput::Bash(_) => ApprovalRule::Require,
    ///             _ => ApprovalRule::Continue,
    ///         }
    ///     },
    /// );
    /// ```
    pub fn decide_with<F, R>(mut self, callback: F) -> Self
    where
        F: Fn(PreToolUseInput) -> R + Send + Sync + 'static,
        R: Future<Output: IntoCallbackResult<ApprovalRule>> + Send + 'static,
    {
        self.decide = Some(Arc::new(move |call| {
            let rule = callback(call);
            Box::pin(async move { rule.await.into_result() })
        }));
        self
    }

    /// Sets how long an approver may take. After that, the call is denied, also if the decision was made in time and
    /// the conversation is resumed too late. Default: no limit.
    pub fn expires_after(mut self, time: Duration) -> Self {
        self.expires_after = Some(time);
        self
    }

    /// Sets how long the run waits for a decision before it parks the conversation. Default: 60 seconds.
    ///
    /// While a call waits, the CLI asks for no other call of the same answer, except for those of tools that only read.
    pub fn park_after(mut self, time: Duration) -> Self {
        self.park_after = time;
        self
    }

    /// Accepts approvals of calls below `approved` for calls below `here`, for a host that continues conversations of
    /// another machine in another directory. Appends to earlier ones. Default: none.
    ///
    /// An approval is valid for the working directory that its approver saw. A call in another directory becomes a
    /// new request, unless this option says that both directories are the same place.
    ///
    /// ```
    /// use claude_agent_kit::approval::{ApprovalPolicy, Approvals};
    /// use claude_agent_kit::store::MemoryStore;
    ///
    /// let policy = ApprovalPolicy::new(Approvals::new("tenant-1", MemoryStore::new()))
    ///     .map_directory("/home/worker-1/checkout", "/mnt/worker-2/checkout");
    /// ```
    pub fn map_directory(mut self, approved: impl Into<PathBuf>, here: impl Into<PathBuf>) -> Self {
        self.directories.push((approved.into(), here.into()));
        self
    }

    /// Returns whether a call in the directory `here` runs where an approver allowed it.
    pub(super) fn is_same_directory(&self, approved: Option<&Path>, here: Option<&Path>) -> bool {
        let (Some(approved), Some(here)) = (approved, here) else { return approved == here };
        let is_mapped = |(from, to): &(PathBuf, PathBuf)| {
            let (from, to) = (approved.strip_prefix(from), here.strip_prefix(to));
            from.is_ok() && from.ok() == to.ok()
        };
        approved == here || self.directories.iter().any(is_mapped)
    }

    /// Returns the problem of a scope that no store accepts.
    pub(crate) fn problem(&self) -> Option<Problem> {
        let error = ProjectKey::new(self.approvals.scope(), "project").err()?;
        Some(Problem::new(&["approvals"], error.to_string()))
    }

    /// Returns what happens to a call.
    pub(super) async fn rule(&self, call: &PreToolUseInput) -> Result<ApprovalRule, BoxError> {
        let is_named = |name: &String| match name.strip_suffix('*') {
            Some(prefix) => call.tool().starts_with(prefix),
            None => call.tool() == name,
        };
        if self.tools.as_ref().is_some_and(|names| !names.iter().any(is_named)) {
            return Ok(ApprovalRule::Continue);
        }
        match &self.decide {
            Some(decide) => decide(call.clone()).await,
            None => Ok(ApprovalRule::Require),
        }
    }
}

impl fmt::Debug for ApprovalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalPolicy")
            .field("approvals", &self.approvals)
            .field("tools", &self.tools)
            .field("decide", &self.decide.is_some())
            .field("expires_after", &self.expires_after)
            .field("park_after", &self.park_after)
            .field("directories", &self.directories)
            .finish()
    }
}
