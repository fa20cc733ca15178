//! Steps that access memory: the stack, map values, memory from callers, and all of these at variable offsets.

use paceline_isa::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};

use super::edges::{interesting, most_of};
use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::maps::{CONSTANTS, FORGETFUL_WORD, GLOBALS};
use super::model::{Cell, Kind, Part, Source};

impl Generator<'_> {
    /// Accessible range of a pointer: first offset, and offset after the last byte.
    pub(super) fn extent(&self, kind: Kind) -> Option<(i16, i16)> {
        match kind {
            Kind::Bytes { back, room, .. } if room > -back => Some((-back, room)),
            Kind::Packet { group, at, .. } if self.model.room(group, at) > -at.max(0) => {
                Some((-at.max(0), self.model.room(group, at)))
            }
            _ => None,
        }
    }

    /// A register with memory that holds no pointers, and its accessible range.
    pub(super) fn readable_memory(&mut self, bytes: i16) -> Option<(Reg, i16, i16)> {
        let found: Vec<(Reg, i16, i16)> = Reg::ALL
            .into_iter()
            .take(10)
            .filter_map(|reg| self.extent(self.model.get(reg)).map(|(low, high)| (reg, low, high)))
            .filter(|(_, low, high)| high - low >= bytes)
            .collect();
        self.rng.choice(found)
    }

    /// A size of at most this number of bytes.
    pub(super) fn size_within(&mut self, bytes: i16) -> Size {
        let all = [Size::B, Size::H, Size::W, Size::Dw];
        let fits = all.into_iter().filter(|size| size.bytes() as i16 <= bytes).count().max(1);
        all[self.rng.usize(..fits)]
    }

    /// An offset for an access of a size, aligned if the memory may be a stack.
    pub(super) fn offset_within(&mut self, base: Reg, low: i16, high: i16, size: Size) -> i16 {
        if self.slips() {
            return self.rng.i16(low - 2..=high + 1);
        }
        match self.model.get(base) {
            Kind::Bytes { source: Source::Caller, .. } => self.aligned_within(base, low, high, size),
            _ if self.rng.bool() && low <= 0 && size.bytes() as i16 <= high => 0,
            _ => self.rng.i16(low..=(high - size.bytes() as i16).max(low)),
        }
    }

    /// An offset at which an access of a size is aligned; `low` is the start of the memory.
    pub(super) fn aligned_within(&mut self, _base: Reg, low: i16, high: i16, size: Size) -> i16 {
        let bytes = size.bytes() as i16;
        low + bytes * self.rng.i16(0..((high - low) / bytes).max(1))
    }

    /// A load or store through a random register.
    pub(super) fn access(&mut self) {
        self.access_to(Self::is_memory);
    }

    pub(super) fn access_to(&mut self, wanted: impl Fn(Kind) -> bool) {
        let Some(base) = self.find(wanted) else { return self.stack() };
        let kind = self.model.get(base);
        if let Kind::Stack { at } = kind {
            return self.stack_through(base, at);
        }
        if let Kind::Packet { group, at, .. } = kind
            && (self.model.room(group, at) <= 0 || self.one_in(4))
            && !self.slips()
        {
            self.guard(base);
        }
        let (low, high) = self.extent(kind).unwrap_or((0, 1));
        if self.extent(kind).is_none() && !self.slips() {
            return self.stack();
        }
        let size = self.size_within(high - low);
        let offset = self.offset_within(base, low, high, size);
        let read_only =
            matches!(kind, Kind::Bytes { source: Source::Constant | Source::Slice { writable: false }, .. });
        match self.rng.u8(..5) {
            0 | 1 if !read_only || self.slips() => {
                let src = self.stored();
                self.emit(vec![Insn::Store { size, base, offset, src }]);
            }
            _ => {
                let signed = size != Size::Dw && self.one_in(6);
                let own = self.one_in(8) && !self.model.locked.contains(base);
                let dst = if own { base } else { self.place_but(&[base]) };
                self.emit(vec![Insn::Load { size, signed, dst, base, offset }]);
                self.model.set(dst, Kind::Number { max: if signed { u64::MAX } else { most_of(size) } });
            }
        }
    }

    /// A register with a number, or an immediate, to store.
    fn stored(&mut self) -> Operand {
        if self.rng.bool() {
            return Operand::Imm(interesting(self.rng) as i32);
        }
        Operand::Reg(self.number())
    }

    /// The cell at a stack offset.
    fn cell_at(&mut self, offset: i16) -> Option<&mut Cell> {
        let index = usize::try_from(-1 - offset).ok()? / 8;
        self.model.cells.get_mut(index)
    }

    /// A cell to overwrite; in loops never one with a pointer, which the next iteration may use.
    pub(super) fn free_cell(&mut self) -> usize {
        let in_loop = self.in_loop;
        let cells = self.cells();
        if let Some(buffer) = self.model.buffer.filter(|_| !in_loop)
            && self.rng.bool()
        {
            return buffer;
        }
        let free: Vec<usize> =
            (0..cells).filter(|&i| !(in_loop && self.model.cells[i].kind.is_pointer())).collect();
        self.rng.choice(free).unwrap_or(0)
    }

    /// A cell that holds a number; creates one if necessary.
    pub(super) fn initialized_cell(&mut self) -> usize {
        let found: Vec<usize> =
            (0..self.cells()).filter(|&i| self.model.cells[i].is_whole_number()).collect();
        match self.rng.choice(found) {
            Some(cell) => cell,
            None => {
                let cell = self.free_cell();
                self.fill_cell(cell);
                cell
            }
        }
    }

    /// Stores a number to a cell.
    pub(super) fn fill_cell(&mut self, cell: usize) {
        let src = if self.one_in(3) {
            Operand::Reg(self.number())
        } else {
            Operand::Imm(interesting(self.rng) as i32)
        };
        let offset = -8 * (cell as i16 + 1);
        self.emit(vec![Insn::Store { size: Size::Dw, base: Reg::R10, offset, src }]);
        self.model.cells[cell] = Cell::NUMBER;
    }

    /// Stores numbers to this many cells, downward from a cell. Returns the lowest offset.
    pub(super) fn filled_stack(&mut self, bytes: i16) -> i16 {
        let count = usize::try_from(bytes.max(1)).unwrap_or(1).div_ceil(8).min(self.cells());
        let in_loop = self.in_loop;
        let starts: Vec<usize> = (0..=self.cells() - count)
            .filter(|&s| {
                !in_loop || self.model.cells[s..s + count].iter().all(|cell| !cell.kind.is_pointer())
            })
            .collect();
        let first = self.rng.choice(starts).unwrap_or(0);
        for cell in first..first + count {
            if !self.model.cells[cell].is_whole_number() && !self.slips() {
                self.fill_cell(cell);
            }
            self.model.cells[cell] = Cell::NUMBER;
        }
        -8 * (first + count) as i16
    }

    /// Changes the number in a cell.
    pub(super) fn forget_cell_number(&mut self, offset: i16) {
        if let Some(cell) = self.cell_at(offset)
            && !cell.kind.is_pointer()
        {
            cell.kind = Kind::Unset;
        }
    }

    /// Stack accesses, spills and fills, and pointers to the stack.
    pub(super) fn stack(&mut self) {
        match self.rng.u8(..8) {
            0 | 1 => self.spill(),
            2 => {
                let offset = -self.rng.i16(1..=8 * self.cells() as i16);
                let dst = self.place();
                self.emit(vec![mov(dst, Operand::Reg(Reg::R10)), add(dst, i32::from(offset))]);
                self.model.set(dst, Kind::Stack { at: offset });
            }
            _ => self.stack_through(Reg::R10, 0),
        }
    }

    /// Spills a whole register, perhaps with a pointer, and fills it now or later.
    fn spill(&mut self) {
        let wanted = |kind: Kind| kind != Kind::Unset;
        let Some(reg) = self.find(wanted) else { return };
        let kind = self.model.get(reg);
        let cell = self.free_cell();
        // In a loop the next iteration would find the pointer.
        if self.in_loop && kind.is_pointer() {
            return self.stack_through(Reg::R10, 0);
        }
        self.spill_to(reg, cell);
        if self.rng.bool() {
            let dst = self.place();
            self.emit(vec![load(Size::Dw, dst, Reg::R10, -8 * (cell as i16 + 1))]);
            self.model.set(dst, kind);
        }
    }

    /// A load or store on the stack through a register at offset `at` from the frame pointer.
    pub(super) fn stack_through(&mut self, base: Reg, at: i16) {
        if self.rng.bool() {
            let written: Vec<usize> = (0..self.cells()).filter(|&i| self.model.cells[i].init != 0).collect();
            if let Some(cell) = self.rng.choice(written) {
                return self.load_cell(base, at, cell);
            }
        }
        let cell = self.free_cell();
        let is_pointer = self.model.cells[cell].kind.is_pointer();
        // The store would leave a part of a pointer.
        let size = if is_pointer { Size::Dw } else { self.size() };
        let src = self.stored();
        let bytes = size.bytes() as i16;
        let part = bytes * self.rng.i16(0..8 / bytes);
        let offset = -8 * (cell as i16 + 1) + part - at + i16::from(self.slips());
        self.emit(vec![Insn::Store { size, base, offset, src }]);
        let kind = match (size, src) {
            (Size::Dw, Operand::Reg(reg)) => self.model.get(reg),
            (Size::Dw, Operand::Imm(imm)) => Kind::Number { max: i64::from(imm) as u64 },
            _ => Kind::Unset,
        };
        let init = if size == Size::Dw { 0 } else { self.model.cells[cell].init };
        let bits = (((1_u16 << bytes) - 1) << part) as u8;
        self.model.cells[cell] = Cell { init: init | bits, kind };
    }

    fn load_cell(&mut self, base: Reg, at: i16, index: usize) {
        let cell = self.model.cells[index];
        let start = -8 * (index as i16 + 1) - at;
        let dst = self.place_but(&[base]);
        if cell.kind != Kind::Unset && (cell.kind.is_pointer() || self.rng.bool()) {
            self.emit(vec![load(Size::Dw, dst, base, start)]);
            return self.model.set(dst, cell.kind);
        }
        let parts: Vec<(Size, i16)> = [Size::B, Size::H, Size::W, Size::Dw]
            .into_iter()
            .flat_map(|size| (0..8 / size.bytes()).map(move |i| (size, (i * size.bytes()) as i16)))
            .filter(|(size, part)| {
                let bits = (((1_u16 << size.bytes()) - 1) << part) as u8;
                cell.init & bits == bits
            })
            .collect();
        let Some((size, part)) = self.rng.choice(parts) else { return };
        let signed = size != Size::Dw && self.one_in(5);
        self.emit(vec![Insn::Load { size, signed, dst, base, offset: start + part }]);
        self.model.set(dst, Kind::Number { max: if signed { u64::MAX } else { most_of(size) } });
    }

    /// The address of a global variable, or of a constant.
    pub(super) fn global_value(&mut self) {
        let (index, size, source) = match self.one_in(3) {
            true => (CONSTANTS, 16, Source::Constant),
            false => (GLOBALS, FORGETFUL_WORD, Source::Map),
        };
        let inside = self.rng.u32(0..size);
        let offset = if self.slips() { size } else { self.pick([0, 0, 8, inside]) };
        let dst = self.place();
        self.emit(vec![Insn::LoadImm64 {
            dst,
            value: Imm64::MapValueIndex { index: i32::from(index), offset },
        }]);
        // Memory before it is accessible as well.
        self.model.set(dst, Kind::Bytes { back: offset as i16, room: size as i16 - offset as i16, source });
        self.access_to(|kind| matches!(kind, Kind::Bytes { .. }));
    }

    /// Adds a constant or a variable number to a pointer.
    pub(super) fn pointer_arithmetic(&mut self) {
        let is_packet = |kind| matches!(kind, Kind::Packet { .. });
        let is_movable = |kind| {
            matches!(kind, Kind::Bytes { source: Source::Map | Source::Constant | Source::Record, .. })
        };
        let Some(base) = self.find(|kind| is_packet(kind) || is_movable(kind)) else {
            return self.global_value();
        };
        if is_packet(self.model.get(base)) {
            return self.move_packet_pointer(base);
        }
        let Kind::Bytes { back, room, source } = self.model.get(base) else { return };
        let dst = self.place_but(&[base]);
        let by = self.rng.i16(-back..=room.max(1 - back) - 1);
        let by = if self.slips() { by + room } else { by };
        self.emit(vec![mov(dst, Operand::Reg(base)), add(dst, i32::from(by))]);
        self.model.set(dst, Kind::Bytes { back: back + by, room: room - by, source });
        self.access_to(Self::is_map_value);
    }

    /// `value + n`, where n is at most the remaining size of the value.
    pub(super) fn variable_value_access(&mut self) {
        let is_wide = |kind| {
            matches!(
                kind,
                Kind::Bytes { room: 2.., source: Source::Map | Source::Constant | Source::Record, .. }
            )
        };
        let Some(base) = self.find(is_wide) else { return self.global_value() };
        let Kind::Bytes { back, room, source } = self.model.get(base) else { return };
        let number = self.unknown(&[base]);
        if number == base || room < 2 {
            return;
        }
        let max = self.bounded(number, room as u64 - 1) as i16;
        let moved = self.scratch(&[base, number]);
        if [base, number].contains(&moved) || self.model.get(base) != (Kind::Bytes { back, room, source }) {
            return;
        }
        // A subtraction makes the variable part negative, which is refused.
        let backwards = back >= max && self.slips();
        let op = if backwards { AluOp::Sub } else { AluOp::Add };
        // Exchanges the operands.
        let swapped = !backwards && self.one_in(4);
        let (first, second) = if swapped { (number, base) } else { (base, number) };
        self.emit(vec![mov(moved, Operand::Reg(first)), alu(Width::W64, op, moved, Operand::Reg(second))]);
        // The exact offset and its alignment are unknown, so that no atomic operation fits.
        let left = if backwards { room } else { room - max };
        self.model.set(moved, Kind::Bytes { back: 0, room: left.min(7), source });
        let size = self.size_within(left);
        let offset = if self.slips() { left } else { self.rng.i16(0..=left - size.bytes() as i16) };
        let access = if source != Source::Constant && self.rng.bool() {
            Insn::Store { size, base: moved, offset, src: Operand::Reg(number) }
        } else {
            let dst = self.scratch(&[moved, base]);
            self.model.set(dst, Kind::Number { max: most_of(size) });
            load(size, dst, moved, offset)
        };
        self.emit(vec![access]);
    }

    pub(super) fn variable_stack_access(&mut self) {
        let bytes = self.pick([16, 24, 32, 64]);
        let lowest = self.filled_stack(bytes);
        let number = self.own_number(&[]);
        let size = self.size();
        // Byte accesses at variable offsets need no alignment; other offsets must be multiples of the size.
        let shift = size.bytes().trailing_zeros() as i32;
        let max = self.bounded(number, (bytes / size.bytes() as i16 - 1) as u64) as i16;
        let place = self.scratch(&[number]);
        if place == number || max * size.bytes() as i16 > bytes - size.bytes() as i16 {
            return;
        }
        self.emit(vec![
            alu(Width::W64, AluOp::Lsh, number, Operand::Imm(shift)),
            mov(place, Operand::Reg(Reg::R10)),
            alu(Width::W64, AluOp::Add, place, Operand::Reg(number)),
        ]);
        self.model.set(place, Kind::Unset);
        self.model.set(number, Kind::Number { max: (max as u64) << shift });
        let offset = lowest + i16::from(self.slips());
        let access = if self.rng.bool() {
            Insn::Store { size, base: place, offset, src: self.stored() }
        } else {
            let dst = self.scratch(&[place]);
            self.model.set(dst, Kind::Number { max: most_of(size) });
            load(size, dst, place, offset)
        };
        self.emit(vec![access]);
        let after = self.initialized_cell();
        self.load_cell(Reg::R10, 0, after);
    }

    /// Spills and fills a number, whole or in part, and uses it as an offset.
    pub(super) fn narrow_spill(&mut self) {
        let number = self.unknown(&[]);
        let (store, read) = (self.size(), self.size());
        let cell = self.free_cell();
        if self.model.cells[cell].kind.is_pointer() || read > store && !self.slips() && self.is_for_engines()
        {
            return;
        }
        let offset = -8 * (cell as i16 + 1);
        self.emit(vec![Insn::Store { size: store, base: Reg::R10, offset, src: Operand::Reg(number) }]);
        let bits = ((1_u16 << store.bytes()) - 1) as u8;
        let init = self.model.cells[cell].init | bits;
        self.model.cells[cell] = Cell { init, kind: Kind::Unset };
        let max = self.bounded(number, 15);
        let dst = self.scratch(&[number]);
        if dst == number || read > store {
            return;
        }
        let signed = read != Size::Dw && self.one_in(5);
        self.emit(vec![Insn::Load { size: read, signed, dst, base: Reg::R10, offset }]);
        self.model.set(dst, Kind::Number { max: if signed { u64::MAX } else { most_of(read) } });
        // Bounds learned since the spill do not apply to the copy, unless both are whole and linked.
        let copied = if read == Size::Dw && !signed && self.one_in(4) { max } else { self.bounded(dst, 15) };
        let Some(base) =
            self.find(|kind| matches!(kind, Kind::Bytes { room: 16.., source: Source::Map, .. }))
        else {
            return;
        };
        if base == dst || copied > 15 {
            return;
        }
        self.emit(vec![alu(Width::W64, AluOp::Add, dst, Operand::Reg(base)), load(Size::B, dst, dst, 0)]);
        self.model.set(dst, Kind::Number { max: 0xff });
    }

    /// Compares two packet pointers, or two numbers; used where a branch is wanted.
    pub(super) fn compare_pointers(&mut self) {
        let is_packet = |kind| matches!(kind, Kind::Packet { from: Part::Data | Part::Inside, .. });
        let (Some(one), Some(other)) = (self.find(is_packet), self.find(is_packet)) else {
            return self.arithmetic();
        };
        let condition = self.pick([Condition::Gt, Condition::Le, Condition::Eq, Condition::Ne]);
        if self.branches == 0 {
            return;
        }
        self.branches -= 1;
        self.branch(Width::W64, condition, one, Operand::Reg(other), false, Self::arithmetic);
    }
}
