//! The calls of `bpf(2)` that redirecting packets to sockets takes: a map, a program, a link.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use paceline_isa::RawInsn;
use rustix::io::Errno;

/// Commands, from `enum bpf_cmd`.
const MAP_CREATE: u32 = 0;
const MAP_UPDATE_ELEM: u32 = 2;
const PROG_LOAD: u32 = 5;
const LINK_CREATE: u32 = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// `BPF_F_XDP_DEV_BOUND_ONLY`
const DEVICE_BOUND: u32 = 1 << 6;
/// `BPF_F_XDP_HAS_FRAGS`
const HAS_FRAGS: u32 = 1 << 5;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// Calls `bpf(2)`; the result is a descriptor or 0.
///
/// # Safety
/// `attr` must be the structure of the command, and its addresses those of memory that the command may access.
unsafe fn bpf<T>(command: u32, attr: &T) -> Result<i32, Errno> {
    let (address, len) = (std::ptr::from_ref(attr), size_of::<T>());
    // SAFETY: the kernel reads `len` bytes at `address`, and what they refer to is guaranteed by the caller.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, address, len) };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(result as i32)
}

/// # Safety
/// As for [`bpf`], and the command must return a descriptor.
unsafe fn descriptor<T>(command: u32, attr: &T) -> Result<OwnedFd, Errno> {
    // SAFETY: `bpf` is guaranteed by the caller; the descriptor is new, and nothing else owns it.
    unsafe { bpf(command, attr).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

fn raw(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// A map of AF_XDP sockets by queue.
pub(crate) fn create_socket_map(queues: u32) -> Result<OwnedFd, Errno> {
    let attr = MapCreate { map_type: MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, max_entries: queues };
    // SAFETY: the command takes no addresses and returns a descriptor.
    unsafe { descriptor(MAP_CREATE, &attr) }
}

/// Stores a socket in a map.
pub(crate) fn set_socket(map: BorrowedFd<'_>, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let value = raw(socket);
    let attr = MapUpdate {
        map_fd: raw(map),
        _pad: 0,
        key: std::ptr::from_ref(&queue) as u64,
        value: std::ptr::from_ref(&value) as u64,
        flags: 0,
    };
    // SAFETY: key and value are four bytes each, which is the map's layout, and live for the call.
    unsafe { bpf(MAP_UPDATE_ELEM, &attr).map(drop) }
}

/// Loads an XDP program; one that is bound to a device, the interface of an index, may call the functions of its driver.
pub(crate) fn load_xdp(insns: &[RawInsn], frags: bool, device: Option<u32>) -> Result<OwnedFd, Errno> {
    let bytes =
        |insn: &RawInsn| if cfg!(target_endian = "big") { insn.to_be_bytes() } else { insn.to_le_bytes() };
    let bytes: Vec<u8> = insns.iter().flat_map(bytes).collect();
    let mut prog_name = [0; 16];
    prog_name[..8].copy_from_slice(b"paceline");
    let attr = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        insn_cnt: insns.len() as u32,
        insns: bytes.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: if frags { HAS_FRAGS } else { 0 } | if device.is_some() { DEVICE_BOUND } else { 0 },
        prog_name,
        prog_ifindex: device.unwrap_or(0),
        expected_attach_type: ATTACH_XDP,
    };
    // SAFETY: instructions and license live for the call, which returns a descriptor.
    unsafe { descriptor(PROG_LOAD, &attr) }
}

/// Attaches an XDP program to an interface until the returned link is closed, at the latest by the end of the process. `flags` are
/// those of netlink (`XDP_FLAGS_DRV_MODE` and others).
pub(crate) fn attach_xdp(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> Result<OwnedFd, Errno> {
    let attr = LinkCreate { prog_fd: raw(program), target_ifindex: ifindex, attach_type: ATTACH_XDP, flags };
    // SAFETY: the command takes no addresses and returns a descriptor.
    unsafe { descriptor(LINK_CREATE, &attr) }
}
