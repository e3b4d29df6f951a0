//! Checks the syntax of JavaScript regular expressions without flags, as the matchers of hooks are.

use std::iter::Peekable;
use std::str::Chars;

/// Groups deeper than this are reported. The CLI's own limit is far above it.
const MAX_DEPTH: usize = 200;

/// Returns why a JavaScript engine rejects a pattern.
pub(super) fn check(pattern: &str) -> Result<(), &'static str> {
    let has_names = pattern.contains("(?<");
    let mut parser =
        Parser { rest: pattern.chars().peekable(), depth: 0, has_names, references: Vec::new() };
    let names = parser.alternatives()?;
    if parser.rest.peek().is_some() {
        return Err("unmatched `)`");
    }
    // Without named groups, `\k` is the letter.
    let has_names = !names.is_empty();
    match parser
        .references
        .iter()
        .find(|name| !name.as_ref().is_some_and(|name| names.contains(name)))
    {
        Some(_) if has_names => Err("invalid named reference"),
        _ => Ok(()),
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
    /// Whether the pattern may have named groups.
    has_names: bool,
    /// The names after `\k`; `None` if there was none.
    references: Vec<Option<String>>,
}

/// What a quantifier would repeat.
enum Term {
    Repeatable,
    /// A position, such as `^`.
    Position,
}

impl Parser<'_> {
    /// Parses alternatives up to the end of the group and returns the names of the groups in them.
    fn alternatives(&mut self) -> Result<Vec<String>, &'static str> {
        let mut all = Vec::new();
        // A name may be used once in each alternative.
        let mut names: Vec<String> = Vec::new();
        loop {
            match self.rest.peek() {
                None | Some(')') => break,
                Some('|') => {
                    self.rest.next();
                    all.append(&mut names);
                }
                Some(_) => {
                    let (term, inside) = self.term()?;
                    if inside.iter().any(|name| names.contains(name)) {
                        return Err("duplicate group name");
                    }
                    names.extend(inside);
                    self.quantifier(&term)?;
                }
            }
        }
        all.append(&mut names);
        Ok(all)
    }

    fn term(&mut self) -> Result<(Term, Vec<String>), &'static str> {
        let term = match self.rest.next() {
            Some('(') => return self.group(),
            Some('^' | '$') => Term::Position,
            Some('*' | '+' | '?') => return Err("nothing to repeat"),
            Some('{') if self.braces().is_some() => return Err("nothing to repeat"),
            Some('[') => {
                self.class()?;
                Term::Repeatable
            }
            Some('\\') => self.escape()?,
            _ => Term::Repeatable,
        };
        Ok((term, Vec::new()))
    }

    fn escape(&mut self) -> Result<Term, &'static str> {
        match self.rest.next() {
            None => Err("`\\` at the end"),
            Some('b' | 'B') => Ok(Term::Position),
            Some('k') if self.has_names => {
                let rest = self.rest.clone();
                let name = self.eats("<").then(|| self.name()).flatten();
                if name.is_none() {
                    self.rest = rest;
                }
                self.references.push(name);
                Ok(Term::Repeatable)
            }
            Some(_) => Ok(Term::Repeatable),
        }
    }

    fn group(&mut self) -> Result<(Term, Vec<String>), &'static str> {
        let (mut own, mut term) = (None, Term::Repeatable);
        if self.eats("?") {
            if self.eats("<=") || self.eats("<!") {
                term = Term::Position;
            } else if self.eats("<") {
                own = Some(self.name().ok_or("invalid group name")?);
            } else if !self.eats(":") && !self.eats("=") && !self.eats("!") {
                self.modifiers()?;
            }
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too many nested groups");
        }
        let mut names = self.alternatives()?;
        self.depth -= 1;
        if !self.eats(")") {
            return Err("unterminated group");
        }
        if let Some(own) = own {
            if names.contains(&own) {
                return Err("duplicate group name");
            }
            names.push(own);
        }
        Ok((term, names))
    }

    /// Parses the flags of a group such as `(?i-m:`.
    fn modifiers(&mut self) -> Result<(), &'static str> {
        let mut seen = Vec::new();
        let mut has_minus = false;
        loop {
            match self.rest.next() {
                Some(':') if !seen.is_empty() => return Ok(()),
                Some('-') if !has_minus => has_minus = true,
                Some(flag @ ('i' | 'm' | 's')) if !seen.contains(&flag) => seen.push(flag),
                _ => return Err("invalid group"),
            }
        }
    }

    /// Parses a name up to `>`.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                '>' => return Some(name).filter(|name| !name.is_empty()),
                letter if letter == '$' || letter == '_' || letter.is_alphabetic() => {
                    name.push(letter);
                }
                letter if letter.is_alphanumeric() && !name.is_empty() => name.push(letter),
                _ => return None,
            }
        }
    }

    fn quantifier(&mut self, term: &Term) -> Result<(), &'static str> {
        let found = match self.rest.peek() {
            Some('*' | '+' | '?') => self.rest.next().is_some(),
            Some('{') => {
                let before = self.rest.clone();
                self.rest.next();
                let range = self.braces();
                if range.is_none() {
                    self.rest = before;
                    return Ok(());
                }
                if range.is_some_and(|(from, to)| from > to) {
                    return Err("numbers of a quantifier are out of order");
                }
                true
            }
            _ => false,
        };
        if !found {
            return Ok(());
        }
        self.eats("?");
        match term {
            Term::Repeatable => Ok(()),
            Term::Position => Err("nothing to repeat"),
        }
    }

    /// Parses the rest of `{n}`, `{n,}` or `{n,m}`. Anything else is text, and is not consumed.
    fn braces(&mut self) -> Option<(u64, u64)> {
        let mut rest = self.rest.clone();
        let from = number(&mut rest)?;
        let mut to = from;
        if rest.next_if_eq(&',').is_some() {
            to = if rest.peek() == Some(&'}') { u64::MAX } else { number(&mut rest)? };
        }
        rest.next_if_eq(&'}')?;
        self.rest = rest;
        Some((from, to))
    }

    /// Parses a class after `[`.
    fn class(&mut self) -> Result<(), &'static str> {
        self.eats("^");
        loop {
            let Some(from) = self.class_atom()? else { return Ok(()) };
            if self.rest.peek() != Some(&'-') {
                continue;
            }
            self.rest.next();
            let Some(to) = self.class_atom()? else { return Ok(()) };
            // A range with a class such as `\w` at either end is a list.
            if from.zip(to).is_some_and(|(from, to)| from > to) {
                return Err("range of a class is out of order");
            }
        }
    }

    /// Parses one member of a class, whose code is `None` for a class such as `\w`. Returns `None` after
    /// the end of the class.
    #[expect(clippy::option_option, reason = "the end, a class in the class, or a character")]
    fn class_atom(&mut self) -> Result<Option<Option<u32>>, &'static str> {
        match self.rest.next() {
            None => Err("unterminated class"),
            Some(']') => Ok(None),
            Some('\\') => match self.rest.next() {
                None => Err("`\\` at the end"),
                Some('d' | 'D' | 'w' | 'W' | 's' | 'S') => Ok(Some(None)),
                Some(letter) => Ok(Some(Some(self.escaped(letter)))),
            },
            Some(letter) => Ok(Some(Some(letter.into()))),
        }
    }

    /// Returns the code of an escaped character in a class.
    fn escaped(&mut self, letter: char) -> u32 {
        match letter {
            'b' => 8,
            't' => 9,
            'n' => 10,
            'v' => 11,
            'f' => 12,
            'r' => 13,
            'x' => self.hex(2).unwrap_or_else(|| letter.into()),
            'u' => self.hex(4).unwrap_or_else(|| letter.into()),
            'c' => match self.rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '_') {
                Some(next) => u32::from(next) % 32,
                // A backslash and the letter `c`.
                None => letter.into(),
            },
            '0'..='7' => self.octal(letter),
            'k' => {
                self.references.push(None);
                letter.into()
            }
            letter => letter.into(),
        }
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut rest = self.rest.clone();
        let mut value = 0;
        for _ in 0..digits {
            value = value * 16 + rest.next()?.to_digit(16)?;
        }
        self.rest = rest;
        Some(value)
    }

    fn octal(&mut self, first: char) -> u32 {
        let mut value = first.to_digit(8).unwrap_or_default();
        while let Some(digit) = self.rest.peek().and_then(|next| next.to_digit(8)) {
            if value * 8 + digit > 0o377 {
                break;
            }
            value = value * 8 + digit;
            self.rest.next();
        }
        value
    }

    /// Consumes this text if it follows.
    fn eats(&mut self, text: &str) -> bool {
        let mut rest = self.rest.clone();
        let found = text.chars().all(|letter| rest.next() == Some(letter));
        if found {
            self.rest = rest;
        }
        found
    }
}

/// Parses an integer; one that is too large counts as the largest.
fn number(rest: &mut Peekable<Chars<'_>>) -> Option<u64> {
    let mut value = None;
    while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
        rest.next();
        value = Some(value.unwrap_or(0_u64).saturating_mul(10).saturating_add(digit.into()));
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check;

    /// As `new RegExp` decides in Node.js 20, except for flags of groups, which newer engines accept.
    #[test]
    fn patterns_are_accepted_as_by_a_javascript_engine() {
        for pattern in VALID.split_whitespace() {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
        for pattern in INVALID.split_whitespace() {
            assert!(check(pattern).is_err(), "{pattern}");
        }
        assert_eq!(check(&"(".repeat(1_000_000)), Err("too many nested groups"));
    }

    const VALID: &str = r"a ^ $ . \w \b (a) (?:a) (?=a)* (?!a){2} (?<=a) (?<!a) (?<n>a)\k<n> (?<n>a)|(?<n>b) \k \k<q> \k< {  } ] {a} {,1}
        a{ a{1 a{1,2}? a{2,} a*? a+? a?? [] [^] [a-] [-a] [a-z] [\w-a] [a-\w] [\b-a] [\x41-\x42] [\u0041-a] [\1-\2]
        [\08-9] \1 \8 \x \u \u{41} \cA \c \p{L} (?i:a) (?i-m:a) (?-s:a) (|a) a| | () (?:) a{99999999999999999999,99999999999999999999}";

    const INVALID: &str = r"( ) a) (a [ [a [\ \ * + ? ^* $+ \b* \B{2} (?<=a)* (?<!a)? a** a+* a{2}{3} {2} {2,} |* (*) (?:+) a{2,1} [z-a]
        [b-\x41] [\2-\1] [\c-a] (? (?a) (?<) (?<>a) (?<1>a) (?<n (?<n>a)(?<n>b) (?<n>(?<n>a)) (?<n>a)\k<q> (?<n>a)\k (?<n>a)[\k]
        \k<(?<n>a) (?P<n>a) (?ii:a) (?i-i:a) (?-:a) (?i) (?#a)";

    proptest! {
        #[test]
        fn any_text_is_checked_without_a_panic(pattern in "\\PC{0,40}|[a(?<>:|)*{1,}\\[\\]\\\\k-]{0,40}") {
            let _ = check(&pattern);
        }
    }
}
