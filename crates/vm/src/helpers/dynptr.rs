//! Dynptrs (`bpf_dynptr_from_xdp` in `net/core/filter.c`, the others in `kernel/bpf/helpers.c`). They lie on the program's stack: the
//! address of the frame or of the memory, or 0 for a null one; then size with what it is to, and offset.

use std::ptr::NonNull;

use paceline_frame::Frame;
use paceline_isa::Size;
use paceline_maps::RingBuffer;
use paceline_spec::Errno;

use super::args;
use crate::host::Host;
use crate::memory;
use crate::region::Access;

/// Bits of the size that are size; the others are the kernel's for flags and type.
const SIZE: u32 = 0x00ff_ffff;

/// The bit of the size's word that says that it is to memory rather than to the packet.
const MEMORY: u32 = 1 << 28;

/// A dynptr, read from the stack.
#[derive(Clone, Copy)]
struct Dynptr {
    /// Address of the frame, or of the memory.
    data: u64,
    is_memory: bool,
    size: u32,
    offset: u32,
}

const NULL: Dynptr = Dynptr { data: 0, is_memory: false, size: 0, offset: 0 };

impl Dynptr {
    /// # Safety
    /// 16 bytes at the address must be readable.
    unsafe fn load(address: u64) -> Self {
        // SAFETY: the caller vouches for the address.
        let [data, rest] = unsafe { [memory::load(address, Size::Dw), memory::load(address + 8, Size::Dw)] };
        let is_memory = rest as u32 & MEMORY != 0;
        Self { data, is_memory, size: rest as u32 & SIZE, offset: (rest >> 32) as u32 }
    }

    /// # Safety
    /// 16 bytes at the address must be writable.
    unsafe fn store(self, address: u64) {
        // SAFETY: the caller vouches for the address.
        unsafe {
            let kind = if self.is_memory { MEMORY } else { 0 };
            memory::store(address, Size::Dw, self.data);
            memory::store(address + 8, Size::Dw, u64::from(self.size | kind) | u64::from(self.offset) << 32);
        }
    }

    /// The dynptr's packet: that of the run, for the program might hold a dynptr that it made up where nobody verified it.
    fn frame(self, host: &Host) -> Option<*mut Frame> {
        (!self.is_memory && self.data != 0 && self.data == host.frame as u64).then_some(host.frame)
    }

    /// The address of memory of it; `None` where that is not the program's, which only one that nobody verified comes to.
    fn address(self, offset: u32, len: u32, host: &Host) -> Option<u64> {
        let address = self.data.checked_add(u64::from(self.offset))?.checked_add(u64::from(offset))?;
        let is_own = |access| host.regions.as_ref().is_none_or(|r| r.allows(address, len.into(), access));
        (is_own(Access::Read) && is_own(Access::Write)).then_some(address)
    }

    /// Whether so many bytes at an offset are its own (`bpf_dynptr_check_off_len`).
    fn has(self, offset: u32, len: u32) -> bool {
        len <= self.size && offset <= self.size - len
    }
}

/// Where bytes of a dynptr are.
enum Bytes<'f> {
    Packet(&'f mut [u8]),
    Memory(u64),
}

/// The bytes at an offset of a dynptr, or what reading or writing them fails with.
fn span<'f>(dynptr: Dynptr, offset: u32, len: u32, host: &Host) -> Result<Bytes<'f>, Errno> {
    if dynptr.data == 0 {
        return Err(Errno::EINVAL);
    }
    let frame = dynptr.frame(host);
    if frame.is_none() && !dynptr.is_memory {
        return Err(Errno::EINVAL);
    }
    if !dynptr.has(offset, len) {
        return Err(Errno::E2BIG);
    }
    let Some(frame) = frame else {
        return dynptr.address(offset, len, host).map(Bytes::Memory).ok_or(Errno::EINVAL);
    };
    let start = dynptr.offset as usize + offset as usize;
    if start > 0xffff {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the frame is that of the run, and nobody else uses its bytes meanwhile.
    let packet = unsafe { &mut *frame }.packet_mut();
    packet.get_mut(start..start + len as usize).map(Bytes::Packet).ok_or(Errno::EINVAL)
}

/// The same bytes, copied.
fn read_bytes(dynptr: Dynptr, offset: u32, len: u32, host: &Host) -> Result<Vec<u8>, Errno> {
    Ok(match span(dynptr, offset, len, host)? {
        Bytes::Packet(bytes) => bytes.to_vec(),
        // SAFETY: the memory is the dynptr's.
        Bytes::Memory(at) => unsafe { args::bytes(at, len as usize) },
    })
}

fn write_bytes(dynptr: Dynptr, offset: u32, bytes: &[u8], host: &Host) -> Result<(), Errno> {
    match span(dynptr, offset, bytes.len() as u32, host)? {
        Bytes::Packet(span) => span.copy_from_slice(bytes),
        // SAFETY: the memory is the dynptr's.
        Bytes::Memory(at) => unsafe { memory::copy_to(at, bytes) },
    }
    Ok(())
}

/// `long bpf_dynptr_read(dst, len, src, offset, flags)`
pub(super) unsafe extern "C" fn read(
    to: u64,
    len: u64,
    from: u64,
    offset: u64,
    flags: u64,
    host: &mut Host,
) -> u64 {
    if flags != 0 {
        return Errno::EINVAL.to_return();
    }
    // SAFETY: the arguments fit the prototype, which says that `len` bytes at `to` are written.
    match span(unsafe { Dynptr::load(from) }, offset as u32, len as u32, host) {
        // SAFETY: the same.
        Ok(Bytes::Packet(bytes)) => unsafe { memory::copy_to(to, bytes) },
        // SAFETY: the same, and the memory is the dynptr's.
        Ok(Bytes::Memory(at)) => unsafe { memory::copy_to(to, &args::bytes(at, len as u32 as usize)) },
        Err(errno) => return errno.to_return(),
    }
    0
}

/// `long bpf_dynptr_write(dst, offset, src, len, flags)`
pub(super) unsafe extern "C" fn write(
    to: u64,
    offset: u64,
    from: u64,
    len: u64,
    flags: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (bytes, to) = unsafe { (args::bytes(from, len as u32 as usize), Dynptr::load(to)) };
    let written = match flags {
        0 => write_bytes(to, offset as u32, &bytes, host),
        // Other than in reads the bounds come first.
        _ => span(to, offset as u32, len as u32, host).and(Err(Errno::EINVAL)),
    };
    written.map_or_else(Errno::to_return, |()| 0)
}

/// `long bpf_dynptr_from_mem(data, size, flags, ptr)`: to memory of a map value.
pub(super) unsafe extern "C" fn from_mem(
    data: u64,
    size: u64,
    flags: u64,
    ptr: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    let size = size as u32;
    let problem = match (size > SIZE, flags) {
        (true, _) => Some(Errno::E2BIG),
        (_, 0) => None,
        _ => Some(Errno::EINVAL),
    };
    let dynptr = if problem.is_some() { NULL } else { Dynptr { data, is_memory: true, size, offset: 0 } };
    // SAFETY: the arguments fit the prototype.
    unsafe { dynptr.store(ptr) };
    problem.map_or(0, Errno::to_return)
}

/// `long bpf_ringbuf_reserve_dynptr(ringbuf, size, flags, ptr)`
pub(super) unsafe extern "C" fn reserve(
    ringbuf: u64,
    size: u64,
    flags: u64,
    ptr: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let size = size as u32;
    // SAFETY: the arguments fit the prototype.
    let ring = unsafe { args::map(ringbuf) }.for_programs().ring_buffer();
    let record = match (flags, size > SIZE) {
        (0, false) => {
            let record = ring.and_then(|ring| ring.reserve_from(size.into(), 0, || Some(host.origin())));
            record.map(|record| record.as_ptr() as u64).ok_or(Errno::EINVAL)
        }
        (0, true) => Err(Errno::E2BIG),
        _ => Err(Errno::EINVAL),
    };
    let dynptr = record.map_or(NULL, |data| Dynptr { data, is_memory: true, size, offset: 0 });
    // SAFETY: the same.
    unsafe { dynptr.store(ptr) };
    record.map_or_else(Errno::to_return, |_| 0)
}

/// `void bpf_ringbuf_submit_dynptr(ptr, flags)`
pub(super) unsafe extern "C" fn submit(ptr: u64, flags: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { commit(ptr, false, flags) }
}

/// `void bpf_ringbuf_discard_dynptr(ptr, flags)`
pub(super) unsafe extern "C" fn discard(ptr: u64, flags: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { commit(ptr, true, flags) }
}

/// Gives the record of a dynptr back, if it is to one.
///
/// # Safety
/// The address must be that of a dynptr to a record that the program has, or of a null one.
unsafe fn commit(ptr: u64, discard: bool, flags: u64) -> u64 {
    // SAFETY: the caller vouches for it, and the program's maps live as long as it runs.
    unsafe {
        if let Some(record) = NonNull::new(Dynptr::load(ptr).data as *mut u8) {
            RingBuffer::commit(record, discard, flags);
        }
        NULL.store(ptr);
    }
    0
}

/// The address of the record that a dynptr is to; 0 for a null one.
///
/// # Safety
/// 16 bytes at the address must be readable.
pub(crate) unsafe fn record_of(ptr: u64) -> u64 {
    // SAFETY: the caller vouches for it.
    unsafe { Dynptr::load(ptr) }.data
}

/// `void *bpf_dynptr_data(ptr, offset, len)`: null for the packet.
pub(super) unsafe extern "C" fn data(
    ptr: u64,
    offset: u64,
    len: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let dynptr = unsafe { Dynptr::load(ptr) };
    memory_at(dynptr, offset as u32, len as u32, host).unwrap_or(0)
}

/// Bytes of a dynptr that is to memory.
fn memory_at(dynptr: Dynptr, offset: u32, len: u32, host: &Host) -> Option<u64> {
    let is_there = dynptr.is_memory && dynptr.data != 0 && dynptr.has(offset, len);
    if is_there { dynptr.address(offset, len, host) } else { None }
}

/// An `int` in `r0`.
fn int(errno: Errno) -> u64 {
    u64::from(errno.to_return() as u32)
}

/// `int bpf_dynptr_from_xdp(ctx, flags, ptr)`
pub(super) unsafe extern "C" fn from_xdp(
    ctx: u64,
    flags: u64,
    ptr: u64,
    _: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe {
        if flags != 0 {
            NULL.store(ptr);
            return int(Errno::EINVAL);
        }
        let size = (*(ctx as *const Frame)).len() as u32;
        Dynptr { data: ctx, is_memory: false, size, offset: 0 }.store(ptr);
    }
    0
}

/// `void *bpf_dynptr_slice(ptr, offset, buffer, size)`: the packet's own bytes.
pub(super) unsafe extern "C" fn slice(
    ptr: u64,
    offset: u64,
    buffer: u64,
    size: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let (offset, size) = (offset as u32, size as u32);
    // SAFETY: the arguments fit the prototype.
    let dynptr = unsafe { Dynptr::load(ptr) };
    if dynptr.is_memory {
        return memory_at(dynptr, offset, size, host).unwrap_or(0);
    }
    let Some(frame) = dynptr.frame(host).filter(|_| dynptr.has(offset, size)) else { return 0 };
    // SAFETY: the frame is that of the run.
    let packet = unsafe { &*frame }.packet();
    let start = dynptr.offset as usize + offset as usize;
    match packet.get(start..start + size as usize) {
        Some(bytes) if start <= 0xffff => bytes.as_ptr().expose_provenance() as u64,
        // The packet was cut meanwhile: the kernel gives the buffer, with nothing in it.
        _ => buffer,
    }
}

/// `void *bpf_dynptr_slice_rdwr(ptr, offset, buffer, size)`
pub(super) unsafe extern "C" fn slice_rdwr(
    ptr: u64,
    offset: u64,
    buffer: u64,
    size: u64,
    unused: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the prototype is the same, and packets may be written.
    unsafe { slice(ptr, offset, buffer, size, unused, host) }
}

/// `__u32 bpf_dynptr_size(ptr)`
pub(super) unsafe extern "C" fn size(ptr: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let dynptr = unsafe { Dynptr::load(ptr) };
    if dynptr.data == 0 { int(Errno::EINVAL) } else { u64::from(dynptr.size) }
}

/// `bool bpf_dynptr_is_null(ptr)`
pub(super) unsafe extern "C" fn is_null(ptr: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    u64::from(unsafe { Dynptr::load(ptr) }.data == 0)
}

/// `bool bpf_dynptr_is_rdonly(ptr)`: packets can be written.
pub(super) unsafe extern "C" fn is_rdonly(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    0
}

/// `int bpf_dynptr_adjust(ptr, start, end)`
pub(super) unsafe extern "C" fn adjust(ptr: u64, start: u64, end: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    let (start, end) = (start as u32, end as u32);
    // SAFETY: the arguments fit the prototype.
    let dynptr = unsafe { Dynptr::load(ptr) };
    if dynptr.data == 0 || start > end {
        return int(Errno::EINVAL);
    }
    if end > dynptr.size {
        return int(Errno::ERANGE);
    }
    let adjusted = Dynptr { size: end - start, offset: dynptr.offset.wrapping_add(start), ..dynptr };
    // SAFETY: as above.
    unsafe { adjusted.store(ptr) };
    0
}

/// `int bpf_dynptr_clone(ptr, clone)`
pub(super) unsafe extern "C" fn clone(ptr: u64, clone: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let dynptr = unsafe { Dynptr::load(ptr) };
    // SAFETY: the same.
    unsafe { dynptr.store(clone) };
    if dynptr.data == 0 { int(Errno::EINVAL) } else { 0 }
}

/// Bytes that the kernel copies at a time where a dynptr is not in one piece, as no packet is that was cut since.
const CHUNK: usize = 256;

/// Pieces of a length: where each starts, and its own length.
fn chunks(len: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..len).step_by(CHUNK).map(move |start| (start, (len - start).min(CHUNK as u32)))
}

/// An `int` in `r0`: 0, or what went wrong.
fn outcome(result: Result<(), Errno>) -> u64 {
    result.map_or_else(int, |()| 0)
}

/// `int bpf_dynptr_copy(dst, dst_offset, src, src_offset, size)`
pub(super) unsafe extern "C" fn copy(
    to: u64,
    to_offset: u64,
    from: u64,
    from_offset: u64,
    size: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let [to, from] = unsafe { [Dynptr::load(to), Dynptr::load(from)] };
    outcome(copied((to, to_offset as u32), (from, from_offset as u32), size as u32, host))
}

fn copied(
    (to, to_offset): (Dynptr, u32),
    (from, from_offset): (Dynptr, u32),
    size: u32,
    host: &Host,
) -> Result<(), Errno> {
    let is_there = |dynptr, offset| span(dynptr, offset, size, host).map(drop);
    if is_there(to, to_offset).is_ok() || is_there(from, from_offset).is_ok() {
        let bytes = read_bytes(from, from_offset, size, host)?;
        return write_bytes(to, to_offset, &bytes, host);
    }
    if !to.has(to_offset, size) || !from.has(from_offset, size) {
        return Err(Errno::E2BIG);
    }
    for (start, len) in chunks(size) {
        let bytes = read_bytes(from, from_offset + start, len, host)?;
        write_bytes(to, to_offset + start, &bytes, host)?;
    }
    Ok(())
}

/// `int bpf_dynptr_memset(ptr, offset, size, byte)`
pub(super) unsafe extern "C" fn memset(
    ptr: u64,
    offset: u64,
    size: u64,
    byte: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let dynptr = unsafe { Dynptr::load(ptr) };
    outcome(filled(dynptr, offset as u32, size as u32, byte as u8, host))
}

fn filled(dynptr: Dynptr, offset: u32, size: u32, byte: u8, host: &Host) -> Result<(), Errno> {
    // Other than writes of nothing this one of nothing is none where the dynptr is null.
    if !dynptr.has(offset, size) {
        return Err(Errno::E2BIG);
    }
    if span(dynptr, offset, size, host).is_ok() {
        return write_bytes(dynptr, offset, &vec![byte; size as usize], host);
    }
    for (start, len) in chunks(size) {
        write_bytes(dynptr, offset + start, &vec![byte; len as usize], host)?;
    }
    Ok(())
}
