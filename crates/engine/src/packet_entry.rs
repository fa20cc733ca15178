//! Entries of single packets, with what comes before or after the image's own.

use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::{Entry, Image, Unset};

/// The entry of a program whose runs are pinned or not.
pub(crate) fn entry_of(image: &Image, pins: bool) -> Entry {
    match (image.per_cpu.is_empty(), pins, image.translates()) {
        (true, true, _) => pinned_entry,
        (true, false, true) => translated_entry,
        (true, false, false) => image.entries.packet,
        (false, true, _) => admitted_entry::<PINNED>,
        (false, false, true) => admitted_entry::<TRANSLATED>,
        (false, false, false) => admitted_entry::<DIRECT>,
    }
}

/// Entry of single packets that pins the run.
///
/// # Safety
/// As for the entry of the image whose address is the second argument.
unsafe extern "C" fn pinned_entry(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: guaranteed by the caller, and programs do not pin.
    unsafe { host.pinned(|host| translated_entry(context, image, r3, r4, r5, host)) }
}

const DIRECT: u8 = 0;
const TRANSLATED: u8 = 1;
const PINNED: u8 = 2;

/// Entry of single packets for programs with per-CPU maps: those without have no check.
///
/// # Safety
/// As for [`pinned_entry`].
unsafe extern "C" fn admitted_entry<const WAY: u8>(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let is_admitted = host.is_admitted(unsafe { &(*(image as *const Image)).per_cpu });
    // Both are jumps: nothing is saved for what comes once.
    // SAFETY: guaranteed by the caller.
    unsafe {
        match is_admitted {
            true => enter::<WAY>(context, image, r3, r4, r5, host),
            false => first_entry::<WAY>(context, image, r3, r4, r5, host),
        }
    }
}

/// The same for a host that has not run the program.
///
/// # Safety
/// As for [`pinned_entry`].
#[cold]
#[inline(never)]
unsafe extern "C" fn first_entry<const WAY: u8>(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    if let Err(fault) = host.admit(unsafe { &(*(image as *const Image)).per_cpu }) {
        return host.fail(fault);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { enter::<WAY>(context, image, r3, r4, r5, host) }
}

/// # Safety
/// As for [`pinned_entry`].
#[inline(always)]
unsafe fn enter<const WAY: u8>(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match WAY {
            PINNED => pinned_entry(context, image, r3, r4, r5, host),
            TRANSLATED => translated_entry(context, image, r3, r4, r5, host),
            _ => ((*(image as *const Image)).entries.packet)(context, image, r3, r4, r5, host),
        }
    }
}

/// Entry of single packets whose return value may have to be translated.
///
/// # Safety
/// As for the entry of the image whose address is the second argument.
unsafe extern "C" fn translated_entry(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let translated = unsafe { &*(image as *const Image) };
    // SAFETY: the frame is guaranteed by the caller.
    let r0 = unsafe { (translated.entries.packet)(context, image, r3, r4, r5, host) };
    host.run.ends_specially |= translated.translates();
    r0
}
