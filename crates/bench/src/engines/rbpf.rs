//! rbpf: both its engines, given the frame, where the packet's start and end stand.
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

/// Bytes of the two pointers that a [`Frame`] begins with.
const DESCRIPTOR: usize = 16;

const _: () = assert!(Frame::OFFSET_DATA == 0 && Frame::OFFSET_DATA_END == 8);

/// The program `text` on both engines.
pub(super) fn contenders<'a>(text: impl Into<Cow<'a, [u8]>>) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    // Programs are few and live as long as the measurement.
    let text: &'a [u8] = match text.into() {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => text.leak(),
    };
    let compiled = compile(text)?;
    let jit = move |frame: &mut FrameMut<'_>| {
        // SAFETY: the workloads read between the packet's start and end, and write to `COUNTS`.
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

/// An XDP program with loads of the descriptor's pointers in place of those of the context's first two words.
pub(super) fn for_descriptor(spec: &ProgramSpec) -> Vec<u8> {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_DOUBLE: u8 = 0x79;
    let is_context = |insn: &&RawInsn| insn.opcode == LOAD_WORD && insn.src == 1;
    // Before the first instruction that is none, register 1 is the context.
    let context = spec.insns.iter().take_while(is_context).count();
    let patched = spec.insns.iter().enumerate().flat_map(|(index, insn)| {
        let pointer = RawInsn { opcode: LOAD_DOUBLE, offset: if insn.offset == 0 { 0 } else { 8 }, ..*insn };
        if index < context { pointer } else { *insn }.to_le_bytes()
    });
    patched.collect()
}

/// What compiles.
pub(super) fn compiler() -> String {
    format!("rbpf {VERSION}, compiles without verifying")
}

/// What rbpf does before a program runs: it looks at the form, and compiles.
pub(super) fn compile(text: &[u8]) -> Result<EbpfVmMbuff<'_>, Box<dyn Error>> {
    let mut vm = EbpfVmMbuff::new(Some(text))?;
    vm.jit_compile()?;
    Ok(vm)
}

/// The packet, for as long as rbpf wants it: its lifetime is that of the program.
fn packet<'a>(frame: &mut FrameMut<'_>) -> &'a mut [u8] {
    // SAFETY: nobody keeps it; the frame is borrowed mutably for the call in which it is used.
    unsafe { slice::from_raw_parts_mut(frame.data(), frame.len()) }
}

/// The frame's descriptor, the same way: the start of the packet, then its end.
fn descriptor<'a>(frame: &mut FrameMut<'_>) -> &'a mut [u8] {
    // SAFETY: as above; the programs only read it.
    unsafe { slice::from_raw_parts_mut((&raw const **frame).cast_mut().cast(), DESCRIPTOR) }
}
