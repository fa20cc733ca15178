//! The area that each packet has beside its frame: its `sk_buff` and tunnel key.

use std::sync::atomic::{AtomicU64, Ordering};

use paceline_frame::Frame;
use paceline_isa::Size;
use paceline_spec::context::{Layout, SkBuff};

use crate::context;
use crate::memory;
use crate::tunnel_key::Tunnel;

/// The packet's own area.
pub struct Area {
    /// The packet's `sk_buff` ([`SkBuff`]); words are valid if the program's context has fields in them.
    pub words: [AtomicU64; SkBuff::WORDS],
    /// The tunnel key that a program gave the packet, if [`SkBuff::has_tunnel`] says so.
    pub(crate) tunnel: Tunnel,
    /// Contents of that area when packets arrive; zero unless set.
    arriving: [u64; SkBuff::WORDS],
}

impl Default for Area {
    fn default() -> Self {
        let words = [const { AtomicU64::new(0) }; _];
        Self { words, tunnel: Tunnel::default(), arriving: [0; _] }
    }
}

impl Area {
    /// Initializes the packet's own area for a context of this layout.
    pub fn enter(&mut self, frame: &Frame, layout: &Layout) {
        let words = usize::from(layout.area.start)..usize::from(layout.area.end);
        let (given, words) = (&self.arriving[words.clone()], &self.words[words]);
        words.iter().zip(given).for_each(|(word, given)| word.store(*given, Ordering::Relaxed));
        for (offset, size, rule) in layout.entries() {
            let (address, number) =
                (self.address() + u64::from(offset), u64::from(context::number(frame, rule)));
            // SAFETY: the member lies in the area.
            Size::from_bytes(size.into())
                .into_iter()
                .for_each(|size| unsafe { memory::store(address, size, number) });
        }
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

    /// Sets what packets arrive with in their own area: all but a tunnel key.
    pub fn set_arriving(&mut self, mut skb: SkBuff) {
        (skb.has_tunnel, skb.behind) = (0, 0);
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
