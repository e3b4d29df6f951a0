//! Reviews files, eight at a time, with a typed answer, a retry and a cost report.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::wire::Number;
use claude_agent_kit::wire::message::{ResultMessage, SystemMessage};
use claude_agent_kit::{Body, Collected, Error, ErrorKind, Options, query};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// One sentence.
    summary: String,
    is_risky: bool,
}

struct Report {
    review: Result<Review, String>,
    dollars: f64,
    tokens: u64,
    session: Option<String>,
}

enum Verdict {
    Done(Review),
    Again(String, Option<Duration>),
    Failed(String),
}

/// An error before or instead of a result.
fn of_error(error: &Error) -> Verdict {
    match error.kind() {
        ErrorKind::ProcessFailed
        | ErrorKind::SpawnFailed
        | ErrorKind::InitializeTimeout
        | ErrorKind::ExitedDuringInit
        | ErrorKind::IdleTimeout => Verdict::Again(error.to_string(), None),
        _ => Verdict::Failed(error.to_string()),
    }
}

/// The reason of an error result stands in one of several places.
fn reason(result: &ResultMessage) -> String {
    if !result.errors.is_empty() {
        return result.errors.join("; ");
    }
    match (&result.result, &result.subtype) {
        (Some(text), _) => text.clone(),
        (None, Some(subtype)) => format!("{subtype:?}"),
        (None, None) => "no reason given".to_owned(),
    }
}

fn delay(answer: &Collected) -> Option<Duration> {
    answer
        .messages()
        .filter_map(|message| match &message.body {
            Body::System(SystemMessage::ApiRetry(retry)) => {
                let milliseconds = retry.retry_delay_ms.as_ref().map(Number::as_f64)?;
                Some(Duration::from_millis(milliseconds as u64))
            }
            _ => None,
        })
        .last()
}

fn judge(answer: &Collected) -> Verdict {
    if let Some(error) = &answer.error {
        return of_error(error);
    }
    let Some(result) = answer.result() else {
        return Verdict::Again("the CLI ended without a result".to_owned(), None);
    };
    if result.is_error() {
        let reason = reason(result);
        let status = result.api_error_status.as_ref().map(|status| status.as_f64() as u16);
        return match status {
            Some(429 | 500..=599) => Verdict::Again(reason, delay(answer)),
            _ => Verdict::Failed(reason),
        };
    }
    match &result.structured_output {
        Some(value) => match value.parse::<Review>() {
            Ok(review) => Verdict::Done(review),
            Err(error) => Verdict::Again(error.to_string(), None),
        },
        None => Verdict::Again("the answer has no structured output".to_owned(), None),
    }
}

async fn review(file: &str, options: &Options) -> Report {
    let mut report = Report { review: Err(String::new()), dollars: 0.0, tokens: 0, session: None };
    let prompt = format!("Review {file}.");
    for attempt in 1..=4 {
        let verdict = match query(prompt.as_str(), options).await {
            Ok(stream) => {
                let answer = stream.collect().await;
                report.dollars += answer.cost.usd;
                report.tokens += answer.cost.tokens.total();
                let result = answer.result();
                report.session =
                    result.and_then(|result| result.session_id.as_ref()).map(ToString::to_string);
                judge(&answer)
            }
            Err(error) => of_error(&error),
        };
        match verdict {
            Verdict::Done(review) => {
                report.review = Ok(review);
                return report;
            }
            Verdict::Failed(reason) => {
                report.review = Err(reason);
                return report;
            }
            Verdict::Again(reason, delay) => {
                report.review = Err(reason);
                sleep(delay.unwrap_or(Duration::from_secs(attempt))).await;
            }
        }
    }
    report
}

#[tokio::main]
async fn main() {
    let options = Options::new().allowed_tools(["Read", "Grep"]).answer_as::<Review>();
    let places = Arc::new(Semaphore::new(8));
    let mut reviews = JoinSet::new();
    for file in std::env::args().skip(1) {
        let (places, options) = (places.clone(), options.clone());
        reviews.spawn(async move {
            let _place = places.acquire_owned().await;
            let report = review(&file, &options).await;
            (file, report)
        });
    }
    let (mut dollars, mut tokens) = (0.0, 0);
    while let Some(Ok((file, report))) = reviews.join_next().await {
        dollars += report.dollars;
        tokens += report.tokens;
        let session = report.session.unwrap_or_default();
        match report.review {
            Ok(review) => {
                println!("{file}: {} (risky: {}) {session}", review.summary, review.is_risky)
            }
            Err(reason) => println!("{file}: FAILED {reason} {session}"),
        }
    }
    println!("${dollars:.4}, {tokens} tokens");
}
