//! Checks everything that a run needs.

mod checks;
#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "config", feature = "tools"))]
pub(crate) mod examples;
mod report;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::ffi::OsString;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

pub use self::report::{Check, Finding, Level, Report};
use crate::cli::{self, CheckedCli, VersionPolicy};
use crate::error::{Error, Result};
use crate::list;
use crate::options::{Layers, Options, Prepared, prepare};
use crate::prompt::Prompt;
use crate::session::Session;
use crate::{Timeouts, driver};

/// Checks everything that a run with these options needs, and returns a report of the problems with what
/// to do about each. Await the returned value.
///
/// The CLI is run only for its version, with the user, environment and working directory of the options;
/// [`handshake`](Doctor::handshake) also starts a session. Credentials are checked by the names of
/// environment variables only: files that may contain credentials are not opened, and no values are
/// printed.
///
/// ```no_run
/// use claude_agent_kit::{Options, doctor};
///
/// # async fn example() {
/// let report = doctor(Options::new().model("sonnet")).await;
/// print!("{report}");
/// if !report.is_healthy() {
///     // Each problem has a help text.
/// }
/// # }
/// ```
pub fn doctor(options: impl Into<Options>) -> Doctor {
    Doctor { options: options.into(), layers: None, handshake: None }
}

/// A check of options and environment. Await it to run it.
#[derive(Clone, Debug)]
#[must_use = "nothing is checked until it is awaited"]
pub struct Doctor {
    options: Options,
    layers: Option<Layers>,
    handshake: Option<Duration>,
}

impl Doctor {
    /// Checks these layers too, and the options merged with them. Replaces layers set before.
    pub fn layers(mut self, layers: Layers) -> Self {
        self.layers = Some(layers);
        self
    }

    /// Also starts a session, waits up to `limit` for the handshake, and stops the session. No request is
    /// sent to the model. `SessionStart` hooks of the user's settings run.
    pub fn handshake(mut self, limit: Duration) -> Self {
        self.handshake = Some(limit);
        self
    }

    async fn run(self) -> Report {
        let mut findings = Vec::new();
        let mut options = self.options;
        if let Some(layers) = self.layers {
            configuration(layers, &mut options, &mut findings);
        }
        let prepared = check_options(&options, &mut findings);
        check_cli(&options, prepared.as_ref(), &mut findings).await;
        let context =
            checks::CheckContext { options: &options, variables: std::env::vars_os().collect() };
        findings.extend(context.working_directory());
        findings.extend(context.config_directory());
        findings.extend(context.credentials());
        findings.extend(context.mcp_config());
        findings.extend(context.files());
        findings.extend(context.permissions());
        if let Some(limit) = self.handshake {
            let healthy = findings.iter().all(|finding| finding.level() < Level::Problem);
            findings.push(handshake(options, limit, healthy).await);
        }
        Report::new(findings)
    }
}

impl IntoFuture for Doctor {
    type Output = Report;
    type IntoFuture = Pin<Box<dyn Future<Output = Report> + Send>>;

    /// # Cancel safety
    /// Dropping the future ends the processes that it started.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

fn configuration(layers: Layers, options: &mut Options, findings: &mut Vec<Finding>) {
    match layers.under(&*options) {
        Ok(merged) => {
            *options = merged;
            findings.push(Finding::good(Check::Configuration, "all sources are valid"));
        }
        Err(error) => {
            let help = "correct it; the checks below do not include the configuration";
            add_problems(&error, Check::Configuration, help, findings);
        }
    }
}

/// Checks the options, and returns the prepared options if they are valid.
fn check_options(options: &Options, findings: &mut Vec<Finding>) -> Option<Prepared> {
    // Print mode needs a prompt; any will do.
    let prompt = Prompt::from("hello");
    let prepared = match prepare(options, Some(&prompt)) {
        Ok(prepared) => prepared,
        Err(error) => {
            add_problems(&error, Check::Options, "correct or remove the option", findings);
            return None;
        }
    };
    if prepared.warnings.is_empty() {
        findings.push(Finding::good(Check::Options, "the options are valid"));
    }
    for warning in &prepared.warnings {
        findings.push(Finding::warning(Check::Options, warning.to_string(), "change the options"));
    }
    Some(prepared)
}

fn add_problems(error: &Error, check: Check, help: &str, findings: &mut Vec<Finding>) {
    for problem in error.problems() {
        findings.push(Finding::problem(check, problem.to_string(), help));
    }
}

async fn check_cli(options: &Options, prepared: Option<&Prepared>, findings: &mut Vec<Finding>) {
    if options.host.transport.is_some() {
        let what = "a custom transport starts the CLI; no local executable is needed";
        findings.push(Finding::good(Check::Executable, what));
        return;
    }
    let program = match cli::find_program(options) {
        Ok(program) => program,
        Err(error) => return findings.push(error_finding(Check::Executable, &error)),
    };
    findings.push(Finding::good(Check::Executable, program.path().display().to_string()));
    let Some(prepared) = prepared else {
        // Without valid options the environment of the CLI is unknown.
        let what = "not checked because the options are invalid";
        return findings.push(Finding::warning(Check::Version, what, "correct the options first"));
    };
    if let Err(error) = driver::require_timers() {
        return findings.push(error_finding(Check::Version, &error));
    }
    let launch = match driver::launch(options, prepared).await {
        Ok(launch) => launch,
        Err(error) => return findings.push(error_finding(Check::Options, &error)),
    };
    let policy = options.host.version_policy();
    findings.append(&mut version_findings(policy.check(program, &launch).await, policy));
}

/// Returns the findings about the version, as a run would treat it.
fn version_findings(chosen: Result<CheckedCli>, policy: VersionPolicy) -> Vec<Finding> {
    const CHECK: Check = Check::Version;
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return vec![error_finding(CHECK, &error)],
    };
    if let Some(version) = chosen.version {
        let minimum = cli::minimum(policy.print_mode);
        return vec![Finding::good(CHECK, format!("{version} (minimum {minimum})"))];
    }
    if policy.skip {
        return vec![Finding::good(CHECK, "not checked because of `VersionCheck::Skip`")];
    }
    let help = "a run starts anyway; if it fails, set `cli_path` to another CLI";
    list::map(&chosen.warnings, &|warning| {
        let text = warning.to_string();
        // The help of the warning is for a run that the host configures, not for the doctor.
        let what = text.rsplit_once("; help: ").map_or(text.as_str(), |(what, _)| what);
        Finding::warning(CHECK, what, help)
    })
}

fn error_finding(check: Check, error: &Error) -> Finding {
    let help = error.help().unwrap_or("correct the reported cause");
    Finding::problem(check, error.message(), help)
}

const HANDSHAKE_DONE: &str = "the CLI completed the handshake";

async fn handshake(options: Options, limit: Duration, healthy: bool) -> Finding {
    if options.host.print_mode {
        return Finding::good(Check::Handshake, "not needed in print mode");
    }
    if !healthy {
        let help = "fix the problems above first";
        return Finding::warning(Check::Handshake, "not attempted", help);
    }
    let session = match Session::start(options.timeouts(Timeouts::new().initialize(limit))).await {
        Ok(session) => session,
        Err(error) => return error_finding(Check::Handshake, &error),
    };
    match session.stop().await {
        Ok(_) => Finding::good(Check::Handshake, HANDSHAKE_DONE),
        Err(error) => error_finding(Check::Handshake, &error),
    }
}

/// Environment variables.
type Variables = Vec<(OsString, OsString)>;
