//! A refusal with its context: source lines, named instructions, and the history of the register.

use std::fmt;

use crate::load::EntryError;
use crate::load::Object;
use crate::load::ProgramError;
use crate::load::VerifierError;
use crate::verifier::state::{Lost, Stale, Value};
use paceline_isa::text::Line;
use paceline_isa::{Reg, decode_at, disassemble};
use paceline_spec::{LineInfo, ProgramSpec};
use paceline_verifier::{Branch, Cause, Hint, Refusal, RegName};

use super::history::History;
use super::shown::shown;
use super::symbols::Symbols;

/// Branches before the guilty instruction that are shown.
const BRANCHES_SHOWN: usize = 3;

/// Instructions shown before and after the guilty one where there are no source lines.
const AROUND: usize = 4;

/// The reasons for a refusal, in words. All text is fit for a terminal.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// For messages.
    pub(super) object: String,
    pub(super) program: String,
    pub(super) function: String,
    /// Whether Paceline lacks something, rather than the program being unsafe.
    pub(super) unsupported: bool,
    pub(super) refusal: Refusal,
    /// The guilty instruction.
    pub(super) at: Place,
    /// The values of the registers that it reads.
    pub(super) registers: Vec<(Reg, String)>,
    /// Other places that matter, in the order of the path.
    pub(super) marks: Vec<Mark>,
    /// All branches on the path, with their outcomes.
    pub(super) path: Vec<(Branch, Place)>,
    /// Instructions around the guilty one, as slot and text.
    pub(super) listing: Vec<(usize, String)>,
    /// The map entry that needs the program, if the user did not name it.
    pub(super) wanted: Option<String>,
}

/// An instruction and its source line.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) insn: String,
    pub(super) line: Option<Source>,
}

/// A source line, as far as the object has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) file: String,
    pub(super) text: String,
    /// From 1.
    pub(super) line: u32,
    /// From 1, 0 when unknown.
    pub(super) column: u32,
}

/// A place with its event.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) place: Place,
    pub(super) text: String,
    /// Whether it is a branch on the path.
    pub(super) is_branch: bool,
}

impl Diagnosis {
    /// Walks the program again, to remember how it gets to the guilty instruction. `name` is the object's, for messages.
    #[must_use]
    pub fn new(name: &str, object: &Object, refused: &VerifierError) -> Self {
        let mut history = History::default();
        let _ = object.verify_observed(&refused.program, &refused.options, &mut history);
        let (spec, refusal) = (&*refused.program, &*refused.refusal);
        let places = Places { spec, symbols: Symbols::new(object, spec) };
        let path: Vec<_> = refusal.path.iter().map(|branch| (*branch, places.of(branch.slot))).collect();
        let mut marks = marks(spec, refusal, &history, &places);
        marks.extend(last_branches(&path));
        marks.sort_by_key(|mark| history.back().position(|slot| slot == mark.place.slot));
        marks.reverse();
        Self {
            object: shown(name),
            program: shown(&spec.name),
            function: shown(spec.function_of(refusal.slot).map_or(&spec.name, |f| &f.name)),
            unsupported: refused.is_unsupported(),
            refusal: refusal.clone(),
            at: places.of(refusal.slot),
            registers: registers(refusal),
            marks,
            path,
            listing: places.around(refusal.slot),
            wanted: None,
        }
    }

    /// That of a program that cannot be had because the verifier refuses it, or one that it may tail call.
    #[must_use]
    pub fn of(name: &str, object: &Object, error: &ProgramError) -> Option<Self> {
        match error {
            ProgramError::Refused(refused) => Some(Self::new(name, object, refused)),
            ProgramError::Entry { map, index, source } => match &**source {
                EntryError::Program(ProgramError::Refused(refused)) => {
                    Some(Self::new(name, object, refused).of_entry(map, *index))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A refusal of a program that an entry of a program array names.
    #[must_use]
    pub fn of_entry(self, map: &str, index: u32) -> Self {
        let wanted = format!("map {} has it at index {index}, to be tail called", shown(map));
        Self { wanted: Some(wanted), ..self }
    }

    /// The cause, in a line.
    #[must_use]
    pub fn cause(&self) -> String {
        shown(&self.refusal.cause.to_string())
    }

    /// The object's name in messages.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.object
    }

    /// The program's name.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Whether Paceline lacks what the program needs, which may be safe.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.unsupported
    }

    /// The advice of the verifier.
    pub(super) fn hint(&self) -> Option<Hint> {
        self.refusal.hint
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.unsupported { "needs what Paceline does not have" } else { "is refused" };
        write!(f, "{}: program {} {what}: {}", self.object, self.program, self.cause())
    }
}

impl std::error::Error for Diagnosis {}

/// Looks up instructions and their lines.
struct Places<'a> {
    spec: &'a ProgramSpec,
    symbols: Symbols<'a>,
}

impl Places<'_> {
    fn of(&self, slot: usize) -> Place {
        let insn = self.symbols.text(&Line { slot, insn: decode_at(&self.spec.insns, slot) });
        Place { slot, insn: shown(&insn), line: self.spec.line_of(slot).and_then(source) }
    }

    fn around(&self, slot: usize) -> Vec<(usize, String)> {
        let lines = disassemble(&self.spec.insns);
        let at = lines.partition_point(|line| line.slot < slot);
        let from = at.saturating_sub(AROUND);
        let around = lines.iter().skip(from).take(at - from + AROUND + 1);
        around.map(|line| (line.slot, shown(&self.symbols.text(line)))).collect()
    }
}

/// Compilers use line 0 for code without a line.
fn source(info: &LineInfo) -> Option<Source> {
    let LineInfo { file, text, line, column, .. } = info;
    let known = *line > 0 && !text.trim().is_empty();
    known.then(|| Source { file: shown(file), text: shown(text), line: *line, column: *column })
}

/// The values of the registers that matter.
fn registers(refusal: &Refusal) -> Vec<(Reg, String)> {
    let told = refusal.registers.iter().filter(|_| is_about_values(&refusal.cause));
    told.map(|(reg, value)| (*reg, in_words(value))).collect()
}

fn in_words(value: &Value) -> String {
    match value.scalar().and_then(|scalar| scalar.stale_since) {
        Some(Stale { slot, lost: Lost::Packet }) => {
            format!("{value}, a pointer into the packet before instruction {slot}")
        }
        Some(Stale { slot, lost: Lost::Buffer }) => format!("{value}, a slice before instruction {slot}"),
        None => value.to_string(),
    }
}

/// Instructions that established facts which matter for the refusal.
fn marks(spec: &ProgramSpec, refusal: &Refusal, history: &History, places: &Places<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut mark = |slot: usize, what: &str| {
        let place = places.of(slot);
        let text = format!("{what} by instruction {slot}: {}", place.insn);
        marks.push(Mark { place, text, is_branch: false });
    };
    let origin = |reg| history.origin(spec, reg).filter(|_| history.back().next() == Some(refusal.slot));
    if let Some(RegName(reg)) = guilty(&refusal.cause)
        && let Some(slot) = origin(reg)
    {
        match refusal.cause {
            Cause::NotSet(_) => mark(slot, &format!("{reg} has lost its value")),
            _ => mark(slot, &format!("{reg} is set")),
        }
    }
    if let Some(slot) = refusal.invalidated_by {
        let is_slice = refusal.hint == Some(Hint::EndedSlice);
        mark(slot, if is_slice { "the slice ends" } else { "the packet may be moved" });
    }
    if let Cause::Leak { slot, .. } = refusal.cause {
        mark(slot, "acquired");
    }
    for &slot in &refusal.calls {
        mark(slot, "called");
    }
    marks
}

/// The register that a cause is about.
fn guilty(cause: &Cause) -> Option<RegName> {
    match cause {
        Cause::NotSet(register)
        | Cause::PointerOperation(register, ..)
        | Cause::NullableArithmetic(register, _)
        | Cause::TwoPointers(register, _)
        | Cause::PointerSubtracted(register)
        | Cause::PointerOffset(register, ..)
        | Cause::NoMemory(register, _)
        | Cause::MayBeNull(register, _)
        | Cause::OutOfBounds { register, .. }
        | Cause::NegativeOffset(register, ..)
        | Cause::UnboundedOffset(register, _)
        | Cause::ChangedContext(register, _)
        | Cause::StackBounds { register, .. }
        | Cause::PartialSpill(register)
        | Cause::StackPointerEscapes(register)
        | Cause::ReadOnly(register, _)
        | Cause::WriteOnly(register, _)
        | Cause::Atomic(register, _)
        | Cause::Argument { register, .. }
        | Cause::PacketArgument(register, _)
        | Cause::NegativeSize(register, _)
        | Cause::ZeroSize(register)
        | Cause::UnboundedSize(register, _)
        | Cause::LentPacket { register, .. }
        | Cause::LentAlignment { register, .. } => Some(*register),
        Cause::GlobalReturn(_) => Some(RegName(Reg::R0)),
        _ => None,
    }
}

/// Whether what the registers hold explains a cause: it is about none where a helper does not exist.
fn is_about_values(cause: &Cause) -> bool {
    guilty(cause).is_some() || cause.is_too_complex() || matches!(cause, Cause::InfiniteLoop)
}

/// The last branches, each once.
fn last_branches(path: &[(Branch, Place)]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for (branch, place) in path.iter().rev() {
        if marks.len() == BRANCHES_SHOWN {
            break;
        }
        if marks.iter().all(|mark| mark.place.slot != place.slot) {
            let what = if branch.taken { "jumps" } else { "does not jump" };
            let times = path.iter().filter(|(other, _)| other == branch).count();
            let often = if times > 1 { ", again and again" } else { "" };
            let text = format!("instruction {} {what}{often}: {}", place.slot, place.insn);
            marks.push(Mark { place: place.clone(), text, is_branch: true });
        }
    }
    marks
}
