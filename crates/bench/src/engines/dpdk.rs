//! DPDK's rte_bpf, whose programs get one pointer, to a buffer of a size known to the verifier.
//!
//! With bounds checks the buffer starts with the packet's length; without, the program may read the whole buffer whatever
//! the packet's length. Both compile the workloads' source (`workloads/raw.v2.bpf.c`). Filters use packet loads, for which
//! DPDK gets an mbuf.
#![allow(unsafe_code, reason = "calls C")]

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};

use paceline::isa::RawInsn;
use paceline::{FrameMut, ProgramSpec};
use paceline_frame::{BUFFER_LEN, HEADROOM, TAILROOM};

use super::contender::{Contender, Role};
use super::raw;
use super::workload::Workload;

#[repr(C)]
struct RteBpf {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn dpdk_load(
        slots: *const c_void,
        n: u32,
        size: usize,
        counts: *mut c_void,
        counts_size: usize,
        error: *mut c_int,
    ) -> *mut RteBpf;
    fn dpdk_load_filter(slots: *const c_void, n: u32, error: *mut c_int) -> *mut RteBpf;
    fn dpdk_filter(program: *const RteBpf, native: Option<Native>, packet: *mut c_void, len: u16) -> u64;
    fn dpdk_native(program: *const RteBpf, len: *mut usize) -> Option<Native>;
    fn dpdk_version() -> *const c_char;
    fn rte_bpf_exec(program: *const RteBpf, context: *mut c_void) -> u64;
    fn rte_bpf_destroy(program: *mut RteBpf);
}

/// Native code of a program.
type Native = unsafe extern "C" fn(*mut c_void) -> u64;

/// Size of the length before the packet in bytes.
const LENGTH: usize = super::packets::LENGTH;

/// Size of the buffer from the packet on in bytes.
const ROOM: usize = BUFFER_LEN - HEADROOM - TAILROOM;

/// A loaded program.
struct Program(*mut RteBpf);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it is loaded, and has no other owner.
        unsafe { rte_bpf_destroy(self.0) }
    }
}

/// Verifies and compiles `text`, a program for `size` bytes of memory.
fn load(text: &[u8], size: usize) -> Result<Program, Box<dyn Error>> {
    let mut error = 0;
    let slots = u32::try_from(text.len() / 8)?;
    let counts = raw::COUNTS.as_ptr().cast_mut().cast();
    // SAFETY: the count is that of the slots; the program and the counters outlive the call, the counters also the program.
    let program = unsafe {
        dpdk_load(text.as_ptr().cast(), slots, size, counts, size_of_val(&raw::COUNTS), &mut error)
    };
    loaded(program, error)
}

fn loaded(program: *mut RteBpf, error: c_int) -> Result<Program, Box<dyn Error>> {
    if program.is_null() { Err(format!("rte_bpf_load: error {error}").into()) } else { Ok(Program(program)) }
}

/// The workload on the interpreter and the JIT, with and without bounds checks.
pub(super) fn contenders<'a>(workload: Workload) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let mut contenders = Vec::new();
    for (kind, note, before) in [("sized", "", LENGTH), ("unchecked", ", no bounds checks", 0)] {
        let text = raw::program(&format!("{kind}/{}", workload.name))?;
        let program = load(&text, ROOM + before)?;
        let mut len = 0;
        // SAFETY: the program is loaded.
        let native = unsafe { dpdk_native(program.0, &mut len) }.ok_or("DPDK made no native code")?;
        let interpreted = load(&text, ROOM + before)?;
        let version = version();
        let jit = move |frame: &mut FrameMut<'_>| {
            // Keeps the whole value alive, which owns the code.
            let _program = &program;
            // SAFETY: DPDK has verified that the program stays within the buffer.
            unsafe { native(buffer(frame, before)) }
        };
        let interpreter = move |frame: &mut FrameMut<'_>| {
            let interpreted = &interpreted;
            // SAFETY: as above.
            unsafe { rte_bpf_exec(interpreted.0, buffer(frame, before)) }
        };
        contenders.push(Contender::new(format!("{version} JIT{note}"), Role::Jit, jit));
        contenders.push(Contender::new(
            format!("{version} interpreter{note}"),
            Role::Interpreter,
            interpreter,
        ));
    }
    Ok(contenders.into_iter().map(|contender| contender.with_counts(raw::counts)).collect())
}

/// A socket filter that returns numbers, on both engines. Both give the verdicts of a filter: the first for 0.
pub(super) fn filters<'a>(
    spec: &ProgramSpec,
    verdicts: [u64; 2],
) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let text: Vec<u8> = wide_comparisons(&spec.insns)?.iter().flat_map(|insn| insn.to_le_bytes()).collect();
    let mut contenders = Vec::new();
    for (kind, role) in [("JIT", Role::Jit), ("interpreter", Role::Interpreter)] {
        let mut error = 0;
        let slots = u32::try_from(spec.insns.len())?;
        // SAFETY: the count is that of the slots, which outlive the call.
        let program = unsafe { dpdk_load_filter(text.as_ptr().cast(), slots, &mut error) };
        let program = loaded(program, error)?;
        // SAFETY: the program is loaded.
        let native = unsafe { dpdk_native(program.0, &mut 0) };
        let native = match role {
            Role::Jit => Some(native.ok_or("DPDK made no native code")?),
            _ => None,
        };
        let run = move |frame: &mut FrameMut<'_>| {
            let program = &program;
            // SAFETY: DPDK has verified that the program reads the packet only by packet loads, which check its length; the
            // packets of the benchmarks are short.
            let kept = unsafe { dpdk_filter(program.0, native, frame.data().cast(), frame.len() as u16) };
            verdicts[usize::from(kept != 0)]
        };
        contenders.push(Contender::new(format!("{} {kind}", version()), role, run));
    }
    Ok(contenders)
}

/// The same with 64-bit comparisons, because DPDK supports no others: all values of a converted filter have 32 bits, so that
/// only negative constants would differ. Long jumps, which DPDK does not support either, occur only in long filters.
fn wide_comparisons(insns: &[RawInsn]) -> Result<Vec<RawInsn>, Box<dyn Error>> {
    const CLASS: u8 = 7;
    const JMP: u8 = 5;
    const JMP32: u8 = 6;
    let widen = |insn: &RawInsn| match insn.opcode & CLASS {
        JMP32 if insn.imm < 0 || insn.opcode == JMP32 => {
            Err(format!("DPDK has nothing for opcode {:#x} with {}", insn.opcode, insn.imm).into())
        }
        JMP32 => Ok(RawInsn { opcode: insn.opcode & !CLASS | JMP, ..*insn }),
        _ => Ok(*insn),
    };
    insns.iter().map(widen).collect()
}

/// The packet, or its length followed by the packet.
fn buffer(frame: &mut FrameMut<'_>, before: usize) -> *mut c_void {
    // SAFETY: `Packets` stores the length there, as metadata.
    unsafe { frame.data().sub(before) }.cast()
}

fn version() -> String {
    // SAFETY: a static string.
    unsafe { CStr::from_ptr(dpdk_version()) }.to_string_lossy().into_owned()
}
