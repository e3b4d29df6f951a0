//! Every finding once, for the list of messages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use claude_wire::Json;

use super::tests::{context, text};
use super::*;
use crate::VersionCheck;

/// Returns every finding once, for the list of messages.
pub(crate) fn example_findings(folder: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    example_options(folder, &mut findings);
    example_places(folder, &mut findings);
    example_files(folder, &mut findings);
    findings.push(checks::root_finding());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let limit = Duration::from_secs(1);
    let print = Options::new().print_mode(true);
    findings.push(runtime.block_on(handshake(print, limit, true)));
    findings.push(runtime.block_on(handshake(Options::new(), limit, false)));
    let missing = Options::new().cli_path("/opt/missing");
    findings.push(runtime.block_on(handshake(missing, limit, true)));
    findings.push(Finding::good(Check::Handshake, HANDSHAKE_DONE));
    findings
}

fn example_options(folder: &Path, findings: &mut Vec<Finding>) {
    let layers = |text: &str| Options::layered().file_text("agent.json", text);
    configuration(layers(r#"{"model": "m"}"#), &mut Options::new(), findings);
    configuration(layers(r#"{"modle": "m"}"#), &mut Options::new(), findings);
    configuration(layers(r#"{"model": 1}"#), &mut Options::new(), findings);
    let ignored = Options::new().env("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "1 minute");
    let both = Options::new().permission_prompts("none").permission_prompt_tool("p");
    for options in [Options::new(), Options::new().max_turns(0), both, ignored] {
        check_options(&options, findings);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let transport = crate::transport::InMemory::new(|_| async { Err(std::io::Error::other("")) });
    let mut look = |options: Options| {
        let prepared = check_options(&options, &mut Vec::new());
        runtime.block_on(check_cli(&options, prepared.as_ref(), findings));
    };
    look(Options::new().transport(transport));
    look(Options::new().cli_path("/opt/missing"));
    for (name, script) in [("claude", "echo 2.1.325"), ("old", "echo 1.9.9"), ("odd", "echo hello")]
    {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        look(Options::new().cli_path(&path));
    }
    let good = || Options::new().cli_path(folder.join("claude"));
    look(good().max_turns(0));
    look(good().version_check(VersionCheck::Skip));
}

fn example_places(folder: &Path, findings: &mut Vec<Finding>) {
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    for cwd in [folder, &folder.join("missing"), Path::new("/proc")] {
        findings.extend(context(&Options::new().cwd(cwd), &[]).working_directory());
    }
    let inherit = Options::new();
    let config = |variables: &[(&str, &str)]| context(&inherit, variables).config_directory();
    findings.extend(config(&[("HOME", text(folder))]));
    findings.extend(config(&[("CLAUDE_CONFIG_DIR", text(&file))]));
    findings.extend(config(&[("HOME", text(&file))]));
    findings.extend(config(&[("HOME", "/proc")]));
    findings.extend(config(&[]));
    let key = [("ANTHROPIC_API_KEY", "x")];
    findings.extend(context(&inherit, &key).credentials());
    findings.extend(context(&inherit, &[]).credentials());
    let helper = Json::from_text(r#"{"apiKeyHelper": "x"}"#).unwrap();
    findings.extend(context(&Options::new().settings(helper), &[]).credentials());
}

fn example_files(folder: &Path, findings: &mut Vec<Finding>) {
    for (name, content) in [
        ("one.json", r#"{"mcpServers": {"a": {}}}"#),
        ("two.json", r#"{"mcpServers": {"a": {}, "b": {}}}"#),
        ("none.json", "{}"),
        ("broken.json", "{"),
    ] {
        fs::write(folder.join(name), content).unwrap();
        let options = Options::new().cwd(folder).mcp_config_files([name]);
        findings.extend(context(&options, &[]).mcp_config());
    }
    for options in [
        Options::new().add_dir(folder),
        Options::new().add_dir("/missing"),
        Options::new().settings(Path::new("/missing.json")),
        Options::new().plugins(["/missing"]),
    ] {
        findings.extend(context(&options, &[]).files());
    }
}
