//! The text column of the table, taken apart. Its language is described at the head of [`table`](crate::table).

use std::sync::LazyLock;

use super::cursor::{is_operator, is_word};
use super::spellings::{AMBIGUOUS, SPELLINGS};
use crate::table::{Encoding, Form, TABLE, row_of};

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text that stands for itself.
    Literal(&'static str),
    /// A register.
    Register(RegisterPlace),
    /// A number, or a name for it.
    Number(NumberPlace),
}

/// Where a register is shown, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegisterPlace {
    pub(super) field: RegisterField,
    /// The prefixes read, `r` or `w`; the first is the one written.
    pub(super) prefixes: &'static str,
}

/// The field a register is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterField {
    Dst,
    Src,
}

/// Where a number is shown, and how.
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
    /// What a placeholder's name means. A name that means nothing stands for itself; a test sees that there is none.
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

/// A template as the assembler reads it: blanks between tokens do not count.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) row: &'static Encoding,
    pub(super) tokens: Vec<Token>,
}

/// A piece of a template, literals taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, which ends where the line's word ends.
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

/// The text of every row of the table and the other spellings, taken apart once: the assembler tries many for
/// each line.
pub(super) static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let table = TABLE.iter().map(|row| Template::new(row, row.text));
    table.chain(templates_of(SPELLINGS)).collect()
});

/// The templates to try as well where the opcode is known.
pub(super) static LISTING_TEMPLATES: LazyLock<Vec<Template>> =
    LazyLock::new(|| templates_of(AMBIGUOUS).collect());

fn templates_of(spellings: &'static [(Form, &'static str)]) -> impl Iterator<Item = Template> {
    spellings.iter().filter_map(|&(form, text)| Some(Template::new(row_of(form)?, text)))
}

/// A literal's words, operators and brackets.
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

    /// A field is an operand if and only if the text shows it: else text would lose it, or invent it.
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
