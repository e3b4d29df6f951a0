//! Reads the names in the declarations of the TypeScript SDK.
//!
//! Relies on how the declarations of this package are formatted, and is not a parser of the language.

use std::collections::BTreeMap;

use super::Names;

/// Returns the names that a file of declarations publishes.
///
/// # Errors
///
/// Returns an error when an expected declaration is missing, because its names would be missed.
pub fn names(declarations: &str) -> Result<Names, String> {
    let text = without_comments(declarations);
    let types = Declarations::read(&text);
    let mut names: Names = types
        .0
        .values()
        .filter(|found| found.exported)
        .map(|found| line("export", found.name))
        .collect();
    names.extend(members(types.get("Options")?.body).iter().map(|(name, _)| line("option", name)));
    names.extend(members(types.get("Query")?.body).iter().map(|(name, _)| line("method", name)));
    for class in ["WarmQuery", "SpareProcess"] {
        let members = members(types.get(class)?.body);
        names.extend(members.iter().map(|(name, _)| line("method", &format!("{class}.{name}"))));
    }
    names.extend(quoted(types.get("HookEvent")?.body).map(|event| line("hook", event)));
    types.tags("StdoutMessage", &mut |kind, subtype| {
        let name = subtype.map_or_else(|| kind.to_owned(), |subtype| format!("{kind}/{subtype}"));
        names.insert(line("message", &name));
    })?;
    types.tags("SDKControlRequestInner", &mut |_, subtype| {
        names.extend(subtype.map(|subtype| line("operation", subtype)));
    })?;
    Ok(names)
}

fn line(kind: &str, name: &str) -> String {
    format!("{kind} {name}")
}

/// A top-level declaration.
struct Declaration<'a> {
    name: &'a str,
    exported: bool,
    body: &'a str,
}

struct Declarations<'a>(BTreeMap<&'a str, Declaration<'a>>);

impl<'a> Declarations<'a> {
    /// Splits a text into declarations, each of which starts at the beginning of a line.
    fn read(text: &'a str) -> Self {
        let mut starts: Vec<usize> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line.starts_with("export ") || line.starts_with("declare ") {
                starts.push(at);
            }
            at += line.len();
        }
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let pieces = starts.iter().zip(ends).map(|(start, end)| &text[*start..end]);
        Self(pieces.filter_map(declaration).map(|found| (found.name, found)).collect())
    }

    fn get(&self, name: &str) -> Result<&Declaration<'a>, String> {
        self.0.get(name).ok_or_else(|| format!("the declarations have no `{name}`"))
    }

    /// Calls `found` with the `type` and `subtype` of every member of a union.
    fn tags(&self, union: &str, found: &mut dyn FnMut(&str, Option<&str>)) -> Result<(), String> {
        let body = self.get(union)?.body;
        if !body.trim_start().starts_with('{') {
            for part in body.trim().trim_end_matches(';').split('|') {
                // A member of a union may be qualified with the name of its module.
                let name = part.trim().rsplit('.').next().unwrap_or_default();
                self.tags(name, found)?;
            }
            return Ok(());
        }
        let members = members(body);
        let literals = |wanted: &str| {
            let value = members.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            quoted(value.unwrap_or_default()).collect::<Vec<_>>()
        };
        let kind = literals("type").first().copied().unwrap_or_default();
        let subtypes = literals("subtype");
        if kind.is_empty() && subtypes.is_empty() {
            return Err(format!("`{union}` has neither type nor subtype"));
        }
        match subtypes.as_slice() {
            [] => found(kind, None),
            subtypes => subtypes.iter().for_each(|subtype| found(kind, Some(subtype))),
        }
        Ok(())
    }
}

fn declaration(piece: &str) -> Option<Declaration<'_>> {
    let exported = piece.starts_with("export ");
    let rest = piece.strip_prefix("export ").unwrap_or(piece).strip_prefix("declare ")?;
    let (_, rest) = rest.split_once(' ')?;
    let end = rest.find(|c: char| !is_word(c))?;
    let (name, rest) = rest.split_at(end);
    // Whichever comes first: `type A = …` or `interface A … {…}`.
    let body = match (rest.find('='), rest.find('{')) {
        (Some(equals), brace) if brace.is_none_or(|brace| equals < brace) => &rest[equals + 1..],
        (_, Some(brace)) => &rest[brace..],
        _ => rest,
    };
    Some(Declaration { name, exported, body })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Returns the members of the object type at the start of a text, and of those joined to it with `&`.
fn members(body: &str) -> Vec<(&str, &str)> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    let mut quote = None;
    for (at, c) in body.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '{' | '(' | '[') => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            (None, '}' | ')' | ']') => depth = depth.saturating_sub(1),
            (None, ';') if depth == 1 => {
                found.extend(member(&body[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Returns the name of a member and the text after it. Members with computed names are omitted.
fn member(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let text = text.strip_prefix("readonly ").unwrap_or(text);
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then_some((name, rest))
}

/// Returns the texts in single quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('\'').skip(1).step_by(2)
}

/// Removes comments, except inside quotes.
fn without_comments(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            let end = match c {
                '\'' | '"' | '`' => rest[1..].find(c).map_or(rest.len(), |end| end + 2),
                c => c.len_utf8(),
            };
            kept.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        };
        rest = &rest[skipped..];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARATIONS: &str = r"
export declare function query(_params: { prompt: string; }): Query;
export declare const HOOK_EVENTS: readonly ['Start', 'End'];
declare type Hidden = { type: 'hidden'; };
export declare type Options = {
    /** `quoted: string;` in a comment, it's no member */
    maxTurns?: number;
    env?: { [name: string]: string; };
    settings?: string | { a: string; };
};
export declare interface Query extends AsyncGenerator<SDKMessage, void> {
    interrupt(): Promise<void>;
    rewindFiles(id: string, options?: { dryRun?: boolean; }): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
export declare interface WarmQuery extends AsyncDisposable { query(prompt: string): Query; }
export declare interface SpareProcess { readonly claimed: Promise<void>; }
export declare type HookEvent = 'Start' | 'End';
export declare type SDKResult = {
    type: 'result';
    subtype: 'success' | 'error'; // both
};
export declare type SDKMessage = SDKResult | Hidden;
declare type StdoutMessage = core.SDKMessage | Hidden;
declare type SDKInterrupt = {
    subtype: 'interrupt';
};
declare type SDKControlRequestInner = SDKInterrupt;
export { }
";

    #[test]
    fn every_kind_of_name_is_found() {
        let found: Vec<String> = names(DECLARATIONS).unwrap().into_iter().collect();
        let expected = [
            "export HOOK_EVENTS",
            "export HookEvent",
            "export Options",
            "export Query",
            "export SDKMessage",
            "export SDKResult",
            "export SpareProcess",
            "export WarmQuery",
            "export query",
            "hook End",
            "hook Start",
            "message hidden",
            "message result/error",
            "message result/success",
            "method SpareProcess.claimed",
            "method WarmQuery.query",
            "method interrupt",
            "method rewindFiles",
            "operation interrupt",
            "option env",
            "option maxTurns",
            "option settings",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn missing_declarations_are_errors() {
        let without = DECLARATIONS.replace("type Options", "type Choices");
        assert_eq!(names(&without).unwrap_err(), "the declarations have no `Options`");
        let untagged = DECLARATIONS.replace("subtype: 'interrupt'", "kind: 'interrupt'");
        assert!(names(&untagged).unwrap_err().contains("neither type nor subtype"));
    }
}
