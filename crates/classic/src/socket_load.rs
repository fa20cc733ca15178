//! Loads of socket filters: the legacy packet loads, which end the program if out of bounds, and fields of `__sk_buff`.

use paceline_isa as isa;
use paceline_isa::{Condition, Insn, Operand, Reg, Width};

use super::ancillary::{Ancillary, LINK_LAYER_OFFSET, NETWORK_OFFSET};
use super::emit::{Emitter, Registers, Target, isa_size};
use super::insn::{Register, Size};
use super::ir::Value;
use super::loops::allow_rounds;
use super::options::Rules;
use super::site::Site;

/// Legacy packet loads take the context from `r6`, return the value in `r0` and preserve `r6` to `r9` only.
pub(super) const REGISTERS: Registers = Registers { a: Reg::R0, x: Reg::R7 };
const CONTEXT: Reg = Reg::R6;
const SAVED: Reg = Reg::R8;
const INDEX: Reg = Reg::R2;
pub(super) const SCRATCH: Reg = Reg::R3;

/// `ARPHRD_ETHER`, the type of interfaces whose packets start with an Ethernet header.
pub(super) const HARDWARE_TYPE: u32 = 1;

pub(super) const GET_PRANDOM_U32: i32 = 7;
pub(super) const GET_SMP_PROCESSOR_ID: i32 = 8;

/// Checked packet lengths at a point of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loads {
    /// Checked length from the packet's start, in bytes.
    pub(super) packet: u32,
    /// Checked length from the indexed address, in bytes, if that address is in a register.
    pub(super) indexed: Option<u32>,
}

impl Loads {
    pub(super) fn meet(&mut self, other: Self) {
        self.packet = self.packet.min(other.packet);
        self.indexed = self.indexed.zip(other.indexed).map(|(mine, theirs)| mine.min(theirs));
    }

    pub(super) fn index_changes(&mut self) {
        self.indexed = None;
    }
}

pub(super) fn prologue(out: &mut Emitter, loops: usize) {
    out.copy(CONTEXT, Reg::R1);
    if loops > 0 {
        out.load(isa::Size::W, SCRATCH, CONTEXT, 0);
        allow_rounds(out, SCRATCH, loops);
    }
}

pub(super) fn require(out: &mut Emitter, end: u32, site: &Site<'_>, proven: &mut Loads) {
    if proven.packet < end {
        proven.packet = end;
        load_aside(out, end - 1, site, |_| {});
    }
}

/// Loads a byte and calls `use_byte` while it is in the accumulator's register; preserves a live accumulator.
fn load_aside(out: &mut Emitter, offset: u32, site: &Site<'_>, use_byte: impl FnOnce(&mut Emitter)) {
    let a = out.reg(Register::A);
    let keep_a = site.demand.live_after.has(Register::A);
    if keep_a {
        out.copy(SAVED, a);
    }
    out.push(Insn::LoadPacket { size: isa::Size::B, index: None, offset: offset.cast_signed() });
    use_byte(out);
    if keep_a {
        out.copy(a, SAVED);
    }
}

pub(super) fn load(out: &mut Emitter, register: Register, value: Value, site: &Site<'_>, proven: &mut Loads) {
    let (a, dst) = (out.reg(Register::A), out.reg(register));
    match value {
        Value::Packet { offset, size } => {
            let load = Insn::LoadPacket { size: isa_size(size), index: None, offset: offset.cast_signed() };
            out.push(load);
            proven.packet = proven.packet.max(offset + size.bytes());
        }
        Value::HeaderLength { offset } => {
            load_aside(out, offset, site, |out| {
                out.header_length(a);
                out.copy(dst, a);
            });
            proven.packet = proven.packet.max(offset + 1);
        }
        Value::Indirect { offset, size } => {
            let size = isa_size(size);
            let index = out.reg(Register::X);
            let greatest = u64::from(site.facts.max_x()) + u64::from(offset);
            if greatest <= i32::MAX as u64 {
                let offset = offset.cast_signed();
                out.push(Insn::LoadPacket { size, index: Some(index), offset });
            } else {
                if site.rules == Rules::Libpcap {
                    out.copy(INDEX, index);
                    out.add(INDEX, offset);
                    let last = Operand::Imm(i32::MAX);
                    out.jump_if(Width::W64, Condition::Gt, INDEX, last, Target::NoMatch);
                    out.push(Insn::LoadPacket { size, index: Some(INDEX), offset: 0 });
                    return;
                }
                place(out, INDEX, offset, site);
                let zero = Operand::Imm(0);
                out.jump_if(Width::W32, Condition::SLt, INDEX, zero, Target::NoMatch);
                out.push(Insn::LoadPacket { size, index: Some(INDEX), offset: 0 });
            }
        }
        Value::Length => out.load(isa::Size::W, dst, CONTEXT, 0),
        Value::Ancillary(word) => ancillary(out, word),
        Value::Constant(_) | Value::Memory(_) | Value::Data { .. } => {}
    }
}

/// Computes the packet offset for `offset` plus the index register, modulo 2^32, where negative sums have their special meaning;
/// 2^31 or more if it is invalid (`bpf_skb_load_helper_convert_offset` in `net/core/filter.c`).
pub(super) fn place(out: &mut Emitter, dst: Reg, offset: u32, site: &Site<'_>) {
    // The operands are in this order because the kernel's verifier tracks a constant that is added to a register, and refuses to
    // add such a register to a pointer if the constant was large, whatever the sum.
    let index = Operand::Reg(out.reg(Register::X));
    out.constant(dst, offset);
    out.alu(Width::W32, isa::AluOp::Add, dst, index);
    let add = |out: &mut Emitter, value: u32| {
        out.alu(Width::W32, isa::AluOp::Add, dst, Operand::Imm(value.cast_signed()));
    };
    if u64::from(site.facts.max_x()) + u64::from(offset) <= i32::MAX as u64 {
        return;
    }
    let (link_layer, done) = (out.label(), out.label());
    out.jump_if(Width::W32, Condition::SGe, dst, Operand::Imm(0), done);
    let network = Operand::Imm(NETWORK_OFFSET.cast_signed());
    out.jump_if(Width::W32, Condition::Lt, dst, network, link_layer);
    add(out, site.network_offset.wrapping_sub(NETWORK_OFFSET));
    out.jump(done);
    out.set(link_layer);
    // Sums below that remain at or above 2^31.
    add(out, 0u32.wrapping_sub(LINK_LAYER_OFFSET));
    out.set(done);
}

/// Calls the kernel function of a word, if it has one.
pub(super) fn call_function(out: &mut Emitter, word: Ancillary, context: Reg) {
    if let Some(name) = word.function() {
        out.call_function(name, context, word.reads_registers());
    }
}

fn ancillary(out: &mut Emitter, word: Ancillary) {
    let a = out.reg(Register::A);
    let mut field = |offset| out.load(isa::Size::W, a, CONTEXT, offset);
    match word {
        Ancillary::Protocol => {
            field(16);
            out.swap(Size::H, a);
        }
        Ancillary::PacketType => field(4),
        Ancillary::Ifindex => field(40),
        Ancillary::Mark => field(8),
        Ancillary::Queue => field(12),
        Ancillary::Hash => field(68),
        Ancillary::VlanTag => field(24),
        Ancillary::VlanTagPresent => field(20),
        Ancillary::VlanProtocol => {
            field(28);
            out.swap(Size::H, a);
        }
        Ancillary::HardwareType => out.constant(a, HARDWARE_TYPE),
        Ancillary::Cpu => out.call(GET_SMP_PROCESSOR_ID),
        Ancillary::Random => out.call(GET_PRANDOM_U32),
        Ancillary::NetlinkAttribute | Ancillary::NestedNetlinkAttribute | Ancillary::PayloadOffset => {
            call_function(out, word, CONTEXT);
        }
        // Converted to arithmetic.
        Ancillary::XorX => {}
    }
}
