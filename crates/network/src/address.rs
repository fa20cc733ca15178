//! Hardware addresses, and the families of network addresses.

use std::net::IpAddr;

/// A hardware address.
pub type Mac = [u8; 6];

/// IPv4 or IPv6, usable as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl From<IpAddr> for Family {
    fn from(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}
