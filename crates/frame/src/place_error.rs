//! Why a packet is not placed in a burst, with its memory.

use crate::pool::Chunk;

/// A packet is not placed in a burst. The chunk in the error is the caller's again.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[must_use = "a dropped chunk is lost to its pool"]
pub enum PlaceError {
    /// The burst holds as many frames as it can.
    #[error("burst is full")]
    Full(Chunk),
    /// The packet must begin after the headroom's reserved area and metadata of at most 252 bytes, a multiple of 4, and end before the
    /// tailroom.
    #[error("the packet and its metadata leave too little room in the frame")]
    NoRoom(Chunk),
    /// The chunk is not of the pool that it is placed for.
    #[error("the frame is of another pool")]
    OtherPool(Chunk),
}

impl PlaceError {
    /// The chunk, to be given back to its pool or placed elsewhere.
    #[inline]
    pub fn into_chunk(self) -> Chunk {
        match self {
            Self::Full(chunk) | Self::NoRoom(chunk) | Self::OtherPool(chunk) => chunk,
        }
    }
}
