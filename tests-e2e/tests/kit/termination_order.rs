//! The order of output, exit and timeouts; several results in a row.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use claude_agent_kit::Exit;
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory};
use claude_agent_kit::{ErrorKind, Options, Timeouts, WarningCode, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::Body;
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{exists, wait_until};
use tokio::io::{AsyncRead, ReadBuf};

use crate::support::{
    FakeProgram, LIMIT, RESULT, SHORT, SIM, ask, codes, count, error_of, in_time, on_all, real, run,
};

const RESULT_LINE: &[u8] = b"{\"type\":\"result\",\"is_error\":false,\"result\":\"Done.\"}\n";

/// A stdout that can be read only after the exit was reported, and then ends or fails.
struct LateStdout {
    exit_seen: Arc<AtomicBool>,
    had_nothing: bool,
    output: &'static [u8],
    then: Option<io::Error>,
}

impl AsyncRead for LateStdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.exit_seen.load(Ordering::SeqCst) || !std::mem::replace(&mut self.had_nothing, true)
        {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = self.output.len().min(buffer.remaining()).min(7);
        let (now, later) = self.output.split_at(length);
        buffer.put_slice(now);
        self.output = later;
        match self.then.take_if(|_| length == 0) {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Returns options for a CLI in print mode that exits before its output is read.
fn late_output(output: &'static [u8], exit: Exit, broken: bool) -> Options {
    let transport = InMemory::new(move |_| async move {
        let exit_seen = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&exit_seen);
        let child = ChildFuture::new(async move {
            seen.store(true, Ordering::SeqCst);
            exit
        });
        let then = broken.then(|| io::Error::other("the pipe is cursed"));
        let stdout = LateStdout { exit_seen, had_nothing: false, output, then };
        Ok(Connection::new(tokio::io::sink(), stdout, child))
    });
    Options::new().print_mode(true).transport(transport)
}

#[test]
fn output_read_after_the_exit_is_not_lost() {
    run(async {
        let collected = ask("hello", late_output(RESULT_LINE, Exit::Code(0), false)).await;
        assert_eq!((codes(&collected), collected.error.is_none()), (Vec::new(), true));
        assert_eq!(collected.result().unwrap().result.as_deref(), Some("Done."));
        // A failing exit is judged by a result that is read after it.
        let collected = ask("hello", late_output(RESULT_LINE, Exit::Code(2), false)).await;
        assert_eq!(codes(&collected), [WarningCode::NonZeroExitAfterResult]);
        assert!(collected.error.is_none());
    });
}

/// A stdout that contains a result and then never ends and is always ready.
struct EndlessStdout {
    is_said: bool,
}

impl AsyncRead for EndlessStdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let line: &[u8] = if self.is_said { b"{\"type\":\"auth_status\"}\n" } else { RESULT_LINE };
        self.is_said = true;
        let times = (buffer.remaining() / line.len()).clamp(1, 1_000);
        buffer.put_slice(&line.repeat(if line == RESULT_LINE { 1 } else { times }));
        Poll::Ready(Ok(()))
    }
}

#[test]
fn exit_does_not_wait_for_an_endless_output() {
    let transport = InMemory::new(|_| async {
        let child = ChildFuture::new(std::future::ready(Exit::Code(0)));
        Ok(Connection::new(tokio::io::sink(), EndlessStdout { is_said: false }, child))
    });
    let options = Options::new()
        .print_mode(true)
        .transport(transport)
        .timeouts(Timeouts::new().exit_grace(LIMIT * 2));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(in_time(async {
        let mut stream = query("hello", options).await.unwrap();
        let mut warnings = Vec::new();
        // The items are dropped, because there are many of them.
        while let Some(item) = stream.next().await {
            warnings.extend(item.unwrap().warning().map(claude_agent_kit::Warning::code));
        }
        assert_eq!(warnings, [WarningCode::StdoutHeldOpen]);
    }));
}

#[test]
fn stdout_read_error_ends_the_stream_with_a_reason() {
    run(async {
        let collected = ask("hello", late_output(b"{\"type\":\"x\"}\n", Exit::Code(2), true)).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::ProcessFailed);
        assert!(error.to_string().contains("the pipe is cursed"), "{error}");
        assert_eq!(count(&collected, "x"), 1);
        // After a result, a read error counts as end of stream.
        let collected = ask("hello", late_output(RESULT_LINE, Exit::Code(0), true)).await;
        assert_eq!((codes(&collected), collected.error.is_none()), (Vec::new(), true));
        assert!(collected.result().is_some());
    });
}

#[test]
fn output_left_in_the_pipe_by_a_dead_process_is_read() {
    let lines = "i=0; while [ $i -lt 500 ]; do echo '{\"type\":\"auth_status\"}'; i=$((i+1)); done";
    let fake = FakeProgram::new(&format!("{lines}\n{RESULT}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = fake.options().print_mode(true).timeouts(Timeouts::new().idle(SHORT));
    let began = Instant::now();
    let stream = runtime.block_on(query("hello", options)).unwrap();
    let pid = stream.pid().unwrap();
    // Nothing is read while the runtime is not driven, and the process still ends.
    assert!(wait_until(LIMIT, || !exists(pid)), "the process ends and is reaped");
    // The timeout expires as well; output from before that still counts.
    assert!(wait_until(LIMIT, || began.elapsed() > 3 * SHORT));
    let collected = runtime.block_on(stream.collect());
    assert_eq!(count(&collected, "auth_status"), 500);
    assert_eq!(collected.result().unwrap().result.as_deref(), Some("Done."));
    assert_eq!((codes(&collected), collected.error.is_none()), (Vec::new(), true));
}

/// Returns a model that starts a background agent and continues when the agent has ended.
fn background_agent_script() -> Script {
    let input = json!({"description": "Greet", "prompt": "greet the world",
                       "subagent_type": "general-purpose", "run_in_background": true});
    Script::new()
        .when("greet the world", [Reply::text("Greeted.").hold()])
        .otherwise([Reply::tool("Agent", input), Reply::text("Delegated.")])
}

#[test]
fn background_agent_result_follows_the_first_result() {
    on_all(background_agent_script, async |harness| {
        let mut stream = query("delegate", harness.options()).await.unwrap();
        let mut origins = Vec::new();
        while let Some(item) = stream.next().await {
            let item = item.unwrap();
            let Some(Body::Result(result)) = item.message().map(|message| &message.body) else {
                assert!(item.warning().is_none(), "{item:?}");
                continue;
            };
            origins.push(result.origin.is_some());
            // The agent continues only now, so that it ends after the first result.
            harness
                .api()
                .wait_for_request(|request| {
                    request.prompts().iter().any(|prompt| prompt.contains("greet the world"))
                })
                .await;
            harness.api().release_held();
        }
        assert_eq!(origins.len(), 2, "{origins:?}");
    });
}

#[test]
fn background_shell_does_not_delay_the_end() {
    let script = || {
        let input = json!({"command": "sleep 1000", "run_in_background": true});
        Script::new().otherwise([Reply::tool("Bash", input), Reply::text("Started.")])
    };
    run(async {
        for harness in [
            Harness::sim_process(script(), SIM).await.unwrap(),
            Harness::real(script(), real()).await.unwrap(),
        ] {
            let options = harness
                .options()
                .allowed_tools(["Bash"])
                .timeouts(Timeouts::new().exit_grace(SHORT));
            let collected = ask("start it", options).await;
            assert!(collected.error.is_none(), "{:?}", collected.error);
            assert_eq!(count(&collected, "result"), 1);
        }
    });
}
