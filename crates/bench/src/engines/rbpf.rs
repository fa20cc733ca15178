//! rbpf: its interpreter and its JIT, on the frame, which has the packet's start and end.
#![allow(unsafe_code, reason = "machine code that rbpf made")]

use std::borrow::Cow;
use std::error::Error;
use std::slice;

use paceline::isa::RawInsn;
use paceline::{FrameMut, ProgramSpec};
use paceline_frame::Frame;
use rbpf::EbpfVmMbuff;

use super::contender::{Contender, Role};
use super::raw;

const VERSION: &str = env!("VERSION_RBPF");

/// Size in bytes of the two pointers at the start of a [`Frame`].
const DESCRIPTOR: usize = 16;

const _: () = assert!(Frame::OFFSET_DATA == 0 && Frame::OFFSET_DATA_END == 8);

/// The program `text` on both engines.
pub(super) fn contenders<'a>(text: impl Into<Cow<'a, [u8]>>) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    // Leaked: programs are few and live as long as the measurement.
    let text: &'a [u8] = match text.into() {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => text.leak(),
    };
    let compiled = compile(text)?;
    let jit = move |frame: &mut FrameMut<'_>| {
        // SAFETY: the workloads read between the packet's start and end, and write only `COUNTS`.
        unsafe { compiled.execute_program_jit(packet(frame), descriptor(frame)) }.unwrap_or(u64::MAX)
    };
    let mut vm = EbpfVmMbuff::new(Some(text))?;
    let counts = raw::COUNTS.as_ptr_range();
    vm.register_allowed_memory(counts.start as u64..counts.end as u64);
    let interpreter = move |frame: &mut FrameMut<'_>| {
        vm.execute_program(packet(frame), descriptor(frame)).unwrap_or(u64::MAX)
    };
    let contenders = [
        Contender::new(format!("rbpf {VERSION} JIT"), Role::Jit, jit),
        Contender::new(format!("rbpf {VERSION} interpreter"), Role::Interpreter, interpreter),
    ];
    Ok(contenders.map(|contender| contender.with_counts(raw::counts)).into())
}

/// An XDP program with loads of the descriptor's pointers instead of loads of the context's first two words.
pub(super) fn for_descriptor(spec: &ProgramSpec) -> Vec<u8> {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_DOUBLE: u8 = 0x79;
    let is_context = |insn: &&RawInsn| insn.opcode == LOAD_WORD && insn.src == 1;
    // Before the first other instruction, register 1 is the context.
    let context = spec.insns.iter().take_while(is_context).count();
    let patched = spec.insns.iter().enumerate().flat_map(|(index, insn)| {
        let pointer = RawInsn { opcode: LOAD_DOUBLE, offset: if insn.offset == 0 { 0 } else { 8 }, ..*insn };
        if index < context { pointer } else { *insn }.to_le_bytes()
    });
    patched.collect()
}

/// Name of rbpf's compiler in tables.
pub(super) fn compiler() -> String {
    format!("rbpf {VERSION}, compiles without verifying")
}

/// Checks the form of a program and compiles it, as rbpf does before a program runs.
pub(super) fn compile(text: &[u8]) -> Result<EbpfVmMbuff<'_>, Box<dyn Error>> {
    let mut vm = EbpfVmMbuff::new(Some(text))?;
    vm.jit_compile()?;
    Ok(vm)
}

/// The packet with the lifetime that rbpf requires, which is that of the program.
fn packet<'a>(frame: &mut FrameMut<'_>) -> &'a mut [u8] {
    // SAFETY: rbpf does not keep it; the frame is borrowed mutably for the call that uses it.
    unsafe { slice::from_raw_parts_mut(frame.data(), frame.len()) }
}

/// The frame's descriptor with the same lifetime: the start of the packet, then its end.
fn descriptor<'a>(frame: &mut FrameMut<'_>) -> &'a mut [u8] {
    // SAFETY: as above; the programs only read it.
    unsafe { slice::from_raw_parts_mut((&raw const **frame).cast_mut().cast(), DESCRIPTOR) }
}
