//! A look at everything that a run needs, before it is needed.

mod checks;
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
use crate::options::{Layers, Options, Prepared, prepare};
use crate::prompt::Prompt;
use crate::session::Session;
use crate::{Timeouts, driver};

/// Looks at everything that a run with these options needs, and says what is wrong and what to do
/// about it. Await what it gives.
///
/// It runs the CLI for its version only, as the user and with the environment and working directory
/// of the options; [`handshake`](Doctor::handshake) has it started as a run would. It looks for credentials by the names of variables, opens no file that could hold some,
/// and prints no values.
///
/// ```no_run
/// use claude_agent_kit::{Options, doctor};
///
/// # async fn example() {
/// let report = doctor(Options::new().model("sonnet")).await;
/// print!("{report}");
/// if !report.is_healthy() {
///     // Each problem says what to do.
/// }
/// # }
/// ```
pub fn doctor(options: impl Into<Options>) -> Doctor {
    Doctor { options: options.into(), layers: None, handshake: None }
}

/// An examination that was asked for. Await it.
#[derive(Clone, Debug)]
#[must_use = "it looks at nothing until it is awaited"]
pub struct Doctor {
    options: Options,
    layers: Option<Layers>,
    handshake: Option<Duration>,
}

impl Doctor {
    /// Looks at these layers too, and at the options as they are with them.
    pub fn layers(mut self, layers: Layers) -> Self {
        self.layers = Some(layers);
        self
    }

    /// Starts the CLI as a session would, waits this long for its handshake, and stops it. No model
    /// is asked. Hooks of the user's settings for the start of a session run.
    pub fn handshake(mut self, limit: Duration) -> Self {
        self.handshake = Some(limit);
        self
    }

    async fn examine(self) -> Report {
        let mut findings = Vec::new();
        let mut options = self.options;
        if let Some(layers) = self.layers {
            configuration(layers, &mut options, &mut findings);
        }
        let prepared = examine_options(&options, &mut findings);
        examine_cli(&options, prepared.as_ref(), &mut findings).await;
        let place = checks::Place { options: &options, variables: std::env::vars_os().collect() };
        findings.extend(place.working_directory());
        findings.extend(place.config_directory());
        findings.extend(place.credentials());
        findings.extend(place.mcp_config());
        findings.extend(place.files());
        findings.extend(place.permissions());
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
    /// Dropping the future leaves no process behind.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.examine())
    }
}

fn configuration(layers: Layers, options: &mut Options, findings: &mut Vec<Finding>) {
    match layers.under(&*options) {
        Ok(merged) => {
            *options = merged;
            findings.push(Finding::good(Check::Configuration, "all of it can be used"));
        }
        Err(error) => findings.extend(error.problems().iter().map(|problem| {
            let help = "correct it; what was to be configured is left out below";
            Finding::problem(Check::Configuration, problem.to_string(), help)
        })),
    }
}

/// Checks the options, and returns what a run needs if they are valid.
fn examine_options(options: &Options, findings: &mut Vec<Finding>) -> Option<Prepared> {
    // Any prompt will do; print mode needs one.
    let prompt = Prompt::from("hello");
    let prepared = match prepare(options, Some(&prompt)) {
        Ok(prepared) => prepared,
        Err(error) => {
            findings.extend(error.problems().iter().map(|problem| {
                Finding::problem(Check::Options, problem.to_string(), "change or leave it out")
            }));
            return None;
        }
    };
    if prepared.warnings.is_empty() {
        findings.push(Finding::good(Check::Options, "they can be used together"));
    }
    findings.extend(prepared.warnings.iter().map(|warning| {
        Finding::warning(Check::Options, warning.to_string(), "leave one of them out")
    }));
    Some(prepared)
}

async fn examine_cli(options: &Options, prepared: Option<&Prepared>, findings: &mut Vec<Finding>) {
    if options.host.transport.is_some() {
        let what = "the host reaches the CLI by a transport of its own; none is looked for";
        findings.push(Finding::good(Check::Executable, what));
        return;
    }
    let program = match cli::find_program(options) {
        Ok(program) => program,
        Err(error) => return findings.push(of_error(Check::Executable, &error)),
    };
    findings.push(Finding::good(Check::Executable, program.path().display().to_string()));
    let Some(prepared) = prepared else {
        // Without valid options it is not known with which environment to run it.
        let what = "not checked, because the options are invalid";
        return findings.push(Finding::warning(Check::Version, what, "correct the options first"));
    };
    if let Err(error) = driver::require_runtime() {
        return findings.push(of_error(Check::Version, &error));
    }
    let launch = match driver::launch(options, prepared).await {
        Ok(launch) => launch,
        Err(error) => return findings.push(of_error(Check::Options, &error)),
    };
    let policy = options.host.version_policy();
    findings.extend(of_version(policy.check(program, &launch).await, policy));
}

/// What a run would make of the version.
fn of_version(chosen: Result<CheckedCli>, policy: VersionPolicy) -> Vec<Finding> {
    const CHECK: Check = Check::Version;
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return vec![of_error(CHECK, &error)],
    };
    if let Some(version) = chosen.version {
        let minimum = cli::minimum(policy.print_mode);
        return vec![Finding::good(CHECK, format!("{version}; {minimum} is needed at least"))];
    }
    if policy.skip {
        return vec![Finding::good(CHECK, "it was not asked for, as `VersionCheck::Skip` says")];
    }
    let help = "a run tries it all the same; name another CLI with `cli_path` if that fails";
    let warnings = chosen.warnings.iter();
    warnings.map(|warning| Finding::warning(CHECK, warning.to_string(), help)).collect()
}

fn of_error(check: Check, error: &Error) -> Finding {
    let help = error.help().unwrap_or("see what the text says");
    Finding::problem(check, error.what(), help)
}

async fn handshake(options: Options, limit: Duration, healthy: bool) -> Finding {
    if options.host.print_mode {
        return Finding::good(Check::Handshake, "print mode has none");
    }
    if !healthy {
        let help = "see to the problems above first";
        return Finding::warning(Check::Handshake, "it was not tried", help);
    }
    let session = match Session::start(options.timeouts(Timeouts::new().initialize(limit))).await {
        Ok(session) => session,
        Err(error) => return of_error(Check::Handshake, &error),
    };
    match session.stop().await {
        Ok(_) => Finding::good(Check::Handshake, "the CLI answered it"),
        Err(error) => of_error(Check::Handshake, &error),
    }
}

/// The environment of this process, or what a test says.
type Variables = Vec<(OsString, OsString)>;
