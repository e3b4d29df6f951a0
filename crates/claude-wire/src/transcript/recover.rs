//! Results of parallel tool calls.
//!
//! Calls of one response are chained one after another, and each result hangs on its own call: so
//! every parallel turn forks the tree, and the chain from the leaf passes only one of the results.

use super::bits::Bits;
use super::row::{self, Row};
use super::tree::Tree;
use crate::sort::{sort_by, sort_nodes};

/// Puts the lines and results of each response that are not on the chain behind the last line of
/// that response.
pub(super) fn parallel_results(tree: &Tree<'_>, chain: Vec<u32>) -> Vec<u32> {
    let mut taken = Bits::new(tree.index.row_count());
    for node in &chain {
        taken.add(*node);
    }
    let mut recovery = Recovery::new(tree, &chain, &taken);
    // What is inserted, and behind which line of the chain.
    let mut inserted: Vec<(u32, u32)> = Vec::with_capacity(recovery.results.len());
    for node in &chain {
        let Some(at) = response(tree.row(*node)).and_then(|of| recovery.response(of)) else {
            continue;
        };
        // Each response once, although its lines may be anywhere on the chain.
        let (of, last) = recovery.responses[at];
        if !recovery.handled.add(to_u32(at)) {
            continue;
        }
        for found in recovery.missing(of, &taken) {
            taken.add(found);
            inserted.push((last, found));
        }
    }
    drop(recovery);
    with_inserted(chain, inserted)
}

/// Inserts each node behind another one, in place.
fn with_inserted(mut chain: Vec<u32>, mut inserted: Vec<(u32, u32)>) -> Vec<u32> {
    sort_by(&mut inserted, &|(behind, _), (other, _)| behind.cmp(other));
    let length = chain.len();
    chain.reserve_exact(inserted.len());
    chain.resize(length + inserted.len(), 0);
    let mut end = chain.len();
    for at in (0..length).rev() {
        // Everything is inserted, so the rest is in its place.
        if end == at + 1 {
            break;
        }
        let node = chain[at];
        let from = inserted.partition_point(|(behind, _)| *behind < node);
        let more = inserted[from..].iter().take_while(|(behind, _)| *behind == node);
        let more = more.count();
        for (place, (_, found)) in chain[end - more..end].iter_mut().zip(&inserted[from..]) {
            *place = *found;
        }
        end -= more + 1;
        chain[end] = node;
    }
    chain
}

/// The response of an assistant entry.
fn response(row: &Row) -> Option<u64> {
    (row.is(row::ASSISTANT) && row.response() != 0).then(|| row.response())
}

/// What may be missing on a chain. Sorted vectors instead of maps: every parallel turn of a long
/// transcript has its part in each of them.
struct Recovery<'t, 'i> {
    tree: &'t Tree<'i>,
    /// The responses to which something may be missing, and their last lines on the chain.
    responses: Vec<(u64, u32)>,
    /// The lines of these responses, by response and then by first position.
    lines: Vec<u32>,
    /// Results by the line of their call, both as nodes.
    results: Vec<(u32, u32)>,
    /// The tool calls that results outside of the chain answer, and their lines.
    calls: Vec<(u64, CallLine)>,
    /// The tool calls that are answered on the chain, by their positions in `calls`.
    answered: Bits,
    /// The results outside of the chain that answer a call which is not answered on the chain, with the
    /// position of that call. By result, and then by the response of the call.
    open: Vec<(u32, u32)>,
    /// The responses that were handled, by their positions in `responses`.
    handled: Bits,
    /// The results that were found for the current response.
    found: Bits,
}

/// The line of a tool call: a node, or one of the two values below.
type CallLine = u32;

const NO_LINE: CallLine = u32::MAX;
/// The calls of two responses have the same id.
const AMBIGUOUS: CallLine = u32::MAX - 1;

impl<'t, 'i> Recovery<'t, 'i> {
    fn new(tree: &'t Tree<'i>, chain: &[u32], on_chain: &Bits) -> Self {
        let mut recovery = Self {
            tree,
            responses: Vec::new(),
            lines: Vec::new(),
            results: Vec::new(),
            calls: Vec::new(),
            answered: Bits::new(0),
            open: Vec::new(),
            handled: Bits::new(0),
            found: Bits::new(0),
        };
        recovery.find_calls(on_chain);
        recovery.results.reserve_exact(results(tree, on_chain).count());
        for result in results(tree, on_chain) {
            recovery.attach(result);
        }
        let key = |(line, result): (u32, u32)| (line, tree.first(result));
        sort_by(&mut recovery.results, &|one, other| key(*one).cmp(&key(*other)));
        recovery.results.dedup();
        recovery.find_lines(chain, on_chain);
        recovery.handled = Bits::new(to_u32(recovery.responses.len()));
        if !recovery.results.is_empty() {
            recovery.found = Bits::new(tree.index.row_count());
            recovery.find_open(chain, on_chain);
        }
        recovery
    }

    /// Finds the calls that are not answered on the chain.
    fn find_open(&mut self, chain: &[u32], on_chain: &Bits) {
        let tree = self.tree;
        self.answered = Bits::new(to_u32(self.calls.len()));
        for node in chain {
            for id in self.result_ids(*node) {
                if let Some(at) = self.call(id) {
                    self.answered.add(to_u32(at));
                }
            }
        }
        for result in results(tree, on_chain) {
            let of_parent = tree.parent_of(result).and_then(|parent| response(tree.row(parent)));
            for id in self.result_ids(result) {
                // Where the parent is a line of the same response, the result is returned in any case.
                if let Some(at) = self.call(id)
                    && let Some(line) = self.call_line(id)
                    && response(tree.row(line)) != of_parent
                    && !self.answered.has(to_u32(at))
                {
                    self.open.push((result, to_u32(at)));
                }
            }
        }
        let calls = &self.calls;
        let key =
            |(result, call): (u32, u32)| (result, tree.row(calls[call as usize].1).response());
        sort_by(&mut self.open, &|one, other| key(*one).cmp(&key(*other)));
    }

    /// Finds the calls that the results outside of the chain answer.
    fn find_calls(&mut self, on_chain: &Bits) {
        let tree = self.tree;
        let mut count = 0;
        for result in results(tree, on_chain) {
            count += self.result_ids(result).count();
        }
        let mut calls: Vec<u64> = Vec::with_capacity(count);
        for result in results(tree, on_chain) {
            for id in self.result_ids(result) {
                calls.push(id);
            }
        }
        self.calls = without_lines(calls);
        if self.calls.is_empty() {
            return;
        }
        for node in tree.nodes() {
            let Some(of) = response(tree.row(node)) else { continue };
            for id in self.ids(node) {
                let Some(at) = self.call(id) else { continue };
                let line = &mut self.calls[at].1;
                *line = match *line {
                    NO_LINE => node,
                    AMBIGUOUS => AMBIGUOUS,
                    before if response(tree.row(before)) == Some(of) => node,
                    _ => AMBIGUOUS,
                };
            }
        }
    }

    /// The position of a call in `calls`.
    fn call(&self, id: u64) -> Option<usize> {
        self.calls.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// The line of a call, if it is known.
    fn call_line(&self, id: u64) -> Option<u32> {
        self.call(id).map(|at| self.calls[at].1).filter(|line| *line < AMBIGUOUS)
    }

    /// Notes the lines that a result belongs to: by its parent, by the line that it names, by the
    /// id of its call.
    fn attach(&mut self, result: u32) {
        let tree = self.tree;
        let row = tree.row(result);
        let agrees = |line: u32| {
            let other = tree.row(line);
            other.has(row::SIDECHAIN) == row.has(row::SIDECHAIN) && other.agent() == row.agent()
        };
        let mut lines: Vec<u32> = tree.parent_of(result).into_iter().collect();
        if row.has(row::HAS_SOURCE) {
            lines.extend(tree.find_prefix(row.response()).filter(|line| agrees(*line)));
        }
        for id in self.result_ids(result) {
            lines.extend(self.call_line(id).filter(|line| agrees(*line)));
        }
        lines.retain(|line| response(tree.row(*line)).is_some());
        for line in lines {
            if !self.results.iter().rev().take(8).any(|pair| *pair == (line, result)) {
                self.results.push((line, result));
            }
        }
    }

    /// Finds all lines of the responses on the chain that miss a line or a result.
    fn find_lines(&mut self, chain: &[u32], on_chain: &Bits) {
        let tree = self.tree;
        let has_result =
            |node: u32| self.results.binary_search_by_key(&node, |(line, _)| *line).is_ok();
        let incomplete = |node: u32| {
            response(tree.row(node)).filter(|_| !on_chain.has(node) || has_result(node))
        };
        // Counted first: a vector that grows takes up to twice the memory.
        let count = tree.nodes().filter(|node| incomplete(*node).is_some()).count();
        let mut responses: Vec<u64> = Vec::with_capacity(count);
        for node in tree.nodes() {
            if let Some(of) = incomplete(node) {
                responses.push(of);
            }
        }
        self.responses = without_lines(responses);
        for node in chain {
            if let Some(at) = response(tree.row(*node)).and_then(|of| self.response(of)) {
                self.responses[at].1 = *node;
            }
        }
        self.responses.retain(|(_, last)| *last != NO_LINE);
        if self.responses.is_empty() {
            return;
        }
        let is_line =
            |node: &u32| response(tree.row(*node)).is_some_and(|of| self.response(of).is_some());
        let mut lines = Vec::with_capacity(tree.nodes().filter(is_line).count());
        for node in tree.nodes() {
            if is_line(&node) {
                lines.push(node);
            }
        }
        self.lines = lines;
        sort_nodes(&mut self.lines, &|node| {
            (tree.row(node).response(), Some(tree.first(node).into()))
        });
    }

    /// The position of a response in `responses`.
    fn response(&self, of: u64) -> Option<usize> {
        self.responses.binary_search_by_key(&of, |(of, _)| *of).ok()
    }

    /// The lines of a response to which something may be missing.
    fn lines_of(&self, of: u64) -> &[u32] {
        let of_line = |line: &u32| self.tree.row(*line).response();
        let start = self.lines.partition_point(|line| of_line(line) < of);
        let end = start + self.lines[start..].partition_point(|line| of_line(line) == of);
        &self.lines[start..end]
    }

    /// Whether a node is a line of this response.
    fn is_line(&self, node: u32, of: u64) -> bool {
        response(self.tree.row(node)) == Some(of)
    }

    /// The lines and results of a response that were not taken yet, in their order.
    fn missing(&mut self, of: u64, taken: &Bits) -> Vec<u32> {
        let tree = self.tree;
        let lines = self.lines_of(of);
        let mut siblings: Vec<u32> =
            lines.iter().copied().filter(|line| !taken.has(*line)).collect();
        let mut candidates = Vec::new();
        for line in lines {
            candidates.extend(self.results_of(*line).filter(|result| !taken.has(*result)));
        }
        // A result may belong to several lines.
        candidates.retain(|result| self.found.add(*result));
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        for result in candidates {
            self.found.remove(result);
            let is_inner = tree.parent_of(result).is_some_and(|parent| self.is_line(parent, of));
            if is_inner { inner.push(result) } else { outer.push(result) }
        }
        self.add_unanswered(of, &mut inner, outer);
        sort_nodes(&mut siblings, &|node| (0, tree.row(node).time()));
        sort_nodes(&mut inner, &|node| (0, tree.row(node).time()));
        siblings.extend(inner);
        siblings
    }

    /// Adds the results whose parent is outside of the response, if they answer a call of it that
    /// is not answered yet.
    fn add_unanswered(&mut self, of: u64, inner: &mut Vec<u32>, mut outer: Vec<u32>) {
        if outer.is_empty() {
            return;
        }
        let mut answered = Vec::new();
        for node in &*inner {
            self.answer(*node, &mut answered);
        }
        sort_nodes(&mut outer, &|node| (self.tree.first(node).into(), None));
        for result in outer {
            let is_needed = self.open_calls(result, of).any(|call| !self.answered.has(call));
            if is_needed {
                self.answer(result, &mut answered);
                inner.push(result);
            }
        }
        // What this response inserts does not count for the others.
        for call in answered {
            self.answered.remove(call);
        }
    }

    /// Notes that the calls of a result are answered, and which of them were not.
    fn answer(&mut self, result: u32, answered: &mut Vec<u32>) {
        for id in self.result_ids(result) {
            if let Some(at) = self.call(id)
                && self.answered.add(to_u32(at))
            {
                answered.push(to_u32(at));
            }
        }
    }

    /// The calls of a response that a result answers, if they are not answered on the chain.
    fn open_calls(&self, result: u32, of: u64) -> impl Iterator<Item = u32> {
        let key = move |(result, call): &(u32, u32)| {
            (*result, self.tree.row(self.calls[*call as usize].1).response())
        };
        let start = self.open.partition_point(|pair| key(pair) < (result, of));
        let calls = self.open[start..].iter().take_while(move |pair| key(pair) == (result, of));
        calls.map(|pair| pair.1)
    }

    fn results_of(&self, line: u32) -> impl Iterator<Item = u32> {
        let start = self.results.partition_point(|(other, _)| *other < line);
        self.results[start..].iter().take_while(move |(other, _)| *other == line).map(|pair| pair.1)
    }

    /// The tool calls whose results an entry has.
    fn result_ids(&self, node: u32) -> Ids<'i> {
        if self.tree.row(node).has(row::TOOL_RESULT) {
            self.ids(node)
        } else {
            Ids { node, first: None, more: &[] }
        }
    }

    /// The tool calls that an entry has, or answers.
    fn ids(&self, node: u32) -> Ids<'i> {
        let row = self.tree.row(node);
        let mut more: &'i [(u32, u64)] = &[];
        if row.has(row::MORE_TOOLS) {
            more = &self.tree.index.more_tools;
            more = &more[more.partition_point(|(other, _)| *other < node)..];
        }
        Ids { node, first: Some(row.tool()).filter(|id| *id != 0), more }
    }
}

/// The tool calls of an entry. A type of its own, as [`Nodes`](super::tree::Nodes) is.
struct Ids<'i> {
    node: u32,
    first: Option<u64>,
    /// Those beyond the first, and then those of later entries.
    more: &'i [(u32, u64)],
}

impl Iterator for Ids<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let ((node, id), rest) = self.more.split_first()?;
        self.more = rest;
        (*node == self.node).then_some(*id)
    }
}

/// Sorts hashes, each of them once and without a line yet.
fn without_lines(mut hashes: Vec<u64>) -> Vec<(u64, u32)> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into_iter().map(|hash| (hash, NO_LINE)).collect()
}

/// A position in a list that has no more than 2^32 values.
fn to_u32(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// The results that are not on the chain.
fn results<'t>(tree: &'t Tree<'_>, on_chain: &'t Bits) -> impl Iterator<Item = u32> {
    tree.nodes().filter(|node| !on_chain.has(*node) && is_result(tree, *node))
}

/// Whether an entry has results of tool calls, and hangs on another entry.
fn is_result(tree: &Tree<'_>, node: u32) -> bool {
    tree.row(node).has(row::TOOL_RESULT) && tree.parent_key(node).is_some()
}
