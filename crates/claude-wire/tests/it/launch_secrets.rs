//! What must not be shown of settings: what is masked, and what is printed nowhere.

use claude_wire::Map;
use claude_wire::control::{HostRequest, McpSetServers};
use claude_wire::launch::{Form, Needs, Secret, command_line, secrets, secrets_in};
use claude_wire::settings::SystemPromptBase;

use crate::launch::{json, settings};

#[test]
fn secrets_are_found_in_every_option() {
    let settings = settings(|s| {
        s.env = Map::from([("ANY".to_owned(), Secret::from("variable"))]);
        s.extra_args = vec![("any".into(), Some(Secret::from("flag"))), ("debug".into(), None)];
        s.mcp_servers
            .set("http", json(r#"{"type":"http","url":"https://x","headers":{"X-Any":"header"}}"#));
        s.mcp_servers.set("stdio", json(r#"{"command":"x","env":{"ANY":"deep"},"args":["a"]}"#));
        s.settings =
            Some(json(r#"{"apiKeyHelper":"helper","model":"m","a":[{"authToken":"t"}]}"#).into());
    });
    let mut found = secrets(&settings);
    found.sort_unstable();
    assert_eq!(found, ["deep", "flag", "header", "helper", "t", "variable"]);
}

#[test]
fn paths_and_hosts_are_secret_only_by_the_name_of_their_variable() {
    let cases = [
        ("SOME_DIR", "/srv/project", false),
        ("PATH", "/usr/local/bin:/usr/bin:/bin", false),
        ("SOME_DIR", r"C:\Users\me", false),
        ("PATH", r"C:\Windows;D:/tools", false),
        ("WHERE", "work/project", false),
        ("BASE_URL", "http://127.0.0.1:8080", false),
        ("BASE_URL", "https://host.example/", false),
        ("MAX_OUTPUT_TOKENS", "1000000", false),
        ("ANY", "a-value", true),
        ("ANY", "other/project", true),
        ("ANY", "/usr/bin:secret", true),
        ("ANY", "https://user:word@host", true),
        ("HOOK", "https://host.example/services/T0/B0", true),
        ("ANY", "https://host/?key=x", true),
        ("DEPLOY_KEY", "/srv/project", true),
        ("DB_PASSWORD", "http://word", true),
        ("AUTHORIZATION", "work/project", true),
        ("TOKENS", "abcdef", true),
    ];
    for (name, value, is_secret) in cases {
        let expected: &[&str] = if is_secret { &[value] } else { &[] };
        let in_env = settings(|s| {
            s.cwd = Some("work/project".into());
            s.env = Map::from([(name.to_owned(), Secret::from(value))]);
        });
        assert_eq!(secrets(&in_env), expected, "{name}={value}");
        let as_argument = settings(|s| {
            s.cwd = Some("work/project".into());
            s.extra_args = vec![(name.to_owned(), Some(Secret::from(value)))];
        });
        assert_eq!(secrets(&as_argument), expected, "--{name}={value}");
        if value != "work/project" {
            let server = serde_json::json!({"mine": {"env": {name: value}}});
            assert_eq!(secrets_in(&json(&server.to_string())), expected, "{server}");
        }
    }
}

#[test]
fn secrets_in_arguments_and_addresses_of_servers_are_masked() {
    for (config, expected) in [
        (r#"{"args":["--api-key","one","--port","80","x"]}"#, &["one"][..]),
        (r#"{"args":["--api-key=one","-token","two","TOKEN=three"]}"#, &["one", "two", "three"]),
        // A value may look like a flag, and a flag without a value is followed by the next one.
        (r#"{"args":["--secret","-x","--password","--token","y"]}"#, &["-x", "--token", "y"]),
        (r#"{"args":["serve","tokens","--verbose"]}"#, &[]),
        (r#"{"args":[1,null,"--key",2,"x"]}"#, &["x"]),
        (r#"{"args":["postgres://me:word@host/db?a=b"]}"#, &["me", "word", "b"]),
        (r#"{"url":"https://host/mcp?key=one&flag&b=two#part=x"}"#, &["one", "two", "x"]),
        (r#"{"url":"https://token@host/a@b"}"#, &["token"]),
        (r#"{"url":"https://host:1/mcp"}"#, &[]),
        (r#"{"url":"nonsense?a=b"}"#, &[]),
    ] {
        let settings = settings(|s| s.mcp_servers.set("s", json(config)));
        assert_eq!(secrets(&settings), expected, "{config}");
        assert_eq!(secrets_in(&json(&format!(r#"{{"s":{config}}}"#))), expected);
    }
}

#[test]
fn new_servers_for_a_session_print_their_names_only() {
    let servers = json(r#"{"one":{"env":{"K":"s3cr3t"}},"two":{"url":"https://s3cr3t@host"}}"#);
    let request = McpSetServers::new(servers.clone());
    let text = format!("{request:?} {request:#?} {:?}", HostRequest::from(request.clone()));
    assert!(!text.contains("s3cr3t"), "{text}");
    assert!(text.contains(r#"["one", "two"]"#), "{text}");
    assert_eq!(request.servers, servers);
    let odd = McpSetServers::new(json(r#"["s3cr3t"]"#));
    assert!(!format!("{odd:?}").contains("s3cr3t"));
}

#[test]
fn secrets_are_never_printed() {
    const MARK: &str = "s3cr3t";
    let settings = settings(|s| {
        s.env = Map::from([("KEY".to_owned(), Secret::from(MARK))]);
        s.extra_args = vec![("key".into(), Some(Secret::from(MARK)))];
        s.settings = Some(json(&format!(r#"{{"a":"{MARK}"}}"#)).into());
        s.system_prompt = Some(SystemPromptBase::Text(MARK.to_owned()));
        s.append_system_prompt = Some(Secret::from(MARK));
        s.mcp_servers.set("ext", json(&format!(r#"{{"a":"{MARK}"}}"#)));
    });
    let form = Form::Print { prompt: format!("--{MARK}") };
    let command = command_line(&settings, &form, &Needs::default()).unwrap();
    let told = command.arguments.iter().filter(|argument| argument.contains(MARK)).count();
    assert_eq!(told, 6);
    assert!(!format!("{settings:?} {command:?} {settings:#?} {command:#?}").contains(MARK));
}

#[test]
fn value_inside_a_variable_name_is_not_repeated_in_the_problem() {
    let settings = settings(|s| {
        s.env = Map::from([("KEY=s3cr3t".to_owned(), Secret::from("x"))]);
        s.extra_args = vec![("--key=s3cr3t".into(), None), ("--key s3cr3t".into(), None)];
    });
    let problems = command_line(&settings, &Form::Session, &Needs::default()).unwrap_err();
    assert_eq!(problems.iter().count(), 3);
    let text = problems.to_string();
    assert!(text.contains("KEY") && text.contains("--key"), "{text}");
    assert!(!text.contains("s3cr3t"), "{text}");
}

/// A value that follows the name by mistake is not repeated, because it may be secret.
#[test]
fn invalid_flag_is_named_with_what_is_wrong() {
    let long = format!("--{}", "x".repeat(100));
    for (flag, shown, wrong) in [
        ("no such flag", "\"no…\"", "it contains whitespace"),
        ("--key\ts3cr3t", "\"--key…\"", "it contains whitespace"),
        ("--key=s3cr3t", "\"--key…\"", "it contains `=`"),
        ("a\u{1b}[2K", "\"a…\"", "it contains a control character"),
        ("a\0b", "\"a…\"", "it contains a control character"),
        ("--", "\"--\"", "it is empty"),
        ("", "\"\"", "it is empty"),
        (&format!("{long} y"), &*format!("\"--{}…\"", "x".repeat(62)), "it contains whitespace"),
    ] {
        let settings = settings(|s| s.extra_args = vec![(flag.to_owned(), None)]);
        let problems = command_line(&settings, &Form::Session, &Needs::default()).unwrap_err();
        let text = problems.to_string();
        let expected = format!(
            "extra_args: {shown}, which was passed to `add_arg`, is not the name of a flag: {wrong}; help: pass "
        );
        assert!(text.starts_with(&expected), "{text}");
    }
    let value = Some(Secret::from("s3cr3t\0"));
    let settings = settings(|s| s.extra_args = vec![("key".into(), value)]);
    let problems = command_line(&settings, &Form::Session, &Needs::default()).unwrap_err();
    let text = "extra_args: the value of \"key\", which was passed to `add_arg`, contains a NUL character; help: remove it";
    assert_eq!(problems.to_string(), text);
}

#[test]
fn the_reason_why_a_value_does_not_decode_does_not_repeat_it() {
    fn reason<T: serde::de::DeserializeOwned>(text: &str) -> String {
        json(text).deserialize::<T>().err().unwrap().to_string()
    }
    for (reason, expected) in [
        (reason::<String>("4111111111111111"), "invalid type: integer, expected a string"),
        (reason::<String>("-4111.5"), "invalid type: floating point, expected a string"),
        (reason::<String>("true"), "invalid type: boolean, expected a string"),
        (reason::<u8>("4111"), "invalid value: integer, expected u8"),
        (reason::<u8>(r#""4111, expected \"x\"""#), "invalid type: string, expected u8"),
        (reason::<u8>("[4111]"), "invalid type: sequence, expected u8"),
        (reason::<Vec<bool>>(r#"[true, "`4111`"]"#), "invalid type: string, expected a boolean"),
    ] {
        assert!(reason.starts_with(expected), "{reason}");
        assert!(!reason.contains("4111"), "{reason}");
    }
}
