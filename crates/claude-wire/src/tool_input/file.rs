//! Tools for files.

use crate::json::Number;

wire_struct! {
    /// The input of `Read`.
    #[derive(Default)]
    pub struct ReadInput {
        /// The file.
        file_path: String,
        /// The first line to read.
        offset: Option<Number>,
        /// The number of lines to read.
        limit: Option<Number>,
        /// The pages of a PDF to read, such as `1-5`.
        pages: Option<String>,
        /// Whether to read a large file completely.
        allow_large: Option<bool>,
    }
}

wire_struct! {
    /// The input of `Write`.
    #[derive(Default)]
    pub struct WriteInput {
        /// The file.
        file_path: String,
        /// The new content.
        content: String,
    }
}

wire_struct! {
    /// The input of `Edit`.
    #[derive(Default)]
    pub struct EditInput {
        /// The file.
        file_path: String,
        /// The text to replace.
        old_string: String,
        /// The replacement.
        new_string: String,
        /// Whether to replace every occurrence.
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
        /// The glob pattern.
        pattern: String,
        /// The directory to search; the working directory if absent.
        path: Option<String>,
    }
}

wire_struct! {
    /// The input of `Grep`.
    #[derive(Default)]
    pub struct GrepInput {
        /// The regular expression.
        pattern: String,
        /// The file or directory to search; the working directory if absent.
        path: Option<String>,
        /// A glob pattern of the files to search.
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
        /// Whether to show line numbers.
        line_numbers: Option<bool> as "-n",
        /// Whether to ignore case.
        ignore_case: Option<bool> as "-i",
        /// Whether to show only the matching parts of lines.
        only_matching: Option<bool> as "-o",
        /// The type of the files to search, such as `rust`.
        file_type: Option<String> as "type",
        /// The maximum number of lines or files to return.
        head_limit: Option<Number>,
        /// The number of lines or files to skip.
        offset: Option<Number>,
        /// Whether a match may span lines.
        multiline: Option<bool>,
    }
}
