//! Tracked connections: netfilter's table as seen by programs (`net/netfilter/nf_conntrack_core.c`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::Record;
use crate::socket::{Protocol, Tuple};

/// Status bits of a connection (`include/uapi/linux/netfilter/nf_conntrack_common.h`).
pub mod status {
    /// `IPS_EXPECTED`
    pub const EXPECTED: u32 = 1;
    /// `IPS_SEEN_REPLY`
    pub const SEEN_REPLY: u32 = 1 << 1;
    /// `IPS_ASSURED`
    pub const ASSURED: u32 = 1 << 2;
    /// `IPS_CONFIRMED`
    pub const CONFIRMED: u32 = 1 << 3;
    /// `IPS_SRC_NAT`
    pub const SRC_NAT: u32 = 1 << 4;
    /// `IPS_DST_NAT`
    pub const DST_NAT: u32 = 1 << 5;
    /// `IPS_DYING`
    pub const DYING: u32 = 1 << 9;
    /// `IPS_FIXED_TIMEOUT`
    pub const FIXED_TIMEOUT: u32 = 1 << 10;
    /// Bits that programs may set: seen reply, assured, fixed timeout, and the bit for a helper; the others are
    /// `IPS_UNCHANGEABLE_MASK`.
    pub(super) const CHANGEABLE: u32 = SEEN_REPLY | ASSURED | FIXED_TIMEOUT | 1 << 13;
}

/// Ticks per second, the unit of a connection's timeout.
pub const TICKS: u32 = 250;

/// Size of a `struct nf_conn` up to the TCP state in 32-bit words, in Linux 6.18 on 64-bit machines.
const WORDS: usize = 58;
const TIMEOUT: usize = 8;
const ZONE: usize = 12;
/// Offsets of the tuples of the original and the reply direction.
const TUPLES: [usize; 2] = [32, 88];
const STATUS: usize = 128;
const MARK: usize = 168;
const TCP_STATE: usize = 224;

/// Reasons why a connection cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// An invalid change of status bits (`EBUSY`).
    Status,
    /// The timeout is fixed (`EPERM`).
    Fixed,
    /// The connection is being removed from the table (`ETIME`).
    Dying,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    record: Record<WORDS>,
    protocol: Protocol,
    zone: u16,
    tuples: [Tuple; 2],
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self { record: self.record.clone(), ..*self }
    }
}

impl Connection {
    /// A new connection in a zone, with the tuples of the original and the reply direction.
    #[must_use]
    pub fn new(protocol: Protocol, zone: u16, tuples: [Tuple; 2]) -> Self {
        let mut record = Record::default();
        record.set(ZONE, &zone.to_ne_bytes());
        for (direction, (at, tuple)) in TUPLES.into_iter().zip(tuples).enumerate() {
            set_address(&mut record, at, tuple.source);
            record.set(at + 16, &tuple.source_port.to_be_bytes());
            let family: u16 = if tuple.source.is_ipv4() { 2 } else { 10 };
            record.set(at + 18, &family.to_ne_bytes());
            set_address(&mut record, at + 20, tuple.destination);
            record.set(at + 36, &tuple.destination_port.to_be_bytes());
            record.set(at + 38, &[protocol.number(), direction as u8]);
        }
        Self { record, protocol, zone, tuples }
    }

    /// Sets the state: bits of [`status`], mark, TCP state (`enum tcp_conntrack`), and the seconds until it expires.
    #[must_use]
    pub fn listed(mut self, status: u32, mark: u32, tcp_state: u8, seconds: u32) -> Self {
        self.record.set_word(STATUS, status);
        self.record.set_word(MARK, mark);
        self.record.set_word(TIMEOUT, seconds.saturating_mul(TICKS));
        self.record.set(TCP_STATE, &[tcp_state]);
        self
    }

    /// Address of the `struct nf_conn`, valid while the connection lives.
    #[must_use]
    pub fn record(&self) -> *const AtomicU32 {
        self.record.address()
    }

    /// Copies bytes of the record from an offset; false if they are out of bounds.
    #[must_use]
    pub fn copy_record(&self, offset: usize, bytes: &mut [u8]) -> bool {
        self.record.copy(offset, bytes)
    }

    /// The status bits, see [`status`].
    #[must_use]
    pub fn status(&self) -> u32 {
        self.record.word(STATUS)
    }

    /// The mark.
    #[must_use]
    pub fn mark(&self) -> u32 {
        self.record.word(MARK)
    }

    /// The timeout: a duration in ticks before the connection is in the table, afterwards the tick at which it expires.
    #[must_use]
    pub fn timeout(&self) -> u32 {
        self.record.word(TIMEOUT)
    }

    fn has(&self, bits: u32) -> bool {
        self.status() & bits != 0
    }

    /// Whether it has expired at a tick (`nf_ct_is_expired`).
    fn has_expired(&self, now: u32) -> bool {
        self.timeout().wrapping_sub(now) as i32 <= 0
    }

    /// Sets the timeout in ticks from now on (`__nf_ct_set_timeout`).
    pub fn set_timeout(&self, ticks: u32, now: u32) {
        let ticks = ticks.min(i32::MAX as u32);
        let from = if self.has(status::CONFIRMED) { now } else { 0 };
        self.record.set_word(TIMEOUT, from.wrapping_add(ticks));
    }

    /// The same for a connection in the table.
    ///
    /// # Errors
    /// [`ChangeError::Fixed`], [`ChangeError::Dying`].
    pub fn change_timeout(&self, ticks: u32, now: u32) -> Result<(), ChangeError> {
        if self.has(status::FIXED_TIMEOUT) {
            return Err(ChangeError::Fixed);
        }
        self.set_timeout(ticks, now);
        if self.has(status::DYING) { Err(ChangeError::Dying) } else { Ok(()) }
    }

    /// Sets the status bits that programs may set (`nf_ct_change_status_common`).
    ///
    /// # Errors
    /// [`ChangeError::Status`] if the change affects constant bits, or clears bits that can only be set.
    pub fn change_status(&self, wanted: u32) -> Result<(), ChangeError> {
        let old = self.status();
        let fixed = status::EXPECTED | status::CONFIRMED | status::DYING;
        let only_set = status::SEEN_REPLY | status::ASSURED;
        if (old ^ wanted) & fixed != 0 || old & !wanted & only_set != 0 {
            return Err(ChangeError::Status);
        }
        self.record.set_bits(STATUS, wanted & status::CHANGEABLE);
        Ok(())
    }

    fn keys(&self) -> [Key; 2] {
        self.tuples.map(|tuple| Key { protocol: self.protocol, zone: self.zone, tuple })
    }
}

fn set_address(record: &mut Record<WORDS>, at: usize, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => record.set(at, &v4.octets()),
        IpAddr::V6(v6) => record.set(at, &v6.octets()),
    }
}

/// Key of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Protocol.
    pub protocol: Protocol,
    /// Zone, mostly 0.
    pub zone: u16,
    /// Tuple of its packets, in either direction.
    pub tuple: Tuple,
}

/// The table of connections, shared by all workers.
#[derive(Debug, Default)]
pub struct Connections {
    table: Mutex<HashMap<Key, (Arc<Connection>, bool)>>,
    /// Whether the timeouts of listed connections were converted to the time that programs see.
    started: AtomicBool,
}

impl Clone for Connections {
    /// A table with copies of the connections.
    fn clone(&self) -> Self {
        let copy =
            Self { table: Mutex::default(), started: AtomicBool::new(self.started.load(Ordering::Relaxed)) };
        for (connection, is_reply) in self.table().values() {
            if !is_reply {
                copy.add(Arc::new((**connection).clone()));
            }
        }
        copy
    }
}

impl Connections {
    fn table(&self) -> MutexGuard<'_, HashMap<Key, (Arc<Connection>, bool)>> {
        // Each change is a single call that does not panic, so the table is consistent even if the mutex is poisoned.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table at a tick. The remaining time of listed connections starts at the first look-up.
    fn table_at(&self, now: u32) -> MutexGuard<'_, HashMap<Key, (Arc<Connection>, bool)>> {
        let table = self.table();
        if !self.started.swap(true, Ordering::Relaxed) {
            for (connection, is_reply) in table.values() {
                if !is_reply {
                    connection.record.set_word(TIMEOUT, connection.timeout().wrapping_add(now));
                }
            }
        }
        table
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// Adds a listed connection, unless one with its tuples exists.
    pub(crate) fn add(&self, connection: Arc<Connection>) {
        insert(&mut self.table(), &connection);
    }

    /// The connection of a packet, and whether the packet has the reply direction (`nf_conntrack_find_get`).
    #[must_use]
    pub fn find(&self, key: &Key, now: u32) -> Option<(Arc<Connection>, bool)> {
        let mut table = self.table_at(now);
        let (connection, is_reply) = table.get(key)?.clone();
        if connection.has_expired(now) {
            connection.keys().iter().for_each(|key| drop(table.remove(key)));
            return None;
        }
        Some((connection, is_reply))
    }

    /// Inserts a new connection into the table (`bpf_ct_insert_entry`). False if a connection with either tuple exists.
    pub fn insert(&self, connection: &Arc<Connection>, now: u32) -> bool {
        let mut table = self.table_at(now);
        if !connection.has(status::CONFIRMED) {
            connection.record.set_word(TIMEOUT, connection.timeout().wrapping_add(now));
        }
        connection.record.set_bits(STATUS, status::CONFIRMED);
        for key in connection.keys() {
            let old = table.get(&key).filter(|(found, _)| found.has_expired(now));
            for key in old.map(|(found, _)| found.keys()).into_iter().flatten() {
                table.remove(&key);
            }
        }
        insert(&mut table, connection)
    }
}

/// Inserts a connection with both of its keys, if both are free.
fn insert(table: &mut HashMap<Key, (Arc<Connection>, bool)>, connection: &Arc<Connection>) -> bool {
    let [original, reply] = connection.keys();
    if table.contains_key(&reply) {
        return false;
    }
    let Entry::Vacant(place) = table.entry(original) else { return false };
    place.insert((connection.clone(), false));
    table.entry(reply).or_insert_with(|| (connection.clone(), true));
    true
}
