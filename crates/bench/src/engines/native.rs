//! The workloads as the C compiler makes them (`workloads/native.c`), called through a pointer.
#![allow(unsafe_code, reason = "calls C")]

use std::hint::black_box;

use paceline::FrameMut;

use super::{Contender, Workload};

/// `struct frame` of native.c is how a [`Frame`](paceline_frame::Frame) begins: the packet's start and end.
type Function = unsafe extern "C" fn(*const paceline_frame::Frame) -> i32;

const _: () = assert!(paceline_frame::Frame::OFFSET_DATA == 0 && paceline_frame::Frame::OFFSET_DATA_END == 8);

unsafe extern "C" {
    fn native_drop(frame: *const paceline_frame::Frame) -> i32;
    fn native_port22(frame: *const paceline_frame::Frame) -> i32;
    fn native_port22_payload(frame: *const paceline_frame::Frame) -> i32;
    fn native_count(frame: *const paceline_frame::Frame) -> i32;
}

/// The workload in C.
pub(super) fn contender<'a>(workload: Workload) -> Option<Contender<'a>> {
    let function: Function = match workload.program {
        "drop_program" => native_drop,
        "port22_program" => native_port22,
        "port22_payload_program" => native_port22_payload,
        "count_program" => native_count,
        _ => return None,
    };
    let run = move |frame: &mut FrameMut<'_>| {
        // SAFETY: the function reads the packet between the two pointers that the frame begins with, and nothing else.
        unsafe { black_box(function)(&raw const **frame) as u64 }
    };
    Some(Contender::new("C -O2 through a pointer", run))
}
