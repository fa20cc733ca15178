//! Tunnel keys of packets.

use paceline_spec::Errno;

use super::packet::Skb;
use crate::helpers::mem::{ReadMem, WriteMem};
use crate::host::Host;
use crate::tunnel_key::Tunnel;

/// The key of the running packet.
fn tunnel(host: &mut Host) -> Option<&mut Tunnel> {
    (host.area.sk_buff().has_tunnel != 0).then_some(&mut host.area.tunnel)
}

/// `long bpf_skb_set_tunnel_key(skb, key, size, flags)`
pub(super) fn set_key(host: &mut Host, mut skb: Skb<'_>, key: ReadMem<'_>, flags: u64) -> Result<(), Errno> {
    host.area.tunnel = Tunnel::decode(&key.read(), flags)?;
    skb.with(host, |packet| packet.facts.has_tunnel = 1);
    Ok(())
}

/// `long bpf_skb_get_tunnel_key(skb, key, size, flags)`: zeros after an error.
pub(super) fn get_key(host: &mut Host, _: Skb<'_>, key: WriteMem<'_>, flags: u64) -> Result<(), Errno> {
    key.clear();
    let own = tunnel(host).ok_or(Errno::EINVAL)?;
    key.write(&own.encode(key.len(), flags)?);
    Ok(())
}

/// `long bpf_skb_set_tunnel_opt(skb, options, size)`
pub(super) fn set_options(host: &mut Host, _: Skb<'_>, options: ReadMem<'_>) -> Result<(), Errno> {
    tunnel(host).ok_or(Errno::EINVAL)?.set_options(options.read().into_vec())
}

/// `long bpf_skb_get_tunnel_opt(skb, options, size)`: their number of bytes; zeros after an error.
pub(super) fn get_options(host: &mut Host, _: Skb<'_>, options: WriteMem<'_>) -> Result<u64, Errno> {
    options.clear();
    let own = tunnel(host).and_then(|tunnel| tunnel.options()).ok_or(Errno::ENOENT)?;
    if options.len() < own.len() {
        return Err(Errno::ENOMEM);
    }
    options.write(own);
    Ok(own.len() as u64)
}
