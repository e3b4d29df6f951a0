//! The floor: a minimal client with `std` and one thread. It parses messages as `serde_json::Value`, sends fixed
//! responses, and has no types and no checks.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use claude_benches::{
    Outcome, Task, Unsupported, Work, all_of, median, now, run_subject, seconds_since,
};
use serde_json::Value;

fn main() {
    run_subject(|task| match task.work {
        Work::Flood | Work::Deltas | Work::Line => read_messages(task),
        Work::Hook | Work::Permission | Work::Tool => answer_questions(task),
        Work::First => first(task),
        Work::Sessions => sessions(task),
        Work::Idle => Err(Unsupported("it has no sessions").into()),
    });
}

/// A CLI that has received `initialize` and a prompt.
struct RawCli {
    child: Child,
    input: ChildStdin,
    lines: io::Lines<BufReader<ChildStdout>>,
}

impl RawCli {
    fn start(task: &Task) -> Outcome<Self> {
        let mut child = Command::new(&task.cli)
            .args(["--input-format", "stream-json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        input.write_all(
            b"{\"type\":\"control_request\",\"request_id\":\"i\",\"request\":{\"subtype\":\"initialize\"}}\n\
              {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n",
        )?;
        Ok(Self { child, input, lines: BufReader::new(output).lines() })
    }

    fn next(&mut self) -> Outcome<String> {
        Ok(self.lines.next().ok_or("the CLI has exited")??)
    }

    fn end(mut self) -> Outcome<()> {
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }
}

fn read_messages(task: &Task) -> Outcome<f64> {
    let mut cli = RawCli::start(task)?;
    cli.next()?;
    cli.next()?;
    let (mut count, mut arrived) = (0, 0);
    let reported = loop {
        let value: Value = serde_json::from_str(&cli.next()?)?;
        if value["type"] == "result" {
            break value;
        }
        count += 1;
        if task.work == Work::Line {
            arrived = now();
        }
    };
    if task.work == Work::Line {
        all_of(1, count)?;
    } else {
        arrived = now();
        all_of(task.count, count)?;
    }
    cli.end()?;
    seconds_since(reported["result"].as_str().unwrap_or_default(), arrived)
}

fn answer_questions(task: &Task) -> Outcome<f64> {
    let answer = match task.work {
        Work::Hook => "{}",
        Work::Permission => r#"{"behavior":"allow","updatedInput":{}}"#,
        _ => {
            r#"{"mcp_response":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"5"}]}}}"#
        }
    };
    let mut cli = RawCli::start(task)?;
    loop {
        let line = cli.next()?;
        if let Some(id) = id_of(&line).filter(|_| line.contains("\"control_request\"")) {
            let answer = format!(
                "{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":\"{id}\",\"response\":{answer}}}}}\n"
            );
            cli.input.write_all(answer.as_bytes())?;
        } else if let Some((_, rest)) = line.split_once("\"result\":\"") {
            cli.end()?;
            return Ok(rest.split('"').next().unwrap_or_default().parse()?);
        }
    }
}

fn id_of(line: &str) -> Option<&str> {
    line.split_once("\"request_id\":\"")?.1.split('"').next()
}

fn first(task: &Task) -> Outcome<f64> {
    let mut starts = Vec::new();
    for _ in 0..task.count {
        let began = Instant::now();
        let mut cli = RawCli::start(task)?;
        cli.next()?;
        let first: Value = serde_json::from_str(&cli.next()?)?;
        starts.push(began.elapsed().as_secs_f64());
        drop(first);
        cli.end()?;
    }
    median(starts)
}

fn sessions(task: &Task) -> Outcome<f64> {
    let began = Instant::now();
    let mut all = Vec::new();
    for _ in 0..task.count {
        all.push(RawCli::start(task)?);
    }
    for cli in &mut all {
        loop {
            let line = cli.next()?;
            let value: Value = serde_json::from_str(&line)?;
            if value["type"] == "result" {
                break;
            }
        }
    }
    let time = began.elapsed().as_secs_f64();
    all.into_iter().try_for_each(RawCli::end)?;
    Ok(time)
}
