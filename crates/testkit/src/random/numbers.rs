//! Arithmetic steps.

use paceline_isa::{AluOp, AtomicOp, Condition, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width};

use super::edges::{interesting, most_of};
use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::maps::{FORGETFUL_WORD, GLOBALS};
use super::model::{Kind, Source};

impl Generator<'_> {
    pub(super) fn arithmetic(&mut self) {
        let dst = self.own_number(&[]);
        let width = self.width();
        let mut max = if width == Width::W32 { most_of(Size::W) } else { u64::MAX };
        let insn = match self.rng.u8(..13) {
            12 => return self.rotation(dst),
            0 => Insn::Neg { width, dst },
            1 => {
                let order = self.pick([SwapOrder::ToBe, SwapOrder::Always, SwapOrder::ToLe]);
                let size = self.pick([Size::H, Size::W, Size::Dw]);
                max = most_of(size);
                Insn::Swap { order, size, dst }
            }
            2 => {
                let from = match width {
                    Width::W64 => self.pick([Size::B, Size::H, Size::W]),
                    Width::W32 => self.pick([Size::B, Size::H]),
                };
                Insn::MovSx { width, from, dst, src: self.number() }
            }
            3 => {
                let value = interesting(self.rng) as u64;
                max = value;
                Insn::LoadImm64 { dst, value: Imm64::Value(value) }
            }
            4 => {
                let src = Operand::Reg(self.number());
                alu(width, AluOp::Mov, dst, src)
            }
            _ => self.operation(width, dst),
        };
        self.emit(vec![insn]);
        self.model.set(dst, Kind::Number { max });
    }

    /// Two shifts of a number that are put together to a rotation, or nearly to one.
    fn rotation(&mut self, dst: Reg) {
        let copy = self.scratch(&[dst]);
        let (width, moved, joined) = (self.width(), self.width(), self.width());
        let bits = if width == Width::W64 { 64 } else { 32 };
        let count = self.rng.i32(1..bits);
        let other = if self.one_in(8) { count } else { bits - count };
        let mut shifts = [AluOp::Lsh, AluOp::Rsh];
        if self.rng.bool() {
            shifts.reverse();
        }
        let op = self.pick([AluOp::Or, AluOp::Or, AluOp::Xor, AluOp::Add]);
        self.emit(vec![
            alu(moved, AluOp::Mov, copy, Operand::Reg(dst)),
            alu(width, shifts[0], dst, Operand::Imm(count)),
            alu(width, shifts[1], copy, Operand::Imm(other)),
            alu(joined, op, dst, Operand::Reg(copy)),
        ]);
        self.model.set(copy, Kind::NUMBER);
        self.model.set(dst, Kind::NUMBER);
    }

    fn operation(&mut self, width: Width, dst: Reg) -> Insn {
        use AluOp as A;
        let op = self.pick([
            A::Add,
            A::Add,
            A::Sub,
            A::Mul,
            A::Div,
            A::SDiv,
            A::Mod,
            A::SMod,
            A::Or,
            A::And,
            A::Xor,
            A::Lsh,
            A::Rsh,
            A::Arsh,
            A::Mov,
        ]);
        let imm = interesting(self.rng) as i32;
        let src = if self.one_in(3) {
            Operand::Reg(self.number())
        } else if self.slips() {
            Operand::Imm(imm)
        } else {
            // The verifier refuses invalid constants.
            Operand::Imm(match op {
                A::Lsh | A::Rsh | A::Arsh => self.rng.i32(0..if width == Width::W64 { 64 } else { 32 }),
                A::Div | A::SDiv | A::Mod | A::SMod if imm == 0 => -1,
                _ => imm,
            })
        };
        alu(width, op, dst, src)
    }

    /// A copy of a register.
    pub(super) fn copy(&mut self) {
        let Some(src) = self.find(|kind| kind != Kind::Unset) else { return self.arithmetic() };
        let kind = self.model.get(src);
        let dst = self.place_but(&[src]);
        // Half of a pointer is a number that differs between runs.
        let halved = kind.is_number() && self.one_in(6) || self.slips();
        let width = if halved { Width::W32 } else { Width::W64 };
        self.emit(vec![alu(width, AluOp::Mov, dst, Operand::Reg(src))]);
        self.model.set(dst, if halved { Kind::NUMBER } else { kind });
    }

    /// Bounds a number by `most` in a way that the verifier tracks. Returns its maximum.
    pub(super) fn bounded(&mut self, reg: Reg, most: u64) -> u64 {
        if self.slips() {
            return most;
        }
        let limits: Vec<u64> =
            [0, 1, 3, 7, 15, 16, 31, 60, 64, 255].into_iter().filter(|&l| l <= most).collect();
        let limit = self.rng.choice(limits).unwrap_or(0);
        // The greatest mask of ones that is not above the bound.
        let mask = ((limit + 1).next_power_of_two() >> u32::from(!(limit + 1).is_power_of_two())) - 1;
        let imm = Operand::Imm;
        let width = self.width();
        let is_short = matches!(self.model.get(reg), Kind::Number { max } if max <= most_of(Size::W));
        let compared = if is_short { width } else { Width::W64 };
        let form = if self.holding { self.rng.u8(2..5) } else { self.rng.u8(..10) };
        let max = match form {
            0 if limit == 60 => {
                // The length of an IPv4 header: a nibble times four.
                self.emit(vec![alu(width, AluOp::And, reg, imm(15)), alu(width, AluOp::Lsh, reg, imm(2))]);
                limit
            }
            1 if mask > 0 => {
                let all = if width == Width::W64 { 64 } else { 32 };
                self.emit(vec![alu(width, AluOp::Rsh, reg, imm(all - mask.count_ones() as i32))]);
                mask
            }
            2 => {
                let size = self.pick([Size::H, Size::W, Size::Dw]);
                let order = self.pick([SwapOrder::ToBe, SwapOrder::Always, SwapOrder::ToLe]);
                self.emit(vec![
                    Insn::Swap { order, size, dst: reg },
                    alu(width, AluOp::And, reg, imm(mask as i32)),
                ]);
                mask
            }
            3 => {
                let multiplier = self.pick([1, 2, 3, 5]).min(most.checked_div(mask).unwrap_or(1) as i32);
                let and = alu(width, AluOp::And, reg, imm(mask as i32));
                self.emit(vec![and, alu(width, AluOp::Mul, reg, imm(multiplier))]);
                mask * multiplier as u64
            }
            4 => self.masked_with_another(reg, width, mask),
            5 => {
                // Sign-extended, then bounded on both sides.
                let from = self.pick([Size::B, Size::H, Size::W]);
                self.emit(vec![Insn::MovSx { width: Width::W64, from, dst: reg, src: reg }]);
                self.model.set(reg, Kind::NUMBER);
                self.leave_if(Width::W64, Condition::SLt, reg, imm(0));
                self.leave_if(Width::W64, Condition::SGt, reg, imm(limit as i32));
                limit
            }
            6 => {
                // The verifier applies bounds of a copy to the number.
                let copy = self.scratch(&[reg]);
                let distance = if is_short { self.rng.i32(0..=limit.min(4) as i32) } else { 0 };
                self.emit(vec![mov(copy, Operand::Reg(reg)), add(copy, distance)]);
                self.model.set(copy, Kind::NUMBER);
                self.leave_if(Width::W64, Condition::Gt, copy, imm(limit as i32));
                limit
            }
            7 => {
                self.leave_if(compared, Condition::Ge, reg, imm(limit as i32 + 1));
                limit
            }
            _ => {
                self.leave_if(compared, Condition::Gt, reg, imm(limit as i32));
                limit
            }
        };
        self.model.set(reg, Kind::Number { max });
        max
    }

    fn masked_with_another(&mut self, reg: Reg, width: Width, mask: u64) -> u64 {
        let other = self.own_number(&[reg]);
        let imm = Operand::Imm(mask as i32);
        self.emit(vec![alu(width, AluOp::And, reg, imm)]);
        if other != reg {
            let op = self.pick([AluOp::Or, AluOp::Xor, AluOp::And]);
            self.emit(vec![alu(width, AluOp::And, other, imm), alu(width, op, reg, Operand::Reg(other))]);
            self.model.set(other, Kind::Number { max: mask });
        }
        mask
    }

    /// A number unknown to the verifier, from memory, in a register that may be written.
    pub(super) fn unknown(&mut self, not: &[Reg]) -> Reg {
        let Some((base, low, high)) = self.readable_memory(1) else { return self.own_number(not) };
        let dst = self.scratch(&[not, &[base]].concat());
        let size = self.size_within(high - low);
        let offset = self.offset_within(base, low, high, size);
        let signed = size != Size::Dw && self.one_in(6);
        self.emit(vec![Insn::Load { size, signed, dst, base, offset }]);
        self.model.set(dst, Kind::Number { max: if signed { u64::MAX } else { most_of(size) } });
        dst
    }

    /// An atomic operation on a map value, memory from a caller, or the stack.
    pub(super) fn atomic(&mut self) {
        let fetch = self.rng.bool();
        let op = self.pick([
            AtomicOp::Add { fetch },
            AtomicOp::Or { fetch },
            AtomicOp::And { fetch },
            AtomicOp::Xor { fetch },
            AtomicOp::Xchg,
            AtomicOp::CmpXchg,
        ]);
        let width = self.width();
        let size = if width == Width::W64 { Size::Dw } else { Size::W };
        let src = if op.fetches() { self.own_number(&[]) } else { self.number() };
        if op == AtomicOp::CmpXchg && !self.model.get(Reg::R0).is_number() {
            self.set_number(Reg::R0, 1);
            if !self.model.get(src).is_number() {
                return;
            }
        }
        let slices = self.one_in(4);
        let is_place = |kind| match kind {
            Kind::Bytes { room: 8.., source: Source::Map | Source::Caller | Source::Record, .. } => true,
            Kind::Bytes { room: 8.., source: Source::Slice { writable: true }, .. } => slices,
            _ => false,
        };
        let (base, offset) = match self.find(is_place) {
            Some(base) if !self.one_in(3) => {
                let Kind::Bytes { back, room, .. } = self.model.get(base) else { return };
                (base, self.aligned_within(base, -back, room, size))
            }
            _ => {
                let cell = self.initialized_cell();
                (Reg::R10, -8 * (cell as i16 + 1))
            }
        };
        let offset = if self.slips() { offset + 1 } else { offset };
        if base == Reg::R10 {
            self.forget_cell_number(offset);
        }
        if op == AtomicOp::CmpXchg && self.rng.bool() {
            self.expect_what_is_there(base, offset, size, src);
        }
        self.emit(vec![Insn::Atomic { width, op, base, offset, src }]);
        let fetched = if op == AtomicOp::CmpXchg { Reg::R0 } else { src };
        if !op.fetches() {
            return;
        }
        self.model.set(fetched, Kind::NUMBER);
        if !self.is_for_engines() {
            return;
        }
        if (width, op) == (Width::W32, AtomicOp::CmpXchg) {
            // Linux 6.18 leaves the upper half of r0 as it was on some paths: cmpxchg_join.case in tests/cases/isa/atomic32.
            self.emit(vec![alu(Width::W32, AluOp::Mov, Reg::R0, Operand::Reg(Reg::R0))]);
        }
        // Linux 6.18 loses the origin of a value fetched from the stack, and prunes paths that it must explore:
        // fetch_precision.case in tests/cases/isa/atomic64. Therefore the value is made unknown. Memory from a caller may be
        // its stack.
        self.pass_through_memory(fetched);
    }

    /// Loads what a compare-exchange finds, so that it stores: seldom would a number be the one that is there. Of 32 bits also with others
    /// above, which count for nothing.
    fn expect_what_is_there(&mut self, base: Reg, offset: i16, size: Size, src: Reg) {
        self.emit(vec![load(size, Reg::R0, base, offset)]);
        self.model.set(Reg::R0, Kind::NUMBER);
        if size == Size::W && self.rng.bool() {
            let above = self.scratch(&[Reg::R0, base, src]);
            let value = Imm64::Value(u64::from(self.rng.u32(..)) << 32);
            let or = alu(Width::W64, AluOp::Or, Reg::R0, Operand::Reg(above));
            self.emit(vec![Insn::LoadImm64 { dst: above, value }, or]);
            self.model.set(above, Kind::NUMBER);
        }
    }

    fn pass_through_memory(&mut self, reg: Reg) {
        let address = self.scratch(&[reg]);
        let value = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset: FORGETFUL_WORD };
        self.emit(vec![
            Insn::LoadImm64 { dst: address, value },
            Insn::Store { size: Size::Dw, base: address, offset: 0, src: Operand::Reg(reg) },
            load(Size::Dw, reg, address, 0),
        ]);
        self.model.set(address, Kind::Bytes { back: FORGETFUL_WORD as i16, room: 8, source: Source::Map });
    }

    pub(super) fn acquire_release(&mut self) {
        let size = self.size();
        let src = self.number();
        let is_place =
            |kind| matches!(kind, Kind::Bytes { room: 8.., source: Source::Map | Source::Caller, .. });
        let (base, offset) = match self.find(is_place) {
            Some(base) if !self.one_in(3) => {
                let Kind::Bytes { back, room, .. } = self.model.get(base) else { return };
                (base, self.aligned_within(base, -back, room, size))
            }
            _ => {
                let cell = self.initialized_cell();
                let at = -8 * (cell as i16 + 1);
                self.forget_cell_number(at);
                (Reg::R10, at)
            }
        };
        let dst = self.place_but(&[base]);
        self.emit(vec![
            Insn::StoreRelease { size, base, offset, src },
            Insn::LoadAcquire { size, dst, base, offset },
        ]);
        self.model.set(dst, Kind::Number { max: most_of(size) });
    }
}
