//! Spilled pointers that are filled into any register and used at once.

use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::edges::most_of;
use super::generator::Generator;
use super::insns::{alu, load, mov};
use super::model::{Cell, Kind};

impl Generator<'_> {
    /// Spills a pointer. Returns its cell.
    pub(super) fn spill_to(&mut self, reg: Reg, cell: usize) {
        let offset = -8 * (cell as i16 + 1);
        self.emit(vec![Insn::Store { size: Size::Dw, base: Reg::R10, offset, src: Operand::Reg(reg) }]);
        self.model.without_pointers &= !(1 << cell);
        self.model.cells[cell] = Cell { init: 0xff, kind: self.model.get(reg) };
    }

    /// Fills a spilled pointer, perhaps a recent one, and uses it.
    pub(super) fn reload(&mut self) {
        if !self.in_loop && self.one_in(2) {
            let Some(reg) = self.find(Kind::is_pointer) else { return self.access() };
            let cell = self.free_cell();
            self.spill_to(reg, cell);
            // Steps in between overwrite registers.
            let count = self.rng.usize(0..3);
            (0..count).for_each(|_| self.clobber());
        }
        let spilled = (0..self.cells()).filter(|&cell| self.model.cells[cell].kind.is_pointer());
        let Some(cell) = self.rng.choice(spilled.collect::<Vec<_>>()) else { return self.access() };
        self.reload_from(cell);
    }

    /// Changes native registers: a call, stores.
    fn clobber(&mut self) {
        match self.rng.u8(..8) {
            0..=2 => self.helper(),
            3..=4 => self.call(),
            5 => self.global_value(),
            6 => self.access(),
            _ => self.arithmetic(),
        }
    }

    /// Fills the pointer of a cell and uses it.
    pub(super) fn reload_from(&mut self, cell: usize) {
        let kind = self.model.cells[cell].kind;
        if !kind.is_pointer() {
            return;
        }
        let dst = if self.one_in(4) { self.any_place() } else { self.place() };
        let offset = -8 * (cell as i16 + 1);
        self.emit(vec![load(Size::Dw, dst, Reg::R10, offset)]);
        self.model.set(dst, kind);
        self.use_pointer(dst);
    }

    /// `if null != 0 goto over`, followed by uses of an address that null is added to, which is the number 0 there. The address is on
    /// the stack, and perhaps a spilled one.
    pub(super) fn add_null(&mut self, null: Reg) {
        let cell = self.free_cell();
        self.branch(Width::W64, Condition::Ne, null, Operand::Imm(0), false, |this| {
            this.model.set(null, Kind::Number { max: 0 });
            let base = this.place_but(&[null]);
            this.emit(vec![mov(base, Operand::Reg(Reg::R10))]);
            this.model.set(base, Kind::Stack { at: 0 });
            if this.rng.bool() {
                this.spill_to(base, cell);
                this.emit(vec![load(Size::Dw, base, Reg::R10, -8 * (cell as i16 + 1))]);
            }
            this.emit(vec![alu(Width::W64, AluOp::Add, base, Operand::Reg(null))]);
            this.use_pointer(base);
        });
    }

    /// A register to overwrite, whatever its contents.
    fn any_place(&mut self) -> Reg {
        let locked = self.model.locked;
        let free = Reg::ALL.into_iter().take(10).filter(|reg| !locked.contains(*reg));
        self.rng.choice(free.collect::<Vec<_>>()).unwrap_or(Reg::R0)
    }

    /// Loads through a pointer, usually into the same register, and keeps the value.
    pub(super) fn use_pointer(&mut self, base: Reg) {
        let own = !self.one_in(4) && !self.model.locked.contains(base);
        let dst = if own { base } else { self.place_but(&[base]) };
        let kind = self.model.get(base);
        self.note(match (kind, own) {
            (Kind::Context, true) => "the context reloaded and loaded from into its own register",
            (_, true) => "another pointer reloaded and loaded from into its own register",
            (_, false) => "a pointer reloaded and loaded from into another register",
        });
        match kind {
            Kind::Context if !self.is_xdp() => self.load_field_of(base, dst),
            Kind::Context => self.load_number_of_context(base, dst),
            Kind::Nullable { .. } => return self.null_check(base),
            Kind::Stack { at } => return self.stack_through(base, at),
            _ => {
                let Some((low, high)) = self.extent(kind) else { return self.access() };
                let size = self.size_within(high - low);
                let offset = self.offset_within(base, low, high, size);
                self.emit(vec![load(size, dst, base, offset)]);
                self.model.set(dst, Kind::Number { max: most_of(size) });
            }
        }
        self.keep_number(dst);
    }

    /// Stores a number where the return value depends on it.
    pub(super) fn keep_number(&mut self, reg: Reg) {
        if !self.model.get(reg).is_number() {
            return;
        }
        let cell = self.free_cell();
        if self.model.cells[cell].kind.is_pointer() && self.model.buffer != Some(cell) {
            return;
        }
        let offset = -8 * (cell as i16 + 1);
        self.emit(vec![Insn::Store { size: Size::Dw, base: Reg::R10, offset, src: Operand::Reg(reg) }]);
        self.model.cells[cell] = Cell { init: 0xff, kind: self.model.get(reg) };
    }
}
