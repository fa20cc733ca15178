//! Dynptrs to the packet, and their slices: packet bytes, or the passed buffer if the packet was cut after the dynptr was
//! made.

use paceline_isa::{AluOp, Callee, Condition, Imm64, Insn, Operand, Reg, Size, Width};

use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::kfuncs::{Kfunc, call, stack_address};
use super::maps::GLOBALS;
use super::model::{Cell, Kind, Source};

/// Number of `bpf_xdp_adjust_tail`.
const ADJUST_TAIL: i32 = 65;

impl Generator<'_> {
    /// Offset of the iterator, below the cells.
    pub(super) fn iterator_place(&self) -> i16 {
        -8 * (self.cells() as i16 + 1)
    }

    fn dynptr_place(&self) -> i16 {
        -8 * (self.cells() as i16 + 3)
    }

    /// A random step with a dynptr.
    pub(super) fn dynptr(&mut self) {
        if !self.is_xdp() || self.model.get(Reg::R6) != Kind::Context {
            return self.arithmetic();
        }
        if !self.model.has_dynptr {
            if self.in_loop {
                return self.access();
            }
            self.new_dynptr();
            if self.moves_packet() && !self.holding && !self.one_in(3) {
                self.cut_packet();
            }
        }
        match self.rng.u8(..8) {
            0 => self.on_dynptr(Kfunc::DynptrSize, &[]),
            1 if !self.in_loop => {
                let (start, end) = (self.rng.i32(0..4), self.rng.i32(0..64));
                let bounds = [mov(Reg::R2, Operand::Imm(start)), mov(Reg::R3, Operand::Imm(end))];
                self.on_dynptr(Kfunc::DynptrAdjust, &bounds);
            }
            _ => self.slice(),
        }
    }

    fn new_dynptr(&mut self) {
        let place = self.dynptr_place();
        let mut insns = vec![mov(Reg::R1, Operand::Reg(Reg::R6)), mov(Reg::R2, Operand::Imm(0))];
        insns.extend(stack_address(Reg::R3, place));
        insns.push(call(Kfunc::DynptrFromXdp));
        self.emit(insns);
        self.model.call(Kind::NUMBER);
        self.model.has_dynptr = true;
    }

    /// Cuts the packet, so that the dynptr's size exceeds it.
    fn cut_packet(&mut self) {
        self.note("a dynptr of a packet that was cut");
        let by = self.rng.i32(1..=40);
        self.emit(vec![
            mov(Reg::R1, Operand::Reg(Reg::R6)),
            mov(Reg::R2, Operand::Imm(-by)),
            Insn::Call(Callee::Helper(ADJUST_TAIL)),
        ]);
        self.model.call(Kind::NUMBER);
        self.model.packet_moved();
    }

    fn on_dynptr(&mut self, kfunc: Kfunc, arguments: &[Insn]) {
        let place = self.dynptr_place();
        let mut insns = arguments.to_vec();
        insns.extend(stack_address(Reg::R1, place));
        insns.push(call(kfunc));
        self.emit(insns);
        self.model.call(Kind::NUMBER);
    }

    /// A slice, with or without a buffer.
    fn slice(&mut self) {
        let writable = !self.one_in(4);
        let size = self.pick([8, 8, 16, 4]);
        let at = self.rng.i32(0..60);
        let lends = |kind| matches!(kind, Kind::Bytes { room, source: Source::Map | Source::Record, .. } if room >= size);
        let mut buffer = vec![mov(Reg::R3, Operand::Imm(0))];
        let (mut cell, mut iterates, mut form) = (None, false, "a slice without a buffer");
        match self.rng.u8(..8) {
            0..=2 => {
                form = "a slice with a buffer on the stack";
                let lowest = self.filled_stack(size);
                buffer = stack_address(Reg::R3, lowest).to_vec();
                // The cell with the lowest address, at which the slice starts.
                cell = Some((-lowest / 8 - 1) as usize).filter(|_| size >= 8);
            }
            3 if size <= 8 && !self.in_loop => {
                form = "a slice with a buffer where iterators are";
                iterates = true;
                buffer = stack_address(Reg::R3, self.iterator_place()).to_vec();
            }
            4..=5 => {
                form = "a slice with a buffer in a map value or record";
                let value = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset: 0 };
                buffer = vec![Insn::LoadImm64 { dst: Reg::R3, value }];
                if let Some(base) = self.find_saved(lends) {
                    buffer = vec![mov(Reg::R3, Operand::Reg(base))];
                }
            }
            _ => {}
        }
        self.note(form);
        let kfunc = if writable { Kfunc::DynptrSliceRdwr } else { Kfunc::DynptrSlice };
        let size_argument = mov(Reg::R4, Operand::Imm(i32::from(size)));
        let arguments = [&buffer[..], &[mov(Reg::R2, Operand::Imm(at)), size_argument]].concat();
        self.on_dynptr(kfunc, &arguments);
        let id = self.model.new_id();
        let slice = Kind::Nullable { room: size, source: Source::Slice { writable }, id };
        self.model.set(Reg::R0, slice);
        let kept = self.saved_place(&[]).filter(|_| !self.one_in(3));
        let Some(kept) = kept else { return self.null_check(Reg::R0) };
        self.emit(vec![mov(kept, Operand::Reg(Reg::R0))]);
        self.model.set(kept, slice);
        let may_share = writable && !self.in_loop && self.rng.bool();
        match cell {
            Some(cell) if may_share => self.share_buffer(kept, id, cell),
            None if may_share && size >= 8 && !self.holding && (iterates || self.one_in(3)) => {
                self.share_iterator(kept, id);
            }
            _ => self.null_check(kept),
        }
    }

    /// Steps that use the buffer as stack while the slice is live.
    fn share_buffer(&mut self, slice: Reg, id: u8, cell: usize) {
        self.note("a slice whose buffer is used while it is there");
        let was_locked = self.model.locked;
        self.model.lock(slice);
        self.model.buffer = Some(cell);
        self.branch(Width::W64, Condition::Eq, slice, Operand::Imm(0), false, |this| {
            this.model.not_null(id);
            if this.rng.bool() {
                this.share_with_pointer(slice, cell);
            } else {
                this.share_with_number(slice, cell);
            }
            if this.rng.bool() {
                this.step();
            }
        });
        self.model.buffer = None;
        self.model.locked = was_locked;
    }

    /// Stores a pointer to the buffer, then writes the slice.
    fn share_with_pointer(&mut self, slice: Reg, cell: usize) {
        let wanted = |kind| matches!(kind, Kind::Bytes { source: Source::Map, .. } | Kind::Context);
        let Some(reg) = self.find(wanted).filter(|&reg| reg != slice) else { return self.global_value() };
        self.spill_to(reg, cell);
        self.store_to_slice(slice);
        self.reload_from(cell);
    }

    /// Stores a constant to the buffer, writes the slice, and uses the number as an offset.
    fn share_with_number(&mut self, slice: Reg, cell: usize) {
        let known = self.rng.i32(0..8);
        let offset = -8 * (cell as i16 + 1);
        let src = Operand::Imm(known);
        self.emit(vec![Insn::Store { size: Size::Dw, base: Reg::R10, offset, src }]);
        self.model.cells[cell] = Cell::NUMBER;
        self.store_to_slice(slice);
        let value = Imm64::MapValueIndex { index: i32::from(GLOBALS), offset: 0 };
        let [number, base] = [Reg::R1, Reg::R2];
        self.emit(vec![
            load(Size::Dw, number, Reg::R10, offset),
            Insn::LoadImm64 { dst: base, value },
            alu(Width::W64, AluOp::Add, base, Operand::Reg(number)),
            load(Size::B, base, base, 0),
        ]);
        [number, base].into_iter().for_each(|reg| self.model.set(reg, Kind::NUMBER));
    }

    fn store_to_slice(&mut self, slice: Reg) {
        let src = Operand::Imm(self.rng.i32(0..1 << 20));
        self.emit(vec![Insn::Store { size: Size::Dw, base: slice, offset: 0, src }]);
    }

    /// A slice whose buffer is released while the slice is live. Returns its register.
    pub(super) fn slice_of_record(&mut self, record: Reg, size: i16) -> Option<(Reg, u8)> {
        if !self.model.has_dynptr || self.in_loop {
            return None;
        }
        let kept = self.saved_place(&[record])?;
        self.note("a slice with a buffer in a record that is given back");
        let size = size.min(16);
        let at = self.rng.i32(0..60);
        let arguments = [
            mov(Reg::R3, Operand::Reg(record)),
            mov(Reg::R2, Operand::Imm(at)),
            mov(Reg::R4, Operand::Imm(i32::from(size))),
        ];
        self.on_dynptr(Kfunc::DynptrSliceRdwr, &arguments);
        let id = self.model.new_id();
        self.emit(vec![mov(kept, Operand::Reg(Reg::R0))]);
        self.model.set(kept, Kind::Nullable { room: size, source: Source::Slice { writable: true }, id });
        Some((kept, id))
    }

    /// Writes a slice, if one is live.
    pub(super) fn write_slice(&mut self, slice: Reg, id: u8) {
        if !matches!(self.model.get(slice), Kind::Nullable { id: other, .. } if other == id) {
            return;
        }
        self.branch(Width::W64, Condition::Eq, slice, Operand::Imm(0), false, |this| {
            this.model.not_null(id);
            this.store_to_slice(slice);
        });
    }

    /// A loop over an iterator, which may overlap the slice's buffer.
    fn share_iterator(&mut self, slice: Reg, id: u8) {
        let was_locked = self.model.locked;
        self.model.lock(slice);
        self.branch(Width::W64, Condition::Eq, slice, Operand::Imm(0), false, |this| {
            this.model.not_null(id);
            this.in_loop = true;
            this.iterate();
            this.in_loop = false;
        });
        self.model.locked = was_locked;
    }

    /// A store to a slice, if one is live, which may overlap the iterator.
    fn write_to_slice(&mut self) {
        let is_slice =
            |kind| matches!(kind, Kind::Bytes { room: 8.., source: Source::Slice { writable: true }, .. });
        let Some(base) = self.find_saved(is_slice) else { return };
        // The next number and the end; constant ones would make the loop endless.
        let (next, end) = (self.rng.u64(0..4), self.rng.u64(0..8));
        let value = Imm64::Value(end << 32 | next);
        let src = Reg::R2;
        self.emit(vec![
            Insn::LoadImm64 { dst: src, value },
            Insn::Store { size: Size::Dw, base, offset: 0, src: Operand::Reg(src) },
        ]);
        self.model.set(src, Kind::NUMBER);
    }

    /// `it = new(0, n); while (next(it)) { ... }; destroy(it)`
    pub(super) fn iterate(&mut self) {
        self.note("an iterator");
        let place = self.iterator_place();
        let rounds = self.rng.i32(0..6);
        let on_iterator = |kfunc, arguments: &[Insn]| {
            [&stack_address(Reg::R1, place)[..], arguments, &[call(kfunc)]].concat()
        };
        let bounds = [mov(Reg::R2, Operand::Imm(0)), mov(Reg::R3, Operand::Imm(rounds))];
        self.emit(on_iterator(Kfunc::IteratorNew, &bounds));
        self.model.call(Kind::NUMBER);
        self.model.enter_loop();
        let next = self.steps.len();
        self.emit(on_iterator(Kfunc::IteratorNext, &[]));
        self.model.call(Kind::Unset);
        let start = self.model.clone();
        let was_holding = std::mem::replace(&mut self.holding, true);
        self.branch(Width::W64, Condition::Eq, Reg::R0, Operand::Imm(0), false, |this| {
            this.model.set(Reg::R0, Kind::Bytes { back: 0, room: 4, source: Source::Constant });
            this.write_to_slice();
            this.round();
            this.jump_back(next);
        });
        self.holding = was_holding;
        self.model.meet(&start);
        self.emit(on_iterator(Kfunc::IteratorDestroy, &[]));
        self.model.call(Kind::Unset);
    }

    /// `n = 0; do { if (may_goto) break; ... } while (++n < limit)`
    pub(super) fn may_go_on(&mut self, counter: Reg) {
        self.note("may_goto");
        self.set_number(counter, 0);
        self.model.lock(counter);
        self.model.enter_loop();
        self.model.set(counter, Kind::Number { max: 255 });
        let start = self.model.clone();
        let first = self.steps.len();
        self.may_goto();
        let limit = self.rng.i32(1..8);
        self.jump_if(
            Width::W64,
            Condition::SGt,
            counter,
            Operand::Imm(limit),
            super::layout::Target::Over(0),
        );
        self.round();
        self.emit(vec![add(counter, 1)]);
        self.jump_back(first);
        self.model.meet(&start);
        self.aim(first);
        self.aim(first + 1);
    }
}
