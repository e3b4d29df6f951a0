//! Approvals on the real CLI: every host is a process, and conversations and approvals are in SQLite.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use claude_agent_kit::approval::{Approval, ApprovalId, ApprovalStatus, Approvals, Decision};
use claude_agent_kit::json;
use claude_agent_store::SqliteStore;
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use serde_json::Value;
use tokio::process::Command;

use super::Area;
use crate::harness::Harness;
use crate::simulation::rng::Rng;

/// The claim.
pub const AREA: Area = Area {
    name: "approvals",
    claim: "a tool runs as decided: never twice, never without an approval, never after a denial",
    repetitions: 50,
};

/// What happens between the request and the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The call is allowed.
    Allow,
    /// The call is denied.
    Deny,
    /// Nobody decides in time.
    Expire,
    /// The call is allowed with another input.
    ChangedInput,
    /// Another process continues, with another config directory.
    OtherMachine,
    /// Hosts are killed at random points, on two config directories in turn.
    KilledHost,
    /// Two hosts continue at once.
    TwoHosts,
}

/// Every kind.
pub const KINDS: [Kind; 7] = [
    Kind::Allow,
    Kind::Deny,
    Kind::Expire,
    Kind::ChangedInput,
    Kind::OtherMachine,
    Kind::KilledHost,
    Kind::TwoHosts,
];

/// The results of the rounds of one kind.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Count {
    /// The rounds.
    pub rounds: usize,
    /// Rounds in which the tool ran.
    pub executed: usize,
    /// Rounds that ended with an unknown outcome.
    pub unknown: usize,
    /// Hosts that were killed.
    pub killed: usize,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} executed", self.executed, self.rounds)?;
        if self.killed > 0 {
            write!(f, ", {} hosts killed", self.killed)?;
        }
        if self.unknown > 0 {
            write!(f, ", {} with an unknown outcome", self.unknown)?;
        }
        Ok(())
    }
}

/// Returns a model that runs one command that names the prompt, and then ends its turn.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let prompt = request.last_prompt().unwrap_or_default();
        if !prompt.starts_with("round-") || request.assistant_turns_after_last_prompt() > 0 {
            return Reply::text("Done.");
        }
        let command = format!("echo {prompt} >> executed; sleep 0.2");
        Reply::tool("Bash", json!({"command": command, "description": "Run it"}))
    })
}

/// One conversation with one call that needs approval.
struct Round<'a> {
    harness: &'a Harness,
    host: &'a Path,
    name: String,
    session: String,
    approvals: Approvals,
    has_tools: bool,
    killed: usize,
}

/// Plays rounds of one kind, each with the program `host`.
///
/// # Errors
/// Returns the violation.
pub async fn count(
    harness: &Harness,
    host: &Path,
    kind: Kind,
    rounds: usize,
    seed: u64,
) -> Result<Count, Box<dyn Error>> {
    harness.api().set_script(script());
    let mut rng = Rng::new(seed);
    let mut count = Count::default();
    for number in 0..rounds {
        let store = Arc::new(SqliteStore::open(database(harness)).await?);
        let mut round = Round {
            harness,
            host,
            name: format!("round-{kind:?}-{number}"),
            session: format!(
                "{:08x}-{:04x}-4000-8000-{number:012x}",
                rng.between(0, 0xffff_ffff),
                kind as usize
            ),
            approvals: Approvals::new("tenant", store),
            // With an in-process server, the CLI replays calls at another time.
            has_tools: number % 2 == 1,
            killed: 0,
        };
        let is_unknown =
            round.play(kind, &mut rng).await.map_err(|error| format!("{}: {error}", round.name))?;
        count.rounds += 1;
        count.killed += round.killed;
        count.unknown += usize::from(is_unknown);
        count.executed += usize::from(round.executions("") > 0 || round.executions("-changed") > 0);
    }
    Ok(count)
}

fn database(harness: &Harness) -> std::path::PathBuf {
    harness.root().join("approvals.db")
}

impl Round<'_> {
    /// Returns whether the outcome of the call is unknown.
    async fn play(&mut self, kind: Kind, rng: &mut Rng) -> Result<bool, Box<dyn Error>> {
        match kind {
            Kind::KilledHost => return self.play_killed(rng).await,
            Kind::TwoHosts => {
                let pending = self.park(None).await?;
                self.approvals.decide(&pending.request.id, Decision::allow("ana")).await?;
                let (one, other) = tokio::join!(self.resume(0), self.resume(1));
                // A host that was superseded fails.
                if let (Err(one), Err(other)) = (&one, &other) {
                    return Err(format!("both hosts failed: {one}; {other}").into());
                }
                self.resume(0).await?;
                return self.is_unknown(&[pending.request.id]).await;
            }
            Kind::Expire => {
                let pending = self.park(Some(1_000)).await?;
                while !pending.is_expired(now_ms()) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                self.resume(0).await?;
                self.expect("", 0)?;
                self.expect_status(&pending, ApprovalStatus::Expired).await?;
            }
            Kind::Allow | Kind::OtherMachine => {
                let pending = self.park(None).await?;
                self.approvals.decide(&pending.request.id, Decision::allow("ana")).await?;
                self.resume(usize::from(kind == Kind::OtherMachine)).await?;
                self.expect("", 1)?;
                self.expect_status(&pending, ApprovalStatus::Finished).await?;
            }
            Kind::Deny => {
                let pending = self.park(None).await?;
                let decision = Decision::deny("ana", "not this one");
                self.approvals.decide(&pending.request.id, decision).await?;
                self.resume(0).await?;
                self.expect("", 0)?;
            }
            Kind::ChangedInput => {
                let pending = self.park(None).await?;
                let command = format!("echo {}-changed >> executed; echo ran", self.name);
                let input = json!({"command": command, "description": "Run it"});
                let decision = Decision::allow("ana").with_input(input);
                self.approvals.decide(&pending.request.id, decision).await?;
                self.resume(0).await?;
                self.expect("", 0)?;
                self.expect("-changed", 1)?;
            }
        }
        // Nothing is left to continue.
        let again = self.resume(0).await?;
        if !again["approvals"].is_null() {
            return Err(format!("a finished conversation continued: {again}").into());
        }
        Ok(false)
    }

    /// Kills hosts until nothing is left to continue.
    async fn play_killed(&mut self, rng: &mut Rng) -> Result<bool, Box<dyn Error>> {
        let decided = Arc::default();
        for attempt in 0..20 {
            let prompt = (attempt == 0).then(|| self.name.clone());
            let park_after = rng.pick(&[0, 400, 2_000]);
            let task = self.task(rng.between(0, 1), prompt.as_deref(), park_after, None)?;
            let approver = approve(
                self.approvals.clone(),
                self.session.clone(),
                rng.branch(),
                Arc::clone(&decided),
            );
            let approver = tokio::spawn(approver);
            let kill_after = Duration::from_millis(rng.between(200, 1_800) as u64);
            let outcome = self.run(&task, (attempt < 19).then_some(kill_after)).await;
            approver.abort();
            if attempt > 0 && outcome?.is_some_and(|outcome| is_settled(&outcome)) {
                break;
            }
        }
        let ids = decided.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.is_unknown(&ids).await
    }

    /// Checks that the command ran at most once for each of these approvals, and returns whether it is unknown
    /// whether it did.
    async fn is_unknown(&self, ids: &[ApprovalId]) -> Result<bool, Box<dyn Error>> {
        let (mut finished, mut unknown, mut found) = (0, 0, Vec::new());
        for id in ids {
            let approval = self.approvals.get(id).await?.ok_or("an approval is gone")?;
            found.push(json!(&approval));
            match approval.status {
                ApprovalStatus::OutcomeUnknown | ApprovalStatus::Started => unknown += 1,
                ApprovalStatus::Finished => finished += 1,
                _ => {}
            }
        }
        let executions = self.executions("");
        if executions < finished || executions > finished + unknown {
            return Err(format!(
                "{executions} executions, {finished} approvals were used, {unknown} may have been: {found:?}"
            )
            .into());
        }
        Ok(unknown > 0)
    }

    /// Runs a host until the conversation is parked, and returns its only request.
    async fn park(&mut self, expires_after_ms: Option<u64>) -> Result<Approval, Box<dyn Error>> {
        let prompt = self.name.clone();
        let task = self.task(0, Some(&prompt), 0, expires_after_ms)?;
        let outcome = self.run(&task, None).await?.ok_or("no outcome")?;
        let mut parked: Vec<Approval> = serde_json::from_value(outcome["approvals"].clone())?;
        match (parked.pop(), parked.is_empty()) {
            (Some(approval), true) if approval.is_parked => Ok(approval),
            other => Err(format!("the conversation is not parked: {other:?}").into()),
        }
    }

    async fn resume(&self, machine: usize) -> Result<Value, Box<dyn Error>> {
        let task = self.task(machine, None, 0, None)?;
        let (outcome, _) = play(self.host, &task, None).await?;
        Ok(outcome.ok_or("no outcome")?)
    }

    /// Runs a host, and returns its outcome unless it was killed.
    async fn run(
        &mut self,
        task: &str,
        kill_after: Option<Duration>,
    ) -> Result<Option<Value>, Box<dyn Error>> {
        let (outcome, is_killed) = play(self.host, task, kill_after).await?;
        self.killed += usize::from(is_killed);
        Ok(outcome)
    }

    fn task(
        &self,
        machine: usize,
        prompt: Option<&str>,
        park_after_ms: u64,
        expires_after_ms: Option<u64>,
    ) -> Result<String, Box<dyn Error>> {
        let config = self.harness.root().join(format!("config-{machine}"));
        fs::create_dir_all(&config)?;
        let mut variables = self.harness.variables();
        variables.insert("CLAUDE_CONFIG_DIR".to_owned(), config.to_string_lossy().into_owned());
        let task = json!({
            "prompt": prompt,
            "session": self.session,
            "store": format!("sqlite:{}", database(self.harness).display()),
            "cli": self.harness.program(),
            "cwd": self.harness.project(),
            "variables": variables,
            "tools": self.has_tools,
            "park_after_ms": park_after_ms,
            "expires_after_ms": expires_after_ms,
        });
        Ok(task.to_string())
    }

    /// Returns how often the command of this round ran.
    fn executions(&self, suffix: &str) -> usize {
        let text = fs::read_to_string(self.harness.project().join("executed")).unwrap_or_default();
        let line = format!("{}{suffix}", self.name);
        text.lines().filter(|other| *other == line).count()
    }

    fn expect(&self, suffix: &str, times: usize) -> Result<(), String> {
        let found = self.executions(suffix);
        (found == times).then_some(()).ok_or(format!("the command ran {found} times, not {times}"))
    }

    async fn expect_status(
        &self,
        approval: &Approval,
        status: ApprovalStatus,
    ) -> Result<(), Box<dyn Error>> {
        let found = self.approvals.get(&approval.request.id).await?.map(|found| found.status);
        if found != Some(status) {
            return Err(format!("the approval is {found:?}, not {status}").into());
        }
        Ok(())
    }
}

/// Returns the time on the clock of SQLite, which is that of the machine.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns whether a host left nothing that another one could continue.
fn is_settled(outcome: &Value) -> bool {
    let left = outcome["approvals"].as_array().map(Vec::as_slice).unwrap_or_default();
    left.iter().all(|approval| approval["status"] == "outcome_unknown")
}

/// Allows the requests of a session, some time after they were made.
async fn approve(
    approvals: Approvals,
    session: String,
    mut rng: Rng,
    decided: Arc<Mutex<Vec<ApprovalId>>>,
) {
    loop {
        tokio::time::sleep(Duration::from_millis(rng.between(20, 600) as u64)).await;
        for pending in approvals.pending().await.unwrap_or_default() {
            let id = pending.request.id;
            if pending.request.session_id.as_str() == session {
                // Before the decision: this task may be aborted.
                decided.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
                // A host may have withdrawn the request.
                drop(approvals.decide(&id, Decision::allow("ana")).await);
            }
        }
    }
}

/// Runs a host, and returns what it printed and whether it was killed.
async fn play(
    host: &Path,
    task: &str,
    kill_after: Option<Duration>,
) -> Result<(Option<Value>, bool), Box<dyn Error>> {
    let child = Command::new(host)
        .args(["approval-run", task])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let limit = kill_after.unwrap_or(Duration::from_secs(120));
    // A host that is dropped is killed.
    let Ok(output) = tokio::time::timeout(limit, child.wait_with_output()).await else {
        return match kill_after {
            Some(_) => Ok((None, true)),
            None => Err("a host did not end".into()),
        };
    };
    let output = output?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("a host failed: {errors}").into());
    }
    Ok((Some(serde_json::from_slice(&output.stdout)?), false))
}
