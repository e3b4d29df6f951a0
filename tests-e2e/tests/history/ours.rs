//! The same calls with this SDK, in the form in which the TypeScript SDK returns them.

use std::time::SystemTime;

use claude_agent_kit::history::{
    ForkOptions, History, HistoryMessage, ListFilter, MessageFilter, MessageRole, MessageStream,
    SessionInfo,
};
use claude_agent_kit::{ErrorKind, Result};
use claude_wire::id::{AgentId, SessionId};
use serde_json::{Map, Value, json};

use crate::jobs::Job;

/// Runs a call; the result is in the member `ok` or `error`. `earlier` are the results of the jobs
/// before this one.
pub(crate) async fn answer(job: &Job, earlier: &[Value]) -> Value {
    let mut job = job.clone();
    if let Some(again) = job.again {
        let created = earlier[earlier.len() - again]["ok"].as_str();
        job.session = created.unwrap_or("none").to_owned();
    }
    let job = &job;
    match call(job).await {
        Ok(value) => json!({"ok": value}),
        // The official SDKs return nothing for a session that does not exist.
        Err(error) if error.kind() == ErrorKind::ConversationNotFound && is_read(job) => {
            json!({"ok": []})
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn is_read(job: &Job) -> bool {
    !matches!(job.call, "rename" | "tag" | "fork" | "archive" | "unarchive" | "delete")
}

async fn call(job: &Job) -> Result<Value> {
    let mut history = History::at(&job.config);
    if let Some(directory) = &job.directory {
        history = history.for_directory(directory);
    }
    let id = SessionId::from(job.session.as_str());
    Ok(match job.call {
        "list" => {
            let page = history.list(filter(job)).await?;
            assert!(page.skipped.is_empty(), "{:?}", page.skipped);
            page.sessions.iter().map(info).collect()
        }
        "info" => history.info(&id).await?.as_ref().map_or(Value::Null, info),
        "messages" => {
            let filter = MessageFilter::default().include_system(job.system == Some(true));
            messages(history.messages(&id, filter).await?, job).await?
        }
        "subagents" => {
            let found = history.subagents(&id).await?;
            let mut ids: Vec<String> = found.iter().map(|info| info.agent_id.to_string()).collect();
            ids.sort();
            json!(ids)
        }
        "subagent_messages" => {
            let agent = AgentId::from(job.agent.as_deref().unwrap_or_default());
            messages(history.subagent_messages(&id, &agent).await?, job).await?
        }
        "rename" => {
            history.rename(&id, job.text.clone().unwrap_or_default()).await?;
            Value::Null
        }
        "tag" => {
            history.tag(&id, job.text.as_deref()).await?;
            Value::Null
        }
        "fork" => {
            let mut options = ForkOptions::new();
            if let Some(up_to) = &job.up_to {
                options = options.up_to(up_to);
            }
            if let Some(title) = &job.text {
                options = options.title(title);
            }
            json!(history.fork(&id, options).await?.as_str())
        }
        "archive" => {
            history.archive(&id).await?;
            Value::Null
        }
        "unarchive" => {
            history.unarchive(&id).await?;
            Value::Null
        }
        "delete" => {
            history.delete(&id).await?;
            Value::Null
        }
        other => panic!("unknown call {other}"),
    })
}

fn filter(job: &Job) -> ListFilter {
    let mut filter = ListFilter::new()
        .offset(job.offset.unwrap_or_default())
        .include_worktrees(job.worktrees != Some(false))
        .include_programmatic(job.programmatic != Some(false));
    if let Some(limit) = job.limit.filter(|limit| *limit > 0) {
        filter = filter.limit(limit);
    }
    filter
}

fn info(info: &SessionInfo) -> Value {
    let millis = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::try_from(since.as_millis()).unwrap()
    };
    json!({
        "sessionId": info.session_id.as_str(),
        "summary": info.summary,
        "lastModified": millis(info.last_modified),
        "fileSize": info.file_size,
        "customTitle": info.custom_title,
        "firstPrompt": info.first_prompt,
        "gitBranch": info.git_branch,
        "cwd": info.cwd,
        "tag": info.tag,
        "createdAt": info.created_at.map(millis),
        "archived": info.archived,
    })
}

async fn messages(stream: MessageStream, job: &Job) -> Result<Value> {
    let mut stream = stream.with_raw().skip(job.offset.unwrap_or_default());
    if let Some(limit) = job.limit.filter(|limit| *limit > 0) {
        stream = stream.take(limit);
    }
    let mut found = Vec::new();
    while let Some(next) = stream.next().await {
        found.push(message(&next?));
    }
    Ok(json!(found))
}

fn message(message: &HistoryMessage) -> Value {
    let raw: Value = serde_json::from_slice(message.entry.raw().unwrap()).unwrap();
    let mut shown = Map::new();
    let kind = match message.role {
        MessageRole::Assistant => "assistant",
        MessageRole::System => "system",
        _ => "user",
    };
    shown.insert("type".to_owned(), json!(kind));
    shown.insert("uuid".to_owned(), json!(message.uuid()));
    shown.insert("session_id".to_owned(), json!(message.entry.session_id()));
    shown.insert("timestamp".to_owned(), json!(message.entry.timestamp()));
    shown.insert("parent_tool_use_id".to_owned(), json!(message.parent_tool_use_id));
    shown.insert("parent_agent_id".to_owned(), json!(message.parent_agent_id));
    if message.role == MessageRole::QueuedPrompt {
        let content = json!({"role": "user", "content": raw["attachment"]["prompt"]});
        shown.insert("message".to_owned(), content);
        shown.insert("isQueuedCommand".to_owned(), json!(true));
    } else if message.role != MessageRole::System {
        shown.insert("message".to_owned(), raw["message"].clone());
    }
    if message.is_local_command {
        shown.insert("isCompletedLocalCommand".to_owned(), json!(true));
    }
    Value::Object(shown)
}
