//! State at joins: comparisons of two loads, and stack bytes that only one path wrote.

use paceline_isa::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width};

use super::edges::interesting;
use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::maps::{FORGETFUL_WORD, GLOBALS};
use super::model::{Cell, Kind};

impl Generator<'_> {
    /// Compares two numbers from memory, each in a form that compilers generate for fields, and dead afterwards.
    pub(super) fn compare_loads(&mut self) {
        let cell = self.initialized_cell();
        if self.branches == 0 {
            return self.arithmetic();
        }
        let Some(one) = self.loaded(&[]) else { return self.global_value() };
        let Some(other) = self.loaded(&[one]) else { return self.global_value() };
        if one == other || self.model.locked.contains(one) || self.model.locked.contains(other) {
            return;
        }
        self.branches -= 1;
        self.note("two loads compared");
        let (width, condition) = (self.width(), self.condition());
        for reg in [one, other] {
            self.model.set(reg, Kind::Unset);
        }
        self.branch(width, condition, one, Operand::Reg(other), false, |this| this.fill_cell(cell));
    }

    /// A number from memory: plain, signed, byte-swapped, a bit-field, combined from bytes.
    fn loaded(&mut self, not: &[Reg]) -> Option<Reg> {
        let (base, low, high) = self.readable_memory(4)?;
        let dst = self.place_but(&[not, &[base]].concat());
        let size = self.size_within(high - low);
        let offset = self.offset_within(base, low, high, size);
        let form = self.rng.u8(..9);
        let signed = size != Size::Dw && form < 2;
        self.emit(vec![Insn::Load { size, signed, dst, base, offset }]);
        self.model.set(dst, Kind::NUMBER);
        let bits = 8 * size.bytes() as i32;
        match form {
            2 | 3 | 8 => {
                let mask = ((1_i64 << self.rng.i32(1..bits.min(31))) - 1) as i32;
                self.emit(vec![alu(Width::W64, AluOp::And, dst, Operand::Imm(mask))]);
            }
            4 => {
                let (op, count) = (self.pick([AluOp::Rsh, AluOp::Lsh]), self.rng.i32(1..bits));
                self.emit(vec![alu(Width::W64, op, dst, Operand::Imm(count))]);
            }
            5 if size != Size::B => {
                let order = self.pick([SwapOrder::ToBe, SwapOrder::Always]);
                self.emit(vec![Insn::Swap { order, size, dst }]);
            }
            6 => {
                let by = interesting(self.rng) as i32;
                self.emit(vec![add(dst, by)]);
            }
            7 => self.loaded_by_bytes(dst, base, low, high, not),
            _ => {}
        }
        Some(dst)
    }

    fn loaded_by_bytes(&mut self, dst: Reg, base: Reg, low: i16, high: i16, not: &[Reg]) {
        let other = self.scratch(&[not, &[dst, base]].concat());
        if [dst, base].contains(&other) || not.contains(&other) || self.model.locked.contains(other) {
            return;
        }
        let at = self.rng.i16(low..high.max(low + 2) - 1);
        let shift = |reg| alu(Width::W64, AluOp::Lsh, reg, Operand::Imm(8));
        let (first, second) = if self.rng.bool() { (0, 1) } else { (1, 0) };
        self.emit(vec![
            load(Size::B, dst, base, at + first),
            shift(dst),
            load(Size::B, other, base, at + second),
            alu(Width::W64, AluOp::Or, dst, Operand::Reg(other)),
        ]);
        self.model.set(other, Kind::Number { max: 0xff });
    }

    /// `if question { *(r10 - n) = ...; }  x = *(r10 - n)`: uninitialized bytes are zero.
    pub(super) fn perhaps_written(&mut self) {
        let bits = self.model.without_pointers;
        let found = (0..self.cells()).filter(|cell| bits >> cell & 1 != 0).collect::<Vec<_>>();
        let Some(cell) = self.rng.choice(found) else { return self.stack() };
        if self.branches == 0 {
            return self.arithmetic();
        }
        self.branches -= 1;
        self.note(match self.in_loop {
            true => "stack that is perhaps written, in a loop",
            false => "stack that is perhaps written",
        });
        let size = self.size();
        let bytes = size.bytes() as i16;
        let part = bytes * self.rng.i16(0..8 / bytes);
        let offset = -8 * (cell as i16 + 1) + part;
        // Verifiers keep checkpoints only at a minimum distance. In loops the distance is large enough that the path with
        // the store covers the other path, which differs in nothing else.
        let is_long = self.in_loop && !self.one_in(4);
        let (width, condition, dst, src) = if is_long { self.passing_question() } else { self.question() };
        let count = self.rng.usize(0..3);
        self.branch(width, condition, dst, src, false, |this| {
            let src = Operand::Imm(interesting(this.rng) as i32 | 1);
            this.emit(vec![Insn::Store { size, base: Reg::R10, offset, src }]);
            let bits = (((1_u16 << bytes) - 1) << part) as u8;
            let init = this.model.cells[cell].init | bits;
            this.model.cells[cell] = Cell { init, kind: Kind::Unset };
            if is_long {
                this.pass_time();
            } else {
                (0..count).for_each(|_| this.arithmetic());
            }
        });
        if is_long {
            self.pass_time();
            let (width, condition, dst, src) = self.passing_question();
            self.branch(width, condition, dst, src, false, Self::pass_time);
        } else if self.rng.bool() {
            self.arithmetic();
        }
        if self.model.without_pointers >> cell & 1 == 0 {
            return;
        }
        if self.one_in(3) {
            self.write_somewhere(cell);
        }
        let dst = self.place();
        self.emit(vec![load(size, dst, Reg::R10, offset)]);
        self.model.set(dst, Kind::NUMBER);
        self.keep_number(dst);
    }

    /// Writes a byte of a cell at a variable offset: the other bytes keep their values.
    fn write_somewhere(&mut self, cell: usize) {
        self.note("stack that is perhaps written, then at a place that is not known");
        let (number, place) = (Reg::R3, Reg::R4);
        let offset = self.rng.u32(0..=FORGETFUL_WORD - 8);
        let value = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset };
        self.emit(vec![
            Insn::LoadImm64 { dst: number, value },
            load(Size::W, number, number, 0),
            alu(Width::W64, AluOp::And, number, Operand::Imm(7)),
            mov(place, Operand::Reg(Reg::R10)),
            alu(Width::W64, AluOp::Add, place, Operand::Reg(number)),
            Insn::Store { size: Size::B, base: place, offset: -8 * (cell as i16 + 1), src: Operand::Imm(1) },
        ]);
        [number, place].into_iter().for_each(|reg| self.model.set(reg, Kind::Unset));
        self.model.cells[cell].kind = Kind::Unset;
    }

    /// A condition on an unknown number that is dead afterwards.
    fn passing_question(&mut self) -> (Width, Condition, Reg, Operand) {
        let offset = self.rng.u32(0..=FORGETFUL_WORD - 8);
        let value = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset };
        let reg = Reg::R3;
        self.emit(vec![Insn::LoadImm64 { dst: reg, value }, load(Size::W, reg, reg, 0)]);
        self.model.set(reg, Kind::Unset);
        (Width::W64, self.condition(), reg, Operand::Imm(self.rng.i32(0..256)))
    }

    /// Instructions without effect.
    fn pass_time(&mut self) {
        let reg = Reg::R4;
        let mut insns = vec![mov(reg, Operand::Imm(0))];
        insns.extend((0..self.rng.usize(3..8)).map(|by| add(reg, by as i32)));
        self.emit(insns);
        self.model.set(reg, Kind::Unset);
    }
}
