//! Flows, the parameters of look-ups, and the reasons why they find no route.

use std::net::IpAddr;

use crate::interface::LOOPBACK;

/// Numbers of named tables (`include/uapi/linux/rtnetlink.h`).
pub mod tables {
    /// `RT_TABLE_DEFAULT`
    pub const DEFAULT: u32 = 253;
    /// `RT_TABLE_MAIN`
    pub const MAIN: u32 = 254;
    /// `RT_TABLE_LOCAL`
    pub const LOCAL: u32 = 255;
}

/// Parameters of a route look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Input interface; [`LOOPBACK`] for packets of this host.
    pub input: u32,
    /// Required output interface, if any.
    pub output: Option<u32>,
    /// Source address, if known.
    pub source: Option<IpAddr>,
    /// Destination address.
    pub destination: IpAddr,
    /// Type-of-service byte.
    pub tos: u8,
    /// Mark of the packet.
    pub mark: u32,
    /// IP protocol number.
    pub protocol: u8,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl Flow {
    /// A flow to an address, with all else unspecified.
    #[must_use]
    pub fn to(destination: IpAddr) -> Self {
        Self {
            input: LOOPBACK,
            output: None,
            source: None,
            destination,
            tos: 0,
            mark: 0,
            protocol: 0,
            source_port: 0,
            destination_port: 0,
        }
    }
}

/// Tables for a route look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Selected by the rules.
    ByRules,
    /// This table only.
    Only(u32),
}

/// Reasons why a flow has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// No route matches.
    None,
    /// The destination is unreachable (`RTN_UNREACHABLE`).
    Unreachable,
    /// Packets are dropped silently (`RTN_BLACKHOLE`).
    Blackhole,
    /// Packets are prohibited (`RTN_PROHIBIT`).
    Prohibited,
}
