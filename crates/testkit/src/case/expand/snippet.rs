//! Snippets: named lines with parameters.

use super::line::Line;
use crate::case::error::{ExpandError, Problem};

/// Lines with parameters.
pub(super) struct Snippet {
    pub(super) parameters: Vec<String>,
    /// Without their common indentation.
    pub(super) lines: Vec<Line>,
}

/// `NAME` or `NAME(A, B...)`, in a definition or a use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
}

impl Signature {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let (name, arguments) = match text.trim().split_once('(') {
            Some((name, rest)) => (name, arguments(rest.strip_suffix(')').ok_or(ExpandError::NotACall)?)?),
            None => (text.trim(), Vec::new()),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Problem::BadName(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), arguments })
    }
}

/// Parts between commas outside of parentheses.
fn arguments(text: &str) -> Result<Vec<String>, ExpandError> {
    let mut arguments = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or(ExpandError::NotACall)?,
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(argument) = arguments.last_mut() {
            argument.push(c);
        }
    }
    if depth > 0 {
        return Err(ExpandError::NotACall);
    }
    Ok(arguments.into_iter().map(|argument| argument.trim().to_owned()).collect())
}

/// Characters allowed in names of snippets and parameters.
pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::Signature;

    #[test]
    fn arguments_stand_between_commas() {
        let call = Signature::parse("load(*(u8 *)(r1 + 0), cmpxchg_64(r1 + 0, r0, r2))").expect("a use");
        assert_eq!(call.name, "load");
        assert_eq!(call.arguments, ["*(u8 *)(r1 + 0)", "cmpxchg_64(r1 + 0, r0, r2)"]);
        assert!(Signature::parse("load(a").is_err());
        assert!(Signature::parse("load(a))").is_err());
        assert!(Signature::parse("Load").is_err());
    }
}
