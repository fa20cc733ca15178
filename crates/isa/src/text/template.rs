//! Parsed form of the table's text column, whose syntax is described in [`table`](crate::table).

use std::sync::LazyLock;

use super::cursor::{is_operator, is_word};
use super::spellings::{AMBIGUOUS, SPELLINGS};
use crate::table::{Encoding, Form, TABLE, row_of};

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Literal text.
    Literal(&'static str),
    /// A register.
    Register(RegisterPlace),
    /// A number or a name.
    Number(NumberPlace),
}

/// A placeholder for a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegisterPlace {
    pub(super) field: RegisterField,
    /// Accepted prefixes, `r` or `w`; the first one is printed.
    pub(super) prefixes: &'static str,
}

/// The field of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterField {
    Dst,
    Src,
}

/// A placeholder for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberPlace {
    Imm,
    Off,
    Jump,
    Far,
    Sub,
    Helper,
    Kfunc,
    Module,
    To,
    From,
    Plus,
    Value,
    Map,
    MapId,
    At,
    Next,
}

impl NumberPlace {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "imm" => Self::Imm,
            "off" => Self::Off,
            "jump" => Self::Jump,
            "far" => Self::Far,
            "sub" => Self::Sub,
            "helper" => Self::Helper,
            "kfunc" => Self::Kfunc,
            "module" => Self::Module,
            "to" => Self::To,
            "from" => Self::From,
            "plus" => Self::Plus,
            "value" => Self::Value,
            "map" => Self::Map,
            "map_id" => Self::MapId,
            "at" => Self::At,
            "next" => Self::Next,
            _ => return None,
        })
    }
}

impl RegisterPlace {
    fn named(name: &'static str) -> Option<Self> {
        let (prefixes, field) = name.split_at_checked(name.len().checked_sub(1)?)?;
        let field = match field {
            "d" => RegisterField::Dst,
            "s" => RegisterField::Src,
            _ => return None,
        };
        matches!(prefixes, "r" | "w" | "rw" | "wr").then_some(Self { field, prefixes })
    }
}

impl Piece {
    /// The piece for a placeholder's name. An unknown name would be literal text; a test checks that none exists.
    fn named(name: &'static str) -> Self {
        let number = NumberPlace::named(name).map(Self::Number);
        let register = RegisterPlace::named(name).map(Self::Register);
        number.or(register).unwrap_or(Self::Literal(name))
    }
}

/// The parts of a template in order.
pub(super) fn pieces(template: &'static str) -> impl Iterator<Item = Piece> {
    template
        .split('{')
        .flat_map(|part| match part.split_once('}') {
            Some((name, literal)) => [Some(Piece::named(name)), literal_piece(literal)],
            None => [literal_piece(part), None],
        })
        .flatten()
}

fn literal_piece(text: &'static str) -> Option<Piece> {
    (!text.is_empty()).then_some(Piece::Literal(text))
}

/// A template for the assembler: blanks between tokens are ignored.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) row: &'static Encoding,
    pub(super) tokens: Vec<Token>,
}

/// A token of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, which must match the whole word in the line.
    Word(&'static str),
    /// An operator or bracket.
    Symbol(&'static str),
    Register(RegisterPlace),
    Number(NumberPlace),
}

impl Template {
    fn new(row: &'static Encoding, text: &'static str) -> Self {
        let tokens = pieces(text).flat_map(|piece| match piece {
            Piece::Literal(literal) => tokens(literal).collect(),
            Piece::Register(place) => vec![Token::Register(place)],
            Piece::Number(place) => vec![Token::Number(place)],
        });
        Self { row, tokens: tokens.collect() }
    }
}

/// The parsed text of all rows and the alternative spellings: built once, as the assembler tries many per line.
pub(super) static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let table = TABLE.iter().map(|row| Template::new(row, row.text));
    table.chain(templates_of(SPELLINGS)).collect()
});

/// Additional templates for lines with a known opcode.
pub(super) static LISTING_TEMPLATES: LazyLock<Vec<Template>> =
    LazyLock::new(|| templates_of(AMBIGUOUS).collect());

fn templates_of(spellings: &'static [(Form, &'static str)]) -> impl Iterator<Item = Template> {
    spellings.iter().filter_map(|&(form, text)| Some(Template::new(row_of(form)?, text)))
}

/// Tokens of literal text.
fn tokens(literal: &'static str) -> impl Iterator<Item = Token> {
    let mut rest = literal;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)),
            c if is_operator(c) => rest.find(|c| !is_operator(c)),
            c => Some(c.len_utf8()),
        };
        let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(if is_word(first) { Token::Word(text) } else { Token::Symbol(text) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Field, TABLE};

    fn shows(text: &'static str, wanted: impl Fn(Piece) -> bool) -> bool {
        pieces(text).any(wanted)
    }

    #[test]
    fn every_placeholder_of_the_table_is_known() {
        for row in TABLE {
            for piece in pieces(row.text) {
                let Piece::Literal(text) = piece else { continue };
                assert!(!["imm", "off", "d", "s"].contains(&text) && !text.contains(['{', '}']), "{row:?}");
            }
            let placeholders = pieces(row.text).filter(|piece| !matches!(piece, Piece::Literal(_))).count();
            assert_eq!(placeholders, row.text.matches('{').count(), "{row:?}");
        }
    }

    /// A field is an operand if and only if the text contains it: otherwise text would lose or invent an operand.
    #[test]
    fn text_shows_exactly_the_operands() {
        use NumberPlace::*;
        for row in TABLE {
            let register = |field| shows(row.text, |p| matches!(p, Piece::Register(r) if r.field == field));
            let number = |places: &[NumberPlace]| {
                shows(row.text, |p| matches!(p, Piece::Number(n) if places.contains(&n)))
            };
            let is_operand = |field| field == Field::Any;
            assert_eq!(is_operand(row.dst), register(RegisterField::Dst), "dst of {row:?}");
            assert_eq!(is_operand(row.src), register(RegisterField::Src), "src of {row:?}");
            assert_eq!(is_operand(row.offset), number(&[Off, Jump, Module]), "offset of {row:?}");
            let imm = number(&[Imm, Far, Sub, Helper, To, Plus, Value, Map]);
            assert_eq!(is_operand(row.imm), imm, "imm of {row:?}");
            assert_eq!(
                row.next_imm.is_some_and(is_operand),
                number(&[Value, At, Next]),
                "next_imm of {row:?}"
            );
        }
    }
}
