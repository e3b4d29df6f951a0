//! Every option on the real CLI: the run succeeds, and the option has an effect on the messages or
//! on the requests to the API.

mod conversation;
mod extensions;
mod model;
mod settings;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use claude_agent_kit::{Collected, Options};
use claude_agent_testkit::mock_api::{ApiRequest, Script};
use serde_json::Value;
use tests_e2e::harness::Harness;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::{ask, codes, hello, in_time, real};

/// How many CLIs run at the same time.
const MAX_CONCURRENT: usize = 3;

/// An option, and the check of its effect.
struct Row {
    name: &'static str,
    script: fn() -> Script,
    prompt: &'static str,
    options: fn(&Harness, Options) -> Options,
    check: fn(&RunOutput),
}

impl Row {
    /// Returns a row in which the model says hello.
    fn new(
        name: &'static str,
        options: fn(&Harness, Options) -> Options,
        check: fn(&RunOutput),
    ) -> Self {
        Self { name, script: hello, prompt: "hello", options, check }
    }

    /// Repermits the script of the model.
    fn script(self, script: fn() -> Script) -> Self {
        Self { script, ..self }
    }

    /// Repermits the prompt.
    fn prompt(self, prompt: &'static str) -> Self {
        Self { prompt, ..self }
    }

    async fn run(self) {
        let harness = Harness::real((self.script)(), real()).await.unwrap();
        let options = (self.options)(&harness, harness.options());
        let collected = in_time(ask(self.prompt, options)).await;
        (self.check)(&RunOutput { harness, collected });
    }
}

/// The output of a run.
struct RunOutput {
    harness: Harness,
    collected: Collected,
}

impl RunOutput {
    /// Asserts that the run succeeded.
    fn assert_success(&self) {
        assert!(self.collected.error.is_none(), "{:?}", self.collected.error);
        assert_eq!(codes(&self.collected), []);
        for message in self.collected.messages() {
            assert!(message.undecodable().is_none(), "{:?}", message.raw());
        }
        let result = self.collected.result().unwrap();
        assert!(!result.is_error(), "{result:?}");
    }

    /// Returns all messages as text.
    fn messages(&self) -> String {
        let lines = self.collected.messages().filter_map(|message| message.raw_str());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the `init` message.
    fn init(&self) -> Value {
        let lines = self.collected.messages().filter_map(|message| message.raw_str());
        let mut values = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        values.find(|value| value["subtype"] == "init").unwrap()
    }

    /// Returns the first request of the main conversation.
    fn request(&self) -> ApiRequest {
        let requests = self.harness.api().requests();
        requests.into_iter().find(ApiRequest::stream).unwrap()
    }

    /// Returns the body of that request as text.
    fn body(&self) -> String {
        self.request().body.to_string()
    }
}

/// Returns whether a list of names, or of objects with names, contains this one.
fn contains_name(list: &Value, name: &str) -> bool {
    let entries = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    entries.iter().any(|entry| entry == name || entry["name"] == name)
}

/// Writes a file and creates its parent directories.
fn write(directory: &Path, file: &str, text: &str) {
    let path = directory.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs all rows, some at the same time, and reports every row that fails.
fn run_rows(rows: impl IntoIterator<Item = Row>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let failed = runtime.block_on(async {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
        let mut names = std::collections::HashMap::new();
        let mut tasks = JoinSet::new();
        for row in rows {
            let (name, permits) = (row.name, permits.clone());
            let task = tasks.spawn(async move {
                let _permit = permits.acquire_owned().await.unwrap();
                row.run().await;
            });
            names.insert(task.id(), name);
        }
        let mut failed = Vec::new();
        while let Some(ended) = tasks.join_next_with_id().await {
            if let Err(error) = ended {
                failed.push(names[&error.id()]);
            }
        }
        failed
    });
    assert_eq!(failed, Vec::<&str>::new(), "each failure is printed above");
}
