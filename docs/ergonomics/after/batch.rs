//! Reviews files, eight at a time, with a typed answer, a retry and a cost report.

use std::time::Duration;

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{Options, Result, Typed, query_as};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// One sentence.
    summary: String,
    is_risky: bool,
}

async fn review(file: &str, options: &Options) -> Result<Typed<Review>> {
    let mut delay = Duration::from_secs(1);
    loop {
        match query_as(format!("Review {file}."), options).await {
            Err(error) if error.is_retryable() && delay < Duration::from_secs(8) => {
                tokio::time::sleep(error.retry_after().unwrap_or(delay)).await;
                delay *= 2;
            }
            outcome => return outcome,
        }
    }
}

#[tokio::main]
async fn main() {
    let options = Options::new().allowed_tools(["Read", "Grep"]);
    let reviews = stream::iter(std::env::args().skip(1))
        .map(|file| async { (review(&file, &options).await, file) })
        .buffer_unordered(8);
    let mut reviews = std::pin::pin!(reviews);
    let mut cost = claude_agent_kit::Cost::default();
    while let Some((review, file)) = reviews.next().await {
        match review {
            Ok(review) => {
                cost += review.cost;
                println!("{file}: {} (risky: {})", review.value.summary, review.value.is_risky);
            }
            Err(error) => println!("{file}: FAILED {error}"),
        }
    }
    println!("{cost}");
}
