//! The lexer: words, numbers and punctuation with their positions.

use super::error::{Problem, TextError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Word(&'a str),
    Number(i64),
    Punctuation(char),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    line: usize,
    column: usize,
}

impl Token<'_> {
    pub(super) fn error(&self, problem: Problem) -> TextError {
        TextError { line: self.line, column: self.column, problem }
    }

    pub(super) fn unexpected(&self, wanted: &'static str) -> TextError {
        let found = match self.kind {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Number(number) => format!("`{number}`"),
            Kind::Punctuation(c) => format!("`{c}`"),
            Kind::End => "the end".to_owned(),
        };
        self.error(Problem::Unexpected { wanted, found })
    }
}

/// The tokens of a text, ending with [`Kind::End`]. Comments start with `;`, `//` or `/*`, and with `#` in the first column, for
/// line markers of the C preprocessor.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, TextError> {
    let mut lexer = Lexer { rest: text, line: 1, column: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space()?;
        let (line, column) = (lexer.line, lexer.column);
        let kind = lexer.next()?;
        tokens.push(Token { kind, line, column });
        if kind == Kind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Lexer<'a> {
    fn error(&self, problem: Problem) -> TextError {
        TextError { line: self.line, column: self.column, problem }
    }

    /// Takes a number of bytes, which must end at a character boundary.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, good: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(|c| !good(c)).unwrap_or(self.rest.len()))
    }

    fn skip_space(&mut self) -> Result<(), TextError> {
        loop {
            self.take_while(char::is_whitespace);
            let preprocessor = self.column == 1 && self.rest.starts_with('#');
            if preprocessor || self.rest.starts_with(';') || self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").ok_or_else(|| self.error(Problem::OpenComment))?;
                self.take(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Kind<'a>, TextError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match self.rest.chars().next() {
            None => Ok(Kind::End),
            Some(c) if c.is_ascii_digit() => {
                let before = self.error(Problem::Character(c));
                let text = self.take_while(is_word);
                number(text)
                    .map(Kind::Number)
                    .ok_or(TextError { problem: Problem::Number(text.to_owned()), ..before })
            }
            Some(c) if is_word(c) => Ok(Kind::Word(self.take_while(is_word))),
            Some(c) if c.is_ascii_punctuation() => {
                self.take(1);
                Ok(Kind::Punctuation(c))
            }
            Some(c) => Err(self.error(Problem::Character(c))),
        }
    }
}

/// A number in C's syntax, or binary.
fn number(text: &str) -> Option<i64> {
    let digits = |text: &str, radix| u32::from_str_radix(text, radix).ok().map(i64::from);
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        digits(hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        digits(binary, 2)
    } else if lower.len() > 1 && lower.starts_with('0') {
        digits(&lower, 8)
    } else {
        digits(&lower, 10)
    }
}

/// A position in a list of tokens.
pub(super) struct Cursor<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, TextError> {
        Ok(Self { tokens: tokens(text)?, at: 0 })
    }

    pub(super) fn peek(&self) -> Token<'a> {
        let end = Token { kind: Kind::End, line: 1, column: 1 };
        self.tokens.get(self.at).or(self.tokens.last()).copied().unwrap_or(end)
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes the next token if it matches.
    pub(super) fn accept(&mut self, kind: Kind<'_>) -> bool {
        let is = self.peek().kind == kind;
        self.at += usize::from(is);
        is
    }

    pub(super) fn accept_all(&mut self, c: &str) -> bool {
        let matches = c.chars().enumerate().all(|(ahead, c)| {
            self.tokens.get(self.at + ahead).is_some_and(|token| token.kind == Kind::Punctuation(c))
        });
        self.at += if matches { c.len() } else { 0 };
        matches
    }

    pub(super) fn expect(&mut self, c: char, wanted: &'static str) -> Result<(), TextError> {
        let token = self.peek();
        if self.accept(Kind::Punctuation(c)) { Ok(()) } else { Err(token.unexpected(wanted)) }
    }

    pub(super) fn word(&mut self, wanted: &'static str) -> Result<(Token<'a>, &'a str), TextError> {
        let token = self.next();
        match token.kind {
            Kind::Word(word) => Ok((token, word)),
            _ => Err(token.unexpected(wanted)),
        }
    }

    /// An optionally signed number from `low` to `high`.
    pub(super) fn number(&mut self, low: i64, high: i64) -> Result<i64, TextError> {
        let token = self.peek();
        let negative = self.accept(Kind::Punctuation('-'));
        if !negative {
            self.accept(Kind::Punctuation('+'));
        }
        let next = self.next();
        let Kind::Number(magnitude) = next.kind else { return Err(next.unexpected("a number")) };
        let value = if negative { -magnitude } else { magnitude };
        if (low..=high).contains(&value) {
            Ok(value)
        } else {
            Err(token.error(Problem::Range { value, low, high }))
        }
    }

    /// A 32-bit number, signed or unsigned.
    pub(super) fn constant(&mut self) -> Result<u32, TextError> {
        Ok(self.number(i32::MIN.into(), u32::MAX.into())? as u32)
    }
}
