//! The workloads as the C compiler inlines them into a loop over a burst (`workloads/native.c`).
#![allow(unsafe_code, reason = "calls C")]

use paceline::Burst;
use paceline_frame::Frame;

/// A loop over the frames from the first to the end, which get the verdicts.
type Loop = unsafe extern "C" fn(*mut Frame, *mut Frame);

// `struct descriptor` of native.c.
const _: () = assert!(Frame::OFFSET_DATA == 0 && Frame::OFFSET_DATA_END == 8);
const _: () = assert!(Frame::OFFSET_VERDICT == 36 && size_of::<Frame>() == 64);

unsafe extern "C" {
    fn native_burst_drop(first: *mut Frame, end: *mut Frame);
    fn native_burst_port22(first: *mut Frame, end: *mut Frame);
    fn native_burst_port22_payload(first: *mut Frame, end: *mut Frame);
    fn native_burst_count(first: *mut Frame, end: *mut Frame);
    fn native_burst_xdp1(first: *mut Frame, end: *mut Frame);
    fn native_prefetch_drop(first: *mut Frame, end: *mut Frame);
    fn native_prefetch_port22(first: *mut Frame, end: *mut Frame);
    fn native_prefetch_port22_payload(first: *mut Frame, end: *mut Frame);
    fn native_prefetch_count(first: *mut Frame, end: *mut Frame);
    fn native_prefetch_xdp1(first: *mut Frame, end: *mut Frame);
}

/// Runs a workload over a burst, with packets fetched ahead or not; `None` for one that is not there in C.
pub(super) fn workload(name: &str, prefetch: bool) -> Option<impl Fn(&mut Burst) + use<>> {
    let run: Loop = match (name, prefetch) {
        ("drop", false) => native_burst_drop,
        ("drop", true) => native_prefetch_drop,
        ("port22", false) => native_burst_port22,
        ("port22", true) => native_prefetch_port22,
        ("port22_payload", false) => native_burst_port22_payload,
        ("port22_payload", true) => native_prefetch_port22_payload,
        ("count", false) => native_burst_count,
        ("count", true) => native_prefetch_count,
        ("xdp1", false) => native_burst_xdp1,
        ("xdp1", true) => native_prefetch_xdp1,
        _ => return None,
    };
    Some(move |burst: &mut Burst| {
        // SAFETY: the frames stay in their places; the loop reads packets between the pointers that each frame begins with,
        // and writes the verdicts and what is its own.
        unsafe {
            let frames = burst.descriptors_mut().as_mut_ptr_range();
            run(frames.start, frames.end);
        }
    })
}

/// The C compiler's version.
pub(super) const COMPILER: &str = env!("VERSION_CC");
