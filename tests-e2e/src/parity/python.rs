//! Reads the names in the sources of the Python SDK.
//!
//! Relies on how these sources are formatted, and is not a parser of the language.

use super::Names;

/// The source files that names are read from, relative to the package directory.
pub const FILES: [&str; 5] =
    ["__init__.py", "types.py", "client.py", "_internal/message_parser.py", "_internal/query.py"];

/// Returns the names that these sources publish, in the order of [`FILES`].
///
/// # Errors
///
/// Returns an error when an expected declaration is missing, because its names would be missed.
pub fn names([package, types, client, parser, query]: &[String; 5]) -> Result<Names, String> {
    let mut names = Names::new();
    let mut all = |kind: &str, what: &str, found: Vec<String>| {
        if found.is_empty() {
            return Err(format!("the sources have no {what}"));
        }
        names.extend(found.into_iter().map(|name| format!("{kind} {name}")));
        Ok(())
    };
    all("export", "`__all__`", quoted(block(package, "__all__ = [")))?;
    all("option", "`ClaudeAgentOptions`", fields(block(types, "class ClaudeAgentOptions:")))?;
    all("method", "`ClaudeSDKClient`", methods(block(client, "class ClaudeSDKClient:")))?;
    all("hook", "`HookEvent`", quoted(block(types, "HookEvent = (")))?;
    all("message", "parser of messages", cases(parser))?;
    let mut operations = requests(types);
    operations.extend(sent(query));
    all("operation", "control requests", operations)?;
    Ok(names)
}

/// Returns the lines after the one that starts like this, up to the next line that is not indented.
fn block<'a>(source: &'a str, start: &str) -> &'a str {
    let Some(at) = source.lines().position(|line| line.starts_with(start)) else { return "" };
    let mut offset: usize = source.split_inclusive('\n').take(at + 1).map(str::len).sum();
    let begin = offset;
    for line in source[begin..].split_inclusive('\n') {
        if !line.trim().is_empty() && !line.starts_with([' ', '\t']) {
            break;
        }
        offset += line.len();
    }
    &source[begin..offset]
}

fn quoted(text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split_once('#').map_or(line, |(code, _)| code));
    code.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns the lines of a class that are indented once, without docstrings.
fn statements(class: &str) -> impl Iterator<Item = &str> {
    let mut in_text = false;
    class.lines().filter_map(move |line| {
        let was_in_text = in_text;
        if line.matches("\"\"\"").count() % 2 == 1 {
            in_text = !in_text;
        }
        let line = line.strip_prefix("    ")?;
        (!was_in_text && !line.starts_with([' ', '"', '#'])).then_some(line)
    })
}

fn fields(class: &str) -> Vec<String> {
    let named = statements(class).filter_map(|line| line.split_once(':'));
    named.map(|(name, _)| name).filter(|name| is_name(name)).map(str::to_owned).collect()
}

fn methods(class: &str) -> Vec<String> {
    let defined = statements(class).filter_map(|line| {
        line.strip_prefix("async def ").or_else(|| line.strip_prefix("def "))?.split_once('(')
    });
    defined.map(|(name, _)| name).filter(|name| !name.starts_with('_')).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the cases of the parser: types, and subtypes of `system`.
fn cases(parser: &str) -> Vec<String> {
    let (mut found, mut kind) = (Vec::new(), "");
    for line in parser.lines() {
        let Some(name) =
            line.trim().strip_prefix("case \"").and_then(|rest| rest.strip_suffix("\":"))
        else {
            continue;
        };
        let depth = line.len() - line.trim_start().len();
        if depth == 8 {
            kind = name;
            found.push(name.to_owned());
        } else if kind == "system" {
            found.push(format!("system/{name}"));
        }
    }
    found
}

/// Returns the subtypes of the request types.
fn requests(types: &str) -> Vec<String> {
    let (mut found, mut class) = (Vec::new(), "");
    for line in types.lines() {
        if let Some(rest) = line.strip_prefix("class ") {
            class = rest.split(['(', ':']).next().unwrap_or_default();
        }
        if class.ends_with("Request") && line.trim().starts_with("subtype: Literal[") {
            found.extend(quoted(line));
        }
    }
    found
}

/// Returns the subtypes that are sent. Those of responses and messages follow another field.
fn sent(query: &str) -> Vec<String> {
    let (mut found, mut before) = (Vec::new(), "");
    for line in query.lines() {
        if let Some((_, subtype)) = line.split_once("\"subtype\": \"")
            && !before.contains("\"type\":")
            && !before.contains("\"response\":")
        {
            found.extend(subtype.split('"').next().map(str::to_owned));
        }
        before = line;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> [String; 5] {
        [
            "__all__ = [\n    # \"Main\"\n    \"query\",\n    \"Transport\",\n]\n",
            "HookEvent = (\n    Literal[\"Stop\"]\n    | Literal[\"Start\"]\n)\n\n\
             class SDKControlStopRequest(TypedDict):\n    subtype: Literal[\"stop\"]\n\n\
             class Answer(TypedDict):\n    subtype: Literal[\"success\"]\n\n\
             class ClaudeAgentOptions:\n    \"\"\"Options:\n\n    no_field: x\n    \"\"\"\n\n    \
             tools: (\n        list | None\n    ) = None\n    \"\"\"About it.\"\"\"\n\n    \
             max_turns: int = 1\n\n    def method(self): ...\n",
            "class ClaudeSDKClient:\n    \"\"\"Text.\"\"\"\n\n    def __init__(self):\n        \
             self.x = 1\n\n    async def connect(\n        self,\n    ): ...\n",
            "    match kind:\n        case \"user\":\n            match block:\n                \
             case \"text\":\n        case \"system\":\n            match subtype:\n                \
             case \"init\":\n",
            "        x = {\n            \"type\": \"system\",\n            \"subtype\": \"lost\",\n        \
             }\n        send({\"subtype\": \"ping\"})\n",
        ]
        .map(str::to_owned)
    }

    #[test]
    fn every_kind_of_name_is_found() {
        let found: Vec<String> = names(&sources()).unwrap().into_iter().collect();
        let expected = [
            "export Transport",
            "export query",
            "hook Start",
            "hook Stop",
            "message system",
            "message system/init",
            "message user",
            "method connect",
            "operation ping",
            "operation stop",
            "option max_turns",
            "option tools",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn missing_declarations_are_errors() {
        for (file, hidden, missing) in [
            (0, "__all__", "`__all__`"),
            (1, "class ClaudeAgentOptions", "`ClaudeAgentOptions`"),
            (2, "class ClaudeSDKClient", "`ClaudeSDKClient`"),
            (1, "HookEvent", "`HookEvent`"),
        ] {
            let mut sources = sources();
            sources[file] = sources[file].replace(hidden, "other");
            assert_eq!(names(&sources).unwrap_err(), format!("the sources have no {missing}"));
        }
    }
}
