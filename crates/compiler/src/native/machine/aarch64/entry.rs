//! The entry of programs: the state of a run, and the CPUs that a program cannot run on.

use paceline_spec::context::AreaUse;

use super::asm::{Arith, Assembler, Cond, Gpr, Mem, Size, arith_imm};
use super::regs::{ADDRESS, SCRATCH, SECOND};
use crate::native::code::Label;
use crate::native::links::Links;
use crate::native::machine::operand::Width;

const FRAME: Gpr = Gpr::X0;
const HOST: Gpr = Gpr::X5;

/// Calls a function of the runtime. Only callee-saved registers are preserved.
pub(super) fn call_runtime(asm: &mut Assembler, address: u64) {
    asm.mov_imm(SCRATCH, address);
    asm.blr(SCRATCH);
}

/// A member of the host.
fn member(asm: &mut Assembler, size: Size, offset: i32) -> Mem {
    if Mem::reaches(size, offset) {
        return Mem::At(HOST, offset);
    }
    asm.mov_imm(ADDRESS, i64::from(offset).cast_unsigned());
    Mem::Indexed(HOST, ADDRESS)
}

pub(super) fn enter_run(asm: &mut Assembler, links: &Links, calls: bool, tail_calls: bool, area: AreaUse) {
    let offsets = links.host;
    if calls || tail_calls {
        let frame = member(asm, Size::X, offsets.frame);
        asm.store(Size::X, FRAME, frame);
    }
    if tail_calls {
        let count = member(asm, Size::W, offsets.tail_calls);
        asm.store(Size::W, Gpr::Zr, count);
    }
    if area.rules != 0 {
        return enter_area(asm, links, area);
    }
    for offset in area.words().map(|word| 8 * i32::from(word)) {
        let arriving = member(asm, Size::X, offsets.arriving + offset);
        asm.load(Size::X, SCRATCH, arriving);
        let word = member(asm, Size::X, offsets.area + offset);
        asm.store(Size::X, SCRATCH, word);
    }
}

/// Initializes the packet's own area by a call, which preserves frame and host.
fn enter_area(asm: &mut Assembler, links: &Links, area: AreaUse) {
    asm.push_pair(Gpr::X29, Gpr::X30, 32);
    asm.arith_imm(Arith::Add, Width::Q64, Gpr::X29, Gpr::Sp, 0);
    asm.store_pair(FRAME, HOST, 16);
    asm.mov(Width::Q64, Gpr::X1, FRAME);
    asm.mov(Width::Q64, Gpr::X0, HOST);
    asm.mov_imm(Gpr::X2, area.to_bits().into());
    call_runtime(asm, links.enter);
    asm.load_pair(FRAME, HOST, 16);
    asm.pop_pair(Gpr::X29, Gpr::X30, 32);
}

pub(super) fn check_cpu(asm: &mut Assembler, links: &Links, cpus: u32, lacks_cpu: Label) {
    let cpu = member(asm, Size::X, links.host.cpu);
    asm.load(Size::X, SCRATCH, cpu);
    if arith_imm(cpus.into()).is_some() {
        asm.arith_imm(Arith::Subs, Width::Q64, Gpr::Zr, SCRATCH, cpus.into());
    } else {
        asm.mov_imm(SECOND, cpus.into());
        asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, SCRATCH, SECOND, 0);
    }
    asm.b_cond(Cond::Hs, lacks_cpu);
}

pub(super) fn end_without_cpu(asm: &mut Assembler, links: &Links, lacks_cpu: Label) {
    asm.bind(lacks_cpu);
    asm.mov(Width::Q64, Gpr::X0, HOST);
    asm.mov_imm(SCRATCH, links.no_cpu);
    asm.br(SCRATCH);
}

/// The first packet is the one that cannot be run.
pub(super) fn end_burst_without_cpu(asm: &mut Assembler, links: &Links, lacks_cpu: Label) {
    asm.bind(lacks_cpu);
    asm.push_pair(Gpr::X29, Gpr::X30, 32);
    asm.arith_imm(Arith::Add, Width::Q64, Gpr::X29, Gpr::Sp, 0);
    asm.store_pair(FRAME, HOST, 16);
    asm.mov(Width::Q64, Gpr::X0, HOST);
    call_runtime(asm, links.no_cpu);
    asm.load_pair(FRAME, HOST, 16);
    asm.pop_pair(Gpr::X29, Gpr::X30, 32);
    asm.ret();
}
