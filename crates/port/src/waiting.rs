//! Packets on their way from one port to another.

use paceline_frame::{Burst, Chunk, FrameMeta, PoolCache, Span, Taken};

/// A packet on its way.
#[derive(Default)]
pub(crate) enum Waiting {
    /// No packet.
    #[default]
    None,
    /// In a frame of the pool.
    Frame(Chunk, Span),
    /// Elsewhere: longer than a frame, or sent while the pool had no free frame.
    Bytes(Vec<u8>),
}

impl Waiting {
    /// A copy of a packet, in a frame if it fits and there is one.
    pub(crate) fn copy(packet: &[u8], cache: &mut PoolCache) -> Self {
        let Some(mut chunk) = cache.alloc() else { return Self::Bytes(packet.to_vec()) };
        match cache.pool().fill(&mut chunk, &[], packet) {
            Some(span) => Self::Frame(chunk, span),
            None => {
                cache.free(chunk);
                Self::Bytes(packet.to_vec())
            }
        }
    }

    /// A packet that was taken out of a burst. Metadata does not leave a port.
    #[inline]
    pub(crate) fn taken(Taken { chunk, span }: Taken) -> Self {
        Self::Frame(chunk, Span { metadata: 0, ..span })
    }

    /// Adds the packet to a burst that is not full.
    #[inline(always)]
    pub(crate) fn deliver(self, meta: FrameMeta, burst: &mut Burst, cache: &mut PoolCache) {
        match self {
            Self::Frame(chunk, span) => {
                if let Err(chunk) = burst.place(cache.pool(), chunk, span, meta) {
                    cache.free(chunk);
                }
            }
            // Packets that are too long for any frame are dropped, as a network card would do.
            Self::Bytes(bytes) => drop(burst.push(&bytes, meta)),
            Self::None => {}
        }
    }

    /// The packet's bytes; its frame goes back.
    pub(crate) fn into_bytes(self, cache: &mut PoolCache) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Frame(chunk, span) => {
                let bytes = cache.pool().packet(&chunk, span).unwrap_or_default().to_vec();
                cache.free(chunk);
                bytes
            }
            Self::None => Vec::new(),
        }
    }

    /// Gives the frame back.
    pub(crate) fn release(self, cache: &mut PoolCache) {
        if let Self::Frame(chunk, _) = self {
            cache.free(chunk);
        }
    }
}
