//! `bpf_fib_lookup` and `bpf_check_mtu` (`net/core/filter.c`), on the host's [`Network`](paceline_network::Network).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use paceline_frame::Frame;
use paceline_network::{Flow, Found, Network, NoRoute, Tables, tables};
use paceline_spec::Errno;

use super::argument::Context;
use super::mem::{ReadWriteMem, ReadWriteU32};
use crate::host::Host;

const DIRECT: u32 = 1;
const OUTPUT: u32 = 1 << 1;
const SKIP_NEIGH: u32 = 1 << 2;
const TBID: u32 = 1 << 3;
const SRC: u32 = 1 << 4;
const MARK: u32 = 1 << 5;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Result of the look-up (`BPF_FIB_LKUP_RET_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Outcome {
    Success,
    Blackhole,
    Unreachable,
    Prohibit,
    NotForwarded,
    ForwardingDisabled,
    UnsupportedTunnel,
    NoNeighbor,
    FragmentationNeeded,
    NoSourceAddress,
}

/// `struct bpf_fib_lookup`.
struct Params([u8; Self::SIZE]);

impl Params {
    const SIZE: usize = 64;
    const FAMILY: usize = 0;
    const PROTOCOL: usize = 1;
    const SOURCE_PORT: usize = 2;
    const DESTINATION_PORT: usize = 4;
    /// The packet's length, and afterwards the MTU.
    const LEN: usize = 6;
    const IFINDEX: usize = 8;
    /// Type of service or flow label, and afterwards the metric.
    const TOS: usize = 12;
    const SOURCE: usize = 16;
    const DESTINATION: usize = 32;
    /// Number of the table, and afterwards the VLAN.
    const TABLE: usize = 48;
    /// The mark; afterwards the hardware addresses.
    const MARK: usize = 52;
    const SOURCE_MAC: usize = 52;
    const DESTINATION_MAC: usize = 58;

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[at + i])
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.bytes(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    fn address(&self, at: usize) -> IpAddr {
        match self.0[Self::FAMILY] {
            AF_INET => Ipv4Addr::from(self.bytes::<4>(at)).into(),
            _ => Ipv6Addr::from(self.bytes::<16>(at)).into(),
        }
    }

    fn set_address(&mut self, at: usize, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => self.set(at, &v4.octets()),
            IpAddr::V6(v6) => self.set(at, &v6.octets()),
        }
    }

    fn flow(&self, flags: u32) -> Flow {
        let destination = self.address(Self::DESTINATION);
        let interface = self.u32(Self::IFINDEX);
        let is_output = flags & OUTPUT != 0;
        // Rules for IPv6 do not look at the source of packets from here.
        let source = (destination.is_ipv4() || !is_output).then(|| self.address(Self::SOURCE));
        // The first four bits of the flow label's word are the version, the next eight the traffic class.
        let flow_info = u32::from_be_bytes(self.bytes(Self::TOS));
        Flow {
            input: if is_output { paceline_network::LOOPBACK } else { interface },
            output: is_output.then_some(interface),
            source,
            destination,
            tos: if destination.is_ipv4() { self.0[Self::TOS] } else { (flow_info >> 20) as u8 },
            mark: if flags & MARK != 0 { self.u32(Self::MARK) } else { 0 },
            protocol: self.0[Self::PROTOCOL],
            source_port: u16::from_be_bytes(self.bytes(Self::SOURCE_PORT)),
            destination_port: u16::from_be_bytes(self.bytes(Self::DESTINATION_PORT)),
        }
    }

    fn look_up(&mut self, network: &Network, flags: u32) -> Result<Outcome, Errno> {
        let flow = self.flow(flags);
        let (from, to) = (self.address(Self::SOURCE), flow.destination);
        if is_strict(from) || is_strict(to) {
            return Ok(Outcome::NotForwarded);
        }
        let interface = network.interface(self.u32(Self::IFINDEX)).ok_or(Errno::ENODEV)?;
        if !interface.forwards_to(to) {
            return Ok(Outcome::ForwardingDisabled);
        }
        let tables = self.tables(flags);
        let found = match network.route(&flow, tables) {
            Ok(found) => found,
            Err(NoRoute::None) => return Ok(Outcome::NotForwarded),
            Err(NoRoute::Blackhole) => return Ok(Outcome::Blackhole),
            Err(NoRoute::Unreachable) => return Ok(Outcome::Unreachable),
            Err(NoRoute::Prohibited) => return Ok(Outcome::Prohibit),
        };
        if found.route.kind != paceline_network::Kind::Unicast {
            return Ok(Outcome::NotForwarded);
        }
        let mtu = found.mtu(network);
        if u32::from(self.u16(Self::LEN)) > mtu {
            self.set(Self::LEN, &(mtu as u16).to_ne_bytes());
            return Ok(Outcome::FragmentationNeeded);
        }
        if found.hop.encapsulates {
            return Ok(Outcome::UnsupportedTunnel);
        }
        Ok(self.take(network, &found, flags).unwrap_or_else(|| {
            // There is no VLAN: the interface itself adds the tag.
            self.set(Self::TABLE, &[0; 4]);
            self.set(Self::LEN, &(mtu as u16).to_ne_bytes());
            Outcome::Success
        }))
    }

    /// Writes the result of the look-up to the parameters. `None` for success.
    fn take(&mut self, network: &Network, found: &Found<'_>, flags: u32) -> Option<Outcome> {
        let is_v4 = self.0[Self::FAMILY] == AF_INET;
        let destination = self.address(Self::DESTINATION);
        let interface = found.hop.interface;
        let gateway = found.gateway();
        if !is_v4 {
            gateway.into_iter().for_each(|gateway| self.set_address(Self::DESTINATION, gateway));
        }
        self.set(Self::TOS, &found.route.metric.to_ne_bytes());
        self.set(Self::IFINDEX, &interface.to_ne_bytes());
        if flags & SRC != 0 {
            match network.source_for(found, destination) {
                Some(source) => self.set_address(Self::SOURCE, source),
                None if is_v4 => self.set(Self::SOURCE, &[0; 4]),
                None => return Some(Outcome::NoSourceAddress),
            }
        }
        if is_v4 && let Some(gateway) = gateway {
            self.set_address(Self::DESTINATION, gateway);
            if gateway.is_ipv6() {
                self.0[Self::FAMILY] = AF_INET6;
            }
        }
        if flags & SKIP_NEIGH != 0 {
            return None;
        }
        let Some(neighbor) = network.neighbor(interface, self.address(Self::DESTINATION)) else {
            return Some(Outcome::NoNeighbor);
        };
        self.set(Self::DESTINATION_MAC, &neighbor);
        let own = network.interface(interface).map_or([0; 6], |interface| interface.address);
        self.set(Self::SOURCE_MAC, &own);
        None
    }

    fn tables(&mut self, flags: u32) -> Tables {
        if flags & DIRECT == 0 {
            return Tables::ByRules;
        }
        if flags & TBID == 0 {
            return Tables::Only(tables::MAIN);
        }
        // Table 0 is the main one (`fib_get_table`).
        let table = match self.u32(Self::TABLE) {
            0 => tables::MAIN,
            table => table,
        };
        self.set(Self::TABLE, &[0; 4]);
        Tables::Only(table)
    }
}

/// Addresses that mean something on one link only (`rt6_need_strict`).
fn is_strict(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unicast_link_local() || v6.is_loopback(),
    }
}

/// `long bpf_fib_lookup(ctx, params, plen, flags)`
pub(super) fn fib_lookup(
    host: &mut Host,
    _: Context,
    params: ReadWriteMem<'_>,
    flags: u32,
) -> Result<u64, Errno> {
    look_up(host, params, flags)
}

/// The look-up of every program type.
pub(super) fn look_up(host: &Host, params: ReadWriteMem<'_>, flags: u32) -> Result<u64, Errno> {
    // The length is an `int`, of which greater numbers are negative.
    let is_valid =
        params.len() <= i32::MAX as usize && flags & !(DIRECT | OUTPUT | SKIP_NEIGH | TBID | SRC | MARK) == 0;
    let bytes = params.read_at(0).filter(|_| is_valid).ok_or(Errno::EINVAL)?;
    let mut copy = Params(bytes);
    if ![AF_INET, AF_INET6].contains(&copy.0[Params::FAMILY]) {
        return Err(Errno::EAFNOSUPPORT);
    }
    let outcome = copy.look_up(host.world.network(), flags);
    params.write_at(0, &copy.0);
    outcome.map(|outcome| outcome as u64)
}

/// `long bpf_check_mtu(ctx, ifindex, mtu_len, len_diff, flags)`
pub(super) fn check_mtu(
    host: &mut Host,
    frame: &mut Frame,
    ifindex: u32,
    mtu_len: ReadWriteU32<'_>,
    len_diff: i32,
    flags: u64,
) -> Result<u64, Errno> {
    const SUCCESS: u64 = 0;
    const FRAG_NEEDED: u64 = 1;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let index = match ifindex {
        0 => frame.ingress_ifindex(),
        index => index,
    };
    let interface = host.world.network().interface(index).ok_or(Errno::ENODEV)?;
    let (mtu, header) = (interface.mtu as i32, interface.header as i32);
    let asked = mtu_len.load() as i32;
    let len = if asked == 0 { frame.len() as i32 } else { asked.wrapping_add(header) };
    let is_long = len.wrapping_add(len_diff) > mtu.wrapping_add(header);
    mtu_len.store(interface.mtu);
    Ok(if is_long { FRAG_NEEDED } else { SUCCESS })
}
