//! Packets on their way from one port to another.

use paceline_frame::{Burst, Chunk, FrameMeta, HEADROOM, PoolCache, PushError, Span, Taken};

/// Adds a copy of a packet that came out of a burst, where a program may have grown it.
pub(crate) fn push_copy(burst: &mut Burst, packet: &[u8], meta: FrameMeta) -> Result<(), PushError> {
    burst.push_at(HEADROOM, &[], packet, meta)
}

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

    /// Adds the packet to a burst that is not full; false if it is lost, which no packet is that came out of a burst.
    #[inline(always)]
    #[must_use]
    pub(crate) fn deliver(self, meta: FrameMeta, burst: &mut Burst, cache: &mut PoolCache) -> bool {
        match self {
            Self::Frame(chunk, span) => match burst.place(cache.pool(), chunk, span, meta) {
                Ok(()) => true,
                Err(error) => {
                    cache.free(error.into_chunk());
                    false
                }
            },
            Self::Bytes(bytes) => push_copy(burst, &bytes, meta).is_ok(),
            Self::None => false,
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
