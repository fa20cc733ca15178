//! The workloads as loops over a burst, inlined by the C compiler (`workloads/native.c`).
#![allow(unsafe_code, reason = "calls C")]

use paceline::Burst;
use paceline_frame::Frame;

/// A loop over the frames from the first to the end, which stores their verdicts.
type Loop = unsafe extern "C" fn(*mut Frame, *mut Frame);
/// The same with a prefetch distance.
type Prefetching = unsafe extern "C" fn(*mut Frame, *mut Frame, u32);

// `struct descriptor` of native.c.
const _: () = assert!(Frame::OFFSET_DATA == 0 && Frame::OFFSET_DATA_END == 8);
const _: () = assert!(Frame::OFFSET_VERDICT == 36 && size_of::<Frame>() == 64);

unsafe extern "C" {
    fn native_burst_drop(first: *mut Frame, end: *mut Frame);
    fn native_burst_port22(first: *mut Frame, end: *mut Frame);
    fn native_burst_port22_payload(first: *mut Frame, end: *mut Frame);
    fn native_burst_count(first: *mut Frame, end: *mut Frame);
    fn native_burst_xdp1(first: *mut Frame, end: *mut Frame);
    fn native_prefetch_drop(first: *mut Frame, end: *mut Frame, ahead: u32);
    fn native_prefetch_port22(first: *mut Frame, end: *mut Frame, ahead: u32);
    fn native_prefetch_port22_payload(first: *mut Frame, end: *mut Frame, ahead: u32);
    fn native_prefetch_count(first: *mut Frame, end: *mut Frame, ahead: u32);
    fn native_prefetch_xdp1(first: *mut Frame, end: *mut Frame, ahead: u32);
}

/// Runs a workload over a burst, with a prefetch distance or, for 0, no prefetch; `None` if C does not have the workload.
pub(super) fn workload(name: &str, ahead: u32) -> Option<impl Fn(&mut Burst) + use<>> {
    let (plain, prefetching): (Loop, Prefetching) = match name {
        "drop" => (native_burst_drop, native_prefetch_drop),
        "port22" => (native_burst_port22, native_prefetch_port22),
        "port22_payload" => (native_burst_port22_payload, native_prefetch_port22_payload),
        "count" => (native_burst_count, native_prefetch_count),
        "xdp1" => (native_burst_xdp1, native_prefetch_xdp1),
        _ => return None,
    };
    Some(move |burst: &mut Burst| {
        // SAFETY: the frames do not move; the loops read packets between the two pointers at each frame's start, and write
        // the verdicts and their own data.
        unsafe {
            let frames = burst.descriptors_mut().as_mut_ptr_range();
            match ahead {
                0 => plain(frames.start, frames.end),
                _ => prefetching(frames.start, frames.end, ahead),
            }
        }
    })
}

/// Version of the C compiler.
pub(super) const COMPILER: &str = env!("VERSION_CC");
