//! Each check by itself, in a temporary directory.

use std::fs;
use std::path::Path;

use claude_wire::Json;
use claude_wire::settings::{EnvironmentPolicy, SystemPromptBase};

use super::checks::CheckContext;
use super::*;
use crate::{OsUser, VersionCheck};

pub(super) fn context<'a>(options: &'a Options, variables: &[(&str, &str)]) -> CheckContext<'a> {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    CheckContext { options, variables: variables.collect() }
}

/// Returns the level of a finding, which must contain these parts and have help unless the level is
/// good.
fn level(finding: &Finding, parts: &[&str]) -> Level {
    for part in parts {
        assert!(finding.to_string().contains(part), "{part}: {finding}");
    }
    assert_eq!(finding.help().is_none(), finding.level() == Level::Good, "{finding}");
    finding.level()
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn working_directory_must_exist_and_be_writable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let look = |cwd: &Path| context(&Options::new().cwd(cwd), &[]).working_directory().unwrap();
    assert_eq!(level(&look(folder.path()), &["is writable"]), Level::Good);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "no file remains");
    for missing in [file, folder.path().join("missing")] {
        assert_eq!(level(&look(&missing), &["is not a directory", "`cwd`"]), Level::Problem);
    }
    // Even root cannot write there.
    if cfg!(target_os = "linux") {
        let unwritable = look(Path::new("/proc"));
        assert_eq!(level(&unwritable, &["is not writable", "`cwd`"]), Level::Warning);
    }
    let elsewhere = Options::new().cwd("/missing").user(OsUser::ids(1, 1));
    assert_eq!(context(&elsewhere, &[]).working_directory(), None);
}

#[test]
fn config_directory_is_the_one_of_the_cli() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let file = home.join("file");
    fs::write(&file, "").unwrap();
    let inherit = Options::new();
    let clean = Options::new().environment(EnvironmentPolicy::Clean);
    let look = |options: &Options, variables: &[(&str, &str)]| {
        context(options, variables).config_directory().unwrap()
    };
    let own = [("HOME", text(home))];
    assert_eq!(level(&look(&inherit, &own), &[".claude` is writable"]), Level::Good);
    assert!(!home.join(".claude").exists(), "the file is not created");
    let none = look(&clean, &own);
    assert_eq!(level(&none, &["neither CLAUDE_CONFIG_DIR nor HOME"]), Level::Warning);
    let given = clean.clone().env("CLAUDE_CONFIG_DIR", text(&home.join("mine")));
    assert_eq!(level(&look(&given, &own), &["mine` is writable"]), Level::Good);
    let below_a_file = [("CLAUDE_CONFIG_DIR", text(&file)), ("HOME", "/")];
    assert_eq!(level(&look(&inherit, &below_a_file), &["is a file"]), Level::Problem);
    // The CLI resolves a relative path from its working directory.
    let relative = inherit.clone().cwd(home).env("CLAUDE_CONFIG_DIR", "file");
    assert_eq!(level(&look(&relative, &own), &[text(&file), "is a file"]), Level::Problem);
    if cfg!(target_os = "linux") {
        let unwritable = look(&inherit, &[("HOME", "/proc")]);
        let parts = ["sessions cannot be saved", "CLAUDE_CONFIG_DIR"];
        assert_eq!(level(&unwritable, &parts), Level::Warning);
    }
}

#[test]
fn credentials_are_found_by_name_and_never_shown() {
    const KEY: &str = "s3cr3t-key";
    let look = |options: &Options, variables: &[(&str, &str)]| {
        let finding = context(options, variables).credentials().unwrap();
        assert!(!format!("{finding} {finding:?}").contains("s3cr3t"), "{finding}");
        finding
    };
    let inherit = Options::new();
    let own = [("ANTHROPIC_API_KEY", KEY), ("CLAUDE_CODE_OAUTH_TOKEN", KEY)];
    let parts = ["ANTHROPIC_API_KEY and CLAUDE_CODE_OAUTH_TOKEN"];
    assert_eq!(level(&look(&inherit, &own), &parts), Level::Good);
    let none = ["none of ANTHROPIC_API_KEY", "log in"];
    assert_eq!(level(&look(&inherit, &[("ANTHROPIC_API_KEY", "")]), &none), Level::Warning);
    // A variable that is not passed to the CLI does not count.
    let clean = Options::new().environment(EnvironmentPolicy::Clean);
    assert_eq!(level(&look(&clean, &own), &none), Level::Warning);
    let given = clean.clone().env("ANTHROPIC_AUTH_TOKEN", KEY);
    assert_eq!(level(&look(&given, &[]), &["ANTHROPIC_AUTH_TOKEN"]), Level::Good);
    let helper = Json::from_text(r#"{"apiKeyHelper": "s3cr3t-command"}"#).unwrap();
    assert_eq!(level(&look(&clean.settings(helper), &[]), &["apiKeyHelper"]), Level::Good);
}

#[test]
fn mcp_config_files_must_be_valid() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, expected, part) in [
        ("one.json", r#"{"mcpServers": {"a": {}}}"#, Level::Good, "1 server"),
        ("two.json", r#"{"mcpServers": {"a": {}, "b": {}}}"#, Level::Good, "2 servers"),
        ("none.json", r#"{"servers": "s3cr3t"}"#, Level::Problem, "`mcpServers` is missing"),
        ("list.json", r#"["s3cr3t"]"#, Level::Problem, "`mcpServers` is missing"),
        ("broken.json", r#"{"s3cr3t""#, Level::Problem, "line 1 column"),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
        let options = Options::new().cwd(folder.path()).mcp_config_files([name]);
        let findings = context(&options, &[]).mcp_config();
        assert_eq!(findings.len(), 1);
        assert_eq!(level(&findings[0], &[name, part]), expected);
        assert!(!findings[0].to_string().contains("s3cr3t"));
    }
    let missing = Options::new().mcp_config_files(["/missing.json", "/"]);
    let findings = context(&missing, &[]).mcp_config();
    assert!(findings.iter().all(|finding| finding.level() == Level::Problem), "{findings:?}");
    assert_eq!(findings.len(), 2);
}

#[test]
fn root_cannot_bypass_permissions() {
    let root = rustix::process::geteuid().is_root();
    let look = |options: Options, variables: &[(&str, &str)]| {
        context(&options, variables).permissions().is_some()
    };
    let bypass = || Options::new().permission_mode("bypassPermissions");
    assert_eq!(look(bypass(), &[]), root);
    assert!(!look(bypass(), &[("IS_SANDBOX", "1")]));
    assert!(!look(bypass().user(OsUser::ids(1, 1)), &[]));
    assert!(!look(Options::new(), &[]));
}

#[test]
fn files_and_directories_of_options_must_exist() {
    type Set = fn(Options, &str) -> Options;

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "{}").unwrap();
    fs::create_dir(folder.path().join("dir")).unwrap();
    let cases: [(&str, Set, bool, bool); 5] = [
        ("settings", |o, path| o.settings(Path::new(path)), true, false),
        (
            "system_prompt",
            |o, path| o.system_prompt(SystemPromptBase::File(path.into())),
            true,
            false,
        ),
        ("plugins", |o, path| o.plugins([path]), true, true),
        ("project_config_root", |o, path| o.project_config_root(path), false, true),
        ("add_dirs", |o, path| o.add_dir(path), false, true),
    ];
    for (option, set, may_be_file, may_be_directory) in cases {
        for (name, fits) in [("file", may_be_file), ("dir", may_be_directory), ("gone", false)] {
            // Relative to the working directory of the CLI.
            let options = set(Options::new().cwd(folder.path()), name);
            let findings = context(&options, &[]).files();
            assert_eq!(findings.len(), 1);
            let expected = if fits { Level::Good } else { Level::Problem };
            let path = folder.path().join(name);
            assert_eq!(level(&findings[0], &[option, text(&path)]), expected, "{}", findings[0]);
            assert!(fits || findings[0].help().unwrap().contains(option));
            let elsewhere = options.user(OsUser::ids(1, 1));
            assert!(context(&elsewhere, &[]).files().is_empty());
        }
    }
    assert!(context(&Options::new(), &[]).files().is_empty());
}

#[test]
fn doctor_judges_the_version_like_a_run() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let cli = |name: &str, script: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Options::new().cli_path(path)
    };
    let look = |options: Options| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut findings = Vec::new();
        let prepared = check_options(&options, &mut Vec::new());
        runtime.block_on(check_cli(&options, prepared.as_ref(), &mut findings));
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert_eq!(findings[1].check(), Check::Version);
        findings.remove(1)
    };
    let (old, odd) = (cli("old", "echo 1.9.9"), cli("odd", "echo hello"));
    assert_eq!(level(&look(old.clone()), &["1.9.9"]), Level::Problem);
    assert_eq!(level(&look(old.clone().print_mode(true)), &["1.9.9"]), Level::Good);
    let skipped = look(old.version_check(VersionCheck::Skip));
    assert_eq!(level(&skipped, &["not checked", "VersionCheck::Skip"]), Level::Good);
    // In a session the handshake decides; print mode has none.
    assert_eq!(level(&look(odd.clone()), &["version", "cli_path"]), Level::Warning);
    let print = odd.print_mode(true);
    assert_eq!(level(&look(print.clone()), &["version"]), Level::Problem);
    assert_eq!(
        level(&look(print.version_check(VersionCheck::Permissive)), &["version"]),
        Level::Warning
    );
}
