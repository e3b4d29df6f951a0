//! Approves a command of an agent later, in another process: one process parks the conversation, a second one
//! decides, and a third one continues. They share only an SQLite file.
//!
//! Without a command, a demonstration runs all of them. The CLI is a simulated one, or the installed one with
//! `--cli claude`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use claude_agent_kit::approval::{
    self, Approval, ApprovalId, ApprovalPolicy, ApprovalStatus, Approvals, Decision,
};
use claude_agent_kit::store::StoreOptions;
use claude_agent_kit::testing::{ApiRequest, Reply, Script, demo_options};
use claude_agent_kit::{Conversation, Options, query, visible};
use claude_agent_store::SqliteStore;
use serde_json::json;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: approve_later                         runs a demonstration
       approve_later start <prompt>          starts a conversation
       approve_later list                    lists pending approvals
       approve_later allow <id>              allows a command
       approve_later deny <id> <message>     denies a command; the model reads the message
       approve_later continue <session>      continues a conversation after the decision
options: --database <file>   the file with conversations and approvals; default: approvals.db
         --cli claude        uses the installed CLI instead of a simulated one";

/// The scope of conversations and approvals, and the project of the conversations.
const SCOPE: &str = "example";
const PROJECT: &str = "approve-later";

/// The beginning of the prompt with which the CLI continues after a call that it deferred.
const REPLAYED: &str = "Continue from where you left off";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let database = take_option(&mut arguments, "--database")?;
    let database = PathBuf::from(database.as_deref().unwrap_or("approvals.db"));
    // Read again by `demo_options`.
    let cli = take_option(&mut arguments, "--cli")?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => demonstrate(cli.as_deref()),
        ["start", prompt] => start(&database, prompt).await,
        ["list"] => list(&database).await,
        ["allow", id] => decide(&database, id, Decision::allow(approver())).await,
        ["deny", id, message] => decide(&database, id, Decision::deny(approver(), message)).await,
        ["continue", session] => resume(&database, session).await,
        ["--help"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unexpected arguments\n{USAGE}").into()),
    }
}

/// Removes an option from the arguments and returns its value.
fn take_option(arguments: &mut Vec<String>, name: &str) -> Outcome<Option<String>> {
    let Some(at) = arguments.iter().position(|argument| argument == name) else {
        return Ok(None);
    };
    if at + 1 == arguments.len() {
        return Err(format!("{name} has no value\n{USAGE}").into());
    }
    Ok(arguments.drain(at..at + 2).nth(1))
}

/// Returns a command with the options of this process, for the next step.
fn hint(command: &str) -> String {
    let arguments: Vec<String> = std::env::args().collect();
    let options = arguments.windows(2).filter(|pair| pair[0] == "--database" || pair[0] == "--cli");
    let mut words = vec!["approve_later"];
    words.extend(options.flatten().map(String::as_str));
    words.push(command);
    words.join(" ")
}

/// Returns the name that is stored with a decision. A service would authenticate the user instead.
fn approver() -> String {
    std::env::var("USER").unwrap_or_else(|_| "the operator".to_owned())
}

async fn start(database: &Path, prompt: &str) -> Outcome {
    let host = Host::new(database).await?;
    let output = query(prompt, host.options.clone()).await?.collect().await.into_result()?;
    let session = output.session_id().ok_or("the CLI did not send a session ID")?;
    report(session.as_str(), &output.text(), &output.approvals);
    Ok(())
}

async fn list(database: &Path) -> Outcome {
    let pending = approvals(database).await?.pending().await?;
    if pending.is_empty() {
        println!("No approval is pending.");
    }
    for approval in &pending {
        println!("{}\n  of the conversation {}", describe(approval), approval.request.session_id);
    }
    Ok(())
}

async fn decide(database: &Path, id: &str, decision: Decision) -> Outcome {
    let id = ApprovalId::parse(id)?;
    let verdict = if decision.is_allowed() { "Allowed" } else { "Denied" };
    let approval = approvals(database).await?.decide(&id, decision).await?;
    println!("{verdict}: {}", describe(&approval));
    if !approval.is_parked {
        println!("The run has not parked. If it still waits, it uses the decision. Otherwise:");
    }
    println!("Continue with:\n  {} {}", hint("continue"), approval.request.session_id);
    Ok(())
}

async fn resume(database: &Path, session: &str) -> Outcome {
    let host = Host::new(database).await?;
    let options = host.options.clone().conversation(Conversation::resume(session));
    if let Some(outcome) = approval::resume(options).await? {
        let outcome = outcome.into_result()?;
        report(session, &outcome.text, &outcome.approvals);
    } else {
        println!("There is nothing to continue.");
    }
    Ok(())
}

/// Describes a call in full. Characters that a terminal would not show are escaped: what is read is what runs.
fn describe(approval: &Approval) -> String {
    let request = &approval.request;
    format!("{}  {}", request.id, request.description())
}

async fn approvals(database: &Path) -> Outcome<Approvals> {
    Ok(Approvals::new(SCOPE, SqliteStore::open(database).await?))
}

/// The options of a run, and the folder of the simulated CLI.
struct Host {
    options: Options,
    folder: Option<PathBuf>,
}

impl Host {
    async fn new(database: &Path) -> Outcome<Self> {
        let store = SqliteStore::open(database).await?;
        // The conversation parks soon, because the terminal that decides is another one.
        let policy = ApprovalPolicy::new(Approvals::new(SCOPE, store.clone()))
            .tools(["Bash"])
            .park_after(Duration::from_secs(1))
            .expires_after(Duration::from_secs(7 * 24 * 3600));
        let options = demo_options(script())
            .store(StoreOptions::new(SCOPE, store).project(PROJECT))
            .approvals(policy);
        if std::env::args().any(|argument| argument == "--cli") {
            return Ok(Self { options, folder: None });
        }
        // A new one for each process: everything that is needed later is in the database.
        let folder = std::env::temp_dir().join(format!("approve-later-{}", std::process::id()));
        let options = options.env("CLAUDE_CONFIG_DIR", folder.to_string_lossy());
        Ok(Self { options, folder: Some(folder) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder
            && let Err(error) = std::fs::remove_dir_all(folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("warning: {} was not deleted: {error}", folder.display());
        }
    }
}

/// Prints the answer, or what the conversation waits for.
fn report(session: &str, text: &str, approvals: &[Approval]) {
    if !text.trim().is_empty() {
        println!("{:#}", visible(text.trim()));
    }
    let is_pending = |approval: &&Approval| approval.status == ApprovalStatus::Pending;
    let pending: Vec<&Approval> = approvals.iter().filter(is_pending).collect();
    if !pending.is_empty() {
        println!("The conversation is parked. Pending:");
    }
    for approval in &pending {
        println!("{}", describe(approval));
        let id = &approval.request.id;
        println!("  {} {id}\n  {} {id} <message>", hint("allow"), hint("deny"));
    }
    for approval in approvals {
        match approval.status {
            // The decision was made after the run had stopped waiting.
            ApprovalStatus::Decided => println!("Decided, not used: {}", describe(approval)),
            ApprovalStatus::OutcomeUnknown => {
                println!("Started by a process that died: {}", describe(approval));
            }
            _ => {}
        }
    }
    if !approvals.is_empty() {
        println!("Then continue with:\n  {} {session}", hint("continue"));
    }
}

/// Simulates a model that deploys whatever the prompt is, and reports the result.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let is_replayed = request.last_prompt().is_some_and(|prompt| prompt.starts_with(REPLAYED));
        if !is_replayed && request.assistant_turns_after_last_prompt() == 0 {
            let command = "echo deployed >> deploy.log && echo done";
            return Reply::tool("Bash", json!({"command": command, "description": "Deploy"}));
        }
        let results = request.tool_results();
        let result = results.last().map(|result| &result["content"]);
        let text = result.and_then(|content| content.as_str()).unwrap_or_default();
        Reply::text(format!("The command returned: {text}"))
    })
}

/// Runs each command as a process of its own, and checks that the approved command ran once.
fn demonstrate(cli: Option<&str>) -> Outcome {
    let folder = std::env::temp_dir().join(format!("approve-later-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let demonstration = Demonstration { folder: folder.clone(), cli: cli.map(str::to_owned) };
    let outcome = demonstration.play();
    std::fs::remove_dir_all(folder)?;
    outcome
}

struct Demonstration {
    folder: PathBuf,
    cli: Option<String>,
}

impl Demonstration {
    fn play(&self) -> Outcome {
        let log = self.folder.join("deploy.log");
        let parked = self.command(&["start", "Deploy it."], true)?;
        let (id, session) = (word_after(&parked, "allow")?, word_after(&parked, "continue")?);
        self.command(&["list"], true)?;
        if log.exists() {
            return Err("the command ran without an approval".into());
        }
        self.command(&["allow", id], true)?;
        self.command(&["deny", id, "too late"], false)?;
        self.command(&["continue", session], true)?;
        self.command(&["continue", session], true)?;
        // A second conversation, which is denied.
        let parked = self.command(&["start", "Deploy it again."], true)?;
        let (id, session) = (word_after(&parked, "allow")?, word_after(&parked, "continue")?);
        self.command(&["deny", id, "not on a Friday"], true)?;
        self.command(&["continue", session], true)?;
        if self.cli.is_none() && std::fs::read_to_string(log)? != "deployed\n" {
            return Err("the approved command did not run exactly once".into());
        }
        Ok(())
    }

    /// Runs a command, prints and returns its output, and checks its exit status.
    fn command(&self, arguments: &[&str], succeeds: bool) -> Outcome<String> {
        let quote =
            |word: &&str| if word.contains(' ') { format!("{word:?}") } else { (*word).into() };
        println!(
            "$ approve_later {}",
            arguments.iter().map(quote).collect::<Vec<String>>().join(" ")
        );
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).current_dir(&self.folder);
        if let Some(cli) = &self.cli {
            command.args(["--cli", cli]);
        }
        let output = command.output()?;
        let text = String::from_utf8(output.stdout)?;
        print!("{text}{}", String::from_utf8_lossy(&output.stderr));
        println!();
        if output.status.success() != succeeds {
            return Err(format!("unexpected {}", output.status).into());
        }
        Ok(text)
    }
}

/// Returns the word after a command in the output of a process.
fn word_after<'a>(text: &'a str, command: &str) -> Outcome<&'a str> {
    let line = text.lines().find(|line| {
        line.trim_start().starts_with("approve_later") && line.contains(&format!(" {command} "))
    });
    let mut words = line.into_iter().flat_map(str::split_whitespace);
    let word = words.by_ref().find(|word| *word == command).and_then(|_| words.next());
    word.ok_or_else(|| format!("the output does not name the command {command:?}").into())
}
