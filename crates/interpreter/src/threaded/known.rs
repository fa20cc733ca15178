//! Known values of registers, and operations simplified by them.
//!
//! One forward pass over all operations, which intersects facts at joins of control flow. At loop heads it
//! knows nothing. Operands are replaced by their known values: a pointer into the packet by its
//! distance from the start, a comparison with the packet's end by one of lengths, a test of a number made of the packet's
//! bytes by one of the bytes. The definitions of these values remain; `live` removes dead ones.

use paceline_frame::Frame;
use paceline_isa::{AluOp, Condition, Size, Width, eval};
use paceline_runtime::machine::SHADOW;

use super::draft::{Draft, Target};
use super::kind::{Direction, Kind, Reach, Source};
use super::packet_field::{Anchor, PacketField, all};

/// Known value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Constant(u64),
    /// The packet's start plus so many bytes.
    Start(i32),
    /// The packet's end.
    End,
    /// Another register plus a number.
    Sum(u8, i32),
    PacketField(PacketField),
}

impl Known {
    /// The value after a register is overwritten, of which the shadow may keep the old value.
    fn overwrite(&mut self, register: u8, in_shadow: bool) {
        match self {
            Self::Sum(base, _) if *base == register => *self = Self::Nothing,
            Self::PacketField(part) if part.anchor == Anchor::Register && part.register == register => {
                if in_shadow {
                    part.register = SHADOW;
                } else {
                    *self = Self::Nothing;
                }
            }
            _ => {}
        }
    }

    fn is_part(self) -> bool {
        matches!(self, Self::PacketField(_))
    }
}

/// Known values of all registers and of [`SHADOW`].
#[derive(Clone, Copy, Debug)]
struct State([Known; 12]);

impl State {
    const NOTHING: Self = Self([Known::Nothing; 12]);

    fn get(&self, register: u8) -> Known {
        self.0.get(usize::from(register)).copied().unwrap_or(Known::Nothing)
    }

    /// The register in terms of another one, or of itself.
    fn sum(&self, register: u8) -> Known {
        match self.get(register) {
            Known::Nothing => Known::Sum(register, 0),
            known => known,
        }
    }

    /// Overwrites a register with a value in terms of the previous values of registers.
    fn set(&mut self, register: u8, mut known: Known) {
        let in_shadow = self.get(SHADOW) == Known::Sum(register, 0);
        known.overwrite(register, in_shadow);
        self.0.iter_mut().for_each(|other| other.overwrite(register, in_shadow));
        if let Some(place) = self.0.get_mut(usize::from(register)) {
            *place = known;
        }
    }

    fn forget(&mut self, which: impl Fn(Known) -> bool) {
        for known in &mut self.0 {
            if which(*known) {
                *known = Known::Nothing;
            }
        }
    }

    fn meet(&mut self, other: &Self) {
        for (known, other) in self.0.iter_mut().zip(&other.0) {
            if known != other {
                *known = Known::Nothing;
            }
        }
    }

    /// Forgets facts after a call: the packet may have moved, and `r0` to `r5` and the shadow are unknown.
    fn call(&mut self) {
        (0..6).chain([SHADOW]).for_each(|register| self.set(register, Known::Nothing));
        self.forget(|known| matches!(known, Known::Start(_) | Known::End | Known::PacketField(_)));
    }
}

/// Most parts of a draft, and how many of them a jump goes over.
const PARTS: usize = 2;
const REACH: usize = i16::MAX as usize;

/// Replaces operations by simpler ones. Targets are indices of drafts.
pub(super) fn rewrite(drafts: &mut Vec<Draft>) {
    let mut pass = Pass { states: vec![None; drafts.len()], returns: Vec::new() };
    for (index, draft) in drafts.iter().enumerate() {
        if let Some(Target::Draft(target)) = draft.target
            && (target <= index || !draft.jumps())
            && let Some(state) = pass.states.get_mut(target)
        {
            // Functions have many callers, and the back edges of a loop come later.
            *state = Some(Box::new(State::NOTHING));
        }
    }
    let mut state = Some(State::NOTHING);
    for index in 0..drafts.len() {
        if drafts[index].leads {
            state = pass.arrive(index, state);
            state.iter_mut().for_each(|state| state.set(SHADOW, Known::Nothing));
        }
        let here = state.get_or_insert(State::NOTHING);
        drafts[index] = here.step(drafts[index]);
        pass.leave(index, here, drafts);
        if !drafts[index].falls_through() {
            state = None;
        }
    }
    drafts.append(&mut pass.returns);
    lead(drafts);
}

/// Recomputes the drafts with predecessors other than the previous one.
fn lead(drafts: &mut [Draft]) {
    drafts.iter_mut().skip(1).for_each(|draft| draft.leads = false);
    for index in 0..drafts.len() {
        if let Some(Target::Draft(target)) = drafts[index].target
            && let Some(draft) = drafts.get_mut(target)
        {
            draft.leads = true;
        }
    }
}

struct Pass {
    /// Facts at targets of the jumps so far.
    states: Vec<Option<Box<State>>>,
    /// Ends of the program with constants, for jumps to ends with a known `r0`.
    returns: Vec<Draft>,
}

impl Pass {
    /// Facts before an operation, from its jumps and the previous operation.
    fn arrive(&mut self, index: usize, before: Option<State>) -> Option<State> {
        let jumped = self.states.get_mut(index)?.take().map(|state| *state);
        match (jumped, before) {
            (Some(mut jumped), Some(before)) => {
                jumped.meet(&before);
                Some(jumped)
            }
            (jumped, before) => jumped.or(before),
        }
    }

    /// Propagates facts to the target of a jump, or redirects the jump.
    fn leave(&mut self, index: usize, state: &State, drafts: &mut [Draft]) {
        let jump = drafts[index];
        let Some(Target::Draft(target)) = jump.target.filter(|_| jump.jumps()) else { return };
        let operations = PARTS * (drafts.len() - index + self.returns.len() + 1);
        if operations < REACH
            && let (Some(end), Known::Constant(r0)) = (drafts.get(target), state.get(0))
            && end.kind == Kind::End
            && let Some(end) = returning(r0, *end)
        {
            let same =
                |other: &Draft| (other.kind, other.imm, other.weight) == (end.kind, end.imm, end.weight);
            let place = self.returns.iter().position(same).unwrap_or(self.returns.len());
            if place == self.returns.len() {
                self.returns.push(end);
            }
            drafts[index].target = Some(Target::Draft(drafts.len() + place));
        } else if let Some(there) = self.states.get_mut(target) {
            match there {
                Some(there) => there.meet(state),
                None => *there = Some(Box::new(*state)),
            }
        }
    }
}

/// An end of the program with a constant, instead of one with `r0`.
fn returning(r0: u64, end: Draft) -> Option<Draft> {
    let width = |width| {
        let holds = eval::truncate(width, r0 as i32 as u64) == r0;
        holds.then_some(Draft { kind: Kind::Return(width), imm: r0 as i32, ..end })
    };
    width(Width::W32).or_else(|| width(Width::W64))
}

impl State {
    /// The simplified operation, and the facts after it.
    fn step(&mut self, draft: Draft) -> Draft {
        let (dst, src) = (draft.dst, draft.src);
        match draft.kind {
            Kind::Alu { width, op, src: source } => {
                let known = match source {
                    Source::Imm => self.alu_imm(width, op, dst, draft.imm),
                    Source::Reg => self.alu_reg(width, op, dst, src),
                };
                let shorter = match known {
                    Known::Nothing if width == Width::W64 && op == AluOp::Add => self.address(draft),
                    known => materialized(known, draft),
                };
                self.set(dst, known);
                shorter.unwrap_or(draft)
            }
            Kind::Reverse(size) => {
                let swapped = |known| match known {
                    Known::PacketField(part) => part.swapped(size),
                    _ => None,
                };
                let known = swapped(self.get(dst)).map_or(Known::Nothing, Known::PacketField);
                self.set(dst, known);
                materialized(known, draft).unwrap_or(draft)
            }
            Kind::Load { size, signed: false, reach: Reach::Packet } => {
                let part = self.place(src, draft.offset, size);
                self.set(dst, part.map_or(Known::Nothing, Known::PacketField));
                // The result of a load by that register itself is no shorter.
                match part {
                    Some(PacketField { anchor: Anchor::Register, register, .. }) if register == src => draft,
                    _ => part.and_then(|part| materialized(Known::PacketField(part), draft)).unwrap_or(draft),
                }
            }
            Kind::LoadFrame(Size::Dw) => {
                let known = match usize::try_from(draft.imm) {
                    Ok(Frame::OFFSET_DATA) => Known::Start(0),
                    Ok(Frame::OFFSET_DATA_END) => Known::End,
                    _ => Known::Nothing,
                };
                self.set(dst, known);
                draft
            }
            Kind::JumpIf { width, condition, src: Source::Reg } => {
                self.jump_reg(width, condition, draft).unwrap_or(draft)
            }
            Kind::JumpIf { width, condition, src: Source::Imm } => {
                self.jump_imm(width, condition, draft).unwrap_or(draft)
            }
            Kind::End => match self.get(0) {
                Known::Constant(r0) => returning(r0, draft).unwrap_or(draft),
                _ => draft,
            },
            _ => {
                self.other(draft);
                draft
            }
        }
    }

    fn alu_imm(&self, width: Width, op: AluOp, dst: u8, imm: i32) -> Known {
        let known = self.get(dst);
        let part = |part: Option<PacketField>| part.map_or(Known::Nothing, Known::PacketField);
        match (op, known) {
            (AluOp::Mov, _) => Known::Constant(eval::truncate(width, imm as u64)),
            (_, Known::Constant(value)) => Known::Constant(eval::alu(width, op, value, imm as u64)),
            (AluOp::Add, _) if width == Width::W64 => match known {
                Known::Start(offset) => offset.checked_add(imm).map_or(Known::Nothing, Known::Start),
                Known::Sum(base, more) => {
                    more.checked_add(imm).map_or(Known::Nothing, |more| Known::Sum(base, more))
                }
                _ => Known::Nothing,
            },
            // The masked value is the same with 32 and 64 bits.
            (AluOp::And, Known::PacketField(number)) => part(number.masked(imm as u32)),
            (AluOp::Rsh, Known::PacketField(number)) => part(number.shifted_right(imm as u32 & 63)),
            (AluOp::Lsh, Known::PacketField(number)) => part(number.shifted_left(imm as u32 & 63)),
            _ => Known::Nothing,
        }
    }

    fn alu_reg(&self, width: Width, op: AluOp, dst: u8, src: u8) -> Known {
        match (op, self.get(dst), self.get(src)) {
            (AluOp::Mov, ..) if width == Width::W64 && dst == src => self.get(dst),
            (AluOp::Mov, ..) if width == Width::W64 => self.sum(src),
            (AluOp::Mov, _, Known::Constant(value)) => Known::Constant(eval::truncate(width, value)),
            (AluOp::Mov, _, Known::PacketField(part)) => Known::PacketField(part),
            // Their bits are not the same ones.
            (AluOp::Or | AluOp::Add | AluOp::Xor, Known::PacketField(a), Known::PacketField(b)) => {
                a.joined(b).map_or(Known::Nothing, Known::PacketField)
            }
            _ => Known::Nothing,
        }
    }

    /// The field of the packet at an address.
    fn place(&self, base: u8, offset: i16, size: Size) -> Option<PacketField> {
        let at = |more: i32| i16::try_from(i32::from(offset).checked_add(more)?).ok();
        match self.sum(base) {
            Known::Start(start) => PacketField::loaded(Anchor::Start, 0, at(start)?, size),
            Known::Sum(base, more) => PacketField::loaded(Anchor::Register, base, at(more)?, size),
            _ => PacketField::loaded(Anchor::Register, base, offset, size),
        }
    }

    /// The end of a header: a known offset in the packet plus a length field.
    fn address(&self, draft: Draft) -> Option<Draft> {
        let (start, part) = match (self.get(draft.dst), self.get(draft.src)) {
            (Known::Start(start), Known::PacketField(part))
            | (Known::PacketField(part), Known::Start(start)) => (start, part),
            _ => return None,
        };
        let is_reg = matches!(draft.kind, Kind::Alu { src: Source::Reg, .. });
        let shift = direction(part).filter(|_| is_reg && part.size == Size::B)?;
        let kind = Kind::AddressPart { anchor: part.anchor, shift };
        let place = Draft { src: part.register, offset: part.offset, imm: start, ..draft };
        Some(Draft {
            kind,
            word: Some(part.mask.into()),
            second: i32::from(part.shift.unsigned_abs()),
            ..place
        })
    }

    /// A comparison with the packet's end.
    fn jump_reg(&self, width: Width, condition: Condition, draft: Draft) -> Option<Draft> {
        let (pointer, condition) = match (self.sum(draft.dst), self.sum(draft.src)) {
            (pointer, Known::End) => (pointer, condition),
            (Known::End, pointer) => (pointer, mirrored(condition)?),
            _ => return None,
        };
        // Tests whether the end is before the pointer plus a constant.
        let (before, more) = match condition {
            Condition::Gt => (true, 0),
            Condition::Ge => (true, 1),
            Condition::Le => (false, 0),
            Condition::Lt => (false, 1),
            _ => return None,
        };
        match pointer {
            _ if width != Width::W64 => None,
            Known::Start(offset) => {
                let imm = offset.checked_add(more)?;
                Some(Draft { kind: Kind::JumpLen { shorter: before }, dst: 0, src: 0, imm, ..draft })
            }
            // A number that is no pointer could wrap to 0.
            Known::Sum(src, imm) if more == 0 => {
                Some(Draft { kind: Kind::JumpEnd { before }, dst: 0, src, imm, ..draft })
            }
            _ => None,
        }
    }

    /// A comparison of a field of the packet with a number.
    fn jump_imm(&self, width: Width, condition: Condition, draft: Draft) -> Option<Draft> {
        let Known::PacketField(part) = self.get(draft.dst) else { return None };
        let number = draft.imm as u32;
        if width == Width::W64 && draft.imm < 0 {
            return None;
        }
        let (equality, equal) = match condition {
            Condition::Eq => (part.equals(number)?, true),
            Condition::Ne => (part.equals(number)?, false),
            Condition::Set => (part.masked(number)?.equals(0)?, false),
            _ => return None,
        };
        let masked = equality.mask != all(part.size);
        Some(Draft {
            kind: Kind::Test { size: part.size, anchor: part.anchor, masked, equal },
            dst: 0,
            src: part.register,
            offset: part.offset,
            imm: equality.value as i32,
            word: Some(0),
            second: equality.mask as i32,
            ..draft
        })
    }

    /// Forgets the registers that an operation of another kind changes.
    fn other(&mut self, draft: Draft) {
        match draft.kind {
            Kind::CallHelper
            | Kind::LookupArray
            | Kind::CallSubprogram
            | Kind::CallBack(_)
            | Kind::CalledBack
            | Kind::TailCall => self.call(),
            Kind::Store { .. } | Kind::StoreRelease(_) if draft.dst != 10 => self.forget(Known::is_part),
            Kind::Atomic { .. } => {
                self.forget(Known::is_part);
                self.set(0, Known::Nothing);
                self.set(draft.src, Known::Nothing);
            }
            Kind::LoadPacket { .. } => self.set(0, Known::Nothing),
            _ if super::live::effect(&draft).writes != 0 => self.set(draft.dst, Known::Nothing),
            _ => {}
        }
    }
}

/// The condition with its operands exchanged.
fn mirrored(condition: Condition) -> Option<Condition> {
    match condition {
        Condition::Gt => Some(Condition::Lt),
        Condition::Ge => Some(Condition::Le),
        Condition::Lt => Some(Condition::Gt),
        Condition::Le => Some(Condition::Ge),
        _ => None,
    }
}

fn direction(part: PacketField) -> Option<Direction> {
    match part.shift {
        0 => None,
        1.. => Some(Direction::Left),
        _ => Some(Direction::Right),
    }
}

/// An operation that computes the register's known value without its operands.
fn materialized(known: Known, draft: Draft) -> Option<Draft> {
    match known {
        Known::Start(imm) => Some(Draft { kind: Kind::Address, src: 0, imm, ..draft }),
        Known::Sum(src, imm) if src != draft.dst && imm != 0 => {
            Some(Draft { kind: Kind::Sum, src, imm, ..draft })
        }
        Known::PacketField(part) => {
            let shift = direction(part);
            Some(Draft {
                kind: Kind::LoadPart { size: part.size, anchor: part.anchor, reversed: part.reversed, shift },
                src: part.register,
                offset: part.offset,
                imm: part.mask as i32,
                word: shift.map(|_| 0),
                second: i32::from(part.shift.unsigned_abs()),
                ..draft
            })
        }
        _ => None,
    }
}
