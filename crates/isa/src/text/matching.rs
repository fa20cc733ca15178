//! Matching a line against the text of the table's rows.
//!
//! Every row that could apply is tried; what the row that came furthest stumbled over is the error.

use super::cursor::{Cursor, is_operator, is_word};
use super::error::{Problem, Wanted};
use super::names::Names;
use super::template::{NumberPlace, Piece, RegisterField, RegisterPlace, pieces};
use crate::Reg;
use crate::form::{Operands, halves, join};
use crate::table::Encoding;

/// What names mean where the line stands.
pub(super) struct Scope<'a> {
    pub(super) names: &'a dyn Names,
    /// Whether there is a label of this name.
    pub(super) is_label: &'a dyn Fn(&str) -> bool,
}

/// A line that matched.
pub(super) struct Match {
    pub(super) row: &'static Encoding,
    pub(super) operands: Operands,
    /// The label the line refers to, its operand still zero.
    pub(super) label: Option<LabelUse>,
}

/// A use of a label.
#[derive(Clone, Debug)]
pub(super) struct LabelUse {
    pub(super) name: String,
    /// Byte offset in the line.
    pub(super) at: usize,
    /// Whether the distance goes in the immediate, not in the offset.
    pub(super) far: bool,
    /// Slots from the label to what is meant.
    pub(super) addend: i64,
}

/// Why a row does not match: what is wrong, at which byte of the line.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) at: usize,
    pub(super) problem: Problem,
}

impl Failure {
    pub(super) fn unexpected(cursor: &Cursor<'_>, wanted: &[Wanted]) -> Self {
        let problem = Problem::Unexpected { wanted: wanted.to_vec(), found: cursor.found() };
        Self { at: cursor.at(), problem }
    }

    /// The failure that says more: the further one, then the one that understood the word but refuses it.
    fn or(mut self, other: Self) -> Self {
        use Problem::Unexpected;
        match (&mut self.problem, &other.problem) {
            _ if other.at != self.at => {
                if other.at > self.at {
                    other
                } else {
                    self
                }
            }
            (Unexpected { wanted, .. }, Unexpected { wanted: more, .. }) => {
                let new: Vec<Wanted> = more.iter().filter(|w| !wanted.contains(w)).copied().collect();
                wanted.extend(new);
                self
            }
            (Unexpected { .. }, _) => other,
            _ => self,
        }
    }
}

/// The first of these rows and texts that is the whole line.
pub(super) fn match_line(
    line: &str,
    candidates: impl Iterator<Item = (&'static Encoding, &'static str)>,
    scope: &Scope<'_>,
) -> Result<Match, Failure> {
    let mut best: Option<Failure> = None;
    for (row, text) in candidates {
        match Matcher::new(line, scope).whole(text) {
            Ok((operands, label)) => return Ok(Match { row, operands, label }),
            Err(failure) => best = Some(best.map_or(failure.clone(), |best| best.or(failure))),
        }
    }
    Err(best.unwrap_or_else(|| Failure::unexpected(&Cursor::new(line), &[])))
}

/// A line half matched with a template.
struct Matcher<'a> {
    cursor: Cursor<'a>,
    scope: &'a Scope<'a>,
    dst: Option<Reg>,
    src: Option<Reg>,
    operands: Operands,
    label: Option<LabelUse>,
}

impl<'a> Matcher<'a> {
    fn new(line: &'a str, scope: &'a Scope<'a>) -> Self {
        Self { cursor: Cursor::new(line), scope, dst: None, src: None, operands: Operands::NONE, label: None }
    }

    fn whole(mut self, text: &'static str) -> Result<(Operands, Option<LabelUse>), Failure> {
        for piece in pieces(text) {
            match piece {
                Piece::Literal(literal) => self.literal(literal)?,
                Piece::Register(place) => self.register(place)?,
                Piece::Number(place) => self.number(place)?,
            }
        }
        if !self.cursor.is_at_end() {
            return self.unexpected(&[Wanted::EndOfLine]);
        }
        let dst = self.dst.unwrap_or(Reg::R0);
        let src = self.src.unwrap_or(Reg::R0);
        Ok((Operands { dst, src, ..self.operands }, self.label))
    }

    fn unexpected<T>(&self, wanted: &[Wanted]) -> Result<T, Failure> {
        Err(Failure::unexpected(&self.cursor, wanted))
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Failure> {
        for token in tokens(literal) {
            let taken = if token.starts_with(is_word) {
                self.cursor.keyword(token)
            } else {
                self.cursor.symbol(token)
            };
            if !taken {
                return self.unexpected(&[Wanted::Text(token)]);
            }
        }
        Ok(())
    }

    fn register(&mut self, place: RegisterPlace) -> Result<(), Failure> {
        let before = self.cursor;
        let slot = match place.field {
            RegisterField::Dst => &mut self.dst,
            RegisterField::Src => &mut self.src,
        };
        let named = self.cursor.word().and_then(|word| parse_register(word, place.prefixes));
        let wanted = match (named, *slot) {
            (Some(reg), None) => {
                *slot = Some(reg);
                return Ok(());
            }
            (Some(reg), Some(earlier)) if reg == earlier => return Ok(()),
            (_, Some(earlier)) => Wanted::Same(earlier),
            (None, None) => Wanted::Register(place.prefixes.chars().next().unwrap_or('r')),
        };
        self.cursor = before;
        self.unexpected(&[wanted])
    }

    fn number(&mut self, place: NumberPlace) -> Result<(), Failure> {
        match place {
            NumberPlace::Imm => self.operands.imm = self.immediate()?,
            NumberPlace::Off => self.operands.offset = self.signed()?,
            NumberPlace::Jump => self.jump()?,
            NumberPlace::Far => self.far_jump()?,
            NumberPlace::Sub => self.subprogram()?,
            NumberPlace::Helper => self.helper()?,
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
                let offset = self.in_range(Self::signed_integer, 0, u32::MAX.into())?;
                self.operands.next_imm = offset as u32 as i32;
            }
            NumberPlace::Next => self.operands.next_imm = self.plain()?,
        }
        Ok(())
    }

    /// A jump's slots in the offset.
    fn jump(&mut self) -> Result<(), Failure> {
        if !self.label(false)? {
            self.cursor.keyword("pc");
            self.operands.offset = self.in_range_or(Self::integer, Wanted::Label)?;
        }
        Ok(())
    }

    /// A jump's slots in the immediate.
    fn far_jump(&mut self) -> Result<(), Failure> {
        if !self.label(true)? {
            self.cursor.keyword("pc");
            self.operands.imm = self.in_range_or(Self::integer, Wanted::Label)?;
        }
        Ok(())
    }

    /// A subprogram: a label, or its distance.
    fn subprogram(&mut self) -> Result<(), Failure> {
        match self.peek_name() {
            Some(name) if !(self.scope.is_label)(name) => {
                self.unknown(Problem::UnknownCallee(name.to_owned()))
            }
            _ => self.far_jump(),
        }
    }

    /// A helper: a number without a plus, or a name that is no label.
    fn helper(&mut self) -> Result<(), Failure> {
        let Some(name) = self.peek_name() else {
            if self.cursor.peek() == Some('+') {
                return self.unexpected(&[Wanted::Number, Wanted::Callee]);
            }
            self.operands.imm = self.in_range_or(Self::integer, Wanted::Callee)?;
            return Ok(());
        };
        match self.scope.names.helper(name) {
            Some(number) if !(self.scope.is_label)(name) => {
                self.cursor.word();
                self.operands.imm = number;
                Ok(())
            }
            _ => self.unknown(Problem::UnknownCallee(name.to_owned())),
        }
    }

    fn map(&mut self) -> Result<(), Failure> {
        let Some(name) = self.peek_name() else {
            self.operands.imm = self.in_range_or(Self::integer, Wanted::Map)?;
            return Ok(());
        };
        let Some(index) = self.scope.names.map(name) else {
            return self.unknown(Problem::UnknownMap(name.to_owned()));
        };
        self.cursor.word();
        self.operands.imm = index;
        Ok(())
    }

    fn map_by_id(&mut self) -> Result<(), Failure> {
        let before = self.cursor;
        let id = self.in_range(Self::integer, 0, u32::MAX.into())? as u32;
        let Some(index) = self.scope.names.map_by_id(id) else {
            self.cursor = before;
            return self.unknown(Problem::UnknownMapId(id));
        };
        self.operands.imm = index;
        Ok(())
    }

    /// Takes a label if a name comes next; `pc` is none.
    fn label(&mut self, far: bool) -> Result<bool, Failure> {
        let Some(name) = self.peek_name() else { return Ok(false) };
        if !(self.scope.is_label)(name) {
            return self.unknown(Problem::UnknownLabel(name.to_owned()));
        }
        self.label = Some(LabelUse { name: name.to_owned(), at: self.cursor.at(), far, addend: 0 });
        self.cursor.word();
        Ok(true)
    }

    /// The next word, if it is a name: no number, and not the `pc` of `pc+3`.
    fn peek_name(&self) -> Option<&'a str> {
        let mut after = self.cursor;
        let name = after.word().filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))?;
        let is_pc = name == "pc" && matches!(after.peek(), Some('+' | '-'));
        (!is_pc).then_some(name)
    }

    fn unknown<T>(&self, problem: Problem) -> Result<T, Failure> {
        Err(Failure { at: self.cursor.at(), problem })
    }

    /// An immediate: 32 bits, written as a signed or as an unsigned number.
    fn immediate(&mut self) -> Result<i32, Failure> {
        Ok(self.in_range(Self::integer, i32::MIN.into(), u32::MAX.into())? as i32)
    }

    /// A number of the field's type.
    fn plain<T: Bounded>(&mut self) -> Result<T, Failure> {
        self.in_range(Self::integer, T::LOW, T::HIGH).map(T::from_wide)
    }

    /// A number of the field's type with its sign, as `+ 12`.
    fn signed<T: Bounded>(&mut self) -> Result<T, Failure> {
        self.in_range(Self::signed_integer, T::LOW, T::HIGH).map(T::from_wide)
    }

    /// [`Matcher::in_range`] where something else could stand as well.
    fn in_range_or<T: Bounded>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<i128, Failure>,
        also: Wanted,
    ) -> Result<T, Failure> {
        let number = self.in_range(read, T::LOW, T::HIGH).map(T::from_wide);
        number.map_err(|mut failure| {
            if let Problem::Unexpected { wanted, .. } = &mut failure.problem {
                wanted.push(also);
            }
            failure
        })
    }

    fn in_range(
        &mut self,
        read: impl Fn(&mut Self) -> Result<i128, Failure>,
        low: i128,
        high: i128,
    ) -> Result<i128, Failure> {
        let at = self.cursor.at();
        let value = read(self)?;
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        Err(Failure { at, problem: Problem::Range { value, low, high } })
    }

    /// A number with or without a sign.
    fn integer(&mut self) -> Result<i128, Failure> {
        match self.cursor.peek() {
            Some('+' | '-') => self.signed_integer(),
            _ => self.digits(),
        }
    }

    /// A number with a sign.
    fn signed_integer(&mut self) -> Result<i128, Failure> {
        if self.cursor.symbol("+") {
            self.digits()
        } else if self.cursor.symbol("-") {
            self.digits().map(|value| -value)
        } else {
            self.unexpected(&[Wanted::SignedNumber])
        }
    }

    fn digits(&mut self) -> Result<i128, Failure> {
        match self.cursor.number() {
            Some(number) => Ok(number),
            None => self.unexpected(&[Wanted::Number]),
        }
    }
}

/// The fields a number can go in.
trait Bounded {
    const LOW: i128;
    const HIGH: i128;
    /// The value, which is in range.
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
bounded!(i16 u16 i32);

/// `r0` to `r10` and, with the prefix `w`, `w0` to `w10`.
fn parse_register(word: &str, prefixes: &str) -> Option<Reg> {
    let number = word.strip_prefix(|c| prefixes.contains(c))?;
    Reg::ALL.into_iter().find(|reg| reg.number().to_string() == number)
}

/// A literal's words, operators and brackets.
fn tokens(literal: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = literal;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)),
            c if is_operator(c) => rest.find(|c| !is_operator(c)),
            c => Some(c.len_utf8()),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(token)
    })
}
