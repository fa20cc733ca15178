//! Entries of programs that a Rust function runs.

use std::ops::Range;

use crate::host::Host;
use crate::readable::Readable;
use crate::run_rules::RunRules;
use paceline_frame::Frame;
use paceline_spec::ProgramKind;

use crate::interpreter::image::{Entries, Entry, Image, Unset};

/// An engine that runs programs by a Rust function.
pub trait Interpreter {
    /// The part of an image that the engine needs, the same for all packets.
    type Code<'a>: Copy;

    /// That part; `None` if the image is of another engine.
    fn code(image: &Image) -> Option<Self::Code<'_>>;

    /// Prepares a host for the program, and returns that part.
    #[inline]
    fn prepare<'a>(image: &'a Image, host: &mut Host) -> Option<Self::Code<'a>> {
        host.run.readable = Readable::of(&image.maps);
        Self::code(image)
    }

    /// Runs a program over a packet; a fault is in the host.
    ///
    /// # Safety
    /// `context` must be the address of the frame that the host runs.
    unsafe fn run(code: Self::Code<'_>, context: u64, host: &mut Host) -> u64;

    /// Runs a tail called program, which may replace one of this engine, while functions of that one are active.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn run_called(code: Self::Code<'_>, context: u64, host: &mut Host) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::run(code, context, host) }
    }
}

/// Entries of programs of a type.
#[must_use]
pub fn entries<I: Interpreter>(kind: ProgramKind) -> Entries {
    let packet: Entry = if RunRules::of(kind).is_some() { entry::<I, true> } else { entry::<I, false> };
    Entries { packet, tail: tail_entry::<I>, burst: burst_entry::<I> }
}

/// Entry of packets.
///
/// # Safety
/// The first argument must be the address of a frame that nothing else uses during the call, the second that of an image
/// of this engine, with rules if `RULES`, to whose per-CPU maps the host was admitted.
unsafe extern "C" fn entry<I: Interpreter, const RULES: bool>(
    context: u64,
    image: u64,
    _: Unset,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let image = unsafe { &*(image as *const Image) };
    let rules = if RULES { image.rules.as_ref() } else { None };
    // SAFETY: the frame is guaranteed by the caller.
    unsafe { host.begin(context as *mut Frame, rules) };
    let Some(code) = I::prepare(image, host) else { return 0 };
    // SAFETY: the host has begun with this frame.
    unsafe { I::run(code, context, host) }
}

/// Entry of tail calls, which may lead to maps that the host was not admitted to.
///
/// # Safety
/// As for `entry` otherwise, and the host must run this frame.
unsafe extern "C" fn tail_entry<I: Interpreter>(
    context: u64,
    image: u64,
    _: Unset,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let image = unsafe { &*(image as *const Image) };
    let code = if image.admits(host) { I::prepare(image, host) } else { None };
    // SAFETY: the frame is guaranteed by the caller.
    let r0 = code.map_or(0, |code| unsafe { I::run_called(code, context, host) });
    if let Some(fault) = &mut host.run.fault {
        fault.tail_called.get_or_insert_with(|| image.spec.clone());
    }
    r0
}

/// Entry of bursts.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call, and `image` the address of an image of this
/// engine, to whose per-CPU maps the host was admitted.
unsafe extern "C" fn burst_entry<I: Interpreter>(
    first: u64,
    end: u64,
    image: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    if first == end {
        return end;
    }
    // SAFETY: the address is guaranteed by the caller.
    let image = unsafe { &*(image as *const Image) };
    let Some(code) = I::prepare(image, host) else { return first };
    match &image.rules {
        // SAFETY: the frames are guaranteed by the caller.
        None => unsafe { run_frames::<I>(code, first..end, None, host) },
        // SAFETY: the same.
        rules => unsafe { run_frames::<I>(code, first..end, rules.as_ref(), host) },
    }
}

/// Runs frames; returns the frame at which a run failed, otherwise the end. Inlined, so that the loop for program types without
/// rules has none of their code.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call.
#[inline(always)]
unsafe fn run_frames<I: Interpreter>(
    code: I::Code<'_>,
    frames: Range<u64>,
    rules: Option<&RunRules>,
    host: &mut Host,
) -> u64 {
    let mut frame = frames.start;
    let readable = host.run.readable;
    while frame != frames.end {
        // SAFETY: the frame is one of the burst's, and the host has begun with it.
        let r0 = unsafe {
            host.begin(frame as *mut Frame, rules);
            I::run(code, frame, host)
        };
        if host.run.fault.is_some() {
            break;
        }
        // A tail call leaves the maps of its target.
        if host.run.readable.is_of_another(&readable) {
            host.run.readable = readable;
        }
        let code = host.end_run(rules, r0);
        // SAFETY: as above; the run has ended.
        unsafe { &mut *(frame as *mut Frame) }.set_code(code);
        frame += size_of::<Frame>() as u64;
    }
    frame
}
