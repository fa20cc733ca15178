//! Dynptrs (`bpf_dynptr_from_xdp` in `net/core/filter.c`, the others in `kernel/bpf/helpers.c`). They lie on the program's stack: the
//! address of the frame or of the memory, or 0 for a null one; then size with what it is to, and offset.

use paceline_frame::Frame;
use paceline_isa::Size;
use paceline_maps::Map;
use paceline_spec::Errno;

use super::argument::{Argument, Buffer, KnownSize, Record, Registers};
use super::class::Class;
use super::function::{Int, Pointer};
use super::mem::{self, Mem, ReadMem, ReadWriteMem, WriteMem};
use crate::host::Host;
use crate::memory;
use crate::region::Access;

/// Bits of the size that are size; the others are the kernel's for flags and type.
const SIZE: u32 = 0x00ff_ffff;

/// The bit of the size's word that says that it is to memory rather than to the packet.
const MEMORY: u32 = 1 << 28;

/// A dynptr, read from the stack.
#[derive(Clone, Copy)]
pub(super) struct Dynptr {
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
        // SAFETY: the address is guaranteed by the caller.
        let [data, rest] = unsafe { [memory::load(address, Size::Dw), memory::load(address + 8, Size::Dw)] };
        let is_memory = rest as u32 & MEMORY != 0;
        Self { data, is_memory, size: rest as u32 & SIZE, offset: (rest >> 32) as u32 }
    }

    /// # Safety
    /// 16 bytes at the address must be writable.
    unsafe fn store(self, address: u64) {
        // SAFETY: the address is guaranteed by the caller.
        unsafe {
            let kind = if self.is_memory { MEMORY } else { 0 };
            memory::store(address, Size::Dw, self.data);
            memory::store(address + 8, Size::Dw, u64::from(self.size | kind) | u64::from(self.offset) << 32);
        }
    }

    /// The dynptr's packet: that of the run, since an unverified program may forge a dynptr.
    fn frame(self, host: &Host) -> Option<*mut Frame> {
        (!self.is_memory && self.data != 0 && self.data == host.frame() as u64).then_some(host.frame())
    }

    /// The address of its memory at an offset; `None` where that is not the program's, which only an unverified program reaches.
    fn address(self, offset: u32, len: u32, host: &Host) -> Option<u64> {
        let address = self.data.checked_add(u64::from(self.offset))?.checked_add(u64::from(offset))?;
        let is_own = |access| host.run.regions().is_none_or(|r| r.allows(address, len.into(), access));
        (is_own(Access::Read) && is_own(Access::Write)).then_some(address)
    }

    /// Whether so many bytes at an offset are its own (`bpf_dynptr_check_off_len`).
    fn has(self, offset: u32, len: u32) -> bool {
        len <= self.size && offset <= self.size - len
    }
}

/// Pointer to the 16 bytes of a dynptr.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a>(&'a u64);

// SAFETY: 16 bytes can be read and written during the call.
unsafe impl<'a> Argument<'a> for Slot<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::DYNPTR_SLOT]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl Slot<'_> {
    fn load(self) -> Dynptr {
        // SAFETY: the slot can be read.
        unsafe { Dynptr::load(*self.0) }
    }

    fn store(self, dynptr: Dynptr) {
        // SAFETY: the slot can be written.
        unsafe { dynptr.store(*self.0) };
    }
}

// SAFETY: 16 bytes can be read during the call.
unsafe impl Argument<'_> for Dynptr {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::DYNPTR, Class::DYNPTR_SLOT]];

    unsafe fn from_registers(registers: &Registers, index: usize) -> Self {
        // SAFETY: the register holds the address of a dynptr.
        unsafe { Self::load(registers[index]) }
    }
}

/// Bytes of a dynptr.
enum Bytes<'f> {
    Packet(&'f mut [u8]),
    Memory(Mem<'f>),
}

/// The bytes at an offset of a dynptr, or the error of reading or writing them.
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
        let address = dynptr.address(offset, len, host).ok_or(Errno::EINVAL)?;
        // SAFETY: the dynptr is to this memory, which can be read and written.
        return Ok(Bytes::Memory(unsafe { Mem::new(address, len as usize) }));
    };
    let start = dynptr.offset as usize + offset as usize;
    if start > 0xffff {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the frame is that of the run, and no other reference to its bytes is in use.
    let packet = unsafe { &mut *frame }.packet_mut();
    packet.get_mut(start..start + len as usize).map(Bytes::Packet).ok_or(Errno::EINVAL)
}

/// A copy of the same bytes.
fn read_bytes(dynptr: Dynptr, offset: u32, len: u32, host: &Host) -> Result<mem::Bytes, Errno> {
    Ok(match span(dynptr, offset, len, host)? {
        Bytes::Packet(bytes) => mem::Bytes::from_slice(bytes),
        Bytes::Memory(memory) => memory.read(),
    })
}

fn write_bytes(dynptr: Dynptr, offset: u32, bytes: &[u8], host: &Host) -> Result<(), Errno> {
    match span(dynptr, offset, bytes.len() as u32, host)? {
        Bytes::Packet(span) => span.copy_from_slice(bytes),
        Bytes::Memory(memory) => memory.write(bytes),
    }
    Ok(())
}

/// `long bpf_dynptr_read(dst, len, src, offset, flags)`
pub(super) fn read(
    host: &mut Host,
    to: WriteMem<'_>,
    from: Dynptr,
    offset: u32,
    flags: u64,
) -> Result<(), Errno> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    match span(from, offset, to.len() as u32, host)? {
        Bytes::Packet(bytes) => to.write(bytes),
        Bytes::Memory(memory) => to.write(&memory.read()),
    }
    Ok(())
}

/// `long bpf_dynptr_write(dst, offset, src, len, flags)`
pub(super) fn write(
    host: &mut Host,
    to: Dynptr,
    offset: u32,
    from: ReadMem<'_>,
    flags: u64,
) -> Result<(), Errno> {
    let bytes = from.read();
    match flags {
        0 => write_bytes(to, offset, &bytes, host),
        // Other than in reads the bounds come first.
        _ => span(to, offset, from.len() as u32, host).and(Err(Errno::EINVAL)),
    }
}

/// `long bpf_dynptr_from_mem(data, size, flags, ptr)`: to memory of a map value.
pub(super) fn from_mem(
    _: &mut Host,
    data: ReadWriteMem<'_>,
    flags: u64,
    slot: Slot<'_>,
) -> Result<(), Errno> {
    let size = data.len() as u32;
    let valid = match (size > SIZE, flags) {
        (true, _) => Err(Errno::E2BIG),
        (_, 0) => Ok(()),
        _ => Err(Errno::EINVAL),
    };
    slot.store(valid.map_or(NULL, |()| Dynptr { data: data.address(), is_memory: true, size, offset: 0 }));
    valid
}

/// `long bpf_ringbuf_reserve_dynptr(ringbuf, size, flags, ptr)`
pub(super) fn reserve(
    host: &mut Host,
    map: &Map,
    size: u32,
    flags: u64,
    slot: Slot<'_>,
) -> Result<(), Errno> {
    let ring = map.for_programs().ring_buffer();
    let record = match (flags, size > SIZE) {
        (0, false) => {
            let record = ring.and_then(|ring| ring.reserve_from(size.into(), 0, || Some(host.origin())));
            record.map(|record| record.as_ptr() as u64).ok_or(Errno::EINVAL)
        }
        (0, true) => Err(Errno::E2BIG),
        _ => Err(Errno::EINVAL),
    };
    slot.store(record.map_or(NULL, |data| Dynptr { data, is_memory: true, size, offset: 0 }));
    record.map(drop)
}

/// `void bpf_ringbuf_submit_dynptr(ptr, flags)`
pub(super) fn submit(_: &mut Host, slot: ReleasedSlot<'_>, flags: u64) {
    slot.commit(false, flags);
}

/// `void bpf_ringbuf_discard_dynptr(ptr, flags)`
pub(super) fn discard(_: &mut Host, slot: ReleasedSlot<'_>, flags: u64) {
    slot.commit(true, flags);
}

/// Pointer to a dynptr to a record that the program has, or to a null one. The program has neither afterwards.
pub(super) struct ReleasedSlot<'a>(Slot<'a>);

// SAFETY: as of [`Slot`].
unsafe impl<'a> Argument<'a> for ReleasedSlot<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::RELEASED_DYNPTR]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(Slot(&registers[index]))
    }
}

impl ReleasedSlot<'_> {
    /// Gives the record back, if there is one.
    fn commit(self, discard: bool, flags: u64) {
        // SAFETY: the program has the record, and no dynptr to it from here on.
        unsafe { Record::at(self.0.load().data) }.commit(discard, flags);
        self.0.store(NULL);
    }
}

/// The address of the record that a dynptr is to; 0 for a null one.
///
/// # Safety
/// 16 bytes at the address must be readable.
pub unsafe fn record_of(ptr: u64) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { Dynptr::load(ptr) }.data
}

/// `void *bpf_dynptr_data(ptr, offset, len)`: null for the packet.
pub(super) fn data(host: &mut Host, dynptr: Dynptr, offset: u32, len: u64) -> Pointer {
    memory_at(dynptr, offset, len as u32, host)
}

/// The address of memory of a dynptr, or null for the packet's.
fn memory_at(dynptr: Dynptr, offset: u32, len: u32, host: &Host) -> Pointer {
    let has = dynptr.is_memory && dynptr.data != 0 && dynptr.has(offset, len);
    // default: null is the result for what has no address.
    Pointer(if has { dynptr.address(offset, len, host).unwrap_or(0) } else { 0 })
}

/// `int bpf_dynptr_from_xdp(ctx, flags, ptr)`
pub(super) fn from_xdp(_: &mut Host, frame: &mut Frame, flags: u64, slot: Slot<'_>) -> Int {
    let size = frame.len() as u32;
    let (dynptr, result) = match flags {
        0 => (
            Dynptr { data: std::ptr::from_mut(frame).addr() as u64, is_memory: false, size, offset: 0 },
            Ok(()),
        ),
        _ => (NULL, Err(Errno::EINVAL)),
    };
    slot.store(dynptr);
    Int::of(result)
}

/// `void *bpf_dynptr_slice(ptr, offset, buffer, size)` and `bpf_dynptr_slice_rdwr`: the packet's own bytes, which can be written.
pub(super) fn slice(
    host: &mut Host,
    dynptr: Dynptr,
    offset: u32,
    buffer: Buffer,
    size: KnownSize,
) -> Pointer {
    let size = size.0 as u32;
    if dynptr.is_memory {
        return memory_at(dynptr, offset, size, host);
    }
    let Some(frame) = dynptr.frame(host).filter(|_| dynptr.has(offset, size)) else { return Pointer::NULL };
    // SAFETY: the frame is that of the run.
    let packet = unsafe { &*frame }.packet();
    let start = dynptr.offset as usize + offset as usize;
    Pointer(match packet.get(start..start + size as usize) {
        Some(bytes) if start <= 0xffff => bytes.as_ptr().expose_provenance() as u64,
        // The packet was cut meanwhile: the kernel returns the buffer and leaves it as it is.
        _ => buffer.0,
    })
}

/// `__u32 bpf_dynptr_size(ptr)`
pub(super) fn size(_: &mut Host, dynptr: Dynptr) -> Int {
    Int(if dynptr.data == 0 { Err(Errno::EINVAL) } else { Ok(dynptr.size) })
}

/// `bool bpf_dynptr_is_null(ptr)`
pub(super) fn is_null(_: &mut Host, dynptr: Dynptr) -> u64 {
    u64::from(dynptr.data == 0)
}

/// `bool bpf_dynptr_is_rdonly(ptr)`: packets can be written.
pub(super) fn is_rdonly(_: &mut Host, _: Dynptr) -> u64 {
    0
}

/// `int bpf_dynptr_adjust(ptr, start, end)`
pub(super) fn adjust(_: &mut Host, slot: Slot<'_>, start: u32, end: u32) -> Int {
    let dynptr = slot.load();
    if dynptr.data == 0 || start > end {
        return Int(Err(Errno::EINVAL));
    }
    if end > dynptr.size {
        return Int(Err(Errno::ERANGE));
    }
    slot.store(Dynptr { size: end - start, offset: dynptr.offset.wrapping_add(start), ..dynptr });
    Int(Ok(0))
}

/// `int bpf_dynptr_clone(ptr, clone)`
pub(super) fn clone(_: &mut Host, dynptr: Dynptr, clone: Slot<'_>) -> Int {
    clone.store(dynptr);
    Int(if dynptr.data == 0 { Err(Errno::EINVAL) } else { Ok(0) })
}

/// Bytes that the kernel copies at a time where a dynptr is not in one piece, as no packet is that was cut since.
const CHUNK: usize = 256;

/// Pieces of a length: where each starts, and its own length.
fn chunks(len: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..len).step_by(CHUNK).map(move |start| (start, (len - start).min(CHUNK as u32)))
}

/// `int bpf_dynptr_copy(dst, dst_offset, src, src_offset, size)`
pub(super) fn copy(
    host: &mut Host,
    to: Dynptr,
    to_offset: u32,
    from: Dynptr,
    from_offset: u32,
    size: u32,
) -> Int {
    Int::of(copied((to, to_offset), (from, from_offset), size, host))
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
pub(super) fn memset(host: &mut Host, dynptr: Dynptr, offset: u32, size: u32, byte: u8) -> Int {
    Int::of(filled(dynptr, offset, size, byte, host))
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
