//! The few commands of `bpf(2)` that the comparison needs, and nothing around them.

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use paceline_spec::{Errno, MapKind, MapSpec};

const MAP_CREATE: c_long = 0;
const MAP_LOOKUP: c_long = 1;
const MAP_UPDATE: c_long = 2;
const MAP_DELETE: c_long = 3;
const MAP_NEXT_KEY: c_long = 4;
const PROG_LOAD: c_long = 5;
const MAP_POP: c_long = 21;
const PROG_TEST_RUN: c_long = 10;
const OBJ_GET_INFO: c_long = 15;
const MAP_FREEZE: c_long = 22;
const LOOKUP_BATCH: c_long = 24;
const LOOKUP_AND_DELETE_BATCH: c_long = 25;
const UPDATE_BATCH: c_long = 26;
const DELETE_BATCH: c_long = 27;

/// `union bpf_attr` as 32-bit fields; the kernel wants what a command does not use to be zero.
type Attr = [u32; 32];

fn bpf(command: c_long, attr: &mut Attr) -> Result<c_long, Errno> {
    // SAFETY: the attribute is as long as said; addresses in it come from live buffers of the callers below, sized
    // as the kernel reads and writes them.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of::<Attr>()) };
    if result >= 0 { Ok(result) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno(io::Error::last_os_error().raw_os_error().unwrap() as u16)
}

fn owned(fd: c_long) -> OwnedFd {
    // SAFETY: the kernel has just given us this descriptor.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

fn set_address(attr: &mut Attr, field: usize, address: *const u8) {
    let address = address.expose_provenance() as u64;
    attr[field] = address as u32;
    attr[field + 1] = (address >> 32) as u32;
}

/// CPUs that per-CPU values are kept for.
pub(crate) fn possible_cpus() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let last = text.trim().rsplit(['-', ',']).next().unwrap().parse::<usize>().unwrap();
    last + 1
}

/// A key and its value.
pub(crate) type Element = (Vec<u8>, Vec<u8>);

/// A map of the kernel, with the operations of [`paceline_maps::Map`]'s user side.
pub(crate) struct KernelMap {
    fd: OwnedFd,
    key_size: usize,
    value_size: usize,
}

impl KernelMap {
    /// `value_size` is that of user space.
    pub(crate) fn create(spec: &MapSpec, value_size: usize) -> Result<Self, Errno> {
        let mut attr = Attr::default();
        let sizes = [spec.kind.number(), spec.key_size, spec.value_size, spec.max_entries, spec.flags.0];
        attr[..5].copy_from_slice(&sizes);
        let inner = spec.inner.as_deref().map(|inner| Self::create(inner, 0)).transpose()?;
        attr[5] = inner.as_ref().map_or(u32::MAX, |inner| inner.fd() as u32);
        if inner.is_none() && !matches!(spec.kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps) {
            attr[5] = 0;
        }
        attr[16..18].copy_from_slice(&[spec.extra as u32, (spec.extra >> 32) as u32]);
        let fd = owned(bpf(MAP_CREATE, &mut attr)?);
        Ok(Self { fd, key_size: spec.key_size as usize, value_size })
    }

    fn element(&self, command: c_long, key: *const u8, value: *const u8, flags: u64) -> Result<(), Errno> {
        let mut attr = Attr::default();
        attr[0] = self.fd.as_raw_fd() as u32;
        set_address(&mut attr, 2, key);
        set_address(&mut attr, 4, value);
        attr[6] = flags as u32;
        attr[7] = (flags >> 32) as u32;
        bpf(command, &mut attr).map(|_| ())
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        assert_eq!(key.len(), self.key_size);
        let mut value = vec![0; self.value_size];
        self.element(MAP_LOOKUP, key.as_ptr(), value.as_mut_ptr(), 0)?;
        Ok(value)
    }

    pub(crate) fn set(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        assert_eq!((key.len(), value.len()), (self.key_size, self.value_size));
        self.element(MAP_UPDATE, key.as_ptr(), value.as_ptr(), flags)
    }

    pub(crate) fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        assert_eq!(key.len(), self.key_size);
        self.element(MAP_DELETE, key.as_ptr(), std::ptr::null(), 0)
    }

    pub(crate) fn next_key(&self, after: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let mut next = vec![0; self.key_size];
        let after = after.map_or(std::ptr::null(), <[u8]>::as_ptr);
        self.element(MAP_NEXT_KEY, after, next.as_mut_ptr(), 0)?;
        Ok(next)
    }

    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        std::iter::successors(self.next_key(None).ok(), |key| self.next_key(Some(key)).ok()).collect()
    }

    /// `BPF_MAP_UPDATE_ELEM` without a key.
    pub(crate) fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        self.element(MAP_UPDATE, std::ptr::null(), value.as_ptr(), flags)
    }

    /// `BPF_MAP_LOOKUP_ELEM` without a key; a Bloom filter reads the value.
    pub(crate) fn peek(&self, value: &mut [u8]) -> Result<(), Errno> {
        self.element(MAP_LOOKUP, std::ptr::null(), value.as_mut_ptr(), 0)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM` without a key.
    pub(crate) fn pop(&self) -> Result<Vec<u8>, Errno> {
        let mut value = vec![0; self.value_size];
        self.element(MAP_POP, std::ptr::null(), value.as_mut_ptr(), 0)?;
        Ok(value)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM` with a key.
    pub(crate) fn take(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut value = vec![0; self.value_size];
        self.element(MAP_POP, key.as_ptr(), value.as_mut_ptr(), 0)?;
        Ok(value)
    }

    /// A batch of elements one after the other in memory; how many were dealt with, and what ended it early.
    fn batch(
        &self,
        command: c_long,
        (keys, values): (*const u8, *const u8),
        count: usize,
        flags: u64,
    ) -> (usize, Result<(), Errno>) {
        let mut attr = Attr::default();
        let mut position = [0_u8; 1024];
        set_address(&mut attr, 2, position.as_mut_ptr());
        set_address(&mut attr, 4, keys);
        set_address(&mut attr, 6, values);
        attr[8..10].copy_from_slice(&[count as u32, self.fd() as u32]);
        attr[10..12].copy_from_slice(&[flags as u32, (flags >> 32) as u32]);
        let result = bpf(command, &mut attr).map(|_| ());
        // Untouched where the whole batch is refused.
        (if attr[8] as usize == count && result.is_err() { 0 } else { attr[8] as usize }, result)
    }

    pub(crate) fn update_batch(&self, elements: &[Element], flags: u64) -> (usize, Result<(), Errno>) {
        let keys: Vec<u8> = elements.iter().flat_map(|(key, _)| key.clone()).collect();
        let values: Vec<u8> = elements.iter().flat_map(|(_, value)| value.clone()).collect();
        self.batch(UPDATE_BATCH, (keys.as_ptr(), values.as_ptr()), elements.len(), flags)
    }

    pub(crate) fn delete_batch(&self, keys: &[Vec<u8>]) -> (usize, Result<(), Errno>) {
        self.batch(DELETE_BATCH, (keys.concat().as_ptr(), std::ptr::null()), keys.len(), 0)
    }

    /// All elements, of a map that has no more than `most`; and whether they are removed.
    pub(crate) fn elements(&self, most: usize, take: bool) -> Result<Vec<Element>, Errno> {
        let (mut keys, mut values) = (vec![0_u8; most * self.key_size], vec![0_u8; most * self.value_size]);
        let command = if take { LOOKUP_AND_DELETE_BATCH } else { LOOKUP_BATCH };
        let (count, result) = self.batch(command, (keys.as_mut_ptr(), values.as_mut_ptr()), most, 0);
        // The end of the map is an error.
        match result {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
        let keys = keys.chunks(self.key_size).map(<[u8]>::to_vec);
        Ok(keys.zip(values.chunks(self.value_size).map(<[u8]>::to_vec)).take(count).collect())
    }

    /// `BPF_MAP_DELETE_ELEM` and `BPF_MAP_GET_NEXT_KEY` without a key.
    pub(crate) fn without_key(&self) -> (Result<(), Errno>, Result<(), Errno>) {
        let mut next = [0_u8; 8];
        let delete = self.element(MAP_DELETE, std::ptr::null(), std::ptr::null(), 0);
        (delete, self.element(MAP_NEXT_KEY, std::ptr::null(), next.as_mut_ptr(), 0))
    }

    /// Number that maps of maps give for it.
    pub(crate) fn id(&self) -> u32 {
        info(&self.fd)[1]
    }

    pub(crate) fn freeze(&self) -> Result<(), Errno> {
        let mut attr = Attr::default();
        attr[0] = self.fd.as_raw_fd() as u32;
        bpf(MAP_FREEZE, &mut attr).map(|_| ())
    }

    pub(crate) fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// `max_entries` and `map_flags` of `struct bpf_map_info`: what the kernel made of them.
    pub(crate) fn entries_and_flags(&self) -> (u32, u32) {
        let info = info(&self.fd);
        (info[4], info[5])
    }
}

fn info(fd: &OwnedFd) -> [u32; 64] {
    let mut info = [0; 64];
    let mut attr = Attr::default();
    attr[..2].copy_from_slice(&[fd.as_raw_fd() as u32, size_of_val(&info) as u32]);
    set_address(&mut attr, 2, info.as_mut_ptr().cast());
    bpf(OBJ_GET_INFO, &mut attr).unwrap();
    info
}

/// An XDP program.
pub(crate) struct Program {
    fd: OwnedFd,
}

impl Program {
    /// `r0 = 2; exit`
    pub(crate) const PASS: [u64; 2] = [0x0000_0002_0000_00b7, 0x95];

    pub(crate) fn load(insns: &[u64]) -> Result<Self, Errno> {
        Self::load_for(insns, 0)
    }

    /// For an attach type: 0 is that of programs that are for interfaces, or say nothing.
    pub(crate) fn load_for(insns: &[u64], attach: u32) -> Result<Self, Errno> {
        const PROG_TYPE_XDP: u32 = 6;
        let license = c"MIT";
        let mut attr = Attr::default();
        attr[..2].copy_from_slice(&[PROG_TYPE_XDP, insns.len() as u32]);
        set_address(&mut attr, 2, insns.as_ptr().cast());
        set_address(&mut attr, 4, license.as_ptr().cast());
        attr[17] = attach;
        Ok(Self { fd: owned(bpf(PROG_LOAD, &mut attr)?) })
    }

    /// Runs it once on some packet and returns what it returns.
    pub(crate) fn run(&self) -> Result<u32, Errno> {
        let packet = [0_u8; 64];
        let mut attr = Attr::default();
        attr[0] = self.fd();
        attr[2] = packet.len() as u32;
        set_address(&mut attr, 4, packet.as_ptr());
        bpf(PROG_TEST_RUN, &mut attr)?;
        Ok(attr[1])
    }

    pub(crate) fn fd(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }

    /// Value that a program array gives back for it.
    pub(crate) fn id(&self) -> u32 {
        info(&self.fd)[1]
    }
}

/// Keeps this thread on one CPU, so that the programs it makes the kernel run are there too.
pub(crate) fn pin_to_cpu(cpu: usize) -> Result<(), Errno> {
    // SAFETY: a CPU set is plain bits, and CPU_SET checks the number's range.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// An AF_XDP socket that a socket map takes: it has a receive ring.
pub(crate) fn xdp_socket() -> Result<OwnedFd, Errno> {
    const XDP_RX_RING: i32 = 2;
    let entries = 64_u32;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW, 0) };
    if fd < 0 {
        return Err(last_error());
    }
    let socket = owned(fd.into());
    // SAFETY: the option's value is the u32 pointed to.
    let result = unsafe {
        libc::setsockopt(fd, libc::SOL_XDP, XDP_RX_RING, (&raw const entries).cast(), size_of::<u32>() as u32)
    };
    if result < 0 { Err(last_error()) } else { Ok(socket) }
}
