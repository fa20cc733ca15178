//! A position in a line, and the lexical rules for words, operators and numbers.

/// Characters of words: names, mnemonics, registers, digits.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// Characters that form operators.
pub(super) fn is_operator(c: char) -> bool {
    "+-*/%&|^<>=!".contains(c)
}

/// The rest of a line, without leading blanks. Copies are cheap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { line, rest: line.trim_start() }
    }

    /// Byte offset in the line.
    pub(super) fn at(&self) -> usize {
        self.line.len() - self.rest.len()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The next word or character, for error messages.
    pub(super) fn found(&self) -> Option<String> {
        let mut after = *self;
        after.word().map(str::to_owned).or_else(|| self.peek().map(String::from))
    }

    /// Takes the next word.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        (!word.is_empty()).then_some(word)
    }

    /// Takes the next word if it matches.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        match self.rest.strip_prefix(keyword) {
            Some(rest) if !rest.starts_with(is_word) => {
                self.rest = rest.trim_start();
                true
            }
            _ => false,
        }
    }

    /// Takes an operator or bracket if the rest begins with it.
    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        let rest = self.rest.strip_prefix(symbol);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    /// Takes an unsigned number: decimal, or hexadecimal after `0x`. A number that overflows is saturated, and thus too great for
    /// any field.
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
}
