//! Formats types and signatures. Paths are reduced to their last segment.

use serde_json::Value;

use super::array;

/// Formats a type.
pub(super) fn type_of(value: &Value) -> String {
    let Some((kind, inner)) = value.as_object().and_then(|value| value.iter().next()) else {
        return value.as_str().unwrap_or("()").to_owned();
    };
    let list = |types: &Value| array(types).iter().map(type_of).collect::<Vec<_>>().join(", ");
    match kind.as_str() {
        "resolved_path" => resolved(inner),
        "generic" | "primitive" => inner.as_str().unwrap_or_default().to_owned(),
        "tuple" => format!("({})", list(inner)),
        "slice" => format!("[{}]", type_of(inner)),
        "array" => format!("[{}; {}]", type_of(&inner["type"]), text(&inner["len"])),
        "borrowed_ref" => {
            let lifetime =
                inner["lifetime"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
            let mutable = if inner["is_mutable"] == true { "mut " } else { "" };
            format!("&{lifetime}{mutable}{}", type_of(&inner["type"]))
        }
        "raw_pointer" => {
            let mutable = if inner["is_mutable"] == true { "mut" } else { "const" };
            format!("*{mutable} {}", type_of(&inner["type"]))
        }
        "impl_trait" => format!("impl {}", bounds(inner)),
        "dyn_trait" => {
            let traits = array(&inner["traits"]).iter().map(|bound| resolved(&bound["trait"]));
            let lifetime = inner["lifetime"].as_str().map(str::to_owned);
            format!("dyn {}", traits.chain(lifetime).collect::<Vec<_>>().join(" + "))
        }
        "qualified_path" => {
            let name = text(&inner["name"]);
            match &inner["trait"] {
                found if found["path"].as_str().is_some_and(|path| !path.is_empty()) => {
                    format!("<{} as {}>::{name}", type_of(&inner["self_type"]), resolved(found))
                }
                _ => format!("{}::{name}", type_of(&inner["self_type"])),
            }
        }
        "function_pointer" => format!("fn{}", signature(&inner["sig"])),
        _ => value.to_string(),
    }
}

/// Formats a path with its arguments.
pub(super) fn resolved(path: &Value) -> String {
    let name = text(&path["path"]);
    let name = name.rsplit("::").next().unwrap_or_default();
    format!("{name}{}", arguments(&path["args"]))
}

fn arguments(arguments: &Value) -> String {
    if arguments["parenthesized"].is_object() {
        let inner = &arguments["parenthesized"];
        let inputs: Vec<String> = array(&inner["inputs"]).iter().map(type_of).collect();
        return format!("({}){}", inputs.join(", "), output(&inner["output"]));
    }
    let inner = &arguments["angle_bracketed"];
    let given = array(&inner["args"]).iter().map(|argument| match argument {
        argument if argument["type"].is_object() => type_of(&argument["type"]),
        argument if argument["lifetime"].is_string() => text(&argument["lifetime"]).to_owned(),
        argument if argument["const"].is_object() => text(&argument["const"]["expr"]).to_owned(),
        _ => "_".to_owned(),
    });
    let constraints = array(&inner["constraints"]).iter().map(|constraint| {
        let binding = &constraint["binding"];
        let name = text(&constraint["name"]);
        match &binding["equality"] {
            Value::Null => format!("{name}: {}", bounds(&binding["constraint"])),
            term => format!("{name} = {}", type_of(&term["type"])),
        }
    });
    let all: Vec<String> = given.chain(constraints).collect();
    if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
}

/// Formats the bounds of a type.
pub(super) fn bounds(list: &Value) -> String {
    let bounds = array(list).iter().filter_map(|bound| match bound {
        bound if bound["trait_bound"].is_object() => {
            let bound = &bound["trait_bound"];
            let maybe = if bound["modifier"] == "maybe" { "?" } else { "" };
            Some(format!("{maybe}{}", resolved(&bound["trait"])))
        }
        bound => bound["outlives"].as_str().map(str::to_owned),
    });
    bounds.collect::<Vec<_>>().join(" + ")
}

/// Formats generic parameters, without those of `impl Trait`.
pub(super) fn generics(generics: &Value) -> String {
    let parameters = array(&generics["params"]).iter().filter_map(|parameter| {
        let name = text(&parameter["name"]);
        let kind = &parameter["kind"];
        if kind["type"]["is_synthetic"] == true {
            return None;
        }
        let bounds = bounds(&kind["type"]["bounds"]);
        let constant = &kind["const"]["type"];
        Some(if constant.is_object() {
            format!("const {name}: {}", type_of(constant))
        } else if bounds.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {bounds}")
        })
    });
    let parameters: Vec<String> = parameters.collect();
    if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) }
}

/// Formats a where clause.
pub(super) fn where_clause(generics: &Value) -> String {
    let clauses = array(&generics["where_predicates"]).iter().filter_map(|clause| {
        let clause = &clause["bound_predicate"];
        clause
            .is_object()
            .then(|| format!("{}: {}", type_of(&clause["type"]), bounds(&clause["bounds"])))
    });
    let clauses: Vec<String> = clauses.collect();
    if clauses.is_empty() { String::new() } else { format!(" where {}", clauses.join(", ")) }
}

/// Formats a function without its name.
pub(super) fn function(inner: &Value) -> String {
    let header = &inner["header"];
    let words = [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")];
    let words: String =
        words.iter().filter(|(key, _)| header[*key] == true).map(|(_, word)| *word).collect();
    let parameters = &inner["generics"];
    format!(
        "{words}fn{}{}{}",
        generics(parameters),
        signature(&inner["sig"]),
        where_clause(parameters)
    )
}

fn signature(signature: &Value) -> String {
    let inputs = array(&signature["inputs"]).iter().map(|input| {
        let written = type_of(&input[1]);
        match (text(&input[0]), written.as_str()) {
            ("self", "Self") => "self".to_owned(),
            ("self", "&Self") => "&self".to_owned(),
            ("self", "&mut Self") => "&mut self".to_owned(),
            (name, written) => format!("{name}: {written}"),
        }
    });
    let inputs: Vec<String> = inputs.collect();
    format!("({}){}", inputs.join(", "), output(&signature["output"]))
}

fn output(output: &Value) -> String {
    if output.is_null() { String::new() } else { format!(" -> {}", type_of(output)) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
