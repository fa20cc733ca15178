//! A site's image: the dispatcher for single packets and that for bursts, as generated code or as a search in Rust.

use std::mem::transmute;

use paceline_frame::{Frame, Verdict};
use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::{BurstEntry, Entry, Unset};
use paceline_runtime::per_cpu::PerCpuMaps;

use crate::target::Target;

/// A program of a dispatcher.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// The key that callers pass.
    pub(super) key: u64,
    /// Address of the entry.
    pub(super) target: u64,
    /// The token that the entry takes, if callers do not pass it.
    pub(super) token: Option<u64>,
}

/// The published state of a site. Its address is the fifth argument of its entries, the key the fourth.
pub struct Image {
    pub(super) packet: Entry,
    pub(super) burst: BurstEntry,
    /// By ascending key.
    pub(super) packets: Box<[Case]>,
    pub(super) bursts: Box<[Case]>,
    /// The generated code, if any.
    #[cfg(feature = "jit")]
    pub(super) block: Option<crate::exec::CodeBlock>,
    /// The per-CPU maps of all targets.
    pub(super) per_cpu: PerCpuMaps,
    /// Targets by ascending slot, which keep the code's jump targets.
    pub(super) targets: Vec<(u64, Target)>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").finish_non_exhaustive()
    }
}

impl Image {
    /// An image that searches in Rust, by the addresses of entries or by the numbers of slots.
    pub(super) fn searching(targets: Vec<(u64, Target)>, keys_are_addresses: bool) -> Self {
        let cases = |address: fn(&Target) -> u64| {
            let case = |(key, target): &(u64, Target)| match keys_are_addresses {
                true => Case { key: address(target), target: address(target), token: None },
                false => Case { key: *key, target: address(target), token: Some(target.token) },
            };
            let mut cases: Vec<Case> = targets.iter().map(case).collect();
            cases.sort_by_key(|case| case.key);
            // Programs of an interpreter share one entry.
            cases.dedup_by_key(|case| case.key);
            cases.into_boxed_slice()
        };
        let packets = cases(Target::address);
        let bursts = cases(|target| target.burst_entry as usize as u64);
        let (packet, burst): (Entry, BurstEntry) = match keys_are_addresses {
            true => (search_packet::<true>, search_burst::<true>),
            false => (search_packet::<false>, search_burst::<false>),
        };
        Self {
            packet,
            burst,
            packets,
            bursts,
            #[cfg(feature = "jit")]
            block: None,
            per_cpu: PerCpuMaps::union(targets.iter().map(|(_, target)| &target.per_cpu)),
            targets,
        }
    }

    /// The target of a slot.
    pub(super) fn target(&self, slot: u64) -> Option<&Target> {
        let index = self.targets.binary_search_by_key(&slot, |&(slot, _)| slot).ok()?;
        self.targets.get(index).map(|(_, target)| target)
    }
}

#[cfg(feature = "jit")]
pub(super) const PASS_PACKET: Entry = pass_packet;
#[cfg(feature = "jit")]
pub(super) const PASS_BURST: BurstEntry = pass_burst;

fn find(cases: &[Case], key: u64) -> Option<&Case> {
    cases.binary_search_by_key(&key, |case| case.key).ok().and_then(|index| cases.get(index))
}

/// # Safety
/// As for the program's entry; `key` must be set, to the address of an entry if `ADDRESSES`, and `image` to that of an image.
unsafe extern "C" fn search_packet<const ADDRESSES: bool>(
    frame: u64,
    token: u64,
    r3: Unset,
    key: Unset,
    image: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: both are guaranteed by the caller.
    let (key, image) = unsafe { (key.assume_init(), &*(image.assume_init() as *const Image)) };
    let case = find(&image.packets, key);
    host.counts.misses += u64::from(case.is_none());
    let (address, token) = match case {
        // default: callers pass the token of other cases.
        Some(case) => (case.target, case.token.unwrap_or(token)),
        None if ADDRESSES => (key, token),
        None => return Verdict::Pass as u64,
    };
    // SAFETY: it is the address of an entry, and the token is what it takes.
    unsafe { transmute::<usize, Entry>(address as usize)(frame, token, r3, r3, r3, host) }
}

/// # Safety
/// As [`search_packet`], for a program's burst entry.
unsafe extern "C" fn search_burst<const ADDRESSES: bool>(
    first: u64,
    end: u64,
    token: u64,
    key: Unset,
    image: Unset,
    host: &mut Host,
) -> u64 {
    let unset = Unset::uninit();
    // SAFETY: both are guaranteed by the caller.
    let (key, image) = unsafe { (key.assume_init(), &*(image.assume_init() as *const Image)) };
    let case = find(&image.bursts, key);
    let (address, token) = match case {
        // default: callers pass the token of other cases.
        Some(case) => (case.target, case.token.unwrap_or(token)),
        None if ADDRESSES => {
            host.counts.misses += 1;
            (key, token)
        }
        // SAFETY: the frames are guaranteed by the caller.
        None => return unsafe { pass_burst(first, end, token, unset, unset, host) },
    };
    // SAFETY: it is the address of an entry, and the token is what it takes.
    unsafe { transmute::<usize, BurstEntry>(address as usize)(first, end, token, unset, unset, host) }
}

/// Entry of packets whose key has no program.
///
/// # Safety
/// None is needed; the type asks for it.
#[cfg(feature = "jit")]
unsafe extern "C" fn pass_packet(_: u64, _: u64, _: Unset, _: Unset, _: Unset, host: &mut Host) -> u64 {
    host.counts.misses += 1;
    Verdict::Pass as u64
}

/// Entry of bursts whose key has no program.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call.
unsafe extern "C" fn pass_burst(first: u64, end: u64, _: u64, _: Unset, _: Unset, host: &mut Host) -> u64 {
    host.counts.misses += 1;
    let mut frame = first;
    while frame != end {
        // SAFETY: the frame is one of the burst's.
        unsafe { &mut *(frame as *mut Frame) }.set_code(Verdict::Pass as u32);
        frame += size_of::<Frame>() as u64;
    }
    end
}
