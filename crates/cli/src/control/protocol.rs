//! What both sides of the control socket know.

/// Version of the protocol, which each request names.
pub(super) const VERSION: u64 = 1;
/// Maximum length of a request in bytes.
pub(super) const MAX_REQUEST: u64 = 1 << 16;
