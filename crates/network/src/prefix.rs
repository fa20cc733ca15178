//! Address prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// The first `len` bits of an address; `None` if `len` exceeds the length of the address.
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Option<Self> {
        (len <= bits(address)).then(|| Self { address: first_bits(address, len), len })
    }

    /// The prefix of a single address.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        Self { address, len: bits(address) }
    }

    /// Length in bits.
    #[must_use]
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether its length is 0: it contains all addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether it contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && first_bits(address, self.len) == self.address
    }
}

/// Length in bits of addresses of this family.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// An address with all bits after the first `len` cleared.
pub(crate) fn first_bits(address: IpAddr, len: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

impl FromStr for Prefix {
    type Err = ();

    /// Parses `10.0.0.0/8`, or a single address.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_once('/') {
            None => text.parse().map(Self::host).map_err(drop),
            Some((address, len)) => {
                let (address, len) = (address.parse().map_err(drop)?, len.parse().map_err(drop)?);
                Self::new(address, len).ok_or(())
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}
