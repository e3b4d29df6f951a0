//! `Json` is read as `serde_json::Value` is.

use std::borrow::Cow;

use claude_wire::Json;
use proptest::prelude::*;
use serde_json::{Value, json};

fn value(json: Option<Json>) -> Option<Value> {
    json.map(|json| json.deserialize().unwrap())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c/~0-2]{0,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_part_reads_as_in_serde_json(
        whole in any_value(),
        key in "[a-c/~0-2]{0,2}",
        pointer in "(/[a-c~0-2+]{0,2}){0,4}",
        index in 0_usize..4,
    ) {
        let json = Json::from(whole);
        let whole: Value = serde_json::from_str(json.text()).unwrap();
        prop_assert_eq!(value(json.get(&key)), whole.get(&key).cloned());
        prop_assert_eq!(value(json.get_index(index)), whole.get(index).cloned());
        prop_assert_eq!(value(json.pointer(&pointer)), whole.pointer(&pointer).cloned());
        prop_assert_eq!(json.as_str(), whole.as_str().map(Cow::from));
        prop_assert_eq!(json.as_bool(), whole.as_bool());
        prop_assert_eq!(json.as_i64(), whole.as_i64());
        prop_assert_eq!(json.as_u64(), whole.as_u64());
        prop_assert_eq!(json.as_f64(), whole.as_f64());
        prop_assert_eq!(json.is_null(), whole.is_null());
        prop_assert_eq!(json.is_string(), whole.is_string());
        prop_assert_eq!(json.is_object(), whole.is_object());
        prop_assert_eq!(json.is_array(), whole.is_array());
    }
}

#[test]
fn the_last_of_several_equal_members_counts() {
    let text = r#" {"command": "ls", "c\u006fmmand": "rm -rf /"} "#;
    let json = Json::from_text(text).unwrap();
    let read: Value = serde_json::from_str(text).unwrap();
    assert_eq!(value(json.get("command")), read.get("command").cloned());
    assert_eq!(json.get("command").unwrap().as_str().unwrap(), "rm -rf /");
    assert_eq!(json.pointer("/command").unwrap().as_str().unwrap(), "rm -rf /");
}

#[test]
fn broken_escapes_read_as_the_replacement_character() {
    let json =
        Json::from_text(r#"{"\ud800": 1, "command": "a\udc00b", "list": [{"x": "\ud83d"}]}"#);
    let json = json.unwrap();
    assert_eq!(json.get("command").unwrap().as_str().unwrap(), "a\u{fffd}b");
    assert_eq!(json.get("\u{fffd}").unwrap().as_u64(), Some(1));
    assert_eq!(json.pointer("/list/0/x").unwrap().as_str().unwrap(), "\u{fffd}");
    let whole: Value = json.deserialize().unwrap();
    assert_eq!(whole["command"], "a\u{fffd}b");
}

#[test]
fn a_value_that_is_not_an_object_has_no_members() {
    for text in ["null", "1", "\"command\"", "[\"command\"]", "true"] {
        let json = Json::from_text(text).unwrap();
        assert!(json.get("command").is_none(), "{text}");
        assert!(json.get("0").is_none(), "{text}");
    }
    assert!(Json::from(json!({"0": 1})).get_index(0).is_none());
    assert!(Json::from(json!(["a"])).get_index(1).is_none());
}

#[test]
fn a_member_that_is_null_is_present() {
    let json = Json::from(json!({"command": null}));
    assert!(json.get("command").is_some_and(|command| command.is_null()));
    assert!(json.get("other").is_none());
}

#[test]
fn number_beyond_all_integer_types_is_out_of_range() {
    let json = Json::from_text("1e400").unwrap();
    assert_eq!((json.as_u64(), json.as_i64(), json.as_f64()), (None, None, None));
    assert_eq!(json.text(), "1e400");
}

#[test]
fn a_member_of_a_deep_value_is_found_without_recursion() {
    let deep =
        format!(r#"{{"deep": {}{}, "command": "ls"}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let json = Json::from_text(deep).unwrap();
    assert_eq!(json.get("command").unwrap().as_str().unwrap(), "ls");
}
