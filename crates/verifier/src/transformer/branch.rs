//! Conditional jumps: possible outcomes, and refinement of the operands.

use paceline_isa::{Condition, Operand, Reg, Width};

use super::next::{Next, Round};
use super::registers::{Transformer, keeps_id};
use crate::domain::number::Number;
use crate::domain::state::{PacketRange, Pointer, Region, Scalar, State, Target, Value};
use crate::error::Check;

/// Maximum packet offset that is compared; larger ones could wrap the address (`MAX_PACKET_OFF`).
const MAX_PACKET_OFFSET: u64 = 0xffff;

/// The operands of a comparison.
#[derive(Clone, Copy)]
struct Comparison {
    width: Width,
    condition: Condition,
    dst: Reg,
    src: Operand,
    a: Value,
    b: Value,
}

impl Transformer<'_> {
    pub(super) fn branch(
        &mut self,
        width: Width,
        condition: Condition,
        dst: Reg,
        src: Operand,
        target: usize,
    ) -> Check<Next> {
        let (a, b) = (self.check().read(dst)?, self.check().operand(src)?);
        self.records.facts.note_compared(self.slot, width, condition, &a, &b);
        let comparison = Comparison { width, condition, dst, src, a, b };
        let mut jumping = self.state.clone();
        let (env, slot) = (self.env, self.slot);
        let taken =
            Transformer { env, slot, state: &mut jumping, records: self.records }.assume(&comparison, true);
        let fallen = self.assume(&comparison, false);
        if !(taken && fallen) {
            // The outcome depends on the operands: other numbers might jump differently.
            self.records.precision.mark_value(&a);
            self.records.precision.mark_value(&b);
        }
        // No concrete state makes both outcomes impossible; falling through is sound in any case.
        let next = self.slot + 1;
        match (taken, fallen) {
            (true, false) => {
                *self.state = jumping;
                self.records.facts.branch(self.slot, true);
                Ok(Next::Go(target))
            }
            (false, _) => {
                self.records.facts.branch(self.slot, false);
                Ok(Next::Go(next))
            }
            (true, true) => {
                self.records.facts.branch(self.slot, true);
                self.records.facts.branch(self.slot, false);
                Ok(Next::Both { next, target, waiting: Box::new(jumping), round: None })
            }
        }
    }

    /// `may_goto`: the path leaves the loop; the branch that continues the loop waits, with one more round.
    pub(super) fn may_goto(&mut self, target: usize) -> Next {
        self.records.facts.branch(self.slot, true);
        self.records.facts.branch(self.slot, false);
        let mut waiting = self.state.clone();
        waiting.top_mut().may_goto.rounds += 1;
        let round = Some(Round { head: self.slot, just_kept: true });
        Next::Both { next: target, target: self.slot + 1, waiting: Box::new(waiting), round }
    }

    /// Refines the state by the outcome `holds`; false if it is impossible.
    fn assume(&mut self, comparison: &Comparison, holds: bool) -> bool {
        match (comparison.a, comparison.b) {
            (Value::Scalar(a), Value::Scalar(b)) => self.assume_scalars(comparison, &a, &b, holds),
            (Value::Pointer(a), Value::Scalar(b)) if comparison.width == Width::W64 => {
                let is_immediate = matches!(comparison.src, Operand::Imm(_));
                self.assume_null_check(comparison.condition, &a, &b, holds, is_immediate)
            }
            (Value::Scalar(a), Value::Pointer(b)) if comparison.width == Width::W64 => {
                match comparison.condition {
                    Condition::Eq | Condition::Ne => assume_never_null(comparison.condition, &b, &a, holds),
                    _ => true,
                }
            }
            (Value::Pointer(a), Value::Pointer(b)) if comparison.width == Width::W64 => {
                self.assume_pointers(comparison, &a, &b, holds)
            }
            _ => true,
        }
    }

    fn assume_scalars(&mut self, comparison: &Comparison, a: &Scalar, b: &Scalar, holds: bool) -> bool {
        let Comparison { width, condition, dst, src, .. } = *comparison;
        let Some((na, nb)) = Number::refine(&a.number, &b.number, width, condition, holds) else {
            return false;
        };
        let mark = self.records.precision.join(a.mark, b.mark);
        let mut learn = |reg: Reg, old: &Scalar, number: Number| {
            if number != old.number {
                let new = Scalar { number, mark, ..*old };
                self.state.set(reg, Value::Scalar(new));
                self.learn_linked(&new);
            }
        };
        learn(dst, a, na);
        if let Some(reg) = src.reg() {
            learn(reg, b, nb);
        }
        true
    }

    /// Propagates a refined number to the numbers linked to it.
    ///
    /// A contradiction means that no run gets here, but the path does not end: the linked register may be dead, and then
    /// later states are not compared in it.
    fn learn_linked(&mut self, known: &Scalar) {
        let Some(link) = known.link else { return };
        let linked = |value: &Value| value.scalar().and_then(|s| s.link).is_some_and(|l| l.id == link.id);
        let precision = &mut self.records.precision;
        self.state.update(linked, |value| {
            let Value::Scalar(scalar) = value else { return };
            let expected = scalar.link.map_or(Number::UNKNOWN, |other| other.follow(link, &known.number));
            scalar.mark = precision.join(scalar.mark, known.mark);
            scalar.number = scalar.number.meet(&expected).unwrap_or(expected);
        });
    }

    /// Compares a pointer with a number: only a comparison with null refines the pointer. Like the kernel, only immediate
    /// null counts, which is what compilers emit.
    fn assume_null_check(
        &mut self,
        condition: Condition,
        pointer: &Pointer,
        number: &Scalar,
        holds: bool,
        is_immediate: bool,
    ) -> bool {
        if !matches!(condition, Condition::Eq | Condition::Ne) {
            return true;
        }
        if !assume_never_null(condition, pointer, number, holds) {
            return false;
        }
        if is_immediate && pointer.nullable && number.number.as_constant() == Some(0) {
            self.settle_null(pointer.id, (condition == Condition::Eq) == holds);
        }
        true
    }

    /// Resolves all copies of a nullable pointer as null or not null.
    fn settle_null(&mut self, id: u32, is_null: bool) {
        let same = |value: &Value| value.pointer().is_some_and(|p| p.nullable && p.id == id);
        let env = self.env;
        self.state.update(same, |value| {
            if is_null {
                *value = Value::number(Number::ZERO);
            } else if let Value::Pointer(pointer) = value {
                pointer.nullable = false;
                if !keeps_id(env, pointer) {
                    pointer.id = 0;
                }
            }
        });
        if is_null {
            self.state.references.retain(|reference| reference.id != id);
        }
    }

    fn assume_pointers(&mut self, comparison: &Comparison, a: &Pointer, b: &Pointer, holds: bool) -> bool {
        let Comparison { condition, dst, src, .. } = *comparison;
        let equality = match condition {
            Condition::Eq => Some(holds),
            Condition::Ne => Some(!holds),
            _ => None,
        };
        if let Some(equal) = equality {
            // Equal to a pointer that is not null: not null.
            if equal && a.nullable != b.nullable {
                self.settle_null(if a.nullable { a.id } else { b.id }, false);
            }
            return true;
        }
        if is_before_end(a, b) {
            return assume_packet(self.state, condition, (dst, a), b, holds);
        }
        if let Some(src) = src.reg().filter(|_| is_before_end(b, a)) {
            let Some(swapped) = swapped(condition) else { return true };
            return assume_packet(self.state, swapped, (src, b), a, holds);
        }
        true
    }
}

/// Pointers that are never null are not equal to zero.
fn assume_never_null(condition: Condition, pointer: &Pointer, number: &Scalar, holds: bool) -> bool {
    let equal = (condition == Condition::Eq) == holds;
    !(equal && pointer.is_never_null() && number.number.as_constant() == Some(0))
}

/// Whether the second pointer is the end of the region that the first points into.
fn is_before_end(pointer: &Pointer, end: &Pointer) -> bool {
    match (pointer.target, end.target) {
        (Target::Packet { region: Region::Data, .. }, Target::PacketEnd) => true,
        // The metadata ends at the start of the packet.
        (Target::Packet { region: Region::Meta, .. }, Target::Packet { region: Region::Data, .. }) => {
            end.id == 0 && end.offset() == Some(0)
        }
        _ => false,
    }
}

const fn swapped(condition: Condition) -> Option<Condition> {
    Some(match condition {
        Condition::Gt => Condition::Lt,
        Condition::Ge => Condition::Le,
        Condition::Lt => Condition::Gt,
        Condition::Le => Condition::Ge,
        _ => return None,
    })
}

/// Refines packet pointers by the outcome of `pointer condition end`.
fn assume_packet(
    state: &mut State,
    condition: Condition,
    (reg, pointer): (Reg, &Pointer),
    end: &Pointer,
    holds: bool,
) -> bool {
    // The outcome, normalized to one of `pointer > end`, `>=`, `<`, `<=`.
    let (beyond, strict) = match (condition, holds) {
        (Condition::Gt, true) | (Condition::Le, false) => (true, true),
        (Condition::Ge, true) | (Condition::Lt, false) => (true, false),
        (Condition::Lt, true) | (Condition::Ge, false) => (false, true),
        (Condition::Le, true) | (Condition::Gt, false) => (false, false),
        _ => return true,
    };
    let Target::Packet { region, range } = pointer.target else { return true };
    let is_end = end.target == Target::PacketEnd;
    match (range, beyond, strict) {
        // A pointer found beyond the end is not before it.
        (PacketRange::BeyondEnd, false, _) | (PacketRange::AtEnd, false, true) if is_end => return false,
        _ => {}
    }
    if beyond {
        if is_end {
            // Only the compared register: copies may keep their proven bytes (`mark_pkt_end`).
            let range = if strict { PacketRange::BeyondEnd } else { PacketRange::AtEnd };
            state.set(reg, Value::Pointer(Pointer { target: Target::Packet { region, range }, ..*pointer }));
        }
        return true;
    }
    let reach = i64::from(pointer.fixed) + i64::from(strict);
    // Like the kernel, a comparison of the start itself proves no bytes.
    if pointer.fixed <= 0 || pointer.variable.umax().saturating_add(pointer.fixed as u64) > MAX_PACKET_OFFSET
    {
        return true;
    }
    // The maximum offset of 65535 before the end would prove one byte more, which does not fit; it is dropped.
    let bytes = u16::try_from(reach).unwrap_or(u16::MAX);
    let same = |value: &Value| {
        value.pointer().is_some_and(|p| {
            p.id == pointer.id && matches!(p.target, Target::Packet { region: r, .. } if r == region)
        })
    };
    state.update(same, |value| {
        if let Value::Pointer(Pointer { target: Target::Packet { range, .. }, .. }) = value {
            *range = match *range {
                PacketRange::Bytes(known) => PacketRange::Bytes(known.max(bytes)),
                PacketRange::AtEnd | PacketRange::BeyondEnd => PacketRange::Bytes(bytes),
            };
        }
    });
    true
}
