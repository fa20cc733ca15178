//! The `bpf(2)` system call: one safe function per command.
//!
//! Structures are the used arms of `union bpf_attr` (`include/uapi/linux/bpf.h`), up to the last used field: the kernel
//! zero-extends them.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use paceline_spec::Errno;

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const MAP_GET_NEXT_KEY: libc::c_int = 4;
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_DETACH: libc::c_int = 9;
const PROG_TEST_RUN: libc::c_int = 10;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const PROG_QUERY: libc::c_int = 16;
const BTF_LOAD: libc::c_int = 18;
const MAP_LOOKUP_AND_DELETE: libc::c_int = 21;
const MAP_FREEZE: libc::c_int = 22;
const LINK_CREATE: libc::c_int = 28;

/// An arm of `union bpf_attr`.
///
/// # Safety
/// The type must be plain data without padding between its fields, laid out as the arm of its command, in which every
/// address is 0 or that of memory which is valid for what the command does with it while the value lives.
unsafe trait Attr: Sized {}

/// Calls `bpf(2)`.
fn bpf<A: Attr>(command: libc::c_int, attr: &mut A) -> Result<libc::c_long, Errno> {
    // SAFETY: `attr` is exclusively ours for its whole size, and by the contract of `Attr` every address in it is
    // valid for the command.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<A>()) };
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Errno(u16::try_from(code).unwrap_or(0))
}

fn descriptor(result: libc::c_long) -> OwnedFd {
    let fd = RawFd::try_from(result).expect("the kernel returns descriptors that are int");
    // SAFETY: the command that returned `result` succeeded and creates a new descriptor, which has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

pub(super) fn raw(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn len_u32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// `BPF_MAP_CREATE`.
#[repr(C)]
#[derive(Default)]
pub(super) struct MapCreate {
    pub(super) map_type: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) map_flags: u32,
    pub(super) inner_map_fd: u32,
    pub(super) numa_node: u32,
    pub(super) map_name: [u8; 16],
    pub(super) map_ifindex: u32,
    pub(super) btf_fd: u32,
    pub(super) btf_key_type_id: u32,
    pub(super) btf_value_type_id: u32,
    pub(super) btf_vmlinux_value_type_id: u32,
    pub(super) map_extra: u64,
}

// SAFETY: 56 + 16 bytes of integers in order without a hole, and no addresses.
unsafe impl Attr for MapCreate {}

pub(super) fn map_create(mut attr: MapCreate) -> Result<OwnedFd, Errno> {
    bpf(MAP_CREATE, &mut attr).map(descriptor)
}

/// `BPF_MAP_*_ELEM` and `BPF_MAP_FREEZE`.
#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

// SAFETY: integers without a hole; each function below says why its addresses are good.
unsafe impl Attr for Element {}

fn element(map: BorrowedFd<'_>) -> Element {
    Element { map_fd: raw(map), padding: 0, key: 0, value: 0, flags: 0 }
}

/// Sizes of keys and values in the kernel's layout for one map, for checks of buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) key: usize,
    /// In per-CPU maps the values of all possible CPUs, each rounded up to 8 bytes.
    pub(super) value: usize,
}

/// The kernel reads `key_size` bytes at `key` and writes `value_size` bytes at the value. This function checks both lengths
/// against the sizes of the map.
pub(super) fn map_lookup(
    map: BorrowedFd<'_>,
    sizes: Sizes,
    key: &[u8],
    (take, flags): (bool, u64),
) -> Result<Vec<u8>, Errno> {
    assert_eq!(key.len(), sizes.key, "key of the map's size");
    let mut value = vec![0u8; sizes.value];
    let mut attr = element(map);
    attr.key = if key.is_empty() { 0 } else { key.as_ptr() as u64 };
    attr.value = value.as_mut_ptr() as u64;
    attr.flags = flags;
    bpf(if take { MAP_LOOKUP_AND_DELETE } else { MAP_LOOKUP }, &mut attr)?;
    Ok(value)
}

pub(super) fn map_update(
    map: BorrowedFd<'_>,
    sizes: Sizes,
    key: &[u8],
    value: &[u8],
    flags: u64,
) -> Result<(), Errno> {
    assert_eq!((key.len(), value.len()), (sizes.key, sizes.value), "key and value of the map's sizes");
    let mut attr = element(map);
    attr.key = if key.is_empty() { 0 } else { key.as_ptr() as u64 };
    attr.value = value.as_ptr() as u64;
    attr.flags = flags;
    bpf(MAP_UPDATE, &mut attr).map(drop)
}

pub(super) fn map_delete(map: BorrowedFd<'_>, sizes: Sizes, key: &[u8]) -> Result<(), Errno> {
    assert_eq!(key.len(), sizes.key, "key of the map's size");
    let mut attr = element(map);
    attr.key = key.as_ptr() as u64;
    bpf(MAP_DELETE, &mut attr).map(drop)
}

/// The key after `key`, or the first one; [`Errno::ENOENT`] after the last.
pub(super) fn map_next_key(map: BorrowedFd<'_>, sizes: Sizes, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
    assert!(key.is_none_or(|key| key.len() == sizes.key), "key of the map's size");
    let mut next = vec![0u8; sizes.key];
    let mut attr = element(map);
    attr.key = key.map_or(0, |key| key.as_ptr() as u64);
    attr.value = next.as_mut_ptr() as u64;
    bpf(MAP_GET_NEXT_KEY, &mut attr)?;
    Ok(next)
}

pub(super) fn map_freeze(map: BorrowedFd<'_>) -> Result<(), Errno> {
    // The kernel requires all bytes after the first field to be zero.
    bpf(MAP_FREEZE, &mut element(map)).map(drop)
}

/// `BPF_BTF_LOAD`.
#[repr(C)]
struct BtfLoad {
    btf: u64,
    log_buf: u64,
    btf_size: u32,
    log_size: u32,
    log_level: u32,
    padding: u32,
}

// SAFETY: integers without a hole; `btf_load` gives addresses of slices with their lengths.
unsafe impl Attr for BtfLoad {}

pub(super) fn btf_load(btf: &[u8], log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let mut attr = BtfLoad {
        btf: btf.as_ptr() as u64,
        log_buf: address_or_zero(log),
        btf_size: len_u32(btf),
        log_size: len_u32(log),
        log_level: u32::from(!log.is_empty()),
        padding: 0,
    };
    bpf(BTF_LOAD, &mut attr).map(descriptor)
}

fn address_or_zero(buffer: &mut [u8]) -> u64 {
    if buffer.is_empty() { 0 } else { buffer.as_mut_ptr() as u64 }
}

/// `struct bpf_func_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FuncInfo {
    pub(super) insn_off: u32,
    pub(super) type_id: u32,
}

/// Attributes of `BPF_PROG_LOAD`.
pub(super) struct ProgLoad<'a> {
    /// `enum bpf_prog_type`
    pub(super) prog_type: u32,
    pub(super) expected_attach_type: u32,
    pub(super) prog_flags: u32,
    /// Slots in host order.
    pub(super) insns: &'a [[u8; 8]],
    pub(super) license: &'a CStr,
    pub(super) name: [u8; 16],
    pub(super) fd_array: &'a [RawFd],
    pub(super) btf: Option<BorrowedFd<'a>>,
    pub(super) func_info: &'a [FuncInfo],
    /// Level 1 prints states, 2 every instruction, 4 only statistics.
    pub(super) log_level: u32,
}

/// `BPF_PROG_LOAD`.
#[repr(C)]
struct ProgLoadAttr {
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
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_prog_fd: u32,
    core_relo_cnt: u32,
    fd_array: u64,
}

// SAFETY: integers without a hole; `prog_load` gives addresses of slices with their lengths. `fd_array` has no length:
// the kernel reads it at the indices that the instructions name, and `prog_load` checks those.
unsafe impl Attr for ProgLoadAttr {}

const PSEUDO_MAP_IDX: u8 = 5;
const PSEUDO_MAP_IDX_VALUE: u8 = 6;
const LD_IMM64: u8 = 0x18;

fn map_indices(insns: &[[u8; 8]]) -> impl Iterator<Item = i32> {
    // Treating second halves and constants as map loads as well only makes the check stricter.
    let source = |slot: &[u8; 8]| if cfg!(target_endian = "little") { slot[1] >> 4 } else { slot[1] & 0xf };
    insns
        .iter()
        .filter(move |slot| {
            slot[0] == LD_IMM64 && matches!(source(slot), PSEUDO_MAP_IDX | PSEUDO_MAP_IDX_VALUE)
        })
        .map(|slot| i32::from_ne_bytes([slot[4], slot[5], slot[6], slot[7]]))
}

pub(super) fn prog_load(load: &ProgLoad<'_>, log: &mut [u8]) -> Result<OwnedFd, Errno> {
    let in_array = |index: i32| usize::try_from(index).is_ok_and(|index| index < load.fd_array.len());
    if !map_indices(load.insns).all(in_array) {
        return Err(Errno::EINVAL);
    }
    let mut attr = ProgLoadAttr {
        prog_type: load.prog_type,
        insn_cnt: u32::try_from(load.insns.len()).map_err(|_| Errno::E2BIG)?,
        insns: load.insns.as_ptr() as u64,
        license: load.license.as_ptr() as u64,
        log_level: if log.is_empty() { 0 } else { load.log_level },
        log_size: len_u32(log),
        log_buf: address_or_zero(log),
        kern_version: 0,
        prog_flags: load.prog_flags,
        prog_name: load.name,
        prog_ifindex: 0,
        expected_attach_type: load.expected_attach_type,
        prog_btf_fd: load.btf.map_or(0, raw),
        func_info_rec_size: if load.func_info.is_empty() { 0 } else { size_of::<FuncInfo>() as u32 },
        func_info: if load.func_info.is_empty() { 0 } else { load.func_info.as_ptr() as u64 },
        func_info_cnt: u32::try_from(load.func_info.len()).map_err(|_| Errno::E2BIG)?,
        line_info_rec_size: 0,
        line_info: 0,
        line_info_cnt: 0,
        attach_btf_id: 0,
        attach_prog_fd: 0,
        core_relo_cnt: 0,
        fd_array: if load.fd_array.is_empty() { 0 } else { load.fd_array.as_ptr() as u64 },
    };
    bpf(PROG_LOAD, &mut attr).map(descriptor)
}

/// `BPF_LINK_CREATE`.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

// SAFETY: integers without a hole, and no addresses.
unsafe impl Attr for LinkCreate {}

pub(super) fn link_create(prog: BorrowedFd<'_>, ifindex: u32, attach_type: u32) -> Result<OwnedFd, Errno> {
    let mut attr = LinkCreate { prog_fd: raw(prog), target_ifindex: ifindex, attach_type, flags: 0 };
    bpf(LINK_CREATE, &mut attr).map(descriptor)
}

/// `BPF_PROG_ATTACH` and `BPF_PROG_DETACH`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attach {
    pub(super) ifindex: u32,
    pub(super) program: u32,
    pub(super) attach_type: u32,
    pub(super) flags: u32,
    pub(super) replaced: u32,
    pub(super) relative: u32,
    pub(super) expected_revision: u64,
}

// SAFETY: integers without a hole, and no addresses.
unsafe impl Attr for Attach {}

pub(super) fn prog_attach(mut attach: Attach) -> Result<(), Errno> {
    bpf(PROG_ATTACH, &mut attach).map(drop)
}

pub(super) fn prog_detach(mut attach: Attach) -> Result<(), Errno> {
    bpf(PROG_DETACH, &mut attach).map(drop)
}

/// `BPF_PROG_QUERY`.
#[repr(C)]
#[derive(Default)]
struct Query {
    ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    count: u32,
    padding: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

// SAFETY: integers without a hole; `prog_query` gives the address of a slice with its length.
unsafe impl Attr for Query {}

/// The ids of attached programs, in order, and the revision. It is an error if the buffer is too small.
pub(super) fn prog_query(ifindex: u32, attach_type: u32) -> Result<(Vec<u32>, u64), Errno> {
    let mut ids = vec![0_u32; 64];
    let mut query = Query {
        ifindex,
        attach_type,
        prog_ids: ids.as_mut_ptr() as u64,
        count: ids.len() as u32,
        ..Query::default()
    };
    bpf(PROG_QUERY, &mut query)?;
    ids.truncate(query.count as usize);
    Ok((ids, query.revision))
}

/// `BPF_PROG_TEST_RUN`.
#[derive(Default)]
#[repr(C)]
struct TestRunAttr {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

// SAFETY: integers without a hole; `prog_test_run` gives addresses of slices with their lengths.
unsafe impl Attr for TestRunAttr {}

/// Frames that the program returns a redirect or `XDP_TX` for are sent.
const F_LIVE_FRAMES: u32 = 1 << 1;

/// Result of a test run.
pub(super) struct TestRunResult {
    pub(super) retval: u32,
    /// Nanoseconds per repetition, averaged and rounded down.
    pub(super) duration: u32,
    pub(super) data_len: usize,
}

/// Runs the program on `data`; the resulting packet and context are written to the start of `data_out` and `ctx_out`.
pub(super) fn prog_test_run(
    program: BorrowedFd<'_>,
    repeat: u32,
    data: &[u8],
    ctx: &[u8],
    data_out: &mut [u8],
    ctx_out: &mut [u8],
) -> Result<TestRunResult, Errno> {
    let mut attr = TestRunAttr {
        prog_fd: raw(program),
        retval: 0,
        data_size_in: len_u32(data),
        data_size_out: len_u32(data_out),
        data_in: data.as_ptr() as u64,
        data_out: address_or_zero(data_out),
        repeat,
        duration: 0,
        ctx_size_in: len_u32(ctx),
        ctx_size_out: len_u32(ctx_out),
        ctx_in: if ctx.is_empty() { 0 } else { ctx.as_ptr() as u64 },
        ctx_out: address_or_zero(ctx_out),
        flags: 0,
        cpu: 0,
        batch_size: 0,
        padding: 0,
    };
    bpf(PROG_TEST_RUN, &mut attr)?;
    Ok(TestRunResult { retval: attr.retval, duration: attr.duration, data_len: attr.data_size_out as usize })
}

/// Runs the program on `count` packets with these bytes, each of which then goes where the program returns.
pub(super) fn prog_run_live(program: BorrowedFd<'_>, count: u32, data: &[u8]) -> Result<(), Errno> {
    let mut attr = TestRunAttr {
        prog_fd: raw(program),
        data_size_in: len_u32(data),
        data_in: data.as_ptr() as u64,
        repeat: count,
        flags: F_LIVE_FRAMES,
        ..TestRunAttr::default()
    };
    bpf(PROG_TEST_RUN, &mut attr).map(drop)
}

/// `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct GetInfo {
    fd: u32,
    info_len: u32,
    info: u64,
}

// SAFETY: integers without a hole; `prog_info` gives the address of a buffer with its length.
unsafe impl Attr for GetInfo {}

/// The first fields of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgInfo {
    pub(super) prog_type: u32,
    pub(super) id: u32,
    pub(super) tag: [u8; 8],
    pub(super) jited_len: u32,
    pub(super) xlated_len: u32,
}

pub(super) fn prog_info(program: BorrowedFd<'_>) -> Result<ProgInfo, Errno> {
    let mut info = ProgInfo::default();
    let mut attr = GetInfo {
        fd: raw(program),
        info_len: size_of::<ProgInfo>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    bpf(OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(info)
}

/// The current CPU of the calling thread.
pub(super) fn current_cpu() -> usize {
    // SAFETY: takes no arguments and touches no memory.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).unwrap_or(0)
}

/// CPUs on which a thread may run.
#[derive(Clone, Copy)]
pub(super) struct CpuSet(libc::cpu_set_t);

impl CpuSet {
    /// One CPU, which must be below 1024.
    pub(super) fn one(cpu: usize) -> Self {
        // SAFETY: an all-zero set is a valid, empty set; CPU_SET itself keeps to the set's size.
        Self(unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            set
        })
    }
}

/// CPU affinity of the calling thread.
pub(super) fn affinity() -> Result<CpuSet, Errno> {
    let mut set = CpuSet::one(0);
    // SAFETY: `set` is a live set of the size given; 0 is the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set.0) };
    if result == 0 { Ok(set) } else { Err(last_errno()) }
}

/// Sets the CPU affinity of the calling thread.
pub(super) fn set_affinity(set: &CpuSet) -> Result<(), Errno> {
    // SAFETY: `set` is a live set of the size given; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set.0) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}
