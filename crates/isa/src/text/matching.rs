//! Matching of a line with the text of the table's rows.
//!
//! Candidate rows are tried in order, and the first that matches the whole line is taken. If none does, the error is that of the
//! rows that matched the longest prefix.

use super::cursor::Cursor;
use super::error::{Problem, Wanted};
use super::failure::{Failure, Furthest};
use super::names::Names;
use super::template::{NumberPlace, RegisterField, RegisterPlace, Template, Token};
use crate::form::{Operands, halves, join};
use crate::insn::Reg;
use crate::table::Encoding;

/// Resolution of names for a line.
pub(super) struct Scope<'a> {
    pub(super) names: &'a dyn Names,
    /// Whether a label has this name.
    pub(super) is_label: &'a dyn Fn(&str) -> bool,
}

/// A successful match.
pub(super) struct Match {
    pub(super) row: &'static Encoding,
    pub(super) operands: Operands,
    /// The label that the line refers to; its operand is still zero.
    pub(super) label: Option<LabelUse>,
}

/// A use of a label.
#[derive(Clone, Debug)]
pub(super) struct LabelUse {
    pub(super) name: String,
    /// Byte offset in the line.
    pub(super) at: usize,
    /// Whether the distance is in the immediate instead of the offset.
    pub(super) far: bool,
    /// Distance in slots from the label to the actual target.
    pub(super) addend: i64,
}

/// The first template that matches the whole line.
pub(super) fn match_line<'t>(
    line: &str,
    templates: impl Iterator<Item = &'t Template>,
    scope: &Scope<'_>,
) -> Result<Match, Failure> {
    let mut furthest = Furthest::default();
    for template in templates {
        if let Some((operands, label)) = Matcher::new(line, scope, &mut furthest).whole(template) {
            return Ok(Match { row: template.row, operands, label });
        }
    }
    Err(furthest.into_failure(line))
}

/// State of matching a line with a template. Its methods return `None` on a mismatch, and record the expected alternatives.
struct Matcher<'a> {
    cursor: Cursor<'a>,
    scope: &'a Scope<'a>,
    furthest: &'a mut Furthest,
    dst: Option<Reg>,
    src: Option<Reg>,
    operands: Operands,
    label: Option<LabelUse>,
}

impl<'a> Matcher<'a> {
    fn new(line: &'a str, scope: &'a Scope<'a>, furthest: &'a mut Furthest) -> Self {
        let cursor = Cursor::new(line);
        Self { cursor, scope, furthest, dst: None, src: None, operands: Operands::NONE, label: None }
    }

    fn whole(mut self, template: &Template) -> Option<(Operands, Option<LabelUse>)> {
        for &token in &template.tokens {
            match token {
                Token::Word(word) if self.cursor.keyword(word) || self.constant(word) => {}
                Token::Symbol(symbol) if self.cursor.symbol(symbol) => {}
                Token::Word(text) | Token::Symbol(text) => return self.miss(Wanted::Text(text)),
                Token::Register(place) => self.register(place)?,
                Token::Number(place) => self.number(place)?,
            }
        }
        if !self.cursor.is_at_end() {
            return self.miss(Wanted::EndOfLine);
        }
        let dst = self.dst.unwrap_or(Reg::R0);
        let src = self.src.unwrap_or(Reg::R0);
        Some((Operands { dst, src, ..self.operands }, self.label))
    }

    fn miss<T>(&mut self, wanted: Wanted) -> Option<T> {
        self.furthest.miss(self.cursor.at(), wanted);
        None
    }

    fn refuse<T>(&mut self, problem: Problem) -> Option<T> {
        self.furthest.refuse(self.cursor.at(), problem);
        None
    }

    /// A number that is part of the template, in any base.
    fn constant(&mut self, word: &str) -> bool {
        let mut after = self.cursor;
        let taken = word.parse().is_ok_and(|wanted: i128| after.number() == Some(wanted));
        if taken {
            self.cursor = after;
        }
        taken
    }

    fn register(&mut self, place: RegisterPlace) -> Option<()> {
        let mut after = self.cursor;
        let named = after.word().and_then(|word| parse_register(word, place.prefixes));
        let known = match place.field {
            RegisterField::Dst => &mut self.dst,
            RegisterField::Src => &mut self.src,
        };
        match (named, *known) {
            (Some(reg), earlier) if earlier.is_none_or(|earlier| earlier == reg) => {
                *known = Some(reg);
                self.cursor = after;
                Some(())
            }
            (_, Some(earlier)) => self.miss(Wanted::Same(earlier)),
            (_, None) => self.miss(Wanted::Register(place.prefixes.chars().next().unwrap_or('r'))),
        }
    }

    fn number(&mut self, place: NumberPlace) -> Option<()> {
        match place {
            NumberPlace::Imm => self.operands.imm = self.immediate()?,
            NumberPlace::Off => self.operands.offset = self.signed()?,
            NumberPlace::Jump => self.jump()?,
            NumberPlace::Far => self.far_jump()?,
            NumberPlace::Sub => self.subprogram()?,
            NumberPlace::Helper => self.helper()?,
            NumberPlace::Kfunc => self.kfunc()?,
            NumberPlace::Module => self.operands.offset = self.plain()?,
            NumberPlace::To => {
                let (_, from) = halves(self.operands.imm);
                self.operands.imm = join(self.plain()?, from);
            }
            NumberPlace::From => {
                let (to, _) = halves(self.operands.imm);
                self.operands.imm = join(to, self.plain()?);
            }
            NumberPlace::Plus => {
                if matches!(self.cursor.peek(), Some('+' | '-')) {
                    self.operands.imm = self.signed()?;
                }
            }
            NumberPlace::Value => {
                let value = self.in_range(Self::integer, i64::MIN.into(), u64::MAX.into())? as u64;
                self.operands.imm = value as i32;
                self.operands.next_imm = (value >> 32) as i32;
            }
            NumberPlace::Map => self.map()?,
            NumberPlace::MapId => self.map_by_id()?,
            NumberPlace::At => {
                let offset: u32 = self.signed()?;
                self.operands.next_imm = offset.cast_signed();
            }
            NumberPlace::Next => self.operands.next_imm = self.plain()?,
        }
        Some(())
    }

    /// A jump's distance in the offset field.
    fn jump(&mut self) -> Option<()> {
        if !self.label(false)? {
            self.operands.offset = self.distance()?;
        }
        Some(())
    }

    /// A jump's distance in the immediate field.
    fn far_jump(&mut self) -> Option<()> {
        if !self.label(true)? {
            self.operands.imm = self.distance()?;
        }
        Some(())
    }

    /// `+3` or `pc+3`
    fn distance<T: Bounded>(&mut self) -> Option<T> {
        self.cursor.keyword("pc");
        self.plain_or(Wanted::Label)
    }

    /// A subprogram: a label, or its distance.
    fn subprogram(&mut self) -> Option<()> {
        match self.peek_name() {
            Some(name) if !(self.scope.is_label)(name) => {
                self.refuse(Problem::UnknownCallee(name.to_owned()))
            }
            _ => self.far_jump(),
        }
    }

    /// A helper: a number without a plus sign, or a name that is not a label.
    fn helper(&mut self) -> Option<()> {
        let Some(name) = self.peek_name() else {
            if self.cursor.peek() == Some('+') {
                return self.miss(Wanted::Callee);
            }
            self.operands.imm = self.plain_or(Wanted::Callee)?;
            return Some(());
        };
        match self.scope.names.helper(name) {
            Some(number) if !(self.scope.is_label)(name) => {
                self.cursor.word();
                self.operands.imm = number;
                Some(())
            }
            _ => self.refuse(Problem::UnknownCallee(name.to_owned())),
        }
    }

    /// A kernel function: a name.
    fn kfunc(&mut self) -> Option<()> {
        let Some(name) = self.peek_name() else { return self.miss(Wanted::Callee) };
        let Some(index) = self.scope.names.kfunc(name) else {
            return self.refuse(Problem::UnknownCallee(name.to_owned()));
        };
        self.cursor.word();
        self.operands.imm = index;
        Some(())
    }

    fn map(&mut self) -> Option<()> {
        let Some(name) = self.peek_name() else {
            self.operands.imm = self.plain_or(Wanted::Map)?;
            return Some(());
        };
        let Some(index) = self.scope.names.map(name) else {
            return self.refuse(Problem::UnknownMap(name.to_owned()));
        };
        self.cursor.word();
        self.operands.imm = index;
        Some(())
    }

    fn map_by_id(&mut self) -> Option<()> {
        let before = self.cursor;
        let id: u32 = self.plain()?;
        let Some(index) = self.scope.names.map_by_id(id) else {
            self.cursor = before;
            return self.refuse(Problem::UnknownMapId(id));
        };
        self.operands.imm = index;
        Some(())
    }

    /// Takes a label if the next token is a name.
    fn label(&mut self, far: bool) -> Option<bool> {
        let Some(name) = self.peek_name() else { return Some(false) };
        if !(self.scope.is_label)(name) {
            return self.refuse(Problem::UnknownLabel(name.to_owned()));
        }
        self.label = Some(LabelUse { name: name.to_owned(), at: self.cursor.at(), far, addend: 0 });
        self.cursor.word();
        Some(true)
    }

    /// The next word if it is a name: not a number, and not the `pc` of `pc+3`.
    fn peek_name(&self) -> Option<&'a str> {
        let mut after = self.cursor;
        let name = after.word().filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))?;
        let is_pc = name == "pc" && matches!(after.peek(), Some('+' | '-'));
        (!is_pc).then_some(name)
    }

    /// An immediate: 32 bits, written as a signed or as an unsigned number.
    fn immediate(&mut self) -> Option<i32> {
        Some(self.in_range(Self::integer, i32::MIN.into(), u32::MAX.into())? as i32)
    }

    /// A number of the field's type.
    fn plain<T: Bounded>(&mut self) -> Option<T> {
        self.in_range(Self::integer, T::LOW, T::HIGH).map(T::from_wide)
    }

    /// A number of the field's type, where the grammar allows an alternative.
    fn plain_or<T: Bounded>(&mut self, also: Wanted) -> Option<T> {
        self.furthest.miss(self.cursor.at(), also);
        self.plain()
    }

    /// A number of the field's type with a sign, as `+ 12`.
    fn signed<T: Bounded>(&mut self) -> Option<T> {
        self.in_range(Self::signed_integer, T::LOW, T::HIGH).map(T::from_wide)
    }

    fn in_range(&mut self, read: impl Fn(&mut Self) -> Option<i128>, low: i128, high: i128) -> Option<i128> {
        let before = self.cursor;
        let value = read(self)?;
        if (low..=high).contains(&value) {
            return Some(value);
        }
        self.cursor = before;
        self.refuse(Problem::Range { value, low, high })
    }

    /// A number with an optional sign.
    fn integer(&mut self) -> Option<i128> {
        match self.cursor.peek() {
            Some('+' | '-') => self.signed_integer(),
            _ => self.digits(),
        }
    }

    /// A number with a sign.
    fn signed_integer(&mut self) -> Option<i128> {
        if self.cursor.symbol("+") {
            self.digits()
        } else if self.cursor.symbol("-") {
            self.digits().map(|value| -value)
        } else {
            self.miss(Wanted::SignedNumber)
        }
    }

    fn digits(&mut self) -> Option<i128> {
        match self.cursor.number() {
            Some(number) => Some(number),
            None => self.miss(Wanted::Number),
        }
    }
}

/// Field types of numbers.
trait Bounded {
    const LOW: i128;
    const HIGH: i128;
    /// Converts a value, which must be in range.
    fn from_wide(value: i128) -> Self;
}

macro_rules! bounded {
    ($($field:ty)*) => {$(
        impl Bounded for $field {
            const LOW: i128 = <$field>::MIN as i128;
            const HIGH: i128 = <$field>::MAX as i128;
            fn from_wide(value: i128) -> Self {
                value as Self
            }
        }
    )*};
}
bounded!(i16 u16 i32 u32);

/// `r0` to `r10` and, with the prefix `w`, `w0` to `w10`.
fn parse_register(word: &str, prefixes: &str) -> Option<Reg> {
    let number = word.strip_prefix(|c| prefixes.contains(c))?;
    let is_canonical = number == "0" || !number.starts_with(['0', '+']);
    number.parse().ok().filter(|_| is_canonical).and_then(Reg::new)
}
