//! Structured output as Rust types.

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{ErrorKind, query_as};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::helpers::start;
use crate::support::{hello, in_time, on_all};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Place {
    city: String,
}

/// A type with the schema of [`Place`] that does not deserialize every place.
#[derive(Debug, Deserialize, JsonSchema)]
struct Picky {
    #[serde(deserialize_with = "never")]
    #[expect(dead_code, reason = "it is never read")]
    city: String,
}

fn never<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
    String::deserialize(reader)?;
    Err(serde::de::Error::custom("no city is good enough"))
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
enum Size {
    Small,
    Large,
}

fn answer_script(value: Value) -> impl Fn() -> Script {
    move || {
        Script::new()
            .otherwise([Reply::tool("StructuredOutput", value.clone()), Reply::text("Done.")])
    }
}

#[test]
fn structured_output_is_typed_in_queries_and_turns() {
    on_all(answer_script(json!({"city": "Paris"})), async |harness| {
        let place = in_time(query_as::<Place>("where?", harness.options())).await.unwrap();
        assert_eq!(place.value, Place { city: "Paris".to_owned() });
        assert!(place.cost.usd > 0.0 && place.cost.is_complete, "{:?}", place.cost);
        assert!(place.session_id().is_some() && place.warnings.is_empty());
        let session = start(harness.options().answer_as::<Place>()).await;
        let turn = session.send("where?").await.unwrap();
        let second = in_time(turn.finish_as::<Place>()).await.unwrap();
        assert_eq!(second.value, place.value);
        assert!((second.cost.usd - place.cost.usd).abs() < 1e-9, "{:?}", second.cost);
        session.stop().await.unwrap();
    });
}

#[test]
fn structured_output_works_with_any_tool_list() {
    on_all(answer_script(json!({"city": "Paris"})), async |harness| {
        let paris = Place { city: "Paris".to_owned() };
        for tools in [&["Read", "Grep"][..], &[]] {
            let options = harness.options().tools(tools.to_vec());
            let place = in_time(query_as::<Place>("where?", options)).await.unwrap();
            assert_eq!(place.value, paris);
        }
    });
}

#[test]
fn optional_structured_output_may_be_missing() {
    on_all(answer_script(json!({})), async |harness| {
        let place = in_time(query_as::<Option<Place>>("where?", harness.options())).await.unwrap();
        assert_eq!(place.value, None);
    });
    on_all(answer_script(json!({"value": {"city": "Paris"}})), async |harness| {
        let place = in_time(query_as::<Option<Place>>("where?", harness.options())).await.unwrap();
        assert_eq!(place.value, Some(Place { city: "Paris".to_owned() }));
    });
}

#[test]
fn structured_output_need_not_be_an_object() {
    on_all(answer_script(json!({"value": "Large"})), async |harness| {
        let size = in_time(query_as::<Size>("how large?", harness.options())).await.unwrap();
        assert_eq!(size.value, Size::Large);
    });
}

#[test]
fn mismatched_structured_output_is_an_error_with_the_value() {
    on_all(answer_script(json!({"city": "Paris"})), async |harness| {
        let error = in_time(query_as::<Picky>("where?", harness.options())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StructuredOutputMismatch);
        let value: Value = error.value().unwrap().deserialize().unwrap();
        assert_eq!(value, json!({"city": "Paris"}));
        assert!(error.to_string().contains("`city`"), "{error}");
        assert!(error.hint().unwrap().contains("good enough"));
        assert!(!format!("{error} {error:?}").contains("Paris"));
    });
}

#[test]
fn failed_run_with_structured_output_returns_its_error() {
    let refused = || {
        Script::new().otherwise([Reply::error(401, "authentication_error", "invalid x-api-key")])
    };
    on_all(refused, async |harness| {
        let options = harness.options().env("CLAUDE_CODE_MAX_RETRIES", "1");
        let error = in_time(query_as::<Place>("where?", options.clone())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LoginMissing, "{error}");
        let session = start(options.answer_as::<Place>()).await;
        let turn = session.send("where?").await.unwrap();
        let error = in_time(turn.finish_as::<Place>()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LoginMissing, "{error}");
        session.stop().await.unwrap();
    });
}

#[test]
fn missing_structured_output_is_a_specific_error() {
    on_all(hello, async |harness| {
        let error = in_time(query_as::<Place>("where?", harness.options())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoStructuredOutput, "{error}");
        assert!(error.value().is_none() && error.output().is_some());
    });
}
