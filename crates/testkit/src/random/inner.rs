//! Look-ups in inner maps, and with keys that are constant for the verifier.

use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::generator::Generator;
use super::helpers::{LOOKUP, call, map};
use super::insns::{alu, load, mov};
use super::kfuncs::stack_address;
use super::maps::{KeyForm, OUTERS, TABLES, is_unlike_template};
use super::model::{Cell, Kind, Source};

impl Generator<'_> {
    /// `inner = outer[key]; if inner != 0 { value = inner[another key]; ... }`
    pub(super) fn inner_look_up(&mut self) {
        let outer = self.pick(OUTERS);
        self.note(if is_unlike_template(usize::from(outer.index)) {
            "inner maps unlike their template"
        } else {
            "inner maps like their template"
        });
        let number = self.rng.i32(0..3);
        let at = self.known_key(Size::W, number);
        self.emit([&stack_address(Reg::R2, at)[..], &[map(Reg::R1, outer.index), call(LOOKUP)]].concat());
        self.model.call(Kind::Unset);
        let is_known = outer.inner.entries > 0 && self.rng.bool();
        let look_up = |this: &mut Self| {
            let number = this.rng.i32(0..outer.inner.entries.max(3));
            let key = match outer.inner.key {
                KeyForm::Number(size) if is_known => this.known_key(size, number),
                form => {
                    this.model.lock(Reg::R0);
                    this.key(form)
                }
            };
            this.emit(vec![mov(Reg::R1, Operand::Reg(Reg::R0))]);
            this.emit([&stack_address(Reg::R2, key)[..], &[call(LOOKUP)]].concat());
            this.found(outer.inner.value, is_known && number < outer.inner.entries);
        };
        let locked = self.model.locked;
        self.branch(Width::W64, Condition::Eq, Reg::R0, Operand::Imm(0), false, look_up);
        self.model.locked = locked;
        self.model.set(Reg::R0, Kind::Unset);
    }

    /// A look-up in an array with a constant key in range: without a null check, or with an unnecessary one.
    pub(super) fn known_look_up(&mut self) {
        let arrays = TABLES.into_iter().filter(|table| table.entries > 0);
        let Some(table) = self.rng.choice(arrays.collect::<Vec<_>>()) else { return };
        let number = self.rng.i32(0..table.entries);
        let at = self.known_key(Size::W, number);
        self.emit([&stack_address(Reg::R2, at)[..], &[map(Reg::R1, table.index), call(LOOKUP)]].concat());
        self.found(table.value, table.writable);
    }

    /// Result of a look-up: null-checked, unless the verifier knows that it is not null.
    fn found(&mut self, room: i16, may_skip: bool) {
        let id = self.model.new_id();
        self.model.call(Kind::Nullable { room, source: Source::Map, id });
        if may_skip && self.one_in(4) {
            self.note("a look-up by a known key without a check for null");
            self.model.not_null(id);
            let count = self.rng.usize(1..3);
            (0..count).for_each(|_| self.access_to(Self::is_map_value));
            return;
        }
        // The loaded value is used, so that a wrong one shows.
        self.branch(Width::W64, Condition::Eq, Reg::R0, Operand::Imm(0), false, |this| {
            this.model.not_null(id);
            let one = alu(Width::W64, AluOp::Add, Reg::R1, Operand::Imm(1));
            this.emit(vec![load(Size::Dw, Reg::R1, Reg::R0, 0), one]);
            this.model.set(Reg::R1, Kind::NUMBER);
            if this.rng.bool() {
                let src = Operand::Reg(Reg::R1);
                this.emit(vec![Insn::Store { size: Size::Dw, base: Reg::R0, offset: 0, src }]);
            }
            this.keep_number(Reg::R1);
        });
    }

    /// Stores a constant key. Returns its offset.
    pub(super) fn known_key(&mut self, size: Size, number: i32) -> i16 {
        let cell = self.free_cell();
        let at = -8 * (cell as i16 + 1);
        let store = |size, src| Insn::Store { size, base: Reg::R10, offset: at, src };
        let mut stores = vec![store(Size::Dw, Operand::Imm(0))];
        // All bytes of the slot are written, so that it may be read later.
        stores.push(store(size, Operand::Imm(number)));
        self.emit(stores);
        self.model.cells[cell] = Cell::NUMBER;
        at
    }
}
