//! What tools take and give, without a CLI.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use claude_wire::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{NoArguments, Tool, ToolError, ToolOutput, ToolResult, is_object, read, schema};

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
fn everything_that_can_be_written_is_a_result() {
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
fn what_cannot_be_written_is_a_failed_result() {
    let strange = encoded(HashMap::from([((1, 2), 3)]));
    assert_eq!(strange["isError"], true);
    assert!(strange["content"][0]["text"].as_str().unwrap().contains("cannot be encoded as JSON"));
    // Numbers that JSON does not have are null to `serde_json`.
    assert_eq!(encoded(f64::NAN)["content"], json!([]));
}

#[test]
fn a_result_is_made_of_blocks() {
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
        f.write_str("it is no number")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn an_error_is_told_with_its_causes_and_not_in_debug() {
    fn fails() -> Result<(), ToolError> {
        "x".parse::<i64>().map_err(Outer)?;
        Ok(())
    }
    let error = fails().unwrap_err();
    assert!(!format!("{error:?}").contains("number"), "{error:?}");
    let result: Value = ToolResult::from(error).encode().deserialize().unwrap();
    let expected = "it is no number: invalid digit found in string";
    assert_eq!(result, json!({"content": texts(&[expected]), "isError": true}));
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
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
        let told = read::<Nested>(&Json::from_text(text).unwrap()).err().map(|e| e.to_string());
        match (&told, expected) {
            (Some(told), Some(expected)) => assert!(told.starts_with(expected), "{told}"),
            _ => assert_eq!(told.as_deref(), expected, "{text}"),
        }
    }
}

#[test]
fn a_lone_surrogate_in_an_argument_is_no_error() {
    let broken = Json::from_text(r#""\ud83d""#).unwrap();
    assert_eq!(read::<String>(&broken).unwrap(), "\u{fffd}");
}

#[test]
fn a_schema_says_what_comments_say() {
    let point: Value = schema::<Point>().deserialize().unwrap();
    assert_eq!(point["properties"]["x"]["description"], "To the right.");
    assert_eq!(point["required"], json!(["x"]));
    assert!(point.get("$schema").is_none());
    assert!(is_object(&schema::<Point>()) && is_object(&schema::<NoArguments>()));
    assert!(!is_object(&schema::<Vec<Point>>()) && !is_object(&schema::<String>()));
    assert!(read::<NoArguments>(&Json::from(json!({"more": [1]}))).is_ok());
}

#[test]
fn a_tool_and_its_server_show_no_more_than_names() {
    let tool = Tool::new("t", "secret", |_: NoArguments| async { Ok(()) });
    let server = super::ToolServer::new().instructions("secret").add(tool);
    let shown = format!("{server:?}");
    assert!(shown.contains("\"t\"") && !shown.contains("secret"), "{shown}");
}
