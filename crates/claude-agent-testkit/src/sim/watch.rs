//! Watches files for hooks, and runs hook commands.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::engine::Engine;
use super::hooks::{CommandHook, HookCall};
use super::json::Object;
use super::settings::stamp;

/// The polling interval, used only while a hook is registered for changes.
const INTERVAL: Duration = Duration::from_millis(50);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

type Stamp = Option<(SystemTime, u64)>;

impl Engine {
    /// Watches the settings files, if a `ConfigChange` hook is registered.
    pub(super) fn watch_settings(self: &Arc<Self>) {
        if !self.state().hooks.has_hooks_for("ConfigChange") {
            return;
        }
        let files = self.settings.files.iter();
        let mut files: Vec<(&'static str, PathBuf, Stamp)> =
            files.map(|file| (file.source, file.path.clone(), stamp(&file.path))).collect();
        let engine = Arc::clone(self);
        self.spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                for (source, path, known) in &mut files {
                    let now = stamp(path);
                    if now == *known {
                        continue;
                    }
                    *known = now;
                    let input = Object::new()
                        .str("source", source)
                        .str("file_path", &path.to_string_lossy());
                    let call = HookCall::for_session("ConfigChange", input).with_subject(source);
                    engine.run_hooks_in(None, call).await;
                }
            }
        });
    }

    /// Watches the files that a `SessionStart` hook returned in `watchPaths`.
    pub(super) fn watch_paths(self: &Arc<Self>, outputs: &[Value]) {
        let paths =
            outputs.iter().flat_map(|output| output["watchPaths"].as_array().into_iter().flatten());
        let mut files: Vec<(PathBuf, Stamp)> = paths
            .filter_map(|path| path.as_str())
            .map(|path| (PathBuf::from(path), stamp(path.as_ref())))
            .collect();
        if files.is_empty() || !self.state().hooks.has_hooks_for("FileChanged") {
            return;
        }
        let engine = Arc::clone(self);
        self.spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                for (path, known) in &mut files {
                    let now = stamp(path);
                    if now == *known {
                        continue;
                    }
                    let event = match (&known, &now) {
                        (None, _) => "add",
                        (_, None) => "unlink",
                        _ => "change",
                    };
                    *known = now;
                    let input =
                        Object::new().str("file_path", &path.to_string_lossy()).str("event", event);
                    engine.run_hooks_in(None, HookCall::for_session("FileChanged", input)).await;
                }
            }
        });
    }

    /// Assigns ids to hook commands and reports their start, if the host has enabled that.
    pub(super) async fn emit_hooks_started(&self, call: &HookCall, count: usize) -> Vec<String> {
        let ids: Vec<String> = (0..count).map(|_| self.ids.uuid()).collect();
        if self.launch.hook_events {
            for id in &ids {
                self.emit_system("hook_started", hook_fields(call, id)).await;
            }
        }
        ids
    }

    /// Runs a hook command; returns its output.
    pub(super) async fn run_hook_command(
        &self,
        call: &HookCall,
        hook: &CommandHook,
        input: &str,
        id: &str,
    ) -> Value {
        let (code, stdout, stderr) = self.run_hook_process(&hook.command, input).await;
        if self.launch.hook_events {
            let fields = hook_fields(call, id)
                .str("output", &stdout)
                .str("stdout", &stdout)
                .str("stderr", &stderr)
                .plain("exit_code", code)
                .str("outcome", if code == 0 { "success" } else { "error" });
            self.emit_system("hook_response", fields).await;
        }
        match code {
            // A command blocks by exiting with code 2.
            2 => json!({"decision": "block", "reason": stderr.trim()}),
            0 => serde_json::from_str(&stdout).unwrap_or_default(),
            _ => Value::Null,
        }
    }

    async fn run_hook_process(&self, command: &str, input: &str) -> (i32, String, String) {
        let spawned = Command::new("sh")
            .args(["-c", command])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(&self.launch.env)
            .current_dir(&self.launch.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let failed = |reason: String| (1, String::new(), reason);
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return failed(error.to_string()),
        };
        if let Some(mut stdin) = child.stdin.take() {
            // A command need not read its stdin.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        match tokio::time::timeout(COMMAND_TIMEOUT, child.wait_with_output()).await {
            Ok(Ok(output)) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed("the command took too long".to_owned()),
        }
    }
}

fn hook_fields(call: &HookCall, id: &str) -> Object {
    let name = call.name();
    Object::new().str("hook_id", id).str("hook_name", &name).str("hook_event", call.event)
}
