//! Transcripts whose shapes are expensive to read for code that scans, moves or walks once per entry.

use std::fmt::Write as _;

/// A shape, and how a transcript of about this many bytes is made.
pub(crate) type Shape = (&'static str, fn(usize) -> Vec<u8>);

/// What the CLI writes, as the measure of the others.
pub(crate) const ORDINARY: Shape = ("ordinary", ordinary);

/// The crafted shapes. The last message of each is `end`.
pub(crate) const CRAFTED: [Shape; 26] = [
    ("alternating responses", alternating_responses),
    ("alternating responses, results elsewhere", alternating_elsewhere),
    ("one entry with the results of all responses", shared_result),
    ("children moved to and fro", moved_children),
    ("chains moved to and fro", moved_chains),
    ("boundaries with anchors of their own", distinct_anchors),
    ("boundaries that keep each other's entries", kept_entries),
    ("repeated compactions of a long chain", repeated_compactions),
    ("absorbed deliveries", absorbed_deliveries),
    ("absorbed sources", absorbed_sources),
    ("repeated deliveries", repeated_deliveries),
    ("caveats", caveats),
    ("queued prompts behind the leaf", trailing_prompts),
    ("progress", progress),
    ("a cycle of progress", progress_cycle),
    ("children before their parent", children_first),
    ("branches with boundaries", boundary_branches),
    ("a boundary that keeps everything", long_list),
    ("branches on a long chain of context", context_branches),
    ("sidechains", sidechains),
    ("titles and tags", titles),
    ("equal ids", equal_ids),
    ("parents far away", far_parents),
    ("nested records that are torn", torn),
    ("records inside of torn ones", torn_records),
    ("an entry with many fields", many_fields),
];

/// Writes entries until a transcript is long enough.
struct Writer {
    text: String,
    bytes: usize,
}

impl Writer {
    fn new(bytes: usize) -> Self {
        Self { text: String::new(), bytes }
    }

    fn is_before(&self, percent: usize) -> bool {
        self.text.len() < self.bytes * percent / 100
    }

    fn line(&mut self, parent: &str, kind: &str, id: &str, more: &str) {
        let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
        self.raw(&format!(
            r#"{{"parentUuid":{parent},"type":"{kind}","uuid":"{id}","sessionId":"s"{more}}}"#
        ));
    }

    fn raw(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn user(&mut self, parent: &str, id: &str) {
        self.line(parent, "user", id, r#","message":{"role":"user","content":"Hi"}"#);
    }

    fn assistant(&mut self, parent: &str, id: &str, response: &str, call: &str) {
        let message = format!(
            r#","message":{{"id":"{response}","content":[{{"type":"tool_use","id":"{call}"}}]}}"#
        );
        self.line(parent, "assistant", id, &message);
    }

    fn result(&mut self, parent: &str, id: &str, call: &str) {
        let block = format!(r#"{{"type":"tool_result","tool_use_id":"{call}"}}"#);
        self.line(parent, "user", id, &format!(r#","message":{{"content":[{block}]}}"#));
    }

    fn boundary(&mut self, id: &str, logical: &str, preserved: &str) {
        let more = format!(
            r#","subtype":"compact_boundary","logicalParentUuid":"{logical}","compactMetadata":{{{preserved}}}"#
        );
        self.line("", "system", id, &more);
    }

    fn segment(&mut self, id: &str, anchor: &str, head: &str, tail: &str) {
        let preserved = format!(
            r#""preservedSegment":{{"anchorUuid":"{anchor}","headUuid":"{head}","tailUuid":"{tail}"}}"#
        );
        self.boundary(id, "root", &preserved);
    }

    fn queued(&mut self, parent: &str, id: &str, more: &str) {
        let more = format!(r#","attachment":{{"type":"queued_command","prompt":"x"{more}}}"#);
        self.line(parent, "attachment", id, &more);
    }

    fn absorbed(&mut self, more: &str) {
        self.raw(&format!(
            r#"{{"type":"queue-operation","operation":"remove","reason":"absorbed_mid_turn"{more}}}"#
        ));
    }

    /// Ends the transcript with a message.
    fn end(mut self, parent: &str) -> Vec<u8> {
        self.assistant(parent, "end", "last", "none");
        self.text.into_bytes()
    }
}

fn ordinary(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    let mut before = String::new();
    for turn in 0.. {
        let id = |name: &str| format!("{name}{turn}");
        writer.user(&before, &id("u"));
        writer.assistant(&id("u"), &id("a"), &id("m"), &id("s"));
        writer.assistant(&id("a"), &id("b"), &id("m"), &id("t"));
        writer.result(&id("a"), &id("r"), &id("s"));
        writer.result(&id("b"), &id("v"), &id("t"));
        writer.assistant(&id("v"), &id("c"), &id("n"), &id("w"));
        before = id("c");
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&before)
}

/// Assistant entries of two responses in turn, each with a result beside the chain.
fn alternating(bytes: usize, is_elsewhere: bool) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let mut before = "root".to_owned();
    for at in 0.. {
        let (id, call) = (format!("a{at}"), format!("t{at}"));
        writer.assistant(&before, &id, if at % 2 == 0 { "A" } else { "B" }, &call);
        let parent = if is_elsewhere { "root" } else { &id };
        writer.result(parent, &format!("r{at}"), &call);
        before = id;
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&before)
}

fn alternating_responses(bytes: usize) -> Vec<u8> {
    alternating(bytes, false)
}

fn alternating_elsewhere(bytes: usize) -> Vec<u8> {
    alternating(bytes, true)
}

/// Every call has its result on the chain, and one entry beside it has all of the results again.
fn shared_result(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let (mut before, mut blocks) = ("root".to_owned(), String::new());
    for at in 0.. {
        let (id, call) = (format!("a{at}"), format!("t{at}"));
        writer.assistant(&before, &id, &format!("m{at}"), &call);
        before = format!("r{at}");
        writer.result(&id, &before, &call);
        write!(blocks, r#"{{"type":"tool_result","tool_use_id":"{call}"}},"#).unwrap();
        if !writer.is_before(80) {
            break;
        }
    }
    blocks.pop();
    writer.line("root", "user", "all", &format!(r#","message":{{"content":[{blocks}]}}"#));
    writer.end(&before)
}

/// Many children of one entry, which every boundary moves to another one.
fn moved_children(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    for id in ["root", "x", "y"] {
        writer.user(if id == "root" { "" } else { "root" }, id);
    }
    for at in 0.. {
        writer.user("x", &format!("c{at}"));
        if !writer.is_before(50) {
            break;
        }
    }
    for at in 0.. {
        let (from, to) = if at % 2 == 0 { ("x", "y") } else { ("y", "x") };
        writer.segment(&format!("b{at}"), from, "root", to);
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("c0")
}

/// As [`moved_children`], with lists of entries that each boundary chains again.
fn moved_chains(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    for id in ["root", "x", "y", "z", "w"] {
        writer.user(if id == "root" { "" } else { "root" }, id);
    }
    for at in 0.. {
        writer.user(["x", "y", "z"][at % 3], &format!("c{at}"));
        if !writer.is_before(50) {
            break;
        }
    }
    for at in 0.. {
        let anchor = ["x", "y", "z"][at % 3];
        let kept = ["z", "x", "y"][at % 3];
        let preserved = format!(
            r#""preservedMessages":{{"anchorUuid":"{anchor}","uuids":["w","c{at}","{kept}"]}}"#
        );
        writer.boundary(&format!("b{at}"), "root", &preserved);
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("c0")
}

/// Boundaries that keep entries behind each other, the last ones first.
fn distinct_anchors(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let mut last = 0;
    for at in 0.. {
        writer.segment(&format!("b{at}"), &format!("b{}", at + 1), "root", &format!("b{}", at + 2));
        writer.user(&format!("b{at}"), &format!("c{at}"));
        last = at;
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&format!("c{last}"))
}

/// Every boundary names some hundred entries of the same conversation.
fn kept_entries(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "c0");
    let mut count = 1;
    while writer.is_before(100) {
        for _ in 0..20 {
            writer.user(&format!("c{}", count - 1), &format!("c{count}"));
            count += 1;
        }
        let ids: Vec<String> = (0..100).map(|at| format!("\"c{}\"", at * 7 % count)).collect();
        let preserved = format!(
            r#""preservedMessages":{{"anchorUuid":"c{}","uuids":[{}]}}"#,
            count / 2,
            ids.join(",")
        );
        writer.boundary(&format!("b{count}"), &format!("c{}", count - 1), &preserved);
    }
    writer.end(&format!("c{}", count - 1))
}

/// A boundary after every prompt, which keeps the whole chain before it.
fn repeated_compactions(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "u0");
    let mut last = 0;
    for at in 0.. {
        let (boundary, summary) = (format!("b{at}"), format!("s{at}"));
        let preserved = format!(
            r#""preservedSegment":{{"anchorUuid":"{summary}","headUuid":"u0","tailUuid":"u{at}"}}"#
        );
        writer.boundary(&boundary, &format!("u{at}"), &preserved);
        writer.line(&boundary, "user", &summary, r#","isCompactSummary":true,"message":{}"#);
        last = at + 1;
        writer.user(&summary, &format!("u{last}"));
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&format!("u{last}"))
}

/// Queued prompts of a turn, each absorbed under an id of its own.
fn absorbed(bytes: usize, field: &str, of_record: &str, distinct: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let mut before = "root".to_owned();
    for at in 0.. {
        let (id, key) = (format!("q{at}"), (at * 7919) % distinct);
        writer.queued(&before, &id, &format!(r#","{field}":"d{key}""#));
        writer.absorbed(&format!(r#","{of_record}":"d{key}""#));
        before = id;
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&before)
}

fn absorbed_deliveries(bytes: usize) -> Vec<u8> {
    absorbed(bytes, "delivery_id", "deliveryId", usize::MAX)
}

fn absorbed_sources(bytes: usize) -> Vec<u8> {
    absorbed(bytes, "source_uuid", "commandUuid", usize::MAX)
}

fn repeated_deliveries(bytes: usize) -> Vec<u8> {
    absorbed(bytes, "delivery_id", "deliveryId", 3)
}

fn caveats(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let mut before = "root".to_owned();
    for at in 0.. {
        let id = format!("c{at}");
        let content = r#","isMeta":true,"message":{"content":"<local-command-caveat>x"}"#;
        writer.line(&before, "user", &id, content);
        before = id;
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&before)
}

fn trailing_prompts(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    writer.assistant("root", "end", "last", "none");
    for at in 0.. {
        let parent = if at % 2 == 0 { "end".to_owned() } else { format!("q{}", at - 1) };
        writer.queued(&parent, &format!("q{at}"), &format!(r#","source_uuid":"s{at}""#));
        writer.queued(&parent, &format!("q{}", at / 2), "");
        if !writer.is_before(100) {
            break;
        }
    }
    writer.text.into_bytes()
}

/// A long chain of progress entries, and as many messages at its end.
fn behind_progress(bytes: usize, is_cycle: bool) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let mut last = 0;
    for at in 0.. {
        let parent = match at {
            0 if is_cycle => "p1".to_owned(),
            0 => "root".to_owned(),
            _ => format!("p{}", at - 1),
        };
        writer.line(&parent, "progress", &format!("p{at}"), "");
        last = at;
        if !writer.is_before(50) {
            break;
        }
    }
    let last = format!("p{last}");
    for at in 0.. {
        writer.user(&last, &format!("u{at}"));
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&last)
}

fn progress(bytes: usize) -> Vec<u8> {
    behind_progress(bytes, false)
}

fn progress_cycle(bytes: usize) -> Vec<u8> {
    behind_progress(bytes, true)
}

/// Branches that a fork must leave out, one after the other.
fn children_first(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    for at in 0.. {
        writer.user("end", &format!("c{at}"));
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("root")
}

/// Branches with a compaction each, which a fork must leave out.
fn boundary_branches(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    for at in 0.. {
        writer.boundary(&format!("b{at}"), "root", "");
        writer.user(&format!("b{at}"), &format!("c{at}"));
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("root")
}

/// Entries of a conversation, and a compaction that names as many others.
fn long_list(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let mut before = "root".to_owned();
    for at in 0.. {
        let id = format!("s{at}");
        writer.line(&before, "system", &id, "");
        before = id;
        if !writer.is_before(80) {
            break;
        }
    }
    let mut ids = String::new();
    for at in 0.. {
        write!(ids, "\"k{at}\",").unwrap();
        if ids.len() * 5 > bytes {
            break;
        }
    }
    ids.pop();
    let preserved = format!(r#""preservedMessages":{{"anchorUuid":"x","uuids":[{ids}]}}"#);
    writer.boundary("b", &before, &preserved);
    writer.line("b", "system", "end", "");
    writer.text.into_bytes()
}

/// A chain of context without a message, and as many branches at its end.
fn context_branches(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    let mut before = String::new();
    for at in 0.. {
        let id = format!("s{at}");
        writer.line(&before, "system", &id, "");
        before = id;
        if !writer.is_before(50) {
            break;
        }
    }
    for at in 0.. {
        writer.line(&before, "attachment", &format!("x{at}"), "");
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end(&before)
}

fn sidechains(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    for at in 0.. {
        let agent = format!(r#","isSidechain":true,"agentId":"g{at}","message":{{}}"#);
        writer.line("root", "user", &format!("x{at}"), &agent);
        writer.line(&format!("x{at}"), "assistant", &format!("y{at}"), &agent);
        writer.result("root", &format!("r{at}"), &format!("t{at}"));
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("root")
}

fn titles(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    for at in 0.. {
        writer.raw(&format!(r#"{{"type":"custom-title","customTitle":"{at}","sessionId":"s"}}"#));
        writer.raw(&format!(r#"{{"type":"tag","tag":"{at}","sessionId":"s"}}"#));
        writer.raw(&format!(r#"{{"type":"tools-used","tools":["t{at}"],"sessionId":"s"}}"#));
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("root")
}

/// Entries of few ids, which come again and again with other parents.
fn equal_ids(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    for at in 0.. {
        writer.user(&format!("e{}", (at * 5) % 7), &format!("e{}", at % 7));
        writer.queued("e1", &format!("e{}", at % 11), r#","delivery_id":"d""#);
        writer.absorbed(r#","deliveryId":"d""#);
        if !writer.is_before(100) {
            break;
        }
    }
    writer.end("e1")
}

/// A conversation whose entries are spread over the file.
fn far_parents(bytes: usize) -> Vec<u8> {
    let count = (bytes / 110).max(40);
    let mut writer = Writer::new(bytes);
    // Every entry once, because the step has no divisor in common with the count.
    let is_divisor = |of: usize, by: usize| of.is_multiple_of(by);
    let is_coprime =
        |step: &usize| !(2..=*step).any(|by| is_divisor(count, by) && is_divisor(*step, by));
    let step = (count / 3..count).find(is_coprime);
    let step = step.unwrap_or(1);
    for at in 0..count {
        let place = at * step % count;
        let parent = if place == 0 { String::new() } else { format!("c{}", place - 1) };
        writer.user(&parent, &format!("c{place}"));
    }
    writer.end(&format!("c{}", count - 1))
}

/// One line with records in each other, none of which has an end.
fn torn(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    writer.raw(&r#"{"type":"x","parentUuid":"#.repeat(bytes / 25));
    writer.raw(&r#"{"parentUuid":["#.repeat(bytes / 60));
    writer.end("root")
}

/// Whole records inside of records that have no end.
fn torn_records(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let piece = r#"{"type":"x","a":[{"type":"x","a":[{"type":"tag","sessionId":"s"},"#;
    writer.raw(&piece.repeat(bytes / piece.len()));
    writer.end("root")
}

fn many_fields(bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(bytes);
    writer.user("", "root");
    let fields = |percent: usize| {
        let mut fields = String::new();
        for at in 0.. {
            write!(fields, ",\"f{}\":0", at * 7919 % 1_000_003).unwrap();
            if fields.len() * 100 > bytes * percent {
                return fields;
            }
        }
        fields
    };
    writer.line("root", "user", "u", &fields(40));
    writer.boundary("b", "u", &fields(30)[1..]);
    let preserved = format!(r#""preservedSegment":{{{}}}"#, &fields(30)[1..]);
    writer.boundary("c", "u", &preserved);
    writer.end("u")
}
