//! Tokens.

use std::fmt;

/// A token, with its line from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name, with dots: `load.u16`.
    Word(String),
    /// A number with its sign, if it has one.
    Number(i128),
    /// Text between quotes.
    Text(String),
    /// A single character, or `..`.
    Sign(&'static str),
    /// A character that begins no token.
    Other(char),
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "'{word}'"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Sign(sign) => write!(f, "'{sign}'"),
            Self::Other(other) => write!(f, "{other:?}"),
        }
    }
}

const SIGNS: [&str; 10] = ["..", "(", ")", "{", "}", ":", ",", "=", "@", "?"];

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with(';') {
            let (kind, len) = token(rest);
            tokens.push(Token { line: index + 1, kind });
            rest = rest.get(len..).unwrap_or_default().trim_start();
        }
    }
    tokens
}

/// The token at the start of a text, and its length in bytes. The text is not empty.
fn token(text: &str) -> (TokenKind, usize) {
    let first = text.chars().next().unwrap_or(' ');
    if first.is_ascii_alphabetic() || first == '_' {
        let end =
            text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len());
        return (TokenKind::Word(text[..end].to_owned()), end);
    }
    if first == '"' {
        return quoted(text);
    }
    if let Some((number, len)) = number(text) {
        return (TokenKind::Number(number), len);
    }
    match SIGNS.iter().find(|sign| text.starts_with(**sign)) {
        Some(sign) => (TokenKind::Sign(sign), sign.len()),
        None => (TokenKind::Other(first), first.len_utf8()),
    }
}

fn number(text: &str) -> Option<(i128, usize)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, radix) = unsigned.strip_prefix("0x").map_or((unsigned, 10), |digits| (digits, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let value = i128::from_str_radix(&digits[..end], radix).ok()?;
    let value = if text.starts_with('-') { -value } else { value };
    Some((value, text.len() - digits.len() + end))
}

fn quoted(text: &str) -> (TokenKind, usize) {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (TokenKind::Text(content), at + 1),
            '\\' => match chars.next() {
                Some((_, escaped @ ('"' | '\\'))) => content.push(escaped),
                _ => break,
            },
            c => content.push(c),
        }
    }
    (TokenKind::Other('"'), text.len())
}
