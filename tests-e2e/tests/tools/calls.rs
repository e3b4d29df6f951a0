//! Calls of in-process tools.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::mcp::RawServer;
use claude_agent_kit::{Json, Tool, ToolContext, ToolError, ToolResult, ToolServer, WarningCode};
use claude_agent_kit::{NoArguments, ToolProgress};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;
use tokio::sync::{Barrier, Semaphore};

use crate::calc::{Pair, Sum, calc, call_script, results, texts, with_server};
use crate::helpers::{Notes, one_turn, panic_silently, start, turn};
use crate::support::{LIMIT, in_time, on_all, real, record_warnings, run, until};

#[test]
fn two_servers_are_used_in_the_same_turn() {
    let script = || {
        call_script(&[
            ("mcp__calc__add", json!({"a": 2, "b": 3})),
            ("mcp__words__hail", json!({"name": "Ada"})),
        ])
    };
    on_all(script, async |harness| {
        #[derive(serde::Deserialize, claude_agent_kit::schemars::JsonSchema)]
        #[schemars(crate = "claude_agent_kit::schemars")]
        struct Hail {
            name: String,
        }
        async fn hail(args: Hail) -> Result<String, ToolError> {
            Ok(format!("Hail {}!", args.name))
        }
        let words = ToolServer::new().tool("hail", "Hails a person", hail);
        let options = with_server(&harness, calc()).mcp("words", words);
        one_turn(options.allowed_tools(["mcp__calc", "mcp__words"])).await;
        assert_eq!(texts(&harness), ["5", "Hail Ada!"]);
    });
}

#[test]
fn read_only_calls_run_concurrently() {
    let look = ("mcp__calc__look", json!({}));
    let script = move || call_script(&[look.clone(), look.clone(), look.clone(), look.clone()]);
    on_all(script, async |harness| {
        // Opens only when all four calls are running.
        let barrier = Arc::new(Barrier::new(4));
        let look = Tool::new("look", "Looks", move |_: NoArguments| {
            let barrier = barrier.clone();
            async move {
                barrier.wait().await;
                Ok("seen")
            }
        });
        one_turn(with_server(&harness, calc().add(look.read_only()))).await;
        assert_eq!(texts(&harness), ["seen"; 4]);
    });
}

#[test]
fn slow_call_delays_no_other_call() {
    let script = || {
        call_script(&[
            ("mcp__calc__slow", json!({})),
            ("mcp__calc__quick", json!({})),
            ("mcp__calc__quick", json!({})),
        ])
    };
    on_all(script, async |harness| {
        let (order, quick) = (Notes::new(), Arc::new(Semaphore::new(0)));
        let (notes, quick_done) = (order.clone(), quick.clone());
        let slow = Tool::new("slow", "Is slow", move |_: NoArguments| {
            let (notes, quick) = (notes.clone(), quick_done.clone());
            async move {
                quick.acquire_many(2).await.unwrap().forget();
                notes.add("slow");
                Ok("slow")
            }
        });
        let notes = order.clone();
        let quick = Tool::new("quick", "Is quick", move |_: NoArguments| {
            notes.add("quick");
            let quick = quick.clone();
            async move {
                quick.add_permits(1);
                Ok("quick")
            }
        });
        let server = calc().add(slow.read_only()).add(quick.read_only());
        let one = tokio::time::timeout(LIMIT, one_turn(with_server(&harness, server)));
        one.await.expect("the quick ones were held up");
        assert_eq!(order.all().last(), Some(&"slow"));
        let mut texts = texts(&harness);
        texts.sort_unstable();
        assert_eq!(texts, ["quick", "quick", "slow"]);
    });
}

#[test]
fn five_second_call_is_awaited_while_others_complete() {
    let script = call_script(&[("mcp__calc__slow", json!({})), ("mcp__calc__quick", json!({}))]);
    run(async {
        let harness = Harness::real(script, real()).await.unwrap();
        let order = Notes::new();
        let tool = |name: &'static str, takes: Duration| {
            let order = order.clone();
            let tool = Tool::new(name, "Takes its time", move |_: NoArguments| {
                let order = order.clone();
                async move {
                    tokio::time::sleep(takes).await;
                    order.add(name);
                    Ok(name)
                }
            });
            tool.read_only()
        };
        let server = calc().add(tool("slow", Duration::from_secs(5)));
        let server = server.add(tool("quick", Duration::ZERO));
        assert_eq!(one_turn(with_server(&harness, server)).await.text, "Done.");
        assert_eq!(order.all(), ["quick", "slow"]);
        let mut texts = texts(&harness);
        texts.sort_unstable();
        assert_eq!(texts, ["quick", "slow"]);
    });
}

#[test]
fn failures_panics_and_wrong_arguments_reach_the_model() {
    let script = || {
        call_script(&[
            ("mcp__calc__fail", json!({})),
            ("mcp__calc__panic", json!({})),
            ("mcp__calc__add", json!({"a": 1, "b": "two"})),
            ("mcp__calc__add", json!({"a": 1})),
            ("mcp__calc__strange", json!({})),
            ("mcp__calc__add", json!({"a": 1, "b": 2})),
        ])
    };
    on_all(script, async |harness| {
        let server = calc()
            .tool("fail", "Fails", |_: NoArguments| async { Ok("x".parse::<i64>()?) })
            .tool("panic", "Panics", |_: NoArguments| async {
                if true {
                    panic_silently();
                }
                Ok(0)
            })
            .tool("strange", "Cannot be written", |_: NoArguments| async {
                Ok(std::collections::HashMap::from([((1, 2), 3)]))
            });
        let warnings = Notes::new();
        let noted = warnings.clone();
        let options = with_server(&harness, server).on_warning(move |it| noted.add(it.clone()));
        let outcome = one_turn(options).await;
        assert_eq!(outcome.text, "Done.");
        let texts = texts(&harness);
        assert_eq!(texts.len(), 6);
        for (text, expected) in texts.iter().zip([
            "invalid digit found in string",
            "the host's callback failed: the callback panicked",
            "`b`: invalid type: string",
            "missing field `b`",
            "cannot be encoded as JSON",
            "3",
        ]) {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let errors: Vec<bool> =
            results(&harness).iter().map(|result| result["is_error"] == true).collect();
        assert_eq!(errors, [true, true, true, true, true, false]);
        let warnings = warnings.all();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].code(), WarningCode::CallbackFailed);
        let text = warnings[0].to_string();
        for part in ["tool `panic` of the MCP server `calc`", "answered with an error"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    });
}

#[test]
fn images_and_structured_content_reach_the_model() {
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let script = || {
        call_script(&[("mcp__calc__draw", json!({})), ("mcp__calc__sum", json!({"a": 4, "b": 5}))])
    };
    on_all(script, async |harness| {
        let sum =
            Tool::new("sum", "Adds", |pair: Pair| async move { Ok(Sum { sum: pair.a + pair.b }) });
        let server =
            calc().add(sum.returns::<Sum>()).tool("draw", "Draws", |_: NoArguments| async {
                Ok(ToolResult::new().text("A pixel:").image("image/png", PIXEL))
            });
        one_turn(with_server(&harness, server)).await;
        let results = results(&harness);
        assert!(results[0].to_string().contains("image/png"), "{}", results[0]);
        assert!(results[0].to_string().contains("A pixel:"), "{}", results[0]);
        assert!(texts(&harness)[1].contains(r#"{"sum":9}"#), "{}", results[1]);
    });
}

/// Records that it was dropped.
pub(crate) struct Dropped(pub(crate) Notes<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add("dropped");
    }
}

#[test]
fn interrupt_drops_the_call_and_fires_its_token() {
    let script = || call_script(&[("mcp__calc__wait", json!({}))]);
    on_all(script, async |harness| {
        let notes = Notes::new();
        let noted = notes.clone();
        let server = calc().tool("wait", "Waits", move |_: NoArguments, ctx: ToolContext| {
            let notes = noted.clone();
            async move {
                let dropped = Dropped(notes.clone());
                notes.add("called");
                drop(tokio::spawn(async move {
                    ctx.cancel.cancelled().await;
                    notes.add("fired");
                }));
                std::future::pending::<()>().await;
                drop(dropped);
                Ok(())
            }
        });
        let (options, noted) = record_warnings(with_server(&harness, server));
        let session = start(options).await;
        let turn = session.send("wait").await.unwrap();
        until("the tool is called", || notes.len() > 0).await;
        in_time(session.interrupt()).await.unwrap();
        // The CLI may end the turn with an error result or drop the message.
        drop(in_time(turn.finish()).await);
        until("both calls are recorded", || notes.len() == 3).await;
        assert!(notes.all().contains(&"fired") && notes.all().contains(&"dropped"));
        // A cancelled call is not a failure.
        assert!(noted.lock().unwrap().is_empty());
        session.stop().await.unwrap();
    });
}

#[test]
fn cli_requests_and_accepts_progress() {
    let script = || call_script(&[("mcp__calc__count", json!({}))]);
    on_all(script, async |harness| {
        let taken = Notes::new();
        let notes = taken.clone();
        let server = RawServer::new(move |message: Json, ctx| {
            let notes = notes.clone();
            async move {
                let message: Value = message.deserialize()?;
                let result = match message["method"].as_str().unwrap_or_default() {
                    "initialize" => json!({
                        "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "calc", "version": "1"},
                    }),
                    "tools/list" => {
                        json!({"tools": [{"name": "count", "inputSchema": {"type": "object"}}]})
                    }
                    "tools/call" => {
                        let token = &message["params"]["_meta"]["progressToken"];
                        let params = json!({"progressToken": token, "progress": 1, "total": 2});
                        // Completes when the CLI has acknowledged the notification.
                        ctx.client.notify("notifications/progress", Json::from(params)).await?;
                        notes.add(token.clone());
                        json!({"content": [{"type": "text", "text": "counted"}]})
                    }
                    _ => json!({}),
                };
                Ok(json!({"result": result}).into())
            }
        });
        one_turn(harness.options().mcp("calc", server).allowed_tools(["mcp__calc"])).await;
        assert_eq!(texts(&harness), ["counted"]);
        let tokens = taken.all();
        assert!(matches!(&*tokens, [Value::Number(_) | Value::String(_)]), "{tokens:?}");
    });
}

#[test]
fn progress_is_sent_and_the_context_identifies_the_call() {
    let script = || call_script(&[("mcp__calc__count", json!({}))]);
    on_all(script, async |harness| {
        let called = Notes::new();
        let notes = called.clone();
        let count = move |_: NoArguments, ctx: ToolContext| {
            let notes = notes.clone();
            async move {
                for step in 1..=3 {
                    let progress =
                        ToolProgress::new(f64::from(step)).total(3.0).message("counting");
                    ctx.progress(progress).await?;
                }
                ctx.client.log("info", "counted").await?;
                let pong = ctx.client.request("ping", None).await?;
                // Without a token nothing is sent; the context shows that there was one.
                let has_token = format!("{ctx:?}").contains("progress_token: Some");
                notes.add((ctx.tool_use_id, ctx.session_id, pong.to_string(), has_token));
                Ok(3)
            }
        };
        let server = calc().tool("count", "Counts", count);
        one_turn(with_server(&harness, server)).await;
        assert_eq!(texts(&harness), ["3"]);
        let (tool_use_id, session_id, pong, has_token) = called.all().remove(0);
        assert!(has_token, "the CLI did not request progress");
        assert!(tool_use_id.is_some() && session_id.is_some());
        assert!(pong.contains(r#""result":{}"#), "{pong}");
    });
}

#[test]
fn call_that_exceeds_its_timeout_gets_an_error_response() {
    let script = || call_script(&[("mcp__calc__wait", json!({}))]);
    on_all(script, async |harness| {
        let server = calc().timeout(Duration::from_millis(50)).tool(
            "wait",
            "Waits",
            |_: NoArguments| async {
                std::future::pending::<()>().await;
                Ok(())
            },
        );
        let session = start(with_server(&harness, server)).await;
        assert_eq!(turn(&session, "wait").await.text, "Done.");
        assert!(texts(&harness)[0].contains("timed out after 50ms"), "{:?}", texts(&harness));
        session.stop().await.unwrap();
    });
}
