//! Options of memif interfaces.

use crate::device::error::OpenError;

use super::message::SECRET;
use super::ring::MAX_LOG2;

/// Role of an interface in a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemifRole {
    /// It connects to a socket, and has the memory of the packets.
    #[default]
    Client,
    /// It makes the socket, and accepts one client at a time.
    Server,
}

/// Options of a memif interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemifOptions {
    /// The side.
    pub role: MemifRole,
    /// Number of the interface at the server's socket.
    pub id: u32,
    /// Secret that the client must know, up to [`MAX_SECRET`](Self::MAX_SECRET) bytes; empty for nothing.
    pub secret: String,
    /// Number of queues, each with a ring in either direction; from 1 to [`MAX_QUEUES`](Self::MAX_QUEUES). The connection has fewer if the
    /// peer has.
    pub queues: u16,
    /// Logarithm of the number of a ring's entries, up to [`MAX_LOG2_ENTRIES`](Self::MAX_LOG2_ENTRIES), if this side is the client.
    pub log2_entries: u8,
    /// Size of a buffer in bytes, up to [`MAX_BUFFER`](Self::MAX_BUFFER), if this side is the client. Longer packets take several.
    pub buffer_len: u32,
}

impl MemifOptions {
    /// Largest number of bytes of a secret.
    pub const MAX_SECRET: usize = SECRET;
    /// Largest number of queues.
    pub const MAX_QUEUES: u16 = 256;
    /// Logarithm of the largest number of a ring's entries.
    pub const MAX_LOG2_ENTRIES: u8 = MAX_LOG2;
    /// Largest size of a buffer in bytes.
    pub const MAX_BUFFER: u32 = 65_536;

    /// Size of a client's memory in bytes.
    fn memory(&self) -> u64 {
        let entry = 16 + u64::from(self.buffer_len);
        2 * u64::from(self.queues) * ((entry << self.log2_entries) + 256)
    }

    /// Checks the options of a port of this socket, before memory is taken for it.
    ///
    /// # Errors
    /// [`OpenError::TooLarge`]: numbers are out of their ranges, or the memory is larger than offsets of 32 bits.
    pub fn check(&self, socket: &str) -> Result<(), OpenError> {
        if self.is_valid() {
            return Ok(());
        }
        Err(OpenError::TooLarge { socket: socket.to_owned(), bytes: self.memory() })
    }

    /// Whether all numbers are in their ranges, and offsets of 32 bits reach all buffers.
    fn is_valid(&self) -> bool {
        (1..=Self::MAX_QUEUES).contains(&self.queues)
            && self.log2_entries <= Self::MAX_LOG2_ENTRIES
            && (1..=Self::MAX_BUFFER).contains(&self.buffer_len)
            && self.secret.len() <= Self::MAX_SECRET
            && (self.role == MemifRole::Server || self.memory() <= u64::from(u32::MAX))
    }
}

impl Default for MemifOptions {
    /// A client with one queue, rings of 1,024 entries and buffers of 2,048 bytes, as DPDK's are.
    fn default() -> Self {
        Self {
            role: MemifRole::Client,
            id: 0,
            secret: String::new(),
            queues: 1,
            log2_entries: 10,
            buffer_len: 2048,
        }
    }
}
