//! Tokens of properties.

use super::error::{Problem, PropertyError};

/// A token, and the column at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, number or address.
    Word(String),
    /// An operator, parenthesis or bracket.
    Mark(&'static str),
    End,
}

/// Marks, those before others that they begin with.
const MARKS: [&str; 18] =
    ["==", "!=", "<=", ">=", "=>", "&&", "||", "<", ">", "!", "(", ")", "[", "]", "+", "-", "&", "="];

/// The tokens of a text, an end at last.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, PropertyError> {
    let (mut tokens, mut rest, mut column) = (Vec::new(), text, 1);
    loop {
        let trimmed = rest.trim_start();
        column += rest[..rest.len() - trimmed.len()].chars().count();
        rest = trimmed;
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { kind: Kind::End, column });
            return Ok(tokens);
        };
        let word = rest.len() - rest.trim_start_matches(is_of_word).len();
        let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
        let (kind, len) = match (word, mark) {
            (0, Some(mark)) => (Kind::Mark(mark), mark.len()),
            (0, None) => return Err(PropertyError { column, problem: Problem::Character(first) }),
            (len, _) => (Kind::Word(rest[..len].to_owned()), len),
        };
        tokens.push(Token { kind, column });
        column += rest[..len].chars().count();
        rest = &rest[len..];
    }
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.:#".contains(character)
}
