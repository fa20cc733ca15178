//! A place in a line, and the lexical rules: what is a word, an operator, a number.

/// Characters of words: names, mnemonics, registers, digits.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// Characters that hold together as one operator.
pub(super) fn is_operator(c: char) -> bool {
    "+-*/%&|^<>=!".contains(c)
}

/// The rest of a line. Copies are cheap: trying a template takes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { line, rest: line }
    }

    /// Byte offset in the line of what comes next, blanks skipped.
    pub(super) fn at(&self) -> usize {
        self.line.len() - self.skipped().len()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.skipped().is_empty()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.skipped().chars().next()
    }

    /// The next word or character, for error messages.
    pub(super) fn found(&self) -> Option<String> {
        let mut after = *self;
        after.word().map(str::to_owned).or_else(|| self.peek().map(String::from))
    }

    /// Takes the next word.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        let rest = self.skipped();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        if word.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let mut after = *self;
        let taken = after.word() == Some(keyword);
        if taken {
            *self = after;
        }
        taken
    }

    /// Takes an operator or bracket if the rest begins with it.
    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        let taken = self.skipped().strip_prefix(symbol);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    /// Takes an unsigned number: decimal, or hexadecimal after `0x`. One that is too great for any field is
    /// taken as the greatest.
    pub(super) fn number(&mut self) -> Option<i128> {
        let mut after = *self;
        let word = after.word()?;
        let (digits, radix) = word.strip_prefix("0x").map_or((word, 10), |hex| (hex, 16));
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return None;
        }
        *self = after;
        Some(i128::from_str_radix(digits, radix).unwrap_or(i128::MAX))
    }

    fn skipped(&self) -> &'a str {
        self.rest.trim_start()
    }
}
