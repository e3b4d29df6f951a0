//! The list of tools: the defaults, `--tools`, permission rules, schemas and MCP servers.

use super::engine::Engine;
use super::permission_rule::PermissionRule;
use super::state::SessionState;

/// The tools that are available by default.
const DEFAULT: [&str; 22] = [
    "Task",
    "Bash",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterWorktree",
    "ExitWorktree",
    "ListAgents",
    "Monitor",
    "NotebookEdit",
    "Read",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "TaskStop",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

/// Tools that require a host that handles permission requests.
const ASKING: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// The tools that replace the shell if it is denied.
const SEARCH: [&str; 2] = ["Glob", "Grep"];

/// Tools that are available only on request. A rule that allows one tool of a group enables the
/// whole group.
const ON_REQUEST: [&[&str]; 2] = [&SEARCH, &["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"]];

/// The value of `--tools` that selects the default tools.
const DEFAULT_LIST: &str = "default";

/// Returns the current name of a tool.
fn current_name(name: &str) -> &str {
    match name {
        "Agent" => "Task",
        "KillShell" => "TaskStop",
        name => name,
    }
}

/// Returns the name under which a listed tool is offered to the model.
pub(super) fn name_for_model(listed: &str) -> &str {
    if listed == "Task" { "Agent" } else { listed }
}

fn is_denied(rules: &[PermissionRule], name: &str) -> bool {
    rules.iter().any(|rule| {
        rule.covers_all(name) || rule.content.is_none() && current_name(&rule.tool) == name
    })
}

impl Engine {
    /// Returns whether the model has this tool.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        let state = self.state();
        self.tool_names(&state).iter().any(|known| known == current_name(name))
    }

    /// Returns the names of the tools, in order.
    pub(super) fn tool_names(&self, state: &SessionState) -> Vec<String> {
        let mut names: Vec<String> =
            self.built_in_tools(state).into_iter().map(str::to_owned).collect();
        if state.servers.iter().any(|server| server.is_sdk() && server.has_resources()) {
            names.extend(["ListMcpResourcesTool", "ReadMcpResourceTool"].map(str::to_owned));
        }
        for server in &state.servers {
            let mut tools = server.tool_names();
            tools.sort();
            names.extend(tools);
        }
        names.retain(|name| name == STRUCTURED_OUTPUT || !is_denied(&state.deny, name));
        names
    }

    /// Returns the built-in tools, before deny rules are applied.
    fn built_in_tools(&self, state: &SessionState) -> Vec<&'static str> {
        let asking: &[&str] = if self.launch.ask_host { &ASKING } else { &[] };
        let listed = self.launch.tools.as_deref().filter(|tools| *tools != [DEFAULT_LIST]);
        let mut names: Vec<&str> = match listed {
            Some(tools) => {
                let known = DEFAULT.iter().chain(asking).chain(ON_REQUEST.into_iter().flatten());
                let is_listed =
                    |name: &&&str| tools.iter().any(|tool| current_name(tool) == **name);
                known.filter(is_listed).copied().collect()
            }
            None => self.default_tools(state, asking),
        };
        // This tool is not subject to `--tools` or to rules.
        if self.launch.json_schema.is_some() || state.wants_schema {
            names.push(STRUCTURED_OUTPUT);
        }
        names.sort_by_key(|name| (*name != "Task", *name));
        names
    }

    fn default_tools(&self, state: &SessionState, asking: &[&'static str]) -> Vec<&'static str> {
        let mut names = [&DEFAULT, asking].concat();
        let has_no_shell = is_denied(&state.deny, "Bash");
        if has_no_shell {
            names.retain(|name| *name != "Monitor");
        }
        for group in ON_REQUEST {
            let is_allowed =
                self.launch.allowed.iter().any(|rule| group.contains(&rule.tool.as_str()));
            if is_allowed || has_no_shell && group == SEARCH {
                names.extend(group);
            }
        }
        names
    }
}

const STRUCTURED_OUTPUT: &str = "StructuredOutput";
