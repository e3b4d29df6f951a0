//! The control operations of a session.

use super::{docs, markdown, sources};

/// The file with operations that have a request but no method.
const REQUESTS: &str = "requests.rs";

/// The first lines of the blocks that declare methods.
const METHODS: [&str; 4] = [
    "operations! { Session:",
    "operations! { McpHandle:",
    "impl Session {",
    "impl McpHandle<'_> {",
];

/// Returns a table for each file that declares operations.
pub(super) fn tables() -> Result<Vec<(String, String)>, String> {
    let files = sources("session/operations")?;
    let declares = |source: &str| source.lines().any(|line| line.starts_with("operations! {"));
    let tables = files.iter().filter_map(|(file, source)| {
        let table = match file.as_str() {
            REQUESTS => requests(source),
            _ if declares(source) => methods(source),
            _ => return None,
        };
        Some((format!("operations {file}"), table))
    });
    Ok(tables.collect())
}

fn methods(source: &str) -> String {
    // Private methods are not documented.
    let found = docs::functions(source, &METHODS).into_iter();
    let rows: Vec<[String; 2]> = found
        .filter(|found| !found.paragraph.is_empty())
        .map(|found| [format!("`{}`", found.name), found.summary()])
        .collect();
    markdown(["method", "what it does"], &rows)
}

/// Formats the lines `Request => Response;` with the doc comments above them.
fn requests(source: &str) -> String {
    let (mut rows, mut comment) = (Vec::new(), Vec::new());
    let declared = source.lines().skip_while(|line| *line != "requests! {");
    for line in declared.map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
        } else if let Some((request, response)) = line.split_once(" => ") {
            let paragraph = docs::paragraph(&comment);
            let summary = docs::sentences(&paragraph).next().unwrap_or_default();
            let response = match response.trim_end_matches(';') {
                "()" => String::new(),
                response => format!("`{response}`"),
            };
            rows.push([format!("`{request}`"), docs::without_links(summary), response]);
            comment.clear();
        }
    }
    markdown(["request", "what it does", "response"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_methods_and_listed_requests_are_found() {
        let source = "operations! { McpHandle:\n    /// Asks. More.\n    fn status() -> X { Y }\n}\n\
                      impl Session {\n    /// Rewinds\n    /// files.\n    pub async fn rewind(&self) {\n    }\n\n    \
                      fn inner(&self) {\n    }\n}\n";
        assert_eq!(
            methods(source),
            "| method | what it does |\n|---|---|\n| `status` | Asks |\n| `rewind` | Rewinds files |\n"
        );
        let source = "    ($( $a => $b; )+) => {\n\nrequests! {\n    /// Sets it.\n    SetColor => ();\n    \
                      /// Lists\n    /// them. More.\n    ListModels => Models;\n}\n";
        assert_eq!(
            requests(source),
            "| request | what it does | response |\n|---|---|---|\n| `SetColor` | Sets it |  |\n\
             | `ListModels` | Lists them | `Models` |\n"
        );
    }
}
