//! Tracked connections of the host's [`Network`](paceline_network::Network), as programs look them up, make and change them
//! (`net/netfilter/nf_conntrack_bpf.c`). The host keeps those that a program has; what it is given is the address of the record.

use std::sync::Arc;

use paceline_network::connection::{ChangeError, Connection, Key, TICKS};
use paceline_network::{Protocol, Tuple};
use paceline_spec::Errno;

use super::argument::{Context, Object};
use super::function::{Int, Pointer};
use super::mem::ReadWriteMem;
use super::socket;
use crate::host::Host;
use crate::time::Clock;

/// Sizes of `struct bpf_ct_opts`: with a zone, and as it was before.
const OPTIONS: usize = 16;
const OLD_OPTIONS: usize = 12;
/// Where its fields are.
const ERROR: usize = 4;
const DIRECTION: usize = 9;
const ZONE_DIRECTION: usize = 12;
/// How long a new connection lasts, in seconds.
const NEW_SECONDS: u32 = 10;

/// `nfct_time_stamp`
fn now(host: &Host) -> u32 {
    (host.now(Clock::Monotonic) / (1_000_000_000 / u64::from(TICKS))) as u32
}

/// `msecs_to_jiffies`
fn ticks(milliseconds: u32) -> u32 {
    match milliseconds {
        // So much is for ever.
        0x8000_0000.. => u32::MAX,
        milliseconds => milliseconds.div_ceil(1000 / TICKS),
    }
}

/// The key by which a connection is looked up or made.
struct Asked {
    protocol: Protocol,
    zone: u16,
    tuple: Tuple,
}

impl Asked {
    /// Reads a tuple and options; the kernel's two functions find different mistakes first.
    fn new(tuple: &[u8], options: &[u8], protocol_first: bool) -> Result<Self, Errno> {
        // default: older options have no zone.
        let byte = |at: usize| options.get(at).copied().unwrap_or(0);
        let zone = u16::from_ne_bytes([byte(10), byte(11)]);
        let is_well_formed = match options.len() {
            OPTIONS => options[13..] == [0; 3],
            OLD_OPTIONS => zone == 0,
            _ => false,
        };
        if !is_well_formed {
            return Err(Errno::EINVAL);
        }
        let protocol = Protocol::of_number(byte(8)).ok_or(Errno::EPROTO);
        if protocol_first {
            protocol?;
        }
        let namespace = i32::from_ne_bytes([byte(0), byte(1), byte(2), byte(3)]);
        if namespace < -1 {
            return Err(Errno::EINVAL);
        }
        let protocol = protocol?;
        let tuple = socket::tuple(tuple).ok_or(Errno::EAFNOSUPPORT)?;
        // There is no namespace but the packet's own.
        if namespace >= 0 { Err(Errno::ENONET) } else { Ok(Self { protocol, zone, tuple }) }
    }
}

/// A `struct bpf_ct_opts`, whose second word is written whatever its size is.
type Options<'a> = ReadWriteMem<'a, 8>;

/// Reads the memory that a tuple and options lie in.
fn read(tuple: ReadWriteMem<'_>, options: Options<'_>, protocol_first: bool) -> Result<Asked, Errno> {
    if tuple.is_null() || options.is_null() {
        return Err(Errno::EINVAL);
    }
    // Every greater size is as wrong as one more than the greatest.
    Asked::new(&tuple.read_up_to(36 + 1), &options.read_up_to(OPTIONS + 1), protocol_first)
}

/// Writes the error to the options, if the program passes any. The result is null.
fn fail(options: Options<'_>, errno: Errno) -> Pointer {
    options.write_at(ERROR, &(errno.to_return() as u32).to_ne_bytes());
    Pointer::NULL
}

/// `struct nf_conn *bpf_xdp_ct_lookup(ctx, tuple, tuple__sz, opts, opts__sz)`, and `bpf_skb_ct_lookup` of the same
pub(super) fn look_up(host: &mut Host, _: Context, tuple: ReadWriteMem<'_>, options: Options<'_>) -> Pointer {
    let found = read(tuple, options, true).and_then(|Asked { protocol, zone, tuple }| {
        let now = now(host);
        host.world.network().connections().find(&Key { protocol, zone, tuple }, now).ok_or(Errno::ENOENT)
    });
    match found {
        Ok((connection, is_reply)) => {
            options.write_at(DIRECTION, &[u8::from(is_reply)]);
            Pointer(host.held.keep_connection(connection))
        }
        Err(errno) => fail(options, errno),
    }
}

/// `struct nf_conn___init *bpf_xdp_ct_alloc(ctx, tuple, tuple__sz, opts, opts__sz)`, and `bpf_skb_ct_alloc` of the same
pub(super) fn allocate(
    host: &mut Host,
    _: Context,
    tuple: ReadWriteMem<'_>,
    options: Options<'_>,
) -> Pointer {
    match read(tuple, options, false) {
        Ok(Asked { protocol, zone, tuple }) => {
            set_default_direction(options);
            let connection = Connection::new(protocol, zone, [tuple, tuple.reversed()]);
            connection.set_timeout(NEW_SECONDS * TICKS, now(host));
            Pointer(host.held.keep_connection(Arc::new(connection)))
        }
        Err(errno) => fail(options, errno),
    }
}

/// A zone is for both directions unless the options say otherwise (`NF_CT_DEFAULT_ZONE_DIR`).
fn set_default_direction(options: Options<'_>) {
    const BOTH: u8 = 3;
    if options.len() == OPTIONS && options.read_at(ZONE_DIRECTION) == Some([0]) {
        options.write_at(ZONE_DIRECTION, &[BOTH]);
    }
}

/// `struct nf_conn *bpf_ct_insert_entry(struct nf_conn___init *nfct)`: null if a connection with the same addresses and ports
/// exists.
pub(super) fn insert(host: &mut Host, Object(record): Object) -> Pointer {
    let Some(connection) = host.held.connection(record).cloned() else { return Pointer::NULL };
    let now = now(host);
    if host.world.network().connections().insert(&connection, now) {
        return Pointer(record);
    }
    host.held.drop_connection(record);
    Pointer::NULL
}

/// `void bpf_ct_release(struct nf_conn *nfct)`
pub(super) fn release(host: &mut Host, Object(record): Object) {
    host.held.drop_connection(record);
}

/// `void bpf_ct_set_timeout(struct nf_conn___init *nfct, u32 timeout)`, in milliseconds.
pub(super) fn set_timeout(host: &mut Host, Object(record): Object, timeout: u32) {
    if let Some(connection) = host.held.connection(record) {
        connection.set_timeout(ticks(timeout), now(host));
    }
}

/// `int bpf_ct_change_timeout(struct nf_conn *nfct, u32 timeout)`, in milliseconds.
pub(super) fn change_timeout(host: &mut Host, Object(record): Object, timeout: u32) -> Int {
    result(
        host.held.connection(record).map(|connection| connection.change_timeout(ticks(timeout), now(host))),
    )
}

/// `int bpf_ct_set_status(const struct nf_conn___init *nfct, u32 status)`, and `bpf_ct_change_status` of a `struct nf_conn`.
pub(super) fn change_status(host: &mut Host, Object(record): Object, status: u32) -> Int {
    result(host.held.connection(record).map(|connection| connection.change_status(status)))
}

/// The result of a change; `None` for a record that is no connection of the program.
fn result(changed: Option<Result<(), ChangeError>>) -> Int {
    Int::of(match changed {
        Some(Ok(())) => Ok(()),
        Some(Err(ChangeError::Status)) => Err(Errno::EBUSY),
        Some(Err(ChangeError::Fixed)) => Err(Errno::EPERM),
        Some(Err(ChangeError::Dying)) => Err(Errno::ETIME),
        None => Err(Errno::EINVAL),
    })
}
