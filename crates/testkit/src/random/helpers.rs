//! Calls of helpers: maps, ring buffers, packets, tail calls.

use paceline_isa::{AluOp, Callee, Condition, Imm64, Insn, Operand, Reg, Size, Width};

use super::edges::interesting;
use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::maps::{DEVICES, EVENTS, KeyForm, PROGRAMS, RING, TABLES, Table, programs_of};
use super::model::{Cell, Kind, Source};

pub(super) const LOOKUP: u32 = 1;
const UPDATE: u32 = 2;
const DELETE: u32 = 3;
const KTIME: u32 = 5;
const RANDOM: u32 = 7;
const CPU: u32 = 8;
const TAIL_CALL: u32 = 12;
const REDIRECT: u32 = 23;
const PERF_EVENT_OUTPUT: u32 = 25;
const SKB_LOAD_BYTES: u32 = 26;
const CSUM_DIFF: u32 = 28;
const REDIRECT_MAP: u32 = 51;
const RINGBUF_OUTPUT: u32 = 130;
const RINGBUF_RESERVE: u32 = 131;
const RINGBUF_SUBMIT: u32 = 132;
const RINGBUF_DISCARD: u32 = 133;
const RINGBUF_QUERY: u32 = 134;
const BUFF_LEN: u32 = 188;
const LOAD_BYTES: u32 = 189;
const STORE_BYTES: u32 = 190;
const LOOKUP_PERCPU: u32 = 195;

pub(super) fn map(dst: Reg, index: u8) -> Insn {
    Insn::LoadImm64 { dst, value: Imm64::MapIndex(i32::from(index)) }
}

pub(super) fn call(id: u32) -> Insn {
    Insn::Call(Callee::Helper(id as i32))
}

impl Generator<'_> {
    /// Calls a random helper.
    pub(super) fn helper(&mut self) {
        let has_context = self.model.get(Reg::R6) == Kind::Context;
        match self.rng.u8(..16) {
            0 => self.environment(),
            1..=3 => self.change_map(),
            4..=5 if !self.is_filter() => self.checksum(),
            6..=8 if has_context => self.packet_bytes(),
            9..=10 if self.has_helper(RINGBUF_RESERVE) => self.record(),
            11 if self.has_helper(RINGBUF_OUTPUT) => self.output(),
            12 if has_context && self.has_helper(PERF_EVENT_OUTPUT) => self.event(),
            13 if has_context && !self.is_filter() => self.redirect(),
            _ => self.look_up(),
        }
    }

    /// Reads the environment. The result differs between runs, so that programs for engines discard it.
    fn environment(&mut self) {
        let id = self.pick([KTIME, RANDOM, CPU]);
        self.emit(vec![call(id)]);
        self.model.call(Kind::NUMBER);
        if self.is_for_engines() {
            self.emit(vec![alu(Width::W64, AluOp::Rsh, Reg::R0, Operand::Imm(63))]);
            self.model.set(Reg::R0, Kind::Number { max: 1 });
        }
    }

    /// Stores a key on the stack. Returns its offset.
    pub(super) fn key(&mut self, form: KeyForm) -> i16 {
        if let KeyForm::Number(size) = form
            && self.one_in(4)
        {
            return self.key_of_register(size);
        }
        let cell = self.free_cell();
        let at = -8 * (cell as i16 + 1);
        let small = self.rng.i32(0..6);
        let store = |size, offset, src| Insn::Store { size, base: Reg::R10, offset, src };
        let src = match self.rng.u8(..6) {
            0 => Operand::Reg(self.number()),
            1 if !self.is_for_engines() => Operand::Imm(interesting(self.rng) as i32),
            _ => Operand::Imm(small),
        };
        match form {
            _ if self.slips() => {}
            KeyForm::Number(size) => {
                // The other half of the slot is written as well, so that the slot may be read later.
                let mut stores = vec![store(Size::Dw, at, Operand::Imm(small)), store(size, at, src)];
                for _ in 0..self.rng.u8(..4) {
                    stores.push(self.part_of_key(at, size));
                }
                self.emit(stores);
            }
            KeyForm::Prefix => {
                let bits = self.pick([0, 8, 16, 24, 32, 32, 33]);
                self.emit(vec![store(Size::W, at, Operand::Imm(bits)), store(Size::W, at + 4, src)]);
            }
        }
        if let Some(place) = self.model.cells.get_mut(cell) {
            *place = Cell::NUMBER;
        }
        at
    }

    /// Stores a small number as a key, and then loads another value from memory into its callee-saved register. Returns the
    /// key's offset.
    fn key_of_register(&mut self, size: Size) -> i16 {
        let saved = self.saved_place(&[]).filter(|&reg| !self.model.get(reg).is_pointer());
        let (Some(key), Some((base, low, high))) = (saved, self.readable_memory(8)) else {
            return self.known_key(size, 1);
        };
        if key == base {
            return self.known_key(size, 1);
        }
        let small = self.size_within(2);
        let first = self.offset_within(base, low, high, small);
        let mask = alu(Width::W64, AluOp::And, key, Operand::Imm(3));
        self.emit(vec![load(small, key, base, first), mask]);
        self.note("a key whose register gets another value");
        let at = self.known_key(size, 0);
        self.emit(vec![Insn::Store { size, base: Reg::R10, offset: at, src: Operand::Reg(key) }]);
        self.model.set(key, Kind::NUMBER);
        match self.rng.u8(..4) {
            0 => {
                let by = self.rng.i32(1..9);
                self.emit(vec![add(key, by)]);
            }
            1 => {
                let other = self.number();
                self.emit(vec![mov(key, Operand::Reg(other))]);
            }
            _ => {
                let size = self.size_within(8);
                let second = self.offset_within(base, low, high, size);
                let by = self.rng.i32(1..100);
                self.emit(vec![load(size, key, base, second)]);
                if self.rng.bool() {
                    self.emit(vec![add(key, by)]);
                }
            }
        }
        at
    }

    /// A store to some bytes of a key, after which its value usually is still small.
    fn part_of_key(&mut self, base: i16, key: Size) -> Insn {
        let parts = [Size::B, Size::H, Size::W].into_iter().filter(|part| part.bytes() <= key.bytes());
        let size = self.rng.choice(parts.collect::<Vec<_>>()).unwrap_or(Size::B);
        let first = if cfg!(target_endian = "little") { 0 } else { key.bytes() - size.bytes() };
        let at = self.rng.usize(..key.bytes() / size.bytes()) * size.bytes();
        let offset = base + at as i16;
        let small = if at == first { self.rng.i32(..6) } else { 0 };
        match self.rng.u8(..8) {
            0 => Insn::StoreRelease { size, base: Reg::R10, offset, src: self.number() },
            1 => Insn::Store { size, base: Reg::R10, offset, src: Operand::Reg(self.number()) },
            _ => Insn::Store { size, base: Reg::R10, offset, src: Operand::Imm(small) },
        }
    }

    fn table(&mut self) -> Table {
        self.pick(TABLES)
    }

    /// Looks up an element, and usually accesses it.
    pub(super) fn look_up(&mut self) {
        let table = self.table();
        let at = self.key(table.key);
        self.emit(vec![
            mov(Reg::R2, Operand::Reg(Reg::R10)),
            add(Reg::R2, i32::from(at)),
            map(Reg::R1, table.index),
        ]);
        if table.per_cpu && self.one_in(3) && self.has_helper(LOOKUP_PERCPU) {
            let cpu = self.rng.i32(0..2);
            self.emit(vec![mov(Reg::R3, Operand::Imm(cpu)), call(LOOKUP_PERCPU)]);
        } else {
            self.emit(vec![call(LOOKUP)]);
        }
        let source = if table.writable { Source::Map } else { Source::Constant };
        let id = self.model.new_id();
        self.model.call(Kind::Nullable { room: table.value, source, id });
        if let Some(reg) = self.find_saved(Kind::is_number)
            && self.one_in(3)
        {
            self.keep_number(reg);
        }
        let found = match self.saved_place(&[]) {
            Some(kept) if self.rng.bool() => {
                self.emit(vec![mov(kept, Operand::Reg(Reg::R0))]);
                let kind = self.model.get(Reg::R0);
                self.model.set(kept, kind);
                kept
            }
            _ => Reg::R0,
        };
        if !self.one_in(8) {
            self.null_check(found);
        }
    }

    /// Updates or deletes an element.
    fn change_map(&mut self) {
        let tables = TABLES.into_iter().filter(|table| table.writable);
        let Some(table) = self.rng.choice(tables.collect::<Vec<_>>()) else { return };
        let at = self.key(table.key);
        let key = [mov(Reg::R2, Operand::Reg(Reg::R10)), add(Reg::R2, i32::from(at))];
        if table.keyed && self.one_in(3) {
            self.emit([&key[..], &[map(Reg::R1, table.index), call(DELETE)]].concat());
            return self.model.call(Kind::NUMBER);
        }
        let lends = |kind| matches!(kind, Kind::Bytes { room, .. } if room >= table.value);
        let (value, offset) = match self.find_saved(lends) {
            Some(value) if self.rng.bool() => (value, 0),
            _ => {
                let lowest = self.filled_stack(table.value.min(8 * self.cells() as i16));
                (Reg::R10, lowest)
            }
        };
        if table.value > 8 * self.cells() as i16 && value == Reg::R10 {
            return;
        }
        let flags = self.pick([0, 0, 0, 1, 2]);
        self.emit(vec![mov(Reg::R3, Operand::Reg(value)), add(Reg::R3, i32::from(offset))]);
        self.emit(
            [&key[..], &[mov(Reg::R4, Operand::Imm(flags)), map(Reg::R1, table.index), call(UPDATE)]]
                .concat(),
        );
        // The value may have overwritten the key: both are numbers.
        self.model.call(Kind::NUMBER);
    }

    /// Checksums over stack, map values or the packet.
    fn checksum(&mut self) {
        let bytes = self.pick([4, 8, 16, 24]);
        let second = self.one_in(3);
        // The verifier refuses the same record twice.
        let lends = |kind| {
            matches!(kind, Kind::Bytes { room, source, .. }
                if room >= bytes && !(second && source == Source::Record))
        };
        let (base, offset) = match self.find_saved(lends) {
            Some(base) if self.rng.bool() => (base, 0),
            _ => (Reg::R10, self.filled_stack(bytes)),
        };
        let seed = self.rng.i32(..);
        let memory = |dst| [mov(dst, Operand::Reg(base)), add(dst, i32::from(offset))];
        let none = [mov(Reg::R3, Operand::Imm(0)), mov(Reg::R4, Operand::Imm(0))];
        self.emit(memory(Reg::R1).to_vec());
        self.emit(vec![mov(Reg::R2, Operand::Imm(i32::from(bytes)))]);
        if second {
            self.emit([&memory(Reg::R3)[..], &[mov(Reg::R4, Operand::Imm(4))]].concat());
        } else {
            self.emit(none.to_vec());
        }
        self.emit(vec![mov(Reg::R5, Operand::Imm(seed)), call(CSUM_DIFF)]);
        self.model.call(Kind::NUMBER);
    }

    /// Copies packet bytes to or from the stack, with constant or variable size.
    fn packet_bytes(&mut self) {
        let lowest = self.filled_stack(16);
        let offset = self.rng.i32(0..60);
        if self.one_in(8) && self.is_xdp() {
            self.emit(vec![mov(Reg::R1, Operand::Reg(Reg::R6)), call(BUFF_LEN)]);
            return self.model.call(Kind::NUMBER);
        }
        let size = match self.rng.bool() {
            true => Operand::Imm(self.rng.i32(1..=16)),
            false => {
                let number = self.own_number(&[]);
                self.bounded(number, 15);
                if !self.slips() {
                    self.emit(vec![alu(Width::W64, AluOp::And, number, Operand::Imm(15)), add(number, 1)]);
                }
                self.model.set(number, Kind::Number { max: 16 });
                Operand::Reg(number)
            }
        };
        let helper = if self.is_xdp() { self.pick([LOAD_BYTES, STORE_BYTES]) } else { SKB_LOAD_BYTES };
        self.emit(vec![
            mov(Reg::R4, size),
            mov(Reg::R1, Operand::Reg(Reg::R6)),
            mov(Reg::R2, Operand::Imm(offset)),
            mov(Reg::R3, Operand::Reg(Reg::R10)),
            add(Reg::R3, i32::from(lowest)),
            call(helper),
        ]);
        self.model.call(Kind::NUMBER);
    }

    /// Reserves a record, fills it, and submits or discards it.
    fn record(&mut self) {
        if self.holding {
            return self.look_up();
        }
        let Some(kept) = self.saved_place(&[]) else { return self.look_up() };
        let size = self.pick([8, 16, 24, 40]);
        self.emit(vec![
            map(Reg::R1, RING),
            mov(Reg::R2, Operand::Imm(i32::from(size))),
            mov(Reg::R3, Operand::Imm(0)),
            call(RINGBUF_RESERVE),
            mov(kept, Operand::Reg(Reg::R0)),
        ]);
        self.model.call(Kind::Unset);
        self.model.set(kept, Kind::Bytes { back: 0, room: size, source: Source::Record });
        let was_locked = self.model.locked;
        self.model.lock(kept);
        let count = self.rng.usize(0..4);
        let forgets = self.slips();
        let give_back = |this: &mut Self| {
            if this.is_for_engines() {
                // Uninitialized bytes of a record differ between engines.
                for word in 0..size / 8 {
                    let src = Operand::Imm(this.rng.i32(..));
                    this.emit(vec![Insn::Store { size: Size::Dw, base: kept, offset: 8 * word, src }]);
                }
            }
            this.holding = true;
            for _ in 0..count {
                this.step();
            }
            let slice = this.one_in(2).then(|| this.slice_of_record(kept, size)).flatten();
            this.holding = false;
            let flags = this.pick([0, 1, 2]);
            let helper = this.pick([RINGBUF_SUBMIT, RINGBUF_DISCARD]);
            if !forgets {
                this.emit(vec![
                    mov(Reg::R1, Operand::Reg(kept)),
                    mov(Reg::R2, Operand::Imm(flags)),
                    call(helper),
                ]);
            }
            this.model.call(Kind::Unset);
            this.model.forget(|kind| matches!(kind, Kind::Bytes { source: Source::Record, .. }));
            if let Some((slice, id)) = slice {
                this.write_slice(slice, id);
            }
        };
        if self.slips() {
            give_back(self);
        } else {
            self.branch(Width::W64, Condition::Eq, kept, Operand::Imm(0), false, give_back);
        }
        self.model.forget(|kind| matches!(kind, Kind::Bytes { source: Source::Record, .. }));
        self.model.locked = was_locked;
    }

    /// Outputs bytes to the ring buffer, or queries its fill level.
    fn output(&mut self) {
        if self.one_in(4) {
            let what = self.rng.i32(0..5);
            self.emit(vec![map(Reg::R1, RING), mov(Reg::R2, Operand::Imm(what)), call(RINGBUF_QUERY)]);
            return self.model.call(Kind::NUMBER);
        }
        let bytes = self.pick([8, 16, 24]);
        let lowest = self.filled_stack(bytes);
        self.emit(vec![
            map(Reg::R1, RING),
            mov(Reg::R2, Operand::Reg(Reg::R10)),
            add(Reg::R2, i32::from(lowest)),
            mov(Reg::R3, Operand::Imm(i32::from(bytes))),
            mov(Reg::R4, Operand::Imm(0)),
            call(RINGBUF_OUTPUT),
        ]);
        self.model.call(Kind::NUMBER);
    }

    fn event(&mut self) {
        let bytes = self.pick([8, 16]);
        let lowest = self.filled_stack(bytes);
        self.emit(vec![
            mov(Reg::R1, Operand::Reg(Reg::R6)),
            map(Reg::R2, EVENTS),
            mov(Reg::R3, Operand::Imm(0)),
            mov(Reg::R4, Operand::Reg(Reg::R10)),
            add(Reg::R4, i32::from(lowest)),
            mov(Reg::R5, Operand::Imm(i32::from(bytes))),
            call(PERF_EVENT_OUTPUT),
        ]);
        self.model.call(Kind::NUMBER);
    }

    fn redirect(&mut self) {
        let number = self.rng.i32(0..5);
        if !self.is_xdp() || self.rng.bool() {
            let flags = self.pick([0, 0, 1]);
            self.emit(vec![
                mov(Reg::R1, Operand::Imm(number)),
                mov(Reg::R2, Operand::Imm(flags)),
                call(REDIRECT),
            ]);
        } else {
            let flags = self.rng.i32(0..4);
            self.emit(vec![
                map(Reg::R1, DEVICES),
                mov(Reg::R2, Operand::Imm(number)),
                mov(Reg::R3, Operand::Imm(flags)),
                call(REDIRECT_MAP),
            ]);
        }
        self.model.call(Kind::NUMBER);
    }

    /// Makes a tail call, if the program array has programs.
    pub(super) fn tail_call(&mut self) {
        let allowed = self.is_main() || self.plan.is_typed && self.moves_packet();
        if !allowed || self.holding || self.in_loop || !self.has_helper(TAIL_CALL) {
            return self.arithmetic();
        }
        if self.model.get(Reg::R6) != Kind::Context {
            return self.arithmetic();
        }
        let index = match self.rng.bool() {
            true => Operand::Reg(self.number_but(&[Reg::R1, Reg::R2])),
            false => Operand::Imm(self.rng.i32(0..=PROGRAMS as i32)),
        };
        let programs = Imm64::MapIndex(programs_of(self.plan.kind));
        self.emit(vec![
            mov(Reg::R3, index),
            mov(Reg::R1, Operand::Reg(Reg::R6)),
            Insn::LoadImm64 { dst: Reg::R2, value: programs },
            call(TAIL_CALL),
        ]);
        self.model.call(Kind::Unset);
    }
}
