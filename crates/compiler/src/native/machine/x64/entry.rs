//! The entry of programs: the state of a run, and the CPUs that a program cannot run on.

use paceline_spec::context::AreaUse;

use super::asm::{Alu, Assembler, Cond, Gpr, Mem, OpSize};
use crate::native::code::Label;
use crate::native::links::Links;
use crate::native::machine::operand::Width;

/// The host, the sixth argument of programs, subprograms and helpers.
pub(crate) const HOST_ARGUMENT: Gpr = Gpr::R9;
/// Registers that are neither an argument nor saved.
const SCRATCH: Gpr = Gpr::R10;
const SCRATCH_2: Gpr = Gpr::R11;

/// Calls a function of the runtime. Only callee-saved registers are preserved.
pub(crate) fn call_runtime(asm: &mut Assembler, links: &Links, address: u64) {
    if links.near {
        asm.call_extern(address);
    } else {
        asm.mov_ri(SCRATCH_2, address);
        asm.call_r(SCRATCH_2);
    }
}

/// At the entry for packets: initializes the state of a run, as far as the run can observe it.
pub(crate) fn enter_run(asm: &mut Assembler, links: &Links, calls: bool, tail_calls: bool, area: AreaUse) {
    if calls || tail_calls {
        asm.store(OpSize::Q64, Mem::at(HOST_ARGUMENT, links.host.frame), Gpr::Rdi);
    }
    let calls = area.rules != 0;
    if calls {
        // Three pushes align the stack to 16 bytes for the call.
        [HOST_ARGUMENT, Gpr::Rdi, Gpr::Rdi].into_iter().for_each(|gpr| asm.push(gpr));
    }
    set_up_run(asm, links, [HOST_ARGUMENT, Gpr::Rdi], tail_calls, area);
    if calls {
        [Gpr::Rdi, Gpr::Rdi, HOST_ARGUMENT].into_iter().for_each(|gpr| asm.pop(gpr));
    }
}

/// Initializes the state of a run. An area with numbers by rules is initialized by a call, which clobbers the caller-saved registers.
pub(crate) fn set_up_run(
    asm: &mut Assembler,
    links: &Links,
    [host, frame]: [Gpr; 2],
    tail_calls: bool,
    area: AreaUse,
) {
    let offsets = links.host;
    if tail_calls {
        asm.store_imm(OpSize::D32, Mem::at(host, offsets.tail_calls), 0);
    }
    if area.rules != 0 {
        asm.mov_rr(Width::Q64, Gpr::Rsi, frame);
        asm.mov_rr(Width::Q64, Gpr::Rdi, host);
        asm.mov_ri(Gpr::Rdx, area.to_bits().into());
        return call_runtime(asm, links, links.enter);
    }
    enter_area(asm, links, host, area, SCRATCH);
}

/// Sets words of the packet's own area to what they are when packets arrive.
pub(crate) fn enter_area(asm: &mut Assembler, links: &Links, host: Gpr, area: AreaUse, scratch: Gpr) {
    for offset in area.words().map(|word| 8 * i32::from(word)) {
        asm.load(OpSize::Q64, scratch, Mem::at(host, links.host.arriving + offset));
        asm.store(OpSize::Q64, Mem::at(host, links.host.area + offset), scratch);
    }
}

/// Jumps to a label if the host's CPU is none of the first ones: a program with per-CPU arrays must not run on a CPU for which they
/// have no values, because its code assumes that they exist.
pub(crate) fn check_cpu(asm: &mut Assembler, links: &Links, cpus: u32, lacks_cpu: Label) {
    let cpu = Mem::at(HOST_ARGUMENT, links.host.cpu);
    asm.alu_mi(Alu::Cmp, OpSize::Q64, cpu, cpus.min(i32::MAX as u32).cast_signed());
    asm.jcc(Cond::Ae, lacks_cpu);
}

/// Ends the run of a program whose arrays have no values for the host's CPU.
pub(crate) fn end_without_cpu(asm: &mut Assembler, links: &Links, lacks_cpu: Label) {
    asm.bind(lacks_cpu);
    asm.mov_rr(Width::Q64, Gpr::Rdi, HOST_ARGUMENT);
    if links.near {
        asm.jmp_extern(links.no_cpu);
    } else {
        asm.mov_ri(SCRATCH, links.no_cpu);
        asm.jmp_r(SCRATCH);
    }
}

/// The same in a loop over a burst: the first packet is the one that cannot be run. The push also aligns the stack to 16 bytes.
pub(crate) fn end_burst_without_cpu(asm: &mut Assembler, links: &Links, lacks_cpu: Label) {
    asm.bind(lacks_cpu);
    asm.push(Gpr::Rdi);
    asm.mov_rr(Width::Q64, Gpr::Rdi, HOST_ARGUMENT);
    call_runtime(asm, links, links.no_cpu);
    asm.pop(Gpr::Rax);
    asm.ret();
}
