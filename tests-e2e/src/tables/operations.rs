//! The control operations of a session.

use super::{docs, markdown, sources};

/// A table for each file that declares operations.
pub(super) fn tables() -> Result<Vec<(String, String)>, String> {
    let files = sources("session/operations")?;
    let declares = |source: &str| source.lines().any(|line| line == "operations! {");
    let files = files.iter().filter(|(_, source)| declares(source));
    Ok(files.map(|(file, source)| (format!("operations {file}"), table(source))).collect())
}

fn table(source: &str) -> String {
    let declared = docs::functions(source, &["operations! {"]).into_iter();
    let written = docs::functions(source, &["impl Session {"]).into_iter();
    // Functions that do not wait return what the handshake said, and send nothing.
    let written = written.filter(|found| found.declaration.starts_with("pub async fn "));
    let rows: Vec<[String; 2]> = declared
        .chain(written)
        .map(|found| [format!("`{}`", found.name), found.summary()])
        .collect();
    markdown(["method", "what it does"], &rows)
}
