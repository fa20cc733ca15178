//! The area that each packet has beside its frame: its `sk_buff` and tunnel key.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_frame::Frame;
use paceline_spec::context::{AreaUse, Rule, SkBuff};

use crate::context;
use crate::tunnel_key::Tunnel;

/// The packet's own area.
pub struct Area {
    /// The packet's `sk_buff` ([`SkBuff`]); words are valid as far as the running program uses them ([`AreaUse`]).
    pub words: [AtomicU64; SkBuff::WORDS],
    /// The tunnel key that a program gave the packet, if [`SkBuff::has_tunnel`] says so.
    pub(crate) tunnel: Tunnel,
    /// Contents of that area when packets arrive; zero unless set.
    arriving: [u64; SkBuff::WORDS],
}

impl std::fmt::Debug for Area {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Area").finish_non_exhaustive()
    }
}

impl Default for Area {
    fn default() -> Self {
        let words = [const { AtomicU64::new(0) }; SkBuff::WORDS];
        Self { words, tunnel: Tunnel::default(), arriving: [0; SkBuff::WORDS] }
    }
}

/// Sets a word to what it is when packets arrive.
#[inline]
fn arrive((word, arriving): (&AtomicU64, &u64)) {
    word.store(*arriving, Ordering::Relaxed);
}

impl Area {
    /// Offset in bytes of what the words are when packets arrive, for generated code.
    pub const OFFSET_ARRIVING: usize = offset_of!(Self, arriving);

    /// Initializes what a run uses of the packet's own area.
    #[inline]
    pub fn enter(&mut self, frame: &Frame, uses: AreaUse) {
        match uses.words == AreaUse::ALL_WORDS {
            true => self.words.iter().zip(&self.arriving).for_each(arrive),
            false => {
                let words = self.words.iter().zip(&self.arriving).enumerate();
                words.filter(|(index, _)| uses.words >> index & 1 != 0).for_each(|(_, word)| arrive(word));
            }
        }
        let facts = self.facts();
        if uses.has(Rule::PacketType) {
            facts.pkt_type = context::packet_type(frame.packet()) as u8;
        }
        if uses.has(Rule::RxQueue) {
            facts.queue_mapping = frame.rx_queue();
        }
        if uses.has(Rule::Protocol) {
            facts.protocol = context::protocol(frame.packet()).to_be();
        }
        if uses.has(Rule::PacketLen) {
            facts.wire_len = frame.len() as u32;
        }
    }

    /// The packet's own area, between two accesses of the program.
    #[inline]
    pub(crate) fn facts(&mut self) -> &mut SkBuff {
        // SAFETY: both have this size and alignment, any bytes are integers, which all members are, and nothing else accesses the
        // words while the area is borrowed.
        unsafe { &mut *self.words.as_mut_ptr().cast::<SkBuff>() }
    }

    /// Address of the packet's own area.
    pub fn address(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// The `sk_buff` of the last program's packet, if programs of its type write one.
    #[must_use]
    pub fn sk_buff(&self) -> SkBuff {
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        // SAFETY: both have this size, and any bytes are integers, which all members are.
        unsafe { std::mem::transmute::<[u64; SkBuff::WORDS], SkBuff>(words) }
    }

    /// Changes the packet's own area.
    pub fn set_sk_buff(&mut self, skb: SkBuff) {
        // SAFETY: as above; the area has no padding.
        let words = unsafe { std::mem::transmute::<SkBuff, [u64; SkBuff::WORDS]>(skb) };
        for (word, value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Sets what packets arrive with in their own area: all but a tunnel key, and a VLAN tag, which lies in the packet.
    pub fn set_arriving(&mut self, mut skb: SkBuff) {
        (skb.has_tunnel, skb.behind, skb.vlan_present) = (0, 0, 0);
        // SAFETY: as above.
        self.arriving = unsafe { std::mem::transmute::<SkBuff, [u64; SkBuff::WORDS]>(skb) };
    }

    /// What packets arrive with in their own area.
    #[must_use]
    pub fn arriving(&self) -> SkBuff {
        // SAFETY: both have this size, and any bytes are integers, which all members are.
        unsafe { std::mem::transmute::<[u64; SkBuff::WORDS], SkBuff>(self.arriving) }
    }
}
