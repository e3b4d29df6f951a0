//! A typed answer: the JSON schema is derived from the type, and the CLI makes the model follow it.

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{ErrorKind, json, query_as};
use serde::Deserialize;

/// A plan. The model reads these comments.
#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// What it is for, in a few words.
    goal: String,
    /// What to do, in order.
    steps: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
struct Step {
    what: String,
    minutes: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let options = demo_options(script()).cwd(folder);
    match query_as::<Plan>("Plan the release.", options).await {
        Ok(plan) => {
            println!("goal: {} ({})", plan.value.goal, plan.cost);
            for step in &plan.value.steps {
                println!("- {} ({} min)", step.what, step.minutes);
            }
        }
        Err(error) if error.kind() == ErrorKind::StructuredOutputMismatch => {
            println!("it does not fit: {:?}", error.value());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn script() -> Script {
    let steps =
        json!([{"what": "Write the notes", "minutes": 20}, {"what": "Tag it", "minutes": 5}]);
    let plan = json!({"goal": "Version 2", "steps": steps});
    Script::new().when("Plan", [Reply::tool("StructuredOutput", plan), Reply::text("Planned.")])
}
