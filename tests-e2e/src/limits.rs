//! Checks the limits chapter of the guide against the code.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::workspace::{root, sources};

const GUIDE: &str = "crates/claude-agent-kit/src/guide/limits.md";

/// The limits in the code: for each file, the declarations and their rows in the guide.
const LIMITS: &str = "
claude-agent-kit/src/cli/check.rs
    TIMEOUT: asking the CLI for its version
    SHARED_MARGIN: waiting for another start that asks the same CLI for its version
claude-agent-kit/src/options/user.rs
    TIMEOUT: looking up a user name, for its user ID and for its group ID
claude-agent-kit/src/transport/output.rs
    exit: a program that was run for its version or an ID, after its output was read
    terminate: the same program after SIGTERM
    BUSY_TRIES: a program to run for its version that is being written
    BUSY_PAUSE: a program to run for its version that is being written
    MAX_BYTES: output of a program that is run for its version or an ID
claude-agent-kit/src/permission/inbox.rs
    CAPACITY: permission requests pending in a `PermissionInbox`
    REMEMBERED: closed requests that a `PermissionInbox` remembers
    REMEMBERED_BYTES: the ID of such a request
claude-agent-kit/src/process/starter.rs
    STUCK_AFTER: a start that hangs while others wait
    MAX_THREADS: threads that start CLIs
claude-agent-kit/src/process/reaper.rs
    POLL_INTERVAL: noticing an exit that the system does not report
claude-agent-core/src/session/limits.rs
    initialize: the handshake
    waiting_operations: operations that wait for the handshake
    pending_operations: operations in flight, the handshake included
    running_callbacks: hooks and permission callbacks that run
    waiting_callbacks: hooks and permission callbacks that wait
    running_mcp: messages for servers of this process that are served
    waiting_mcp: messages for servers of this process that wait
    cancel_grace: a callback after its token fired
    unwritten_bytes: bytes that wait to be written to the CLI
    request_bytes: requests of the CLI whose callbacks wait or run
    unwritten_response_bytes: responses that wait to be written to the CLI
    stdin_stall: a CLI that leaves stdin unread while too many responses wait for it
    held_open_quiet: a stdout that another process holds open after the exit
    held_open_max: a stdout that another process holds open after the exit
    batch_entries: an append to the store
    batch_bytes: an append to the store
    queued_bytes: entries that wait for the store, and messages that wait with a result
    first_retry: a retry of an append to the store
    max_retry: a retry of an append to the store
    give_up: an append to the store with its retries
    probe: trying a store that failed again
    quiet: a transcript without new lines, until a store that was caught up counts as complete
    flush: the last entries after the exit of the CLI
    background_ceiling: background work after a result of a query
    idle_timeout: silence of a query
claude-agent-core/src/session/stop.rs
    SLOW_READER_FACTOR: responses that wait to be written to the CLI
claude-agent-core/src/session/shutdown.rs
    interrupt: a turn after it was interrupted by a stop, or the CLI until it is idle after a result
    exit: the exit after a stop or a query closed stdin, or after stdout ended
    terminate: the exit after SIGTERM
    MOST_AT_ONCE: the exit after SIGTERM if the session or its store was lost
claude-agent-core/src/session/orphans.rs
    EXIT_REASON_GRACE: learning how the CLI exited, for calls it can no longer respond to
claude-agent-kit/src/backlog/mod.rs
    soft: messages that wait for readers
    hard: the same while stdout has to be read
claude-agent-core/src/session/background.rs
    MAX_KNOWN_TASKS: background tasks of a query that are tracked individually
claude-agent-core/src/session/handshake.rs
    MAX_SEEN_REQUESTS: requests during the handshake that are recognised when the CLI repeats them
claude-agent-core/src/session/machine.rs
    MAX_MALFORMED_LINES: malformed lines in a row, in a query before its result
claude-agent-core/src/session/evidence.rs
    TAIL_BYTES: stdout before the handshake, kept for errors
    MALFORMED_LINE_BYTES: a line of stdout that is not a message, kept for errors
claude-agent-core/src/session/shorten.rs
    MAX_NAME_BYTES: a name that the CLI chose, in a warning, response or log
    MAX_REASON_BYTES: a reason in a warning or a response
claude-wire/src/frame.rs
    DEFAULT_MAX_LINE_BYTES: a line of the CLI
    KEPT_OF_OVERSIZED: what is kept of a longer line
claude-wire/src/envelope/scan.rs
    MAX_STRINGS: messages that one result may name
claude-wire/src/schema/reader.rs
    MAX_CONTENT: levels of content inside content
claude-agent-kit/src/session/operations/timeout.rs
    OPERATION_TIMEOUT: an operation, from its write
    OPERATION_TIMEOUT: `McpHandle::call`
    OPERATION_TIMEOUT: `Turn::interrupt`
    OPERATION_TIMEOUT: a message of a server in this process, until the CLI responds
    LONG_OPERATION_TIMEOUT: `McpHandle::reconnect`, `McpHandle::set_servers`, `ReloadPlugins`, `rewind_files`
    LONG_OPERATION_TIMEOUT: `McpHandle::call`
    SERVER_CONNECT_TIMEOUT: `McpHandle::call`
claude-agent-kit/src/session/interrupt.rs
    RETRY_INTERVAL: `Turn::interrupt`
claude-agent-kit/src/turn.rs
    AFTER_INTERRUPT: a turn after `Turn::finish_within` has interrupted it
claude-agent-kit/src/session/mcp.rs
    FIRST_TIMEOUT: `McpHandle::wait`, `McpHandle::wait_for`
    LATER_TIMEOUT: `McpHandle::wait`, `McpHandle::wait_for`
    FIRST_INTERVAL: pauses between these status requests
    MAX_INTERVAL: pauses between these status requests
claude-agent-kit/src/hook/event.rs
    DEFAULT_TIMEOUT: a hook
claude-agent-kit/src/callback/registry.rs
    permission_timeout: a permission callback, a handler of questions or dialogs
    MARGIN: hook timeout sent to the CLI
    MOST: hook timeout sent to the CLI
claude-agent-kit/src/driver/callback_tasks.rs
    BLOCKED: a callback that holds its thread
claude-agent-kit/src/driver/catch_up.rs
    QUIET: a transcript without new lines, until a store that was caught up counts as complete
claude-agent-kit/src/driver/mirror.rs
    FINISH_TIMEOUT: the last entries of a CLI that was killed, in a resumed conversation
claude-agent-kit/src/approval/policy.rs
    PARK_AFTER: a run that waits for an approval
claude-agent-kit/src/approval/gate.rs
    HOOK_MARGIN: the hook of the approval policy, beyond the wait for an approval
claude-agent-kit/src/approval/store_access.rs
    STORE_TIMEOUT: a request to an approval store, with retries
    RETRY_DELAY: a retry of a request to an approval store
    CONFLICT_DELAY: a retry of a change of an approval after another change
claude-agent-kit/src/approval/resumable.rs
    LIST_PAUSE: listing approvals again after a change, for conversations that can continue
claude-agent-kit/src/approval/records.rs
    DELETED_TOGETHER: records that one request deletes
claude-agent-kit/src/store/retention.rs
    CONCURRENCY: sessions that a `Retention` deletes at once
    MAX_FAILURES: failures of a `Retention`
claude-session-store/src/approval/record.rs
    DECISION_LIFETIME_DAYS: an unused decision about a request without an expiry
claude-session-store/src/record/store.rs
    POLL_INTERVAL: looking for a decision in a store without notifications
claude-session-store/src/record/memory.rs
    POLL_INTERVAL: looking again for a change in `MemoryStore`, which reports all of them
claude-session-store/src/record/write.rs
    MAX_CHANGES: changes of records that are written together
claude-agent-kit/src/store/upload.rs
    REQUEST_TIMEOUT: a single request to the store
claude-agent-kit/src/store/pages.rs
    MAX_BYTES: one session, or one list, that is read from a store
    MAX_PAGES: pages of one session, or of one list, that are read from a store
    MAX_TIME: reading all entries of one session from a store
claude-agent-kit/src/store/position.rs
    TAIL_ENTRIES: stored entries by which a local transcript is compared with the store
claude-agent-kit/src/store/restore.rs
    GIVE_UP: reading a conversation from the store to resume it, with retries
    FIRST_DELAY: a retry of reading a conversation from the store
    MAX_DELAY: a retry of reading a conversation from the store
claude-agent-kit/src/driver/stderr.rs
    QUIET: the rest of stderr after the end of a run
    MAX_WAIT: the rest of stderr after the end of a run
claude-agent-kit/src/driver/exit_watch.rs
    MAX_PIPE_BYTES: stdout read after the exit before the exit is reported
claude-agent-kit/src/diagnose/mod.rs
    TEXT_BYTES: a text with which the CLI refuses an operation, and the text of a warning
    QUOTED_CHARS: a text of the CLI that an error message quotes
claude-agent-kit/src/stderr.rs
    TAIL_BYTES: what is kept of stderr
    LINE_BYTES: a line of stderr for `on_stderr`
claude-agent-kit/src/feed.rs
    MOST_START_WARNINGS: warnings of the start that are kept for the first reader
claude-agent-kit/src/mcp/client.rs
    MAX_PENDING: requests of one such server in flight
claude-agent-kit/src/mcp/hosted/mod.rs
    MAX_UNREAD_MESSAGES: messages that an `rmcp` server has not read
claude-agent-kit/src/drift.rs
    MAX_REPORTS: unknown types and unknown fields that are reported in a run
    MAX_NAME_CHARS: an unknown type or field, and a request ID, in a report
claude-agent-kit/src/history/change.rs
    ATTEMPTS: attempts to write a change to a transcript that the CLI rewrites
claude-agent-kit/src/history/follow.rs
    DEFAULT_INTERVAL: looking at a transcript that is followed
    MIN_INTERVAL: looking at a transcript that is followed
    MAX_REMEMBERED: entries by which a followed transcript is recognized after it was rewritten
claude-agent-kit/src/history/list.rs
    MAX_THREADS: threads with which a list reads transcripts
claude-agent-kit/src/history/mod.rs
    CONCURRENCY_LIMIT: calls of a `History` and its clones that use files
claude-agent-kit/src/history/source.rs
    READ_BYTES: bytes that a stream of the history reads ahead
claude-agent-kit/src/session_files/members.rs
    MAX_DEPTH: levels of folders with subagents
claude-wire/src/transcript/index.rs
    DEFAULT_MAX_LINE_BYTES: a line of a transcript
claude-agent-kit/src/small_file.rs
    MAX_BYTES: a config file, and a settings file that has to be read
    MAX_BYTES: a file beside a transcript: title, archiving, subagent, note of a run, registry of CLIs
claude-agent-kit/src/options/layers/mod.rs
    MAX_REPORTED: problems of config files that an error lists
claude-agent-kit/src/options/layers/json.rs
    MAX_DEPTH: levels of a JSON config file
";

/// Rows about limits of the operating system, or that follow from another limit or from the list of hook events.
const OTHER_ROWS: &[&str] = &[
    "a hook for `UserPromptSubmit`, `MessageDisplay`",
    "an argument of the command line",
    "arguments and variables together",
    "messages of all such servers in flight",
];

/// Durations that are not limits: units of config files, values of the list of hook events, the time until an expiry, and
/// a stand-in for times that the clock cannot represent.
const OTHER_DURATIONS: [&str; 4] = ["(number)", "($seconds)", "(365 * 24 * 3600)", "(left)"];

/// Files that are built for tests only.
const TESTS: [&str; 6] =
    ["tests", "messages", "examples.rs", "fixture.rs", "every_event.rs", "conformance"];

/// A limit: the file, the name of the declaration and the row of the guide.
type Limit = (&'static str, &'static str, &'static str);

fn limits() -> Vec<Limit> {
    let mut file = "";
    let mut limits = Vec::new();
    for line in LIMITS.lines() {
        match line.trim_start().split_once(": ") {
            Some((name, row)) => limits.push((file, name, row)),
            None => file = line,
        }
    }
    limits
}

/// Returns where the guide and the code differ.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub fn mismatches() -> io::Result<Vec<String>> {
    let guide = fs::read_to_string(root().join(GUIDE))?;
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut rows: BTreeMap<&str, &str> = rows.filter(|(what, _)| *what != "what").collect();
    let limits = limits();
    let mut wrong = Vec::new();
    for (file, name, what) in &limits {
        let values = declared_values(&fs::read_to_string(root().join("crates").join(file))?, name);
        match rows.get(what) {
            None => wrong.push(format!("the guide has no row {what:?}")),
            Some(_) if values.is_empty() => wrong.push(format!("{file} does not declare {name}")),
            Some(row) if values.iter().any(|value| contains_value(row, value)) => {}
            Some(row) => {
                wrong.push(format!("{name} is one of {values:?}, but the guide has {row:?}"));
            }
        }
    }
    rows.retain(|what, _| {
        limits.iter().all(|limit| limit.2 != *what) && !OTHER_ROWS.contains(what)
    });
    wrong.extend(rows.keys().map(|what| format!("no limit in the code for the row {what:?}")));
    Ok(wrong)
}

/// Returns the durations in the code that the guide has no row for.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub fn undocumented_timeouts() -> io::Result<Vec<String>> {
    let limits = limits();
    let mut undocumented = Vec::new();
    for folder in [
        "crates/claude-wire/src",
        "crates/claude-session-store/src",
        "crates/claude-agent-core/src",
        "crates/claude-agent-kit/src",
    ] {
        for (path, code) in sources(folder)? {
            if TESTS.iter().any(|part| path.contains(part)) {
                continue;
            }
            let is_documented = |line: &str| {
                let mut of_file = limits.iter().filter(|(file, ..)| path.ends_with(file));
                of_file.any(|(_, name, _)| line.contains(&format!("{name}: ")))
            };
            let durations = code.lines().filter(|line| {
                let is_code = !line.trim_start().starts_with("//");
                let is_value = line.contains("Duration::from_secs(")
                    || line.contains("Duration::from_millis(");
                is_code && is_value && !OTHER_DURATIONS.iter().any(|other| line.contains(other))
            });
            let durations = durations.filter(|line| !is_documented(line));
            undocumented.extend(durations.map(|line| format!("{path}: {}", line.trim())));
        }
    }
    Ok(undocumented)
}

/// Returns the notations in the guide for the value that a file declares under a name.
fn declared_values(code: &str, name: &str) -> Vec<String> {
    let declaration = format!("{name}: ");
    let is_whole = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let places = code.match_indices(&declaration).filter(|(at, _)| is_whole(*at));
    let lines = places.filter_map(|(at, _)| code[at + declaration.len()..].lines().next());
    let values = lines.map(|line| values(line.split(" = ").last().unwrap_or(line)));
    values.into_iter().find(|values| !values.is_empty()).unwrap_or_default()
}

/// Returns the notations in the guide for the value of an expression: `60 s`, `64 KiB`, `4,096`. Empty if the
/// expression is not a value.
fn values(expression: &str) -> Vec<String> {
    let field = expression.split(", ").next().unwrap_or(expression);
    let expression = field.trim_end_matches([',', ';']).trim_end_matches(" }");
    let inner = expression.strip_prefix("Some(").and_then(|inner| inner.strip_suffix(')'));
    let expression = inner.unwrap_or(expression);
    if expression == "None" {
        return vec!["none".to_owned()];
    }
    let duration = |unit: &str| expression.strip_prefix(unit)?.strip_suffix(')').and_then(product);
    if let Some(seconds) = duration("Duration::from_secs(") {
        return vec![format!("{seconds} s"), format!("{} min", seconds / 60)];
    }
    if let Some(milliseconds) = duration("Duration::from_millis(") {
        return vec![format!("{milliseconds} ms")];
    }
    let Some(number) = product(expression) else { return Vec::new() };
    let units = [("KiB", 1024), ("MiB", 1024 * 1024)].into_iter();
    let sizes = units.filter(|(_, bytes)| number % bytes == 0);
    let plain = match (number / 1_000_000, number / 1000 % 1000, number % 1000) {
        (0, 0, ones) => ones.to_string(),
        (0, thousands, ones) => format!("{thousands},{ones:03}"),
        (millions, thousands, ones) => format!("{millions},{thousands:03},{ones:03}"),
    };
    let plain = ["", " s"].map(|unit| format!("{plain}{unit}"));
    sizes.map(|(unit, bytes)| format!("{} {unit}", number / bytes)).chain(plain).collect()
}

/// Evaluates a product of integers: the one outside of tests, if tests have another.
fn product(expression: &str) -> Option<u64> {
    let expression = match expression.split_once("else { ") {
        Some((_, rest)) => rest.split(" }").next()?,
        None => expression,
    };
    expression.split(" * ").map(|factor| factor.replace('_', "").parse::<u64>().ok()).product()
}

/// Whether a row contains a value that is not part of another one.
fn contains_value(row: &str, value: &str) -> bool {
    const UNITS: [&str; 5] = ["s", "ms", "min", "KiB", "MiB"];
    row.match_indices(value).any(|(at, _)| {
        let (before, after) = (&row[..at], &row[at + value.len()..]);
        let next_word = after.trim_start().split(|c: char| !c.is_alphanumeric()).next();
        let is_number = value.ends_with(|c: char| c.is_ascii_digit());
        let has_unit = is_number && next_word.is_some_and(|word| UNITS.contains(&word));
        let digits = after.strip_prefix(',').unwrap_or(after);
        let is_cut = digits.starts_with(char::is_alphanumeric);
        !before.ends_with(|c: char| c.is_alphanumeric() || c == ',') && !is_cut && !has_unit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_matched_as_a_whole_with_its_unit() {
        assert!(contains_value("4,096 | fixed", "4,096") && !contains_value("4,096", "4"));
        assert!(contains_value("64 of each", "64") && !contains_value("64 KiB", "64"));
        assert!(contains_value("5 s, or", "5 s") && !contains_value("25 s", "5 s"));
    }

    #[test]
    fn value_outside_of_tests_is_used() {
        let code = "const A_TIME: Duration = Duration::from_secs(9);\n\
                    const TIME: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 5 });\n";
        assert_eq!(declared_values(code, "TIME"), ["5 s", "0 min"]);
        assert_eq!(declared_values("soft: usize,\nsoft: 2 * 1024,", "soft")[0], "2 KiB");
    }
}
