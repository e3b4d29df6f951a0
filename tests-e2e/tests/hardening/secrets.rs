//! Puts a mark into every option that can hold a secret, and searches for it in all output.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::sync::{Arc, Mutex};

use claude_agent_kit::hook::{HookResponse, PreToolUse, input::PreToolUseInput};
use claude_agent_kit::{
    Conversation, ErrorKind, Options, Permission, Prompt, Session, Timeouts, ToolError, ToolServer,
    query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde::Deserialize;
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::tables::options::{Setter, setters};

use crate::confidential_options::{
    self, CALLBACK_SETTERS, Channel, ConfidentialOption, Confidentiality, PUBLIC_SETTERS,
};
use crate::support::{FakeProgram, SHORT, all_text, run};
use crate::trace_recorder::{record_traces, traces};

/// A script that writes everything it knows to stdout and stderr, and fails.
const PRINTS_ALL: &str = r#"printf '%s\0' "$@" > "$0.argv"
{ env; echo "$*"; read -r line; echo "$line"; } >&2
echo "no JSON but $* $(env | tr '\n' ' ')"
exit 1"#;

/// A script that fails without output.
const PRINTS_NOTHING: &str = r#"printf '%s\0' "$@" > "$0.argv"
read -r line
exit 1"#;

/// Texts that were shown, with their source.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Shown {
    fn add(&self, by: &'static str, text: impl Into<String>) {
        self.0.lock().unwrap().push((by, text.into()));
    }

    /// Returns options that also record warnings and lines of stderr.
    fn recording(&self, options: Options) -> Options {
        let (warnings, lines) = (self.clone(), self.clone());
        options
            .on_warning(move |warning| warnings.add("a warning", format!("{warning} {warning:?}")))
            .on_stderr(move |line| lines.add("a line of stderr", line))
    }

    /// Asserts that the mark is in none of the texts and was not traced.
    fn assert_without(&self, mark: &str, option: &str) {
        self.add("tracing", traces());
        for (by, text) in self.0.lock().unwrap().iter() {
            assert!(!text.contains(mark), "{by} shows what was put into {option}: {text}");
        }
    }
}

#[test]
fn every_setter_that_can_hold_a_secret_is_listed() {
    let confidential = confidential_options::all().into_iter().map(|option| option.name.to_owned());
    let others = PUBLIC_SETTERS
        .split_whitespace()
        .chain(CALLBACK_SETTERS.split_whitespace())
        .map(str::to_owned);
    let known: BTreeSet<String> = confidential.chain(others).collect();
    let holders = setters().unwrap().into_iter().filter(Setter::can_hold_text);
    let missing: Vec<String> =
        holders.map(|setter| setter.name).filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "list these setters in confidential_options.rs: {missing:?}");
}

#[test]
fn secrets_in_options_are_never_shown() {
    record_traces();
    run(async {
        for (number, option) in confidential_options::all().iter().enumerate() {
            let mark = format!("hush-{number}-7d1f0c");
            let shown = Shown::default();
            let name = format!("{} ({number})", option.name);
            check_option(option, &mark, &shown, &name).await;
            shown.assert_without(&mark, &name);
        }
    });
}

async fn check_option(option: &ConfidentialOption, mark: &str, shown: &Shown, name: &str) {
    let script =
        if option.confidentiality == Confidentiality::Key { PRINTS_ALL } else { PRINTS_NOTHING };
    let fake = FakeProgram::new(script);
    let options = shown
        .recording((option.set)(fake.options(), mark))
        .timeouts(Timeouts::new().exit_grace(SHORT));
    shown.add("Debug of Options", format!("{options:?} {options:#?}"));
    let explained = options.explain();
    shown.add("an explanation", format!("{explained} {explained:?}"));
    match query("hello", &options).await {
        Ok(stream) => {
            shown.add("Debug of QueryStream", format!("{stream:?}"));
            let collected = stream.collect().await;
            shown.add("an error", all_text(collected.error.as_ref().unwrap()));
            for warning in collected.warnings() {
                shown.add("a warning of the stream", format!("{warning} {warning:?}"));
            }
        }
        Err(error) => shown.add("a refusal", all_text(&error)),
    }
    check_session(&options, shown).await;
    if option.channel == Channel::Nowhere {
        return;
    }
    let argv = fs::read_to_string(fake.path().with_extension("argv")).unwrap();
    assert!(argv.contains("--verbose"), "{name}: {argv}");
    assert_eq!(
        argv.contains(mark),
        option.channel == Channel::Arguments,
        "{name} on the command line"
    );
}

async fn check_session(options: &Options, shown: &Shown) {
    let session = match Session::open(options).await {
        Ok(session) => session,
        Err(error) => return shown.add("a refusal", all_text(&error)),
    };
    let messages = session.messages();
    shown.add("Debug of Messages", format!("{messages:?}"));
    match session.send("hello").await {
        Ok(turn) => shown.add("Debug of Turn", format!("{turn:?}")),
        Err(error) => shown.add("an error of send", all_text(&error)),
    }
    shown.add("an error of ready", all_text(&session.ready().await.unwrap_err()));
    shown.add("an error of stop", all_text(&session.stop().await.unwrap_err()));
    shown.add("Debug of Session", format!("{session:?} {:?}", session.events()));
}

/// Returns a model that calls a tool of the host.
fn calling_look(mark: &str) -> Script {
    let call = Reply::tool("mcp__mine__look", json!({"at": format!("{mark}-input")}));
    Script::new().otherwise([call, Reply::text(format!("{mark}-answer"))])
}

#[derive(Deserialize, claude_agent_kit::schemars::JsonSchema)]
#[schemars(crate = "claude_agent_kit::schemars")]
struct Look {
    at: String,
}

#[test]
fn conversation_content_is_never_shown() {
    const MARK: &str = "content-7d1f0c";
    record_traces();
    run(async {
        let shown = Shown::default();
        let harness = Harness::in_memory(calling_look(MARK)).await.unwrap();
        let server = ToolServer::new().tool("look", "Looks", |look: Look| async move {
            assert!(look.at.contains(MARK));
            Err::<String, _>(ToolError::new(format!("{MARK}-result")))
        });
        let options = shown
            .recording(harness.options())
            .mcp("mine", server)
            .on(PreToolUse, |_, _| async {
                HookResponse::new().system_message(format!("{MARK}-hook"))
            })
            .can_use_tool(
                |request, _| async move { Permission::allow().with_input(request.input) },
            );
        shown.add("Debug of Options", format!("{options:?}"));
        let prompt = Prompt::from(format!("{MARK}-prompt"));
        shown.add("Debug of Prompt", format!("{prompt:?}"));
        let session = Session::start(options).await.unwrap();
        let turn = session.send(prompt).await.unwrap();
        shown.add("Debug of Turn", format!("{turn:?}"));
        let outcome = turn.finish().await.unwrap();
        assert!(outcome.text.contains(MARK), "{}", outcome.text);
        let mut messages = session.messages();
        session.stop().await.unwrap();
        shown.add("Debug of Messages", format!("{messages:?}"));
        drop(messages.next().await);
        shown.add("Debug of Session", format!("{session:?} {:?}", session.events()));
        // The tool was called, and its result reached the model.
        let requests = harness.api().requests();
        assert!(
            requests
                .iter()
                .any(|request| request.body.to_string().contains("content-7d1f0c-result"))
        );
        shown.assert_without(MARK, "a conversation");
    });
}

#[test]
fn callback_error_with_a_secret_is_masked() {
    const MARK: &str = "failed-7d1f0c";
    record_traces();
    run(async {
        let shown = Shown::default();
        let script = Script::new()
            .otherwise([Reply::tool("Bash", json!({"command": "true"})), Reply::text("Done.")]);
        let harness = Harness::in_memory(script).await.unwrap();
        let options = shown
            .recording(harness.options())
            .env("MY_KEY", MARK)
            .on(PreToolUse, |_, _| async { Err::<(), _>(format!("no login with {MARK}").into()) });
        let session = Session::start(options).await.unwrap();
        session.send("go").await.unwrap().finish().await.unwrap();
        session.stop().await.unwrap();
        let texts = shown.0.lock().unwrap().clone();
        assert!(texts.iter().any(|(_, text)| text.contains("no login with ***")), "{texts:?}");
        shown.assert_without(MARK, "the text of an error");
    });
}

#[test]
fn error_shows_the_working_directory_even_if_a_variable_holds_it() {
    let fake =
        FakeProgram::new("echo \"No conversation found with session ID: $PROJECT\" >&2; exit 1");
    let directory = fake.sibling("project");
    fs::create_dir(&directory).unwrap();
    let shown = directory.to_str().unwrap();
    run(async {
        let options = fake
            .options()
            .cwd(&directory)
            .env("PROJECT", shown)
            .env("HOME", fake.path().parent().unwrap().to_str().unwrap())
            .conversation(Conversation::resume("00000000-0000-4000-8000-000000000000"));
        let error = Session::start(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        assert!(error.to_string().contains(&format!("in {shown}")), "{error}");
        assert!(!all_text(&error).contains("***"), "{error}");
    });
}

/// The panic hook of the process, which belongs to the host, prints the panic message. The SDK does
/// not repeat it.
#[test]
fn callback_panic_message_reaches_only_the_panic_hook() {
    const MARK: &str = "panicked-7d1f0c";
    record_traces();
    let hooked = Arc::new(Mutex::new(String::new()));
    let (notes, before) = (hooked.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.to_string();
        if text.contains(MARK) {
            writeln!(notes.lock().unwrap(), "{text}").unwrap();
        } else {
            before(panic);
        }
    }));
    run(async {
        let shown = Shown::default();
        let script = Script::new()
            .otherwise([Reply::tool("Bash", json!({"command": "true"})), Reply::text("Done.")]);
        let harness = Harness::in_memory(script).await.unwrap();
        let options = shown
            .recording(harness.options())
            .on(PreToolUse, |_, _| async { panic_with(MARK) })
            .can_use_tool_blocking(|_, _| -> Permission { panic!("with {MARK}") });
        let session = Session::start(options).await.unwrap();
        session.send("go").await.unwrap().finish().await.unwrap();
        session.stop().await.unwrap();
        let texts = shown.0.lock().unwrap().clone();
        assert!(texts.iter().any(|(_, text)| text.contains("the callback panicked")), "{texts:?}");
        shown.assert_without(MARK, "a panic");
    });
    assert!(hooked.lock().unwrap().contains(MARK), "the callback never panicked");
}

/// Panics, as a broken callback does.
fn panic_with(text: &str) -> HookResponse<PreToolUseInput> {
    panic!("with {text}")
}
