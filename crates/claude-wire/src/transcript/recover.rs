//! Results of parallel tool calls.
//!
//! Calls of one response are chained one after another, and each result hangs on its own call: so
//! every parallel turn forks the tree, and the chain from the leaf passes only one of the results.

use std::collections::BTreeMap;

use super::bits::Bits;
use super::row::{self, Row};
use super::tree::Tree;

/// Puts the lines and results of each response that are not on the chain behind the last line of
/// that response.
pub(super) fn parallel_results(tree: &Tree<'_>, chain: Vec<u32>) -> Vec<u32> {
    let mut taken = Bits::new(tree.index.row_count());
    for node in &chain {
        taken.add(*node);
    }
    let last_lines = last_lines(tree, &chain);
    if last_lines.is_empty() {
        return chain;
    }
    let recovery = Recovery::new(tree, &chain, &taken, &last_lines);
    let mut inserted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for response in responses(tree, &chain) {
        let Some(lines) = recovery.lines.get(&response) else { continue };
        let found = recovery.missing(lines, &taken);
        for node in &found {
            taken.add(*node);
        }
        if let Some(last) = last_lines.get(&response).filter(|_| !found.is_empty()) {
            inserted.insert(*last, found);
        }
    }
    if inserted.is_empty() {
        return chain;
    }
    let with_inserted = |node| [node].into_iter().chain(inserted.remove(&node).unwrap_or_default());
    chain.into_iter().flat_map(with_inserted).collect()
}

/// The response of an assistant entry.
fn response(row: &Row) -> Option<u64> {
    (row.is(row::ASSISTANT) && row.response() != 0).then(|| row.response())
}

/// The last line on the chain of each response.
fn last_lines(tree: &Tree<'_>, chain: &[u32]) -> BTreeMap<u64, u32> {
    chain.iter().filter_map(|node| Some((response(tree.row(*node))?, *node))).collect()
}

/// The responses in the order of their first lines on the chain. One may come more than once.
fn responses(tree: &Tree<'_>, chain: &[u32]) -> Vec<u64> {
    let mut found: Vec<u64> = chain.iter().filter_map(|node| response(tree.row(*node))).collect();
    found.dedup();
    found
}

struct Recovery<'t, 'i> {
    tree: &'t Tree<'i>,
    /// The lines of the responses to which something may be missing, by first position.
    lines: BTreeMap<u64, Vec<u32>>,
    /// Results by the line of their call, both as nodes.
    results: Vec<(u32, u32)>,
    /// The line of each tool call that a result outside of the chain answers. `None` if the calls
    /// of two responses have the same id.
    calls: BTreeMap<u64, Option<u32>>,
    /// The tool calls that are answered on the chain, of those in `calls`.
    answered: Vec<u64>,
}

impl<'t, 'i> Recovery<'t, 'i> {
    fn new(
        tree: &'t Tree<'i>,
        chain: &[u32],
        on_chain: &Bits,
        last_lines: &BTreeMap<u64, u32>,
    ) -> Self {
        let mut recovery = Self {
            tree,
            lines: BTreeMap::new(),
            results: Vec::new(),
            calls: BTreeMap::new(),
            answered: Vec::new(),
        };
        let results: Vec<u32> =
            tree.nodes().filter(|node| !on_chain.has(*node) && is_result(tree, *node)).collect();
        recovery.find_calls(&results);
        for result in results {
            recovery.attach(result);
        }
        recovery.results.sort_by_key(|(line, _)| *line);
        recovery.results.dedup();
        recovery.find_lines(on_chain, last_lines);
        for node in chain {
            let ids = recovery.result_ids(*node);
            recovery.answered.extend(ids.iter().filter(|id| recovery.calls.contains_key(id)));
        }
        recovery
    }

    /// Finds the calls that the results answer.
    fn find_calls(&mut self, results: &[u32]) {
        let ids: Vec<u64> = results.iter().flat_map(|node| self.result_ids(*node)).collect();
        let mut found: BTreeMap<u64, Option<Option<u32>>> =
            ids.into_iter().map(|id| (id, None)).collect();
        if found.is_empty() {
            return;
        }
        for node in self.tree.nodes() {
            let Some(of) = response(self.tree.row(node)) else { continue };
            for id in self.ids(node) {
                if let Some(call) = found.get_mut(&id) {
                    *call = match *call {
                        None => Some(Some(node)),
                        Some(Some(before)) if response(self.tree.row(before)) == Some(of) => {
                            Some(Some(node))
                        }
                        Some(_) => Some(None),
                    };
                }
            }
        }
        self.calls = found.into_iter().map(|(id, call)| (id, call.flatten())).collect();
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
            lines.extend(self.calls.get(&id).copied().flatten().filter(|line| agrees(*line)));
        }
        lines.retain(|line| response(tree.row(*line)).is_some());
        for line in lines {
            if !self.results.iter().rev().take(8).any(|pair| *pair == (line, result)) {
                self.results.push((line, result));
            }
        }
    }

    /// Finds all lines of the responses on the chain that miss a line or a result.
    fn find_lines(&mut self, on_chain: &Bits, last_lines: &BTreeMap<u64, u32>) {
        let tree = self.tree;
        let is_incomplete = |node: &u32| {
            !on_chain.has(*node)
                || self.results.binary_search_by_key(node, |(line, _)| *line).is_ok()
        };
        for node in tree.nodes().filter(is_incomplete) {
            if let Some(of) = response(tree.row(node)).filter(|of| last_lines.contains_key(of)) {
                self.lines.entry(of).or_default();
            }
        }
        if self.lines.is_empty() {
            return;
        }
        for node in tree.nodes() {
            if let Some(of) = response(tree.row(node))
                && let Some(lines) = self.lines.get_mut(&of)
            {
                lines.push(node);
            }
        }
    }

    /// The lines and results of a response that were not taken yet, in their order.
    fn missing(&self, lines: &[u32], taken: &Bits) -> Vec<u32> {
        let tree = self.tree;
        let mut siblings: Vec<u32> =
            lines.iter().copied().filter(|line| !taken.has(*line)).collect();
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        for result in lines.iter().flat_map(|line| self.results_of(*line)) {
            if taken.has(result) || inner.contains(&result) || outer.contains(&result) {
                continue;
            }
            let is_inner = tree.parent_of(result).is_some_and(|parent| lines.contains(&parent));
            if is_inner { inner.push(result) } else { outer.push(result) }
        }
        self.add_unanswered(lines, &mut inner, outer);
        siblings.sort_by_key(|node| tree.row(*node).time());
        inner.sort_by_key(|node| tree.row(*node).time());
        siblings.extend(inner);
        siblings
    }

    /// Adds the results whose parent is outside of the response, if they answer a call of it that
    /// is not answered yet.
    fn add_unanswered(&self, lines: &[u32], inner: &mut Vec<u32>, mut outer: Vec<u32>) {
        if outer.is_empty() {
            return;
        }
        let mut answered = self.answered.clone();
        answered.extend(inner.iter().flat_map(|node| self.result_ids(*node)));
        outer.sort_by_key(|node| self.tree.first(*node));
        for result in outer {
            let ids = self.result_ids(result);
            let is_needed = ids.iter().any(|id| {
                let call = self.calls.get(id).copied().flatten();
                !answered.contains(id) && call.is_some_and(|call| lines.contains(&call))
            });
            if is_needed {
                answered.extend(ids);
                inner.push(result);
            }
        }
    }

    fn results_of(&self, line: u32) -> impl Iterator<Item = u32> {
        let start = self.results.partition_point(|(other, _)| *other < line);
        self.results[start..].iter().take_while(move |(other, _)| *other == line).map(|pair| pair.1)
    }

    /// The tool calls whose results an entry has.
    fn result_ids(&self, node: u32) -> Vec<u64> {
        if self.tree.row(node).has(row::TOOL_RESULT) { self.ids(node) } else { Vec::new() }
    }

    /// The tool calls that an entry has, or answers.
    fn ids(&self, node: u32) -> Vec<u64> {
        let row = self.tree.row(node);
        let mut ids: Vec<u64> = Some(row.tool()).filter(|id| *id != 0).into_iter().collect();
        if row.has(row::MORE_TOOLS) {
            let more = &self.tree.index.more_tools;
            let start = more.partition_point(|(other, _)| *other < node);
            ids.extend(more[start..].iter().take_while(|(at, _)| *at == node).map(|pair| pair.1));
        }
        ids
    }
}

/// Whether an entry has results of tool calls, and hangs on another entry.
fn is_result(tree: &Tree<'_>, node: u32) -> bool {
    tree.row(node).has(row::TOOL_RESULT) && tree.parent_key(node).is_some()
}
