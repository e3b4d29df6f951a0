//! The subagents of a session.

use std::path::PathBuf;

use claude_wire::transcript::MessageFilter;
use serde_json::Value;

use super::stream::{MessageStream, Parents};
use super::{History, Transcript, errors, transcript};
use crate::error::Result;
use crate::id::{AgentId, SessionId, ToolUseId};
use crate::session_files::members::{SessionFiles, agent_of};
use crate::session_files::open;

/// A subagent of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentInfo {
    /// The ID of the subagent.
    pub agent_id: AgentId,
    /// The type of the subagent, such as `general-purpose`.
    pub agent_type: Option<String>,
    /// What the subagent was started for.
    pub description: Option<String>,
    /// The tool call that started the subagent.
    pub tool_use_id: Option<ToolUseId>,
    /// The subagent that started this one, if it was not the main agent.
    pub parent_agent_id: Option<AgentId>,
    /// The transcript; `None` in a store.
    pub path: Option<PathBuf>,
}

impl History {
    /// Lists the subagents of a session, sorted by path.
    ///
    /// # Errors
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when a folder cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn subagents(&self, session_id: &SessionId) -> Result<Vec<SubagentInfo>> {
        if let Some(stored) = self.stored() {
            return self.stored_subagents(stored, session_id).await;
        }
        let id = session_id.clone();
        self.run(move |projects, _| list(&projects.require(&id)?)).await
    }

    /// Opens the transcript of a subagent and indexes its entries. Use it to read more than the
    /// messages: raw entries, issues, branches.
    ///
    /// # Errors
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the transcript cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe. The thread that reads the file stops within 256 KiB.
    pub async fn open_subagent(
        &self,
        session_id: &SessionId,
        agent_id: &AgentId,
    ) -> Result<Transcript> {
        if let Some(stored) = self.stored() {
            return self.open_stored(stored, session_id, Some(agent_id)).await;
        }
        let (id, agent) = (session_id.clone(), agent_id.clone());
        let read = self.run(move |projects, cancel| {
            let found = list(&projects.require(&id)?)?;
            let found = found.into_iter().find(|info| info.agent_id == agent);
            let Some((info, path)) = found.and_then(|info| Some((info.clone(), info.path?))) else {
                return Err(errors::subagent_not_found(&id, agent.as_str()));
            };
            let (source, index) = transcript::read(&SessionFiles { id, path }, cancel)?;
            Ok((source, index, Parents { tool_use: info.tool_use_id, agent: info.parent_agent_id }))
        });
        let (source, index, parents) = read.await?;
        Ok(Transcript::new(self, session_id, source, index, Some(parents)))
    }

    /// Streams the messages of a subagent, the oldest first.
    ///
    /// # Errors
    /// As [`open_subagent`](Self::open_subagent).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn subagent_messages(
        &self,
        session_id: &SessionId,
        agent_id: &AgentId,
    ) -> Result<MessageStream> {
        let transcript = self.open_subagent(session_id, agent_id).await?;
        transcript.messages(MessageFilter::default()).await
    }
}

fn list(located: &SessionFiles) -> Result<Vec<SubagentInfo>> {
    let subagents = located.subagents();
    let subagents = subagents.map_err(|error| errors::io("list", &located.folder(), error))?;
    let mut found = Vec::new();
    for files in subagents.files {
        if let Some(agent) = agent_of(&files.subpath).filter(|_| files.has_transcript) {
            let metadata = open::read_json(&files.metadata_path()).unwrap_or_default();
            found.push(info(agent, &metadata, Some(files.path)));
        }
    }
    Ok(found)
}

/// Returns what the metadata of a subagent says.
pub(super) fn info(agent: &str, metadata: &Value, path: Option<PathBuf>) -> SubagentInfo {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let is_id = |id: &&str, others: &str| {
        (1..=128).contains(&id.len())
            && id.chars().all(|it| it.is_ascii_alphanumeric() || others.contains(it))
    };
    SubagentInfo {
        agent_id: AgentId::from(agent),
        agent_type: text("agentType").map(str::to_owned),
        description: text("description").map(str::to_owned),
        tool_use_id: text("toolUseId").filter(|id| is_id(id, "_.:-")).map(ToolUseId::from),
        parent_agent_id: text("parentAgentId").filter(|id| is_id(id, "_-")).map(AgentId::from),
        path,
    }
}
