//! Tunnel keys: what a tunnel device reads of a packet when it encapsulates it, and writes when it takes one out. No device here does
//! either, so that a packet has the key that a program gave it.

use paceline_spec::Errno;

/// `BPF_F_TUNINFO_IPV6`: addresses of IPv6.
const IPV6: u64 = 1 << 0;
/// `BPF_F_ZERO_CSUM_TX`
const ZERO_CHECKSUM: u64 = 1 << 1;
/// `BPF_F_DONT_FRAGMENT`
const DONT_FRAGMENT: u64 = 1 << 2;
/// `BPF_F_SEQ_NUMBER`
const SEQUENCE_NUMBER: u64 = 1 << 3;
/// `BPF_F_NO_TUNNEL_KEY`
const NO_KEY: u64 = 1 << 4;
const ALL: u64 = IPV6 | ZERO_CHECKSUM | DONT_FRAGMENT | SEQUENCE_NUMBER | NO_KEY;
/// `BPF_F_TUNINFO_FLAGS`: flags in place of zeros.
const WITH_FLAGS: u64 = 1 << 4;

/// Size of a `struct bpf_tunnel_key`: number, remote address, service, hop limit, flags, label, local address.
const KEY_LEN: usize = 44;
/// Its sizes in earlier kernels, and the one without addresses of IPv6.
const EARLIER_LENS: [usize; 3] = [22, 24, 28];
const IPV4_LEN: usize = 8;

/// Most bytes of options (`IP_TUNNEL_OPTS_MAX`).
const MOST_OPTIONS: usize = 255;

/// Flags of a key, `IP_TUNNEL_*_BIT` in `net/ip_tunnels.h`.
mod bit {
    pub(super) const CHECKSUM: u16 = 1 << 0;
    pub(super) const KEY: u16 = 1 << 2;
    pub(super) const SEQUENCE_NUMBER: u16 = 1 << 3;
    pub(super) const DONT_FRAGMENT: u16 = 1 << 8;
    /// Options of Geneve, VXLAN, ERSPAN and GTP.
    pub(super) const OPTIONS: u16 = 1 << 11 | 1 << 12 | 1 << 14 | 1 << 15;
    pub(super) const NO_CACHE: u16 = 1 << 13;
}

/// The key of a packet, and the options behind it (`struct ip_tunnel_info`).
#[derive(Debug, Default)]
pub(crate) struct Tunnel {
    id: u32,
    is_ipv6: bool,
    remote: [u8; 16],
    local: [u8; 16],
    service: u8,
    hop_limit: u8,
    label: u32,
    flags: u16,
    options: Vec<u8>,
}

impl Tunnel {
    /// The key of a `struct bpf_tunnel_key`.
    pub(crate) fn decode(key: &[u8], flags: u64) -> Result<Self, Errno> {
        let is_known = key.len() == KEY_LEN || key.len() == IPV4_LEN || EARLIER_LENS.contains(&key.len());
        if flags & !ALL != 0 || !is_known {
            return Err(Errno::EINVAL);
        }
        let mut bytes = [0; KEY_LEN];
        bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        let u32_at = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let address = |at: usize| std::array::from_fn(|index| bytes[at + index]);
        let (is_ipv6, label) = (flags & IPV6 != 0, u32_at(24));
        if !is_ipv6 && label != 0 || bytes[22..24] != [0; 2] {
            return Err(Errno::EINVAL);
        }
        let mut own = bit::NO_CACHE;
        let bits = [
            (flags & ZERO_CHECKSUM == 0, bit::CHECKSUM),
            (flags & DONT_FRAGMENT != 0, bit::DONT_FRAGMENT),
            (flags & SEQUENCE_NUMBER != 0, bit::SEQUENCE_NUMBER),
            (flags & NO_KEY == 0, bit::KEY),
        ];
        bits.iter().filter(|(is_set, _)| *is_set).for_each(|(_, bit)| own |= bit);
        Ok(Self {
            id: u32_at(0),
            is_ipv6,
            remote: address(4),
            local: address(28),
            service: bytes[20],
            hop_limit: bytes[21],
            label: label & 0xf_ffff,
            flags: own,
            options: Vec::new(),
        })
    }

    /// The first `len` bytes of the key's structure, as the other side of the tunnel sees it: its remote address is the local one here.
    pub(crate) fn encode(&self, len: usize, flags: u64) -> Result<Vec<u8>, Errno> {
        if flags & !(IPV6 | WITH_FLAGS) != 0 {
            return Err(Errno::EINVAL);
        }
        if self.is_ipv6 != (flags & IPV6 != 0) {
            return Err(Errno::EPROTO);
        }
        let is_known = len == KEY_LEN || EARLIER_LENS.contains(&len) || len == IPV4_LEN && !self.is_ipv6;
        if !is_known {
            return Err(Errno::EINVAL);
        }
        Ok(self.bytes(flags & WITH_FLAGS != 0)[..len].to_vec())
    }

    /// Sets options: a multiple of four bytes.
    pub(crate) fn set_options(&mut self, options: Vec<u8>) -> Result<(), Errno> {
        if !options.len().is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        if options.len() > MOST_OPTIONS {
            return Err(Errno::ENOMEM);
        }
        self.options = options;
        self.flags |= bit::OPTIONS;
        Ok(())
    }

    /// The options, if some were set, perhaps of no bytes.
    pub(crate) fn options(&self) -> Option<&[u8]> {
        (self.flags & bit::OPTIONS != 0).then_some(&self.options[..])
    }

    fn bytes(&self, with_flags: bool) -> [u8; KEY_LEN] {
        let addresses = if self.is_ipv6 { 16 } else { 4 };
        let mut bytes = [0; KEY_LEN];
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        bytes[4..4 + addresses].copy_from_slice(&self.local[..addresses]);
        (bytes[20], bytes[21]) = (self.service, self.hop_limit);
        if with_flags {
            bytes[22..24].copy_from_slice(&self.flags.to_be_bytes());
        }
        bytes[24..28].copy_from_slice(&self.label.to_ne_bytes());
        bytes[28..28 + addresses].copy_from_slice(&self.remote[..addresses]);
        bytes
    }
}
