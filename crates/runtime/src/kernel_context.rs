//! The packet as kernel structures (`struct xdp_buff` and `struct xdp_rxq_info` in `include/net/xdp.h`), which
//! `bpf_cast_to_kern_ctx` returns: the fields of [`ObjectKind::XdpBuff`] and of the objects that it points to.
//!
//! [`ObjectKind::XdpBuff`]: paceline_spec::ObjectKind::XdpBuff

use std::sync::atomic::{AtomicU64, Ordering};

use paceline_frame::Frame;

/// The word of `struct net_device` that contains `ifindex`.
const IFINDEX: usize = 28;

/// The structures, one after the other, as far as their last fields that programs read. Programs reach them by address, hence
/// the atomics.
#[repr(C)]
pub(crate) struct KernelContext {
    buff: [AtomicU64; 7],
    queue: [AtomicU64; 2],
    device: [AtomicU64; IFINDEX + 1],
}

impl KernelContext {
    pub(crate) fn new() -> Box<Self> {
        let new = Box::new(Self {
            buff: [const { AtomicU64::new(0) }; 7],
            queue: [const { AtomicU64::new(0) }; 2],
            device: [const { AtomicU64::new(0) }; IFINDEX + 1],
        });
        set(&new.buff[4], address(&new.queue));
        set(&new.queue[0], address(&new.device));
        new
    }

    /// Stores the fields of a packet, and returns the address of its `struct xdp_buff`.
    pub(crate) fn describe(&self, frame: &Frame) -> u64 {
        self.follow(frame);
        // No packet has fragments, which the flags would tell.
        set(&self.buff[6], words(frame.buffer_len(), 0));
        set(&self.queue[1], words(frame.rx_queue().into(), 0));
        set(&self.device[IFINDEX], words(frame.ingress_ifindex(), 0));
        address(&self.buff)
    }

    /// Stores the fields that change when a program moves the packet's ends.
    pub(crate) fn follow(&self, frame: &Frame) {
        let ends = [frame.data(), frame.data_end(), frame.data_meta(), frame.hard_start()];
        self.buff.iter().zip(ends).for_each(|(word, end)| set(word, end as u64));
    }

    /// Copies bytes of it; false if the address is not in it.
    pub(crate) fn copy(&self, from: u64, bytes: &mut [u8]) -> bool {
        let words = || self.buff.iter().chain(&self.queue).chain(&self.device);
        let Some(offset) = from.checked_sub(address(&self.buff)) else { return false };
        let is_there =
            offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= size_of::<Self>() as u64);
        if is_there {
            let all = words().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
            bytes.iter_mut().zip(all.skip(offset as usize)).for_each(|(byte, found)| *byte = found);
        }
        is_there
    }
}

fn set(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

fn address(words: &[AtomicU64]) -> u64 {
    words.as_ptr().expose_provenance() as u64
}

/// Two words of four bytes in memory order.
fn words(first: u32, second: u32) -> u64 {
    let [first, second] = [first, second].map(u64::from);
    if cfg!(target_endian = "big") { first << 32 | second } else { second << 32 | first }
}
