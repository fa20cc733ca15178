//! Maps of AF_XDP sockets (`kernel/bpf/xskmap.c`). User space stores a number where the kernel wants a socket's
//! descriptor; what it stands for is up to whoever carries out the redirect. Programs that look an entry up see
//! `struct bpf_xdp_sock`, whose only field is a queue number: they see the number stored.

use std::ptr::NonNull;

use paceline_spec::Errno;

use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::entries::{Entries, Pair};
use crate::map_ops::{KeySpace, MapOps, MapTarget};
use crate::mode::UpdateMode;

/// Second half of an entry that is there: any number may be stored, 0 too.
const PRESENT: u32 = 1;

/// Size of `struct bpf_xdp_sock`.
const SOCKET_SIZE: usize = 4;

/// `BPF_MAP_TYPE_XSKMAP`
pub(crate) struct XskMap {
    entries: Entries,
}

impl XskMap {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_entries()?;
        request.check_index_key()?;
        request.check_value_is_one_of(&[4])?;
        request.check_flags(REFERENCE_FLAGS)?;
        Ok(Box::new(Self { entries: Entries::open(request)? }))
    }
}

impl MapOps for XskMap {
    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        self.entries.address(self.entries.index(key)?)
    }

    fn socket(&self, key: &[u8]) -> Option<u32> {
        let word = self.entries.load(self.entries.index(key)?)?;
        Some(Pair::from_word(word).first)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.entries.contains(address, len, SOCKET_SIZE)
    }

    fn programs_may_write(&self) -> bool {
        false
    }

    fn user_value_size(&self) -> usize {
        SOCKET_SIZE
    }

    /// The kernel does not give sockets back.
    fn get(&self, _key: &[u8], _out: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let index = self.entries.index(key).ok_or(Errno::E2BIG)?;
        let entry = Pair { second: PRESENT, ..Pair::from_value(value) };
        self.entries.exchange(index, entry.to_word(), mode)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.entries.index(key).ok_or(Errno::EINVAL)?;
        self.entries.swap(index, 0);
        Ok(())
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Entries(&self.entries)
    }

    fn redirect_target(&self, index: u32) -> Option<MapTarget> {
        let entry = Pair::from_word(self.entries.load(index as usize)?);
        Some(MapTarget::Socket { socket: entry.first })
    }
}
