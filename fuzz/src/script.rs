//! Any text is parsed as a script file, or results in an error with its location.

use claude_agent_testkit::sim::script_file;

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(mistake) = script_file::parse(&text) {
        let lines = text.split('\n').count();
        assert!((1..=lines + 1).contains(&mistake.line()), "{mistake}");
        assert!(mistake.column() >= 1 && !mistake.to_string().is_empty());
    }
}
