//! The workloads compiled by the C compiler (`workloads/native.c`).
#![allow(unsafe_code, reason = "calls C")]

use std::hint::black_box;

use paceline::FrameMut;
use paceline_frame::Frame;

use super::contender::{Contender, Role};
use super::workload::Workload;

/// `struct frame` of native.c has the first two fields of [`Frame`]: the packet's start and end.
type Function = unsafe extern "C" fn(*const Frame) -> i32;
/// The function inlined into a loop.
type Loop = unsafe extern "C" fn(*const *const Frame, u64, u64) -> u64;

const _: () = assert!(Frame::OFFSET_DATA == 0 && Frame::OFFSET_DATA_END == 8);

unsafe extern "C" {
    fn native_drop(frame: *const Frame) -> i32;
    fn native_port22(frame: *const Frame) -> i32;
    fn native_port22_payload(frame: *const Frame) -> i32;
    fn native_count(frame: *const Frame) -> i32;
    fn native_loop_drop(frames: *const *const Frame, n: u64, count: u64) -> u64;
    fn native_loop_port22(frames: *const *const Frame, n: u64, count: u64) -> u64;
    fn native_loop_port22_payload(frames: *const *const Frame, n: u64, count: u64) -> u64;
    fn native_loop_count(frames: *const *const Frame, n: u64, count: u64) -> u64;
    static native_counts: [u64; 256];
}

/// The workload in C, called through a pointer, and inlined into the loop.
pub(super) fn contenders<'a>(workload: Workload) -> Vec<Contender<'a>> {
    let (function, inlined): (Function, Loop) = match workload.name {
        "drop" => (native_drop, native_loop_drop),
        "port22" => (native_port22, native_loop_port22),
        "port22_payload" => (native_port22_payload, native_loop_port22_payload),
        "count" => (native_count, native_loop_count),
        _ => return Vec::new(),
    };
    let called = move |frame: &mut FrameMut<'_>| {
        // SAFETY: the function reads the packet between the two pointers at the frame's start, and writes only its own
        // memory.
        unsafe { black_box(function)(&raw const **frame) as u64 }
    };
    let (mut of, mut all): (_, Vec<*const Frame>) = (0..0, Vec::new());
    let looped = move |frames: &mut [FrameMut<'_>], count: usize| {
        // Created once and not in every round.
        let range = frames.as_ptr_range();
        let range = range.start as usize..range.end as usize;
        if of != range {
            (of, all) = (range, frames.iter().map(|frame| &raw const **frame).collect());
        }
        // SAFETY: as above, for each of the frames.
        unsafe { inlined(all.as_ptr(), all.len() as u64, count as u64) }
    };
    let version = env!("VERSION_CC");
    let contenders = [
        Contender::new(format!("native C -O2 through a pointer ({version})"), Role::Native, called),
        Contender::looping(format!("native C -O2 inlined in the loop ({version})"), Role::Inlined, looped),
    ];
    contenders.map(|contender| contender.with_counts(counts)).into()
}

fn counts() -> Vec<u64> {
    // SAFETY: only this thread runs code that writes there.
    unsafe { (&raw const native_counts).read_volatile() }.to_vec()
}
