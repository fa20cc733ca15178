//! Loads of XDP programs: direct packet access with as few bounds checks as possible.
//!
//! A check covers all bytes that the program requires on every path that does not return 0 anyway; bytes that are already checked
//! on all paths are not checked again. Loads relative to the index register share an address and its checks while the register does
//! not change.

use paceline_isa as isa;
use paceline_isa::{Condition, Operand, Reg, Width};
use paceline_spec::context::XDP_MD;

use super::ancillary::Ancillary;
use super::emit::{Emitter, Registers, Target, isa_size};
use super::insn::{Register, Size};
use super::ir::{Op, Value};
use super::loops::allow_rounds;
use super::options::Rules;
use super::order::Order;
use super::site::Site;
use super::socket_load::{GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, HARDWARE_TYPE, Loads, call_function, place};

/// Verifiers do not track packet offsets above this one (`MAX_PACKET_OFF` in `kernel/bpf/verifier.c`), and no XDP packet is longer.
pub(super) const LONGEST: u32 = 0xffff;

/// Register assignment: programs without calls use caller-saved registers only, programs with calls use callee-saved ones.
struct Assignment {
    registers: Registers,
    data: Reg,
    end: Reg,
}

const LEAF: Assignment =
    Assignment { registers: Registers { a: Reg::R0, x: Reg::R1 }, data: Reg::R2, end: Reg::R3 };
const CALLING: Assignment =
    Assignment { registers: Registers { a: Reg::R0, x: Reg::R9 }, data: Reg::R7, end: Reg::R8 };

const CONTEXT: Reg = Reg::R6;
/// Address at the index register's offset.
const INDEXED: Reg = Reg::R4;
pub(super) const SCRATCH: Reg = Reg::R5;

fn calls(op: &Op) -> bool {
    let Op::Load(_, Value::Ancillary(word)) = op else { return false };
    matches!(word, Ancillary::Cpu | Ancillary::Random) || word.function().is_some()
}

pub(super) fn registers(ops: &[Op]) -> Registers {
    if ops.iter().any(calls) { CALLING.registers } else { LEAF.registers }
}

fn assignment(out: &Emitter) -> &'static Assignment {
    if out.reg(Register::X) == CALLING.registers.x { &CALLING } else { &LEAF }
}

fn field_offset(name: &str) -> i16 {
    let field = XDP_MD.fields.iter().find(|field| field.name == name);
    field.map_or(0, |field| field.offset.cast_signed())
}

pub(super) fn prologue(out: &mut Emitter, ops: &[Op], rules: Rules, loops: usize) {
    let uses_context = |op: &Op| match op {
        Op::Load(_, Value::Ancillary(word)) => {
            matches!(word, Ancillary::Ifindex | Ancillary::Queue) || word.function().is_some()
        }
        Op::Load(_, Value::Length) => rules == Rules::Libpcap,
        _ => false,
    };
    let uses_packet = |op: &Op| {
        use Ancillary as W;
        match op {
            Op::Require(_) => true,
            Op::Load(_, Value::Ancillary(word)) => matches!(word, W::Protocol | W::PacketType),
            Op::Load(_, value) => !matches!(value, Value::Constant(_) | Value::Memory(_)),
            _ => false,
        }
    };
    let assignment = assignment(out);
    if ops.iter().any(uses_context) {
        out.copy(CONTEXT, Reg::R1);
    }
    if loops > 0 || ops.iter().any(uses_packet) {
        out.load(isa::Size::W, assignment.end, Reg::R1, field_offset("data_end"));
        out.load(isa::Size::W, assignment.data, Reg::R1, field_offset("data"));
    }
    if loops > 0 {
        out.copy(SCRATCH, assignment.end);
        out.alu(Width::W64, isa::AluOp::Sub, SCRATCH, Operand::Reg(assignment.data));
        allow_rounds(out, SCRATCH, loops);
    }
}

/// Jumps to `target` unless `bytes` bytes from an address on are in the packet.
fn check(out: &mut Emitter, address: Reg, bytes: u32, target: Target) {
    let end = assignment(out).end;
    out.copy(SCRATCH, address);
    out.add(SCRATCH, bytes);
    out.jump_if(Width::W64, Condition::Gt, SCRATCH, Operand::Reg(end), target);
}

pub(super) fn require(out: &mut Emitter, end: u32, site: &Site<'_>, proven: &mut Loads) {
    if proven.packet >= end {
        return;
    }
    let wanted = site.demand.bytes.packet;
    proven.packet = if wanted <= LONGEST { wanted.max(end) } else { end };
    check(out, assignment(out).data, proven.packet, Target::NoMatch);
}

pub(super) fn load(out: &mut Emitter, register: Register, value: Value, site: &Site<'_>, proven: &mut Loads) {
    let dst = out.reg(register);
    let Assignment { data, end, .. } = *assignment(out);
    match value {
        Value::Packet { offset, size } => {
            require(out, offset + size.bytes(), site, proven);
            load_far(out, size, dst, offset, site.order);
        }
        Value::HeaderLength { offset } => {
            require(out, offset + 1, site, proven);
            load_far(out, Size::B, dst, offset, Order::Machine);
            out.header_length(dst);
        }
        Value::Indirect { offset, size } => indirect(out, dst, offset, size, site, proven),
        Value::Length if site.rules == Rules::Libpcap => wire_length(out, dst),
        Value::Length => {
            out.copy(dst, end);
            out.alu(Width::W64, isa::AluOp::Sub, dst, Operand::Reg(data));
        }
        Value::Ancillary(word) => ancillary(out, word, proven),
        Value::Constant(_) | Value::Memory(_) | Value::Data { .. } => {}
    }
}

/// A load at a constant offset, which may exceed the offset field of an instruction.
fn load_far(out: &mut Emitter, size: Size, dst: Reg, offset: u32, order: Order) {
    let data = assignment(out).data;
    match i16::try_from(offset) {
        Ok(offset) => load_as(out, size, dst, data, offset, order),
        Err(_) => {
            out.copy(SCRATCH, data);
            out.add(SCRATCH, offset);
            load_as(out, size, dst, SCRATCH, 0, order);
        }
    }
}

fn load_as(out: &mut Emitter, size: Size, dst: Reg, base: Reg, offset: i16, order: Order) {
    match order {
        Order::Machine => out.load_network_order(size, dst, base, offset),
        Order::NetworkH | Order::NetworkW => out.load(isa_size(size), dst, base, offset),
    }
}

fn indirect(out: &mut Emitter, dst: Reg, offset: u32, size: Size, site: &Site<'_>, proven: &mut Loads) {
    let Assignment { data, registers, .. } = *assignment(out);
    let bytes = offset.saturating_add(size.bytes());
    let mask = site.facts.mask_x();
    let room = LONGEST.saturating_sub(mask.unwrap_or(site.facts.max_x()));
    if let Ok(offset) = i16::try_from(offset)
        && bytes <= room
    {
        let proven = proven.indexed.get_or_insert_with(|| {
            out.copy(INDEXED, registers.x);
            if let Some(mask) = mask {
                out.alu(Width::W32, isa::AluOp::And, INDEXED, Operand::Imm(mask.cast_signed()));
            }
            out.add_reg(INDEXED, data);
            0
        });
        if *proven < bytes {
            let wanted = site.demand.bytes.indexed;
            *proven = if wanted <= room { wanted.max(bytes) } else { bytes };
            check(out, INDEXED, *proven, Target::NoMatch);
        }
        load_as(out, size, dst, INDEXED, offset, site.order);
        return;
    }
    if site.rules == Rules::Libpcap {
        out.copy(INDEXED, registers.x);
        out.add(INDEXED, offset);
    } else {
        place(out, INDEXED, offset, site);
    }
    let last = Operand::Imm((LONGEST - size.bytes()).cast_signed());
    out.jump_if(Width::W64, Condition::Gt, INDEXED, last, Target::NoMatch);
    out.add_reg(INDEXED, data);
    check(out, INDEXED, size.bytes(), Target::NoMatch);
    load_as(out, size, dst, INDEXED, 0, site.order);
    proven.indexed = None;
}

/// The wire length, from the metadata if present.
fn wire_length(out: &mut Emitter, dst: Reg) {
    const BYTES: u32 = 4;
    let Assignment { data, end, .. } = *assignment(out);
    let (captured, done) = (out.label(), out.label());
    out.load(isa::Size::W, dst, CONTEXT, field_offset("data_meta"));
    out.copy(SCRATCH, dst);
    out.add(SCRATCH, BYTES);
    out.jump_if(Width::W64, Condition::Gt, SCRATCH, Operand::Reg(data), captured);
    out.load(isa::Size::W, dst, dst, 0);
    out.jump(done);
    out.set(captured);
    out.copy(dst, end);
    out.alu(Width::W64, isa::AluOp::Sub, dst, Operand::Reg(data));
    out.set(done);
}

fn ancillary(out: &mut Emitter, word: Ancillary, proven: &mut Loads) {
    let a = out.reg(Register::A);
    match word {
        Ancillary::Protocol => protocol(out, a),
        Ancillary::PacketType => packet_type(out, a),
        Ancillary::Ifindex => out.load(isa::Size::W, a, CONTEXT, field_offset("ingress_ifindex")),
        Ancillary::Queue => out.load(isa::Size::W, a, CONTEXT, field_offset("rx_queue_index")),
        Ancillary::HardwareType => out.constant(a, HARDWARE_TYPE),
        Ancillary::Mark
        | Ancillary::Hash
        | Ancillary::VlanTag
        | Ancillary::VlanTagPresent
        | Ancillary::VlanProtocol => out.constant(a, 0),
        Ancillary::Cpu | Ancillary::Random => {
            let cpu = word == Ancillary::Cpu;
            out.call(if cpu { GET_SMP_PROCESSOR_ID } else { GET_PRANDOM_U32 });
            // Calls clobber r1 to r5.
            proven.indexed = None;
        }
        Ancillary::NetlinkAttribute | Ancillary::NestedNetlinkAttribute | Ancillary::PayloadOffset => {
            call_function(out, word, CONTEXT);
            proven.indexed = None;
        }
        // Converted to arithmetic.
        Ancillary::XorX => {}
    }
}

/// The protocol as determined by `eth_type_trans` in `net/ethernet/eth.c`; 0 for packets shorter than the header.
fn protocol(out: &mut Emitter, a: Reg) {
    const TYPE: i16 = 12;
    const HEADER: u32 = 14;
    const LEAST_TYPE: i32 = 0x600;
    const RAW_802_3: u32 = 1;
    const LLC: u32 = 4;
    let data = assignment(out).data;
    let done = out.label();
    out.constant(a, 0);
    check(out, data, HEADER, done);
    out.load_network_order(Size::H, a, data, TYPE);
    out.jump_if(Width::W32, Condition::Ge, a, Operand::Imm(LEAST_TYPE), done);
    out.constant(a, LLC);
    check(out, data, HEADER + 2, done);
    out.load(isa::Size::H, SCRATCH, data, HEADER as i16);
    out.jump_if(Width::W32, Condition::Ne, SCRATCH, Operand::Imm(0xffff), done);
    out.constant(a, RAW_802_3);
    out.set(done);
}

/// Packet type by destination address; 0 (to the host) for packets without one.
fn packet_type(out: &mut Emitter, a: Reg) {
    const ADDRESS: u32 = 6;
    const BROADCAST: u32 = 1;
    const MULTICAST: u32 = 2;
    let data = assignment(out).data;
    let (group, done) = (out.label(), out.label());
    out.constant(a, 0);
    check(out, data, ADDRESS, done);
    out.load(isa::Size::B, SCRATCH, data, 0);
    out.jump_if(Width::W32, Condition::Set, SCRATCH, Operand::Imm(1), group);
    out.jump(done);
    out.set(group);
    out.constant(a, MULTICAST);
    out.load(isa::Size::W, SCRATCH, data, 0);
    out.jump_if(Width::W32, Condition::Ne, SCRATCH, Operand::Imm(-1), done);
    out.load(isa::Size::H, SCRATCH, data, 4);
    out.jump_if(Width::W32, Condition::Ne, SCRATCH, Operand::Imm(0xffff), done);
    out.constant(a, BROADCAST);
    out.set(done);
}
