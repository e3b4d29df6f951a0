//! Problems in configuration sources, and how they are reported.

use super::*;

#[test]
fn all_problems_are_reported_with_position_and_nearest_key() {
    let text = "modle = \"m\"\nmax_turns = \"s3cr3t\"\n\n[agents.a]\ndescription = \"d\"\n\
                prompt = \"p\"\nmaxturns = 1\n\n[sandbox.network]\nallowedDomain = []\n\n\
                [[sandbox.credentials.files]]\npaht = \"p\"\n\n\
                [[sandbox.credentials.envVars]]\nname = \"N\"\n\n\
                [[sandbox.credentials.envVars]]\nmod = \"deny\"\n\n\
                [sandbox.network.tlsTerminate]\ncaCert = \"c\"\n\n\
                [sandbox.ripgrep]\ncomand = \"rg\"\n\n\
                [nonsense]\nx = 1\n";
    assert_eq!(
        problems_of("dir/a.toml", text),
        [
            "max_turns: dir/a.toml:2:13: expected an integer, found a string",
            "agents: dir/a.toml:7:1: unknown key \"maxturns\"; help: did you mean \"maxTurns\"?",
            "sandbox: dir/a.toml:10:1: unknown key \"allowedDomain\"; help: did you mean \"allowedDomains\"?",
            "sandbox: dir/a.toml:22:1: unknown key \"caCert\"; help: did you mean \"caCertPath\"?",
            "sandbox: dir/a.toml:13:1: unknown key \"paht\"; help: did you mean \"path\"?",
            "sandbox: dir/a.toml:19:1: unknown key \"mod\"; help: did you mean \"mode\"?",
            "sandbox: dir/a.toml:25:1: unknown key \"comand\"; help: did you mean \"command\"?",
            "dir/a.toml:1:1: unknown key \"modle\"; help: did you mean \"model\"?",
            "dir/a.toml:27:2: unknown key \"nonsense\"",
        ]
    );
    let layers = Options::layered()
        .file_text("a.toml", "model = 1")
        .file_text("b.json", "[]")
        .file_text("c.json", "{")
        .file_text("d.yaml", "")
        .file("/missing/e.json")
        .optional_file("/missing/f.json")
        .variables([("CLAUDE_MAX_TURNS", "many"), ("CLAUDE_SETTINGS", "{")]);
    let error = layers.load().unwrap_err();
    let problems: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 7, "{problems:#?}");
    for (index, part) in [
        (0, "model: a.toml:1:9: expected a string, found a number"),
        (1, "b.json:1:1: expected a table, found a list"),
        (2, "c.json:1:1: invalid JSON: EOF"),
        (3, "d.yaml: unknown format"),
        (4, "/missing/e.json: failed to read the file"),
        (5, "variable CLAUDE_MAX_TURNS: expected an integer, found a string"),
        (6, "variable CLAUDE_SETTINGS: "),
    ] {
        assert!(problems[index].contains(part), "{part}: {}", problems[index]);
        assert!(error.to_string().contains(&problems[index]));
    }
}

#[test]
fn contradictions_name_both_positions() {
    let text = "model = \"m\"\nfallback_model = \"m\"\nmax_turns = 0\n";
    let problems = problems_of("a.toml", text);
    assert_eq!(problems.len(), 2, "{problems:?}");
    let both = problems
        .iter()
        .find(|problems| problems.starts_with("model and fallback_model: "))
        .unwrap();
    assert!(both.contains("a.toml:1:1") && both.contains("a.toml:2:1"), "{both}");
    // Problems of the builder alone are reported when the options are used.
    let wrong = Options::new().max_turns(0);
    assert!(Options::layered().file_text("a.json", "{}").under(wrong.clone()).is_ok());
    let mixed = Options::layered().file_text("a.json", r#"{"model": "m"}"#);
    let error = mixed.under(Options::new().fallback_model("m")).unwrap_err();
    assert!(error.to_string().contains("`model` comes from a.json:1:2"), "{error}");
}

#[test]
fn conversation_in_a_file_must_be_consistent() {
    for (text, part) in [
        ("[conversation]\nresume = \"r\"\nlatest = true\n", "a.toml:1:1: expected a table with"),
        ("[conversation]\nat = \"m\"\n", "expected a table with one of `with_id`"),
        ("[conversation]\nresum = \"r\"\n", "a.toml:2:1: unknown key \"resum\""),
        ("[conversation]\nlatest = true\nat = \"m\"\n", "`at` needs a session"),
        ("conversation = \"latest\"\n", "expected a table with one of `with_id`"),
        ("[conversation]\ntitle = 1\n", "a.toml:2:9: expected a string"),
    ] {
        let problems = problems_of("a.toml", text);
        assert!(problems.len() == 1 && problems[0].contains(part), "{text}: {problems:?}");
    }
    let dotted =
        layer("a.toml", "conversation.resume_or_start = \"r\"\nconversation.title = \"t\"\n");
    assert!(dotted.settings.start.or_new && dotted.settings.title.is_some());
}

#[test]
fn contradictions_between_builder_and_layer_are_reported() {
    // The problem names options that only the builder sets.
    let builder = Options::new().model("a").fallback_model("b");
    assert!(Options::layered().under(builder.clone()).is_ok());
    let mut merged = builder.clone();
    merged.settings.model = Some("b".into());
    let found = contradictions(&merged, &builder);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(contradictions(&merged, &merged), []);
}

#[test]
fn wrong_types_are_reported_without_the_value() {
    const WRONG: [&str; 6] =
        ["null", "true", "-1", "\"s3cr3t\"", "[[\"s3cr3t\"]]", "{\"s3cr3t\": 1}"];
    for row in TABLE {
        let refused = WRONG.iter().filter(|value| {
            let text = json_file(row.name, value);
            let error = Options::layered().file_text("x.json", text).load().err();
            error.is_some_and(|error| {
                let shown = error.to_string().replace("unknown key \"s3cr3t\"", "");
                assert!(!shown.contains("s3cr3t"), "{shown}");
                assert!(shown.contains("x.json:1:"), "{shown}");
                true
            })
        });
        assert!(refused.count() >= 3, "{}", row.name);
    }
}

#[test]
fn missing_oversized_or_non_utf8_file_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("large.json"), " ".repeat(2 * 1024 * 1024)).unwrap();
    std::fs::write(path("bytes.json"), b"{\n\"a\xff\"}").unwrap();
    std::fs::create_dir(path("folder.json")).unwrap();
    std::fs::write(path("good.json"), r#"{"model": "m"}"#).unwrap();
    for (name, part) in [
        ("large.json", "larger than 1 MiB"),
        ("bytes.json", "line 2, column 3 is not valid UTF-8"),
        ("folder.json", "not a regular file"),
        ("missing.json", "failed to read"),
    ] {
        let error = Options::layered().file(path(name)).load().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    // An optional file must be valid if it exists.
    assert!(Options::layered().optional_file(path("folder.json")).load().is_err());
    let options = Options::layered().optional_file(path("good.json")).load().unwrap();
    assert_eq!(options.settings.model.as_deref(), Some("m"));
}

#[test]
fn number_of_reported_problems_is_bounded() {
    let text: String = (0..1000).fold(String::new(), |mut text, number| {
        writeln!(text, "nonsense{number} = 1").unwrap();
        text
    });
    let problems = problems_of("a.toml", &text);
    assert_eq!(problems.len(), MAX_REPORTED);
}
