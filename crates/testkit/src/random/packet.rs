//! Steps of single program types: direct packet access, context fields, legacy packet loads.

use paceline_isa::{AluOp, Callee, Condition, Insn, Operand, Reg, Size, Width};
use paceline_spec::context::{Field, FieldKind, Permission, Sizes};

use super::edges::most_of;
use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::layout::{Step, Target};
use super::model::{Kind, Part};

/// Helpers of TC classifiers that invalidate packet pointers.
const STORE_BYTES: i32 = 9;
const CHANGE_TAIL: i32 = 38;
const PULL_DATA: i32 = 39;
const CHANGE_HEAD: i32 = 43;
const ADJUST_ROOM: i32 = 50;

impl Generator<'_> {
    /// Loads packet and end into callee-saved registers, with a first bounds check.
    pub(super) fn load_packet_pointers(&mut self) {
        let bytes = self.rng.i16(1..=34);
        self.load_packet_pointers_of(bytes);
    }

    pub(super) fn load_packet_pointers_of(&mut self, bytes: i16) {
        if self.is_filter() || self.model.get(Reg::R6) != Kind::Context {
            return;
        }
        let (Some(packet), Some(end)) = (self.saved_place(&[]), self.saved_place(&[])) else { return };
        let end = if end == packet { self.saved_place(&[packet]).unwrap_or(packet) } else { end };
        if end == packet {
            return;
        }
        self.load_packet_field(packet, FieldKind::PacketData);
        self.load_packet_field(end, FieldKind::PacketEnd);
        if !self.holding {
            self.guard_of(packet, end, bytes);
        }
    }

    fn load_packet_field(&mut self, dst: Reg, field: FieldKind) {
        let kind = match field {
            FieldKind::PacketEnd => Kind::End,
            _ => Kind::Packet {
                group: self.model.new_group(),
                at: 0,
                from: if field == FieldKind::PacketMeta { Part::Meta } else { Part::Data },
            },
        };
        let found = self.plan.kind.context().fields.iter().find(|known| known.kind == field);
        let offset = found.map_or(0, |field| field.offset as i16);
        let size = if self.slips() { self.size() } else { Size::W };
        self.emit(vec![load(size, dst, Reg::R6, offset)]);
        self.model.set(dst, kind);
    }

    /// A step of XDP programs.
    pub(super) fn packet_step(&mut self) {
        if self.model.get(Reg::R6) != Kind::Context {
            return self.access_to(|kind| matches!(kind, Kind::Packet { .. } | Kind::Bytes { .. }));
        }
        match self.rng.u8(..10) {
            0 if !self.in_loop => self.load_packet_pointers(),
            1 => self.load_other_field(),
            2..=4 => self.variable_packet_access(),
            5 if self.moves_packet() && !self.in_loop && !self.holding => self.move_packet(),
            6 if !self.in_loop => self.metadata(),
            7 => self.packet_distance(),
            8 => self.compare_pointers(),
            _ => self.access_to(|kind| matches!(kind, Kind::Packet { .. })),
        }
    }

    fn load_other_field(&mut self) {
        if !self.is_xdp() {
            return if self.one_in(3) { self.store_field() } else { self.load_field() };
        }
        let offset = if self.slips() { self.rng.i16(-4..=28) } else { self.pick([12, 16]) };
        let dst = self.place();
        self.emit(vec![load(Size::W, dst, Reg::R6, offset)]);
        self.model.set(dst, Kind::Number { max: most_of(Size::W) });
    }

    /// Loads a numeric context field through any register that holds the context.
    pub(super) fn load_number_of_context(&mut self, base: Reg, dst: Reg) {
        let offset = self.pick([12, 16]);
        self.emit(vec![load(Size::W, dst, base, offset)]);
        self.model.set(dst, Kind::Number { max: most_of(Size::W) });
    }

    /// Checks bytes after a packet pointer.
    pub(super) fn guard(&mut self, packet: Reg) {
        let Kind::Packet { from, .. } = self.model.get(packet) else { return };
        let meta = from == Part::Meta;
        let limit = if meta {
            self.find(|kind| matches!(kind, Kind::Packet { at: 0, from: Part::Data, .. }))
        } else {
            self.find(|kind| kind == Kind::End)
        };
        let Some(limit) = limit.filter(|&limit| limit != packet) else { return };
        if self.holding || self.slips() {
            return;
        }
        let bytes = if meta { self.pick([1, 4, 8]) } else { self.pick([1, 2, 4, 8, 14, 20, 34, 64]) };
        self.guard_of(packet, limit, bytes);
    }

    /// Continues only if `bytes` from `packet` on lie before `end`, in one of the forms that compilers emit.
    pub(super) fn guard_of(&mut self, packet: Reg, end: Reg, bytes: i16) {
        let probe = self.scratch(&[packet, end, Reg::R0]);
        if [packet, end].contains(&probe) || packet == Reg::R0 || end == Reg::R0 {
            return;
        }
        self.may_end();
        self.emit(vec![mov(probe, Operand::Reg(packet)), add(probe, i32::from(bytes))]);
        self.model.set(probe, Kind::Unset);
        self.note_end();
        let strict = self.one_in(6);
        let (dst, src, condition, target) = match (self.rng.u8(..6), strict) {
            (0..=2, false) => (probe, end, Condition::Gt, Target::End),
            (0..=2, true) => (probe, end, Condition::Ge, Target::End),
            (3, false) => (end, probe, Condition::Lt, Target::End),
            (3, true) => (end, probe, Condition::Le, Target::End),
            (4, false) => (probe, end, Condition::Le, Target::Over(1)),
            (4, true) => (probe, end, Condition::Lt, Target::Over(1)),
            (_, false) => (end, probe, Condition::Ge, Target::Over(1)),
            (_, true) => (end, probe, Condition::Gt, Target::Over(1)),
        };
        self.jump_if(Width::W64, condition, dst, Operand::Reg(src), target);
        if target != Target::End {
            let leave = vec![Insn::Jump { offset: 0 }];
            self.steps.push(Step { insns: leave, targets: vec![(0, Target::End)], calls: Vec::new() });
        }
        if let Kind::Packet { group, at, from } = self.model.get(packet) {
            self.model.learn_range(group, at + bytes);
            self.model.set(probe, Kind::Packet { group, at: at + bytes, from });
        }
    }

    /// Advances a packet pointer by a constant.
    pub(super) fn move_packet_pointer(&mut self, base: Reg) {
        let Kind::Packet { group, at, from } = self.model.get(base) else { return };
        let by = self.rng.i16(-at.max(0)..=24);
        let dst = self.place_but(&[base]);
        self.emit(vec![mov(dst, Operand::Reg(base)), add(dst, i32::from(by))]);
        self.model.set(dst, Kind::Packet { group, at: at + by, from });
    }

    /// `p = packet + n; if p + k > end goto out; *(p + m)`
    fn variable_packet_access(&mut self) {
        let is_start = |kind| matches!(kind, Kind::Packet { at: 0.., from: Part::Data | Part::Inside, .. });
        let (Some(packet), Some(end)) = (self.find(is_start), self.find(|kind| kind == Kind::End)) else {
            return if self.in_loop { self.arithmetic() } else { self.load_packet_pointers() };
        };
        if self.holding {
            return self.arithmetic();
        }
        let start = self.model.get(packet);
        let number = self.unknown(&[packet, end]);
        self.bounded(number, 255);
        let moved = self.place_but(&[packet, end, number, Reg::R0]);
        if moved == Reg::R10 || self.model.get(packet) != start || self.model.get(end) != Kind::End {
            return;
        }
        let offset = if self.rng.bool() { 0 } else { self.rng.i32(0..20) };
        self.emit(vec![
            mov(moved, Operand::Reg(packet)),
            alu(Width::W64, AluOp::Add, moved, Operand::Reg(number)),
            add(moved, offset),
        ]);
        let group = self.model.new_group();
        if self.model.get(end) != Kind::End {
            return;
        }
        // The group starts after the variable part.
        self.model.set(moved, Kind::Packet { group, at: offset as i16, from: Part::Inside });
        let bytes = self.rng.i16(1..=16);
        if !self.slips() {
            self.guard_of(moved, end, bytes);
        }
        let size = self.size_within(bytes);
        let most = bytes - size.bytes() as i16 + i16::from(self.slips());
        let dst = self.place_but(&[moved]);
        let at = self.rng.i16(0..=most);
        self.emit(vec![load(size, dst, moved, at)]);
        self.model.set(dst, Kind::Number { max: most_of(size) });
    }

    /// `end - packet`
    fn packet_distance(&mut self) {
        let is_start = |kind| matches!(kind, Kind::Packet { from: Part::Data | Part::Inside, .. });
        let (Some(packet), Some(end)) = (self.find(is_start), self.find(|kind| kind == Kind::End)) else {
            return;
        };
        let dst = self.place_but(&[packet, end]);
        self.emit(vec![mov(dst, Operand::Reg(end)), alu(Width::W64, AluOp::Sub, dst, Operand::Reg(packet))]);
        self.model.set(dst, Kind::NUMBER);
    }

    fn metadata(&mut self) {
        let meta = self.place_but(&[Reg::R0]);
        self.load_packet_field(meta, FieldKind::PacketMeta);
        if meta == Reg::R10 {
            return;
        }
        if self.find_saved(|kind| matches!(kind, Kind::Packet { at: 0, from: Part::Data, .. })).is_none() {
            let Some(data) = self.saved_place(&[meta]) else { return };
            self.load_packet_field(data, FieldKind::PacketData);
        }
        self.guard(meta);
        self.access_to(|kind| matches!(kind, Kind::Packet { from: Part::Meta, .. }));
    }

    /// Grows or shrinks the packet, then reloads its pointers.
    pub(super) fn move_packet(&mut self) {
        if !self.is_xdp() {
            return self.change_packet();
        }
        let helper = self.pick([44, 54, 65]);
        let delta = if helper == 54 { self.pick([-4, -8, 4, 0]) } else { self.rng.i32(-16..=16) };
        self.emit(vec![
            mov(Reg::R1, Operand::Reg(Reg::R6)),
            mov(Reg::R2, Operand::Imm(delta)),
            Insn::Call(Callee::Helper(helper)),
        ]);
        self.model.call(Kind::NUMBER);
        if !self.slips() {
            self.model.packet_moved();
        }
        if !self.one_in(4) {
            self.load_packet_pointers();
        }
    }

    /// Grows, shrinks or writes the packet of a classifier, then reloads its pointers.
    fn change_packet(&mut self) {
        let from = self.filled_stack(16);
        let helper = self.pick([STORE_BYTES, CHANGE_TAIL, PULL_DATA, CHANGE_HEAD, ADJUST_ROOM]);
        let amount = match helper {
            STORE_BYTES | PULL_DATA => self.rng.i32(0..70),
            CHANGE_TAIL => self.rng.i32(10..100),
            CHANGE_HEAD => self.rng.i32(0..16),
            _ => self.rng.i32(-16..=16),
        };
        self.emit(vec![mov(Reg::R1, Operand::Reg(Reg::R6)), mov(Reg::R2, Operand::Imm(amount))]);
        let (third, fourth, fifth) = match helper {
            STORE_BYTES => (None, self.rng.i32(1..=16), self.rng.i32(0..4)),
            ADJUST_ROOM => (Some(self.rng.i32(0..2)), self.pick([0, 0, 0, 1, 2, 4, 32]), 0),
            _ => (Some(i32::from(self.one_in(8))), 0, 0),
        };
        self.emit(match third {
            Some(number) => vec![mov(Reg::R3, Operand::Imm(number))],
            None => vec![mov(Reg::R3, Operand::Reg(Reg::R10)), add(Reg::R3, i32::from(from))],
        });
        self.emit(vec![
            mov(Reg::R4, Operand::Imm(fourth)),
            mov(Reg::R5, Operand::Imm(fifth)),
            Insn::Call(Callee::Helper(helper)),
        ]);
        self.model.call(Kind::NUMBER);
        if !self.slips() {
            self.model.packet_moved();
        }
        if !self.one_in(4) {
            self.load_packet_pointers();
        }
    }

    /// A step of socket filters.
    pub(super) fn filter_step(&mut self) {
        if self.model.get(Reg::R6) != Kind::Context {
            return self.arithmetic();
        }
        match self.rng.u8(..8) {
            0..=2 => self.load_field(),
            3 => self.store_field(),
            _ if self.is_main() && !self.holding => self.load_packet(),
            _ => self.load_field(),
        }
    }

    fn load_field(&mut self) {
        let dst = self.place();
        self.load_field_of(Reg::R6, dst);
    }

    /// Loads a context field through any register that holds the context.
    pub(super) fn load_field_of(&mut self, base: Reg, dst: Reg) {
        // The kernel sets `pkt_type` by the address of the test run's interface.
        let for_engines = self.is_for_engines();
        let differs = |field: &Field| field.name == "pkt_type" && for_engines;
        let is_number = |field: &Field| field.kind == FieldKind::Number;
        let usable =
            |field: &&Field| field.permission != Permission::Nothing && !differs(field) && is_number(field);
        let readable: Vec<&Field> = self.plan.kind.context().fields.iter().filter(usable).collect();
        let Some(field) = self.rng.choice(readable) else { return };
        let whole = Size::from_bytes(field.size.into()).unwrap_or(Size::W);
        let size = match self.rng.u8(..4) {
            0 if field.sizes != Sizes::Whole => self.pick([Size::B, Size::H]),
            _ => whole,
        };
        let bytes = size.bytes() as i16;
        // Fields that are shorter in the kernel have the same value for every part.
        let is_short = matches!(
            field.name,
            "protocol"
                | "queue_mapping"
                | "tc_index"
                | "tc_classid"
                | "vlan_present"
                | "vlan_tci"
                | "vlan_proto"
        );
        let parts = if is_short && self.is_for_engines() { 1 } else { field.size as i16 / bytes };
        let part = bytes * self.rng.i16(0..parts);
        let offset = field.offset as i16 + part + i16::from(self.slips());
        self.emit(vec![load(size, dst, base, offset)]);
        self.model.set(dst, Kind::Number { max: most_of(size) });
    }

    /// Writes a numeric context field.
    fn store_field(&mut self) {
        let is_written = |f: &&Field| matches!(f.permission, Permission::Write | Permission::WriteBelowMax);
        let written: Vec<&Field> = self.plan.kind.context().fields.iter().filter(is_written).collect();
        let Some(field) = self.rng.choice(written) else { return };
        if field.sizes == Sizes::Any {
            return self.store_scratch(field);
        }
        let size = if self.slips() { Some(self.size()) } else { Size::from_bytes(field.size.into()) };
        let (Some(size), offset) = (size, field.offset as i16) else { return };
        let src = Operand::Reg(self.number());
        let dst = self.place();
        self.emit(vec![Insn::Store { size, base: Reg::R6, offset, src }, load(size, dst, Reg::R6, offset)]);
        self.model.set(dst, Kind::Number { max: most_of(size) });
    }

    /// Writes `cb`.
    fn store_scratch(&mut self, field: &Field) {
        let size = self.size();
        let bytes = size.bytes() as i16;
        let first = field.offset.div_ceil(size.bytes() as u16) as i16;
        let after = (field.offset + field.size) as i16 / bytes;
        let offset = if self.slips() { self.rng.i16(0..192) } else { bytes * self.rng.i16(first..after) };
        let src = Operand::Reg(self.number());
        let dst = self.place();
        self.emit(vec![Insn::Store { size, base: Reg::R6, offset, src }, load(size, dst, Reg::R6, offset)]);
        self.model.set(dst, Kind::Number { max: most_of(size) });
    }

    /// A legacy packet load; outside of the packet it ends the program.
    fn load_packet(&mut self) {
        let size = self.pick([Size::B, Size::H, Size::W]);
        let index = if self.one_in(3) {
            let number = self.own_number(&[]);
            self.bounded(number, 63);
            Some(number)
        } else {
            None
        };
        let far = !self.is_for_engines() && self.one_in(12);
        let offset = if far { self.pick([-4096, -0x10_0000, 0x1000_0000]) } else { self.rng.i32(0..48) };
        self.emit(vec![Insn::LoadPacket { size, index, offset }]);
        self.model.call(Kind::Number { max: most_of(size) });
    }
}
