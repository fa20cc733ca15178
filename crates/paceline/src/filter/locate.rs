//! Position of an error in an expression: libpcap returns a message without one.

use std::ops::Range;

use paceline_classic::libpcap::{CompileError, Libpcap, Target};

/// The bytes of an expression that an error refers to, on a best-effort basis.
///
/// A word that the message quotes is looked for. For a syntax error it is the first word up to which the expression
/// could be the start of no other: beginnings of the expression are compiled with what might complete them.
#[must_use]
pub fn locate(
    libpcap: &Libpcap,
    expression: &str,
    target: Target,
    error: &CompileError,
) -> Option<Range<usize>> {
    let words = words(expression);
    if !is_syntax(error) {
        return quoted(&error.message, expression, &words);
    }
    let is_start = |word: &Range<usize>| {
        can_be_completed(libpcap, expression.get(..word.end).unwrap_or_default(), target)
    };
    // Text behind a wrong word cannot mend the expression.
    let guilty = words.partition_point(is_start);
    // Nothing is wrong but that it ends.
    Some(words.get(guilty).cloned().unwrap_or(expression.len()..expression.len()))
}

fn is_syntax(error: &CompileError) -> bool {
    error.message.ends_with("syntax error")
}

/// Words and signs, as far apart as libpcap's scanner needs them.
fn words(expression: &str) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '\\' | '$');
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut in_word = false;
    for (start, c) in expression.char_indices() {
        let end = start + c.len_utf8();
        match words.last_mut() {
            Some(last) if in_word && is_word(c) => last.end = end,
            _ if c.is_whitespace() => {}
            // Of two characters.
            Some(last) if last.end == start && is_pair(expression.get(last.start..end)) => last.end = end,
            _ => words.push(start..end),
        }
        in_word = is_word(c);
    }
    words
}

fn is_pair(text: Option<&str>) -> bool {
    matches!(text, Some(">=" | "<=" | "!=" | "==" | "<<" | ">>" | "&&" | "||"))
}

/// Whether the expression goes on from here in some way that libpcap takes.
fn can_be_completed(libpcap: &Libpcap, start: &str, target: Target) -> bool {
    const ENDS: [&str; 13] = [
        "",
        " 1",
        " = 1",
        " 1 = 1",
        " port 1",
        " 1.2.3.4",
        " 0:0:0:0:0:0",
        " host 1.2.3.4",
        " ip",
        " 0] = 1",
        "] = 1",
        " proto 1",
        " 1-2",
    ];
    // An error that is not of syntax, behind everything else: libpcap makes no program then, which takes minutes for a long
    // expression.
    const STOP: &str = " and vlan 4096";
    let open = start.matches('(').count().saturating_sub(start.matches(')').count());
    // In an arithmetic expression the parentheses close before it is compared.
    let closings = [")".repeat(open), ") = 1".to_owned() + &")".repeat(open.saturating_sub(1))];
    let closings = closings.iter().take(if open > 0 { 2 } else { 1 });
    closings.into_iter().any(|closing| {
        ENDS.iter().any(|end| match libpcap.compile(&format!("{start}{end}{closing}{STOP}"), target) {
            Ok(_) => true,
            // An error of meaning, not of syntax.
            Err(error) => !is_syntax(&error),
        })
    })
}

/// The quoted part of the message, or else a word of the expression that the message ends with or names first.
fn quoted(message: &str, expression: &str, words: &[Range<usize>]) -> Option<Range<usize>> {
    let mut parts = message.split(['\'', '"']);
    if let (_, Some(name)) = (parts.next(), parts.next())
        && !name.is_empty()
        && let Some(start) = expression.find(name)
    {
        return Some(start..start + name.len());
    }
    let is_named = |word: &&Range<usize>| {
        let word = expression.get((*word).clone()).unwrap_or_default();
        word.len() > 1 && message.split(|c: char| !(c.is_alphanumeric() || c == '.')).any(|part| part == word)
    };
    words.iter().rfind(is_named).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_libpcaps() {
        let text = "tcp[12]&0xf0 >= 4 and host a.b";
        let found: Vec<_> = words(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(found, ["tcp", "[", "12", "]", "&", "0xf0", ">=", "4", "and", "host", "a.b"]);
    }
}
