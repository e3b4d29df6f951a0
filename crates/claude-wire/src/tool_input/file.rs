//! Tools for files.

use crate::json::Number;

wire_struct! {
    /// The input of `Read`.
    #[derive(Default)]
    pub struct ReadInput {
        /// The file.
        file_path: String,
        /// The first line that is read.
        offset: Option<Number>,
        /// How many lines are read.
        limit: Option<Number>,
        /// The pages of a PDF that are read, such as `1-5`.
        pages: Option<String>,
        /// Whether a large file is read whole.
        allow_large: Option<bool>,
    }
}

wire_struct! {
    /// The input of `Write`.
    #[derive(Default)]
    pub struct WriteInput {
        /// The file.
        file_path: String,
        /// Its new content.
        content: String,
    }
}

wire_struct! {
    /// The input of `Edit`.
    #[derive(Default)]
    pub struct EditInput {
        /// The file.
        file_path: String,
        /// The text that is replaced.
        old_string: String,
        /// The text that replaces it.
        new_string: String,
        /// Whether every occurrence is replaced, not one.
        replace_all: Option<bool>,
    }
}

wire_struct! {
    /// The input of `NotebookEdit`.
    #[derive(Default)]
    pub struct NotebookEditInput {
        /// The notebook.
        notebook_path: String,
        /// The cell.
        cell_id: Option<String>,
        /// The new source of the cell.
        new_source: String,
        /// `code` or `markdown`.
        cell_type: Option<String>,
        /// `replace`, `insert` or `delete`.
        edit_mode: Option<String>,
    }
}

wire_struct! {
    /// The input of `Glob`.
    #[derive(Default)]
    pub struct GlobInput {
        /// The pattern of the files' paths.
        pattern: String,
        /// The directory that is searched; the working directory if absent.
        path: Option<String>,
    }
}

wire_struct! {
    /// The input of `Grep`.
    #[derive(Default)]
    pub struct GrepInput {
        /// The regular expression.
        pattern: String,
        /// The file or directory that is searched; the working directory if absent.
        path: Option<String>,
        /// A pattern of the files that are searched.
        glob: Option<String>,
        /// `content`, `files_with_matches` or `count`.
        output_mode: Option<String>,
        /// Lines before each match.
        before: Option<Number> as "-B",
        /// Lines after each match.
        after: Option<Number> as "-A",
        /// Lines before and after each match.
        around: Option<Number> as "-C",
        /// Lines before and after each match.
        context: Option<Number>,
        /// Whether line numbers are shown.
        line_numbers: Option<bool> as "-n",
        /// Whether upper and lower case are the same.
        ignore_case: Option<bool> as "-i",
        /// Whether only the matching parts of lines are shown.
        only_matching: Option<bool> as "-o",
        /// The type of the files that are searched, such as `rust`.
        file_type: Option<String> as "type",
        /// How many lines or files are returned.
        head_limit: Option<Number>,
        /// How many are skipped first.
        offset: Option<Number>,
        /// Whether a match may span lines.
        multiline: Option<bool>,
    }
}
