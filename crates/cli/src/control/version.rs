//! Version of the protocol.

/// Version of the protocol, which each request names.
pub(super) const VERSION: u64 = 1;
