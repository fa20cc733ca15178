//! Tracked connections of the host's [`Network`](paceline_network::Network), as programs look them up, make and change them
//! (`net/netfilter/nf_conntrack_bpf.c`). The host keeps those that a program has; what it is given is the address of the record.

use std::sync::Arc;

use paceline_network::connection::{ChangeError, Connection, Key, TICKS};
use paceline_network::{Protocol, Tuple};
use paceline_spec::Errno;

use super::{args, socket};
use crate::host::Host;
use crate::memory;
use crate::time::Clock;

/// Sizes of `struct bpf_ct_opts`: with a zone, and as it was before.
const OPTIONS: usize = 16;
const OLD_OPTIONS: usize = 12;
/// Where its fields are.
const ERROR: u64 = 4;
const DIRECTION: u64 = 9;
/// How long a new connection lasts, in seconds.
const NEW_SECONDS: u32 = 10;

/// `nfct_time_stamp`
fn now(host: &Host) -> u32 {
    (host.now(Clock::Monotonic) / (1_000_000_000 / u64::from(TICKS))) as u32
}

/// `msecs_to_jiffies`
fn ticks(milliseconds: u64) -> u32 {
    match milliseconds as u32 {
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

/// The memory that a tuple and options lie in.
struct Places {
    tuple: u64,
    tuple_len: u64,
    options: u64,
    options_len: u64,
}

impl Places {
    /// # Safety
    /// The memory must be readable.
    unsafe fn read(&self, protocol_first: bool) -> Result<Asked, Errno> {
        if self.tuple == 0 || self.options == 0 {
            return Err(Errno::EINVAL);
        }
        // More than these have is as wrong as one byte more.
        let len = |len: u64, most: usize| (len as u32 as usize).min(most + 1);
        // SAFETY: the caller vouches for the ranges.
        let (tuple, options) = unsafe {
            (
                args::bytes(self.tuple, len(self.tuple_len, 36)),
                args::bytes(self.options, len(self.options_len, OPTIONS)),
            )
        };
        Asked::new(&tuple, &options, protocol_first)
    }

    /// Tells what went wrong, unless there are no options, and gives null.
    ///
    /// # Safety
    /// The options must be writable.
    unsafe fn fail(&self, errno: Errno) -> u64 {
        if self.options != 0 {
            // SAFETY: the caller vouches for the range, whatever the options' length is.
            unsafe { memory::copy_to(self.options + ERROR, &(errno.to_return() as u32).to_ne_bytes()) };
        }
        0
    }
}

/// `struct nf_conn *bpf_xdp_ct_lookup(ctx, tuple, tuple__sz, opts, opts__sz)`, and `bpf_skb_ct_lookup` of the same
pub(super) unsafe extern "C" fn look_up(
    _: u64,
    tuple: u64,
    tuple_len: u64,
    options: u64,
    options_len: u64,
    host: &mut Host,
) -> u64 {
    let places = Places { tuple, tuple_len, options, options_len };
    // SAFETY: the arguments fit the prototype.
    let found = unsafe { places.read(true) }.and_then(|Asked { protocol, zone, tuple }| {
        let now = now(host);
        host.network().connections().find(&Key { protocol, zone, tuple }, now).ok_or(Errno::ENOENT)
    });
    match found {
        Ok((connection, is_reply)) => {
            // SAFETY: options of which something was found have a direction.
            unsafe { memory::copy_to(options + DIRECTION, &[u8::from(is_reply)]) };
            host.keep_connection(connection)
        }
        // SAFETY: the arguments fit the prototype.
        Err(errno) => unsafe { places.fail(errno) },
    }
}

/// `struct nf_conn___init *bpf_xdp_ct_alloc(ctx, tuple, tuple__sz, opts, opts__sz)`, and `bpf_skb_ct_alloc` of the same
pub(super) unsafe extern "C" fn allocate(
    _: u64,
    tuple: u64,
    tuple_len: u64,
    options: u64,
    options_len: u64,
    host: &mut Host,
) -> u64 {
    let places = Places { tuple, tuple_len, options, options_len };
    // SAFETY: the arguments fit the prototype.
    match unsafe { places.read(false) } {
        Ok(Asked { protocol, zone, tuple }) => {
            if options_len as u32 as usize == OPTIONS {
                // SAFETY: the options are whole.
                unsafe { default_direction(options) };
            }
            let connection = Connection::new(protocol, zone, [tuple, tuple.reversed()]);
            connection.set_timeout(NEW_SECONDS * TICKS, now(host));
            host.keep_connection(Arc::new(connection))
        }
        // SAFETY: the arguments fit the prototype.
        Err(errno) => unsafe { places.fail(errno) },
    }
}

/// A zone is for both directions unless the options say otherwise (`NF_CT_DEFAULT_ZONE_DIR`).
///
/// # Safety
/// The options must be writable, and have a zone.
unsafe fn default_direction(options: u64) {
    const BOTH: u8 = 3;
    let mut direction = [0];
    // SAFETY: the caller vouches for the range.
    unsafe {
        memory::copy_from(&mut direction, options + 12);
        if direction == [0] {
            memory::copy_to(options + 12, &[BOTH]);
        }
    }
}

/// `struct nf_conn *bpf_ct_insert_entry(struct nf_conn___init *nfct)`: null where there is one with its addresses and ports.
pub(super) extern "C" fn insert(record: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    let Some(connection) = host.connection(record).cloned() else { return 0 };
    let now = now(host);
    if host.network().connections().insert(&connection, now) {
        return record;
    }
    host.drop_connection(record);
    0
}

/// `void bpf_ct_release(struct nf_conn *nfct)`
pub(super) extern "C" fn release(record: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    host.drop_connection(record);
    0
}

/// `void bpf_ct_set_timeout(struct nf_conn___init *nfct, u32 timeout)`, in milliseconds.
pub(super) extern "C" fn set_timeout(
    record: u64,
    timeout: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    if let Some(connection) = host.connection(record) {
        connection.set_timeout(ticks(timeout), now(host));
    }
    0
}

/// `int bpf_ct_change_timeout(struct nf_conn *nfct, u32 timeout)`, in milliseconds.
pub(super) extern "C" fn change_timeout(
    record: u64,
    timeout: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    result(host.connection(record).map(|connection| connection.change_timeout(ticks(timeout), now(host))))
}

/// `int bpf_ct_set_status(const struct nf_conn___init *nfct, u32 status)`, and `bpf_ct_change_status` of a `struct nf_conn`.
pub(super) extern "C" fn change_status(
    record: u64,
    status: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    result(host.connection(record).map(|connection| connection.change_status(status as u32)))
}

/// An `int` in `r0`.
fn result(changed: Option<Result<(), ChangeError>>) -> u64 {
    let errno = match changed {
        Some(Ok(())) => return 0,
        Some(Err(ChangeError::Status)) => Errno::EBUSY,
        Some(Err(ChangeError::Fixed)) => Errno::EPERM,
        Some(Err(ChangeError::Dying)) => Errno::ETIME,
        None => Errno::EINVAL,
    };
    u64::from(errno.to_return() as u32)
}
