//! Inputs and results of tools, without a CLI.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use claude_wire::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{NoArguments, Tool, ToolError, ToolOutput, ToolResult, deserialize, is_object, schema};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Point {
    /// To the right.
    x: i64,
    y: Option<f64>,
}

fn encoded(output: impl ToolOutput) -> Value {
    let result = output.into_result().unwrap_or_else(Into::into);
    result.encode().deserialize().unwrap()
}

fn texts(texts: &[&str]) -> Value {
    texts.iter().map(|text| json!({"type": "text", "text": text})).collect()
}

#[test]
fn serializable_values_are_tool_results() {
    assert_eq!(encoded("a \"text\""), json!({"content": texts(&["a \"text\""]), "isError": false}));
    assert_eq!(encoded(String::from("\u{1f980}"))["content"], texts(&["\u{1f980}"]));
    assert_eq!(encoded(5)["content"], texts(&["5"]));
    assert_eq!(encoded(1.5)["content"], texts(&["1.5"]));
    assert_eq!(encoded(true)["content"], texts(&["true"]));
    assert_eq!(encoded(())["content"], json!([]));
    assert_eq!(encoded(None::<i64>)["content"], json!([]));
    assert_eq!(encoded(vec![1, 2])["content"], texts(&["[1,2]"]));
    let point = encoded(Point { x: 1, y: None });
    assert_eq!(point["structuredContent"], json!({"x": 1, "y": null}));
    assert_eq!(point["content"], texts(&[r#"{"x":1,"y":null}"#]));
    assert_eq!(encoded(json!({"a": 1}))["structuredContent"], json!({"a": 1}));
    assert_eq!(encoded(BTreeMap::from([("k", 1)]))["structuredContent"], json!({"k": 1}));
}

#[test]
fn unserializable_value_is_an_error_result() {
    let strange = encoded(HashMap::from([((1, 2), 3)]));
    assert_eq!(strange["isError"], true);
    assert!(strange["content"][0]["text"].as_str().unwrap().contains("cannot be encoded as JSON"));
    // `serde_json` turns numbers that JSON does not have into null.
    assert_eq!(encoded(f64::NAN)["content"], json!([]));
}

#[test]
fn tool_result_consists_of_content_blocks() {
    let link = json!({"type": "resource_link", "uri": "a://b", "name": "b"});
    let result = ToolResult::new().text("t").image("image/png", "AAAA").block(link.clone());
    let result = encoded(result.structured(&json!({"a": 1})).unwrap());
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    assert_eq!(result["content"], json!([{"type": "text", "text": "t"}, image, link]));
    assert_eq!(result["structuredContent"], json!({"a": 1}));
    assert!(ToolResult::new().structured(&1).is_err());
}

#[derive(Debug)]
struct Outer(std::num::ParseIntError);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a number")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn tool_error_text_contains_its_causes_and_debug_does_not() {
    fn fails() -> Result<(), ToolError> {
        "x".parse::<i64>().map_err(Outer)?;
        Ok(())
    }
    let error = fails().unwrap_err();
    assert!(!format!("{error:?}").contains("number"), "{error:?}");
    let result: Value = ToolResult::from(error).encode().deserialize().unwrap();
    let expected = "not a number: invalid digit found in string";
    assert_eq!(result, json!({"content": texts(&[expected]), "isError": true}));
}

#[test]
fn invalid_argument_is_reported_with_its_path() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    struct Nested {
        points: Vec<Point>,
    }
    for (text, expected) in [
        (r#"{"points":[]}"#, None),
        (r#"{"points":[{"x":1},{"x":"a"}]}"#, Some("`points[1].x`: invalid type: string \"a\"")),
        (r#"{"points":[{}]}"#, Some("`points[0]`: missing field `x`")),
        ("{}", Some("missing field `points`")),
        ("null", Some("invalid type: null")),
    ] {
        let error =
            deserialize::<Nested>(&Json::from_text(text).unwrap()).err().map(|e| e.to_string());
        match (&error, expected) {
            (Some(error), Some(expected)) => assert!(error.starts_with(expected), "{error}"),
            _ => assert_eq!(error.as_deref(), expected, "{text}"),
        }
    }
}

#[test]
fn lone_surrogate_in_an_argument_is_accepted() {
    let broken = Json::from_text(r#""\ud83d""#).unwrap();
    assert_eq!(deserialize::<String>(&broken).unwrap(), "\u{fffd}");
}

#[test]
fn doc_comments_are_schema_descriptions() {
    let point: Value = schema::<Point>().deserialize().unwrap();
    assert_eq!(point["properties"]["x"]["description"], "To the right.");
    assert_eq!(point["required"], json!(["x"]));
    assert!(point.get("$schema").is_none());
    assert!(is_object(&schema::<Point>()) && is_object(&schema::<NoArguments>()));
    assert!(!is_object(&schema::<Vec<Point>>()) && !is_object(&schema::<String>()));
    assert!(deserialize::<NoArguments>(&Json::from(json!({"more": [1]}))).is_ok());
}

#[test]
fn debug_output_of_tools_shows_only_names() {
    let tool = Tool::new("t", "secret", |_: NoArguments| async { Ok(()) });
    let server = super::ToolServer::new().instructions("secret").add(tool);
    let shown = format!("{server:?}");
    assert!(shown.contains("\"t\"") && !shown.contains("secret"), "{shown}");
}
