//! This SDK on stored conversations.

use claude_agent_kit::SessionId;
use claude_agent_kit::history::{ForkOptions, History, ListFilter, MessageFilter};
use claude_benches::Outcome;
use claude_benches::history::{HistoryTask, Operation, run_history_subject};

fn main() {
    // Before the measurement, as the interpreters of the other subjects.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    run_history_subject(|task| match &runtime {
        Ok(runtime) => runtime.block_on(perform(task)),
        Err(error) => Err(error.to_string().into()),
    });
}

async fn perform(task: &HistoryTask) -> Outcome<usize> {
    let history = History::at(&task.config).for_directory(&task.directory);
    let session = SessionId::from(task.session.as_str());
    let filter = ListFilter::new().include_worktrees(false);
    match task.operation {
        Operation::List => Ok(history.list(filter).await?.sessions.len()),
        Operation::Page => Ok(history.list(filter.limit(50)).await?.sessions.len()),
        Operation::Info => Ok(usize::from(history.info(&session).await?.is_some())),
        Operation::Read => read(&history, &session).await,
        Operation::Last => {
            let messages = history.last_messages(&session, 10, MessageFilter::default());
            Ok(messages.await?.len())
        }
        Operation::Fork => {
            history.fork(&session, ForkOptions::default()).await?;
            Ok(1)
        }
    }
}

async fn read(history: &History, session: &SessionId) -> Outcome<usize> {
    let mut messages = history.messages(session, MessageFilter::default()).await?;
    let mut count = 0;
    while let Some(message) = messages.next().await {
        message?;
        count += 1;
    }
    Ok(count)
}
