//! The assembler: parses text to instructions.

use std::collections::HashMap;
use std::str::FromStr;

use super::error::{AssembleError, Problem};
use super::failure::Failure;
use super::line::{InsnLine, Part, Statement, statements};
use super::matching::{LabelUse, Match, Scope, match_line};
use super::names::Names;
use super::template::{LISTING_TEMPLATES, TEMPLATES, Template};
use crate::code::Code;
use crate::form::Operands;
use crate::insn::{Insn, RawInsn};
use crate::table::{Encoding, Form, Imm64Kind, row_of, rows_of};

/// Assembles a program.
///
/// The language is clang's BPF assembly: one instruction per line, labels as `out:`, comments after `;`, `#` or `//`, numbers in
/// decimal or after `0x`. Names of helpers and maps are resolved by `names`; a label takes precedence over a helper of the same
/// name.
///
/// # Listings
/// The output of `llvm-objdump -d` and `bpftool prog dump xlated` is accepted as well, with all additions to the instructions. Slot
/// numbers must be consecutive, and bytes must agree with the text.
///
/// - Sections are concatenated in the order of the listing. Byte columns are little-endian.
/// - `llvm-objdump -d` shows code before linking: a reference to a map is `r1 = 0 ll`, and is parsed as that constant. With `-r`
///   the relocations are applied: maps are resolved by `names` (a name that starts with a dot is a data section, and the reference
///   an offset into it), calls refer to the symbols of the listing. CO-RE relocations are ignored: the offsets are clang's.
/// - Without byte columns llvm-objdump's `call 5` is parsed as a helper, although it may be a subprogram.
/// - bpftool's `call bpf_x#N` is resolved by its name. `N` is the distance of the kernel's function from a base, not the number of
///   the helper, and not every kernel function is a helper: the verifier replaces some calls, and kernel functions have no helper
///   number at all. These and other instructions that the verifier inserts are errors if they have no text of their own. A bpftool
///   older than the kernel prints some of them incorrectly: the move of a per-CPU address as `r0 = r0`.
/// - bpftool's map ids are those of the kernel it ran on; `names` resolves them.
///
/// # Errors
/// For the first line that is neither an instruction, a label, nor part of a listing, or that has an unknown name.
pub fn assemble(text: &str, names: &impl Names) -> Result<Code, AssembleError> {
    let lines: Vec<Line<'_>> =
        text.lines().enumerate().map(|(number, text)| Line::new(number, text)).collect();
    let mut assembler = Assembler::new(names, &lines);
    for line in &lines {
        for statement in &line.statements {
            assembler.statement(line, statement).map_err(|failure| line.place(failure))?;
        }
    }
    assembler.finish()
}

/// Parses one instruction without labels, and with helpers by number.
impl FromStr for Insn {
    type Err = AssembleError;

    fn from_str(text: &str) -> Result<Self, AssembleError> {
        let scope = Scope { names: &(), is_label: &|_| false };
        let matched = match_line(text, TEMPLATES.iter(), &scope)
            .map_err(|failure| Line::new(0, text).place(failure))?;
        Ok(matched.row.form.with(&matched.operands))
    }
}

/// A line of the text.
struct Line<'a> {
    /// From 0.
    number: usize,
    text: &'a str,
    statements: Vec<Statement<'a>>,
}

impl<'a> Line<'a> {
    fn new(number: usize, text: &'a str) -> Self {
        Self { number, text, statements: statements(text) }
    }

    /// An error in this line, with line and column counted from 1.
    fn place(&self, failure: Failure) -> AssembleError {
        let before = self.text.get(..failure.at).unwrap_or(self.text);
        AssembleError { line: self.number + 1, column: before.chars().count() + 1, problem: failure.problem }
    }
}

/// An instruction with an optional reference to a label.
struct Item<'a> {
    /// The line that names the label.
    line: &'a Line<'a>,
    slot: usize,
    row: &'static Encoding,
    operands: Operands,
    label: Option<LabelUse>,
}

struct Assembler<'a> {
    names: &'a dyn Names,
    /// The slots of labels; `None` until the label is reached.
    labels: HashMap<&'a str, Option<usize>>,
    /// Starts of a listing's sections, which are labels for relocations.
    sections: HashMap<&'a str, usize>,
    items: Vec<Item<'a>>,
    /// Number of slots so far.
    slots: usize,
    /// The slot number in the listing that corresponds to slot 0; `None` until a line has one.
    origin: Option<i128>,
}

impl<'a> Assembler<'a> {
    fn new(names: &'a dyn Names, lines: &'a [Line<'a>]) -> Self {
        let statements = lines.iter().flat_map(|line| &line.statements);
        let labels = statements.filter_map(|statement| match statement {
            Statement::Label(label) => Some((label.text, None)),
            _ => None,
        });
        Self {
            names,
            labels: labels.collect(),
            sections: HashMap::new(),
            items: Vec::new(),
            slots: 0,
            origin: None,
        }
    }

    fn statement(&mut self, line: &'a Line<'a>, statement: &'a Statement<'a>) -> Result<(), Failure> {
        match statement {
            Statement::Label(label) => self.define(*label),
            Statement::Section(section) => {
                self.sections.insert(section.text, self.slots);
                self.origin = None;
                Ok(())
            }
            Statement::Insn(insn) => self.instruction(line, insn),
            Statement::Relocation(symbol) => self.relocation(line, *symbol),
        }
    }

    /// Defines a label; redefinition at the same slot is allowed.
    fn define(&mut self, label: Part<'a>) -> Result<(), Failure> {
        match self.labels.insert(label.text, Some(self.slots)).flatten() {
            Some(slot) if slot != self.slots => {
                Err(Failure { at: label.at, problem: Problem::DuplicateLabel(label.text.to_owned()) })
            }
            _ => Ok(()),
        }
    }

    fn instruction(&mut self, line: &'a Line<'a>, insn: &InsnLine<'a>) -> Result<(), Failure> {
        self.check_slot(insn)?;
        let matched = self.match_insn(insn)?;
        self.check_bytes(insn, &matched)?;
        let Match { row, operands, label } = matched;
        self.items.push(Item { line, slot: self.slots, row, operands, label });
        self.slots += row.slot_count();
        Ok(())
    }

    /// Checks that slot numbers of a listing are consecutive.
    fn check_slot(&mut self, insn: &InsnLine<'a>) -> Result<(), Failure> {
        let Some(said) = insn.slot else { return Ok(()) };
        let origin = *self.origin.get_or_insert(i128::from(said) - self.slots as i128);
        let expected = origin + self.slots as i128;
        if i128::from(said) == expected {
            return Ok(());
        }
        Err(Failure { at: insn.part.at, problem: Problem::Slot { said: said.into(), expected } })
    }

    fn match_insn(&self, insn: &InsnLine<'a>) -> Result<Match, Failure> {
        let is_label = |name: &str| self.labels.contains_key(name);
        let scope = Scope { names: self.names, is_label: &is_label };
        let first = insn.bytes.as_deref().and_then(first_slot);
        let matched = match first.map(|slot| slot.opcode).or(insn.opcode) {
            None => match_line(insn.part.text, TEMPLATES.iter(), &scope),
            Some(opcode) => {
                let fits =
                    |row: &Encoding| row.opcode == opcode && first.is_none_or(|slot| row.selects(&slot));
                if !rows_of(opcode).iter().any(fits) {
                    return Err(Failure { at: insn.part.at, problem: Problem::UnknownOpcode(opcode) });
                }
                let templates = TEMPLATES.iter().chain(LISTING_TEMPLATES.iter());
                match_line(
                    insn.part.text,
                    templates.filter(|template: &&Template| fits(template.row)),
                    &scope,
                )
            }
        };
        matched.map_err(|failure| Failure { at: insn.part.at + failure.at, ..failure }).map(|mut matched| {
            if let Some(label) = &mut matched.label {
                label.at += insn.part.at;
            }
            matched
        })
    }

    /// Checks that the bytes of a listing agree with its text.
    fn check_bytes(&self, insn: &InsnLine<'a>, matched: &Match) -> Result<(), Failure> {
        let Some(bytes) = &insn.bytes else { return Ok(()) };
        let slots = matched.row.slots(&matched.operands);
        if matched.label.is_some() || slots.iter().flat_map(RawInsn::to_le_bytes).eq(bytes.iter().copied()) {
            return Ok(());
        }
        Err(Failure { at: insn.part.at, problem: Problem::Bytes(insn.part.text.to_owned()) })
    }

    /// Applies a relocation: a symbol replaces the operand of the previous instruction, whose number becomes the addend.
    fn relocation(&mut self, line: &'a Line<'a>, symbol: Part<'a>) -> Result<(), Failure> {
        let fail = |problem| Failure { at: symbol.at, problem };
        let item = self.items.last_mut().ok_or_else(|| fail(Problem::Relocation))?;
        let is_code = self.labels.contains_key(symbol.text) || self.sections.contains_key(symbol.text);
        let imm = i64::from(item.operands.imm);
        // Call operands are one less than the distance in slots; code addresses are in bytes.
        let (form, addend) = match item.row.form {
            Form::CallHelper | Form::CallSubprogram if is_code => (Form::CallSubprogram, imm + 1),
            Form::LoadImm64(Imm64Kind::Value) if is_code => (Form::LoadImm64(Imm64Kind::Code), imm / 8),
            Form::LoadImm64(Imm64Kind::Value) => return self.map_relocation(symbol),
            Form::CallHelper | Form::CallSubprogram => {
                return Err(fail(Problem::UnknownCallee(symbol.text.to_owned())));
            }
            _ => return Err(fail(Problem::Relocation)),
        };
        item.row = row_of(form).ok_or_else(|| fail(Problem::Relocation))?;
        item.operands = Operands { dst: item.operands.dst, ..Operands::NONE };
        item.line = line;
        item.label = Some(LabelUse { name: symbol.text.to_owned(), at: symbol.at, far: true, addend });
        Ok(())
    }

    /// A reference to a map, or to an offset in the map of a data section.
    fn map_relocation(&mut self, symbol: Part<'a>) -> Result<(), Failure> {
        let fail = |problem| Failure { at: symbol.at, problem };
        let index =
            self.names.map(symbol.text).ok_or_else(|| fail(Problem::UnknownMap(symbol.text.to_owned())))?;
        let item = self.items.last_mut().ok_or_else(|| fail(Problem::Relocation))?;
        let (kind, next_imm) = if symbol.text.starts_with('.') {
            (Imm64Kind::MapValueIndex, item.operands.imm)
        } else {
            (Imm64Kind::MapIndex, 0)
        };
        item.row = row_of(Form::LoadImm64(kind)).ok_or_else(|| fail(Problem::Relocation))?;
        item.operands = Operands { imm: index, next_imm, ..item.operands };
        Ok(())
    }

    fn finish(self) -> Result<Code, AssembleError> {
        let Self { labels, sections, items, .. } = self;
        let slot_of =
            |name: &str| labels.get(name).copied().flatten().or_else(|| sections.get(name).copied());
        items
            .into_iter()
            .map(|item| item.finish(slot_of).map_err(|failure| item.line.place(failure)))
            .collect()
    }
}

impl Item<'_> {
    /// The instruction, with its label resolved to a distance.
    fn finish(&self, slot_of: impl Fn(&str) -> Option<usize>) -> Result<Insn, Failure> {
        let mut operands = self.operands;
        if let Some(label) = &self.label {
            let fail = |problem| Failure { at: label.at, problem };
            let target =
                slot_of(&label.name).ok_or_else(|| fail(Problem::UnknownLabel(label.name.clone())))?;
            let distance = target as i64 + label.addend - (self.slot as i64 + 1);
            let too_far = |_| fail(Problem::TooFar { label: label.name.clone(), distance });
            if label.far {
                operands.imm = i32::try_from(distance).map_err(too_far)?;
            } else {
                operands.offset = i16::try_from(distance).map_err(too_far)?;
            }
        }
        Ok(self.row.form.with(&operands))
    }
}

/// The first slot of a listing's bytes.
fn first_slot(bytes: &[u8]) -> Option<RawInsn> {
    bytes.first_chunk().copied().map(RawInsn::from_le_bytes)
}
