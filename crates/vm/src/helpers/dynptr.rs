//! Dynptrs to packets (`bpf_dynptr_from_xdp` in `net/core/filter.c`, the others in `kernel/bpf/helpers.c`). They lie on the
//! program's stack: the address of the frame, or 0 for a null one; then size and offset.

use paceline_frame::Frame;
use paceline_isa::Size;
use paceline_spec::Errno;

use super::args;
use crate::host::Host;
use crate::memory;

/// Bits of the size that are size; the others are the kernel's for flags and type.
const SIZE: u32 = 0x00ff_ffff;

/// A dynptr, read from the stack.
#[derive(Clone, Copy)]
struct Dynptr {
    frame: u64,
    size: u32,
    offset: u32,
}

const NULL: Dynptr = Dynptr { frame: 0, size: 0, offset: 0 };

impl Dynptr {
    /// # Safety
    /// 16 bytes at the address must be readable.
    unsafe fn load(address: u64) -> Self {
        // SAFETY: the caller vouches for the address.
        let [frame, rest] = unsafe { [memory::load(address, Size::Dw), memory::load(address + 8, Size::Dw)] };
        Self { frame, size: rest as u32 & SIZE, offset: (rest >> 32) as u32 }
    }

    /// # Safety
    /// 16 bytes at the address must be writable.
    unsafe fn store(self, address: u64) {
        // SAFETY: the caller vouches for the address.
        unsafe {
            memory::store(address, Size::Dw, self.frame);
            memory::store(address + 8, Size::Dw, u64::from(self.size) | u64::from(self.offset) << 32);
        }
    }

    /// The dynptr's packet: that of the run, for the program might hold a dynptr that it made up where nobody verified it.
    fn frame(self, host: &Host) -> Option<*mut Frame> {
        (self.frame != 0 && self.frame == host.frame as u64).then_some(host.frame)
    }

    /// Whether so many bytes at an offset are its own (`bpf_dynptr_check_off_len`).
    fn has(self, offset: u32, len: u32) -> bool {
        len <= self.size && offset <= self.size - len
    }
}

/// The bytes at an offset of a dynptr, or what reading or writing them fails with.
fn span<'f>(dynptr: Dynptr, offset: u32, len: u32, host: &Host) -> Result<&'f mut [u8], Errno> {
    let frame = dynptr.frame(host).ok_or(Errno::EINVAL)?;
    if !dynptr.has(offset, len) {
        return Err(Errno::E2BIG);
    }
    let start = dynptr.offset as usize + offset as usize;
    if start > 0xffff {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the frame is that of the run, and nobody else uses its bytes meanwhile.
    let packet = unsafe { &mut *frame }.packet_mut();
    packet.get_mut(start..start + len as usize).ok_or(Errno::EINVAL)
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
    // SAFETY: the arguments fit the prototype.
    match span(unsafe { Dynptr::load(from) }, offset as u32, len as u32, host) {
        Ok(bytes) => {
            // SAFETY: the prototype says that `len` bytes at `to` are written.
            unsafe { memory::copy_to(to, bytes) };
            0
        }
        Err(errno) => errno.to_return(),
    }
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
    let bytes = unsafe { args::bytes(from, len as u32 as usize) };
    // SAFETY: the same.
    match span(unsafe { Dynptr::load(to) }, offset as u32, len as u32, host) {
        // Other than in reads the bounds come first.
        Ok(_) if flags != 0 => Errno::EINVAL.to_return(),
        Ok(span) => {
            span.copy_from_slice(&bytes);
            0
        }
        Err(errno) => errno.to_return(),
    }
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
        Dynptr { frame: ctx, size, offset: 0 }.store(ptr);
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
    if dynptr.frame == 0 { int(Errno::EINVAL) } else { u64::from(dynptr.size) }
}

/// `bool bpf_dynptr_is_null(ptr)`
pub(super) unsafe extern "C" fn is_null(ptr: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    u64::from(unsafe { Dynptr::load(ptr) }.frame == 0)
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
    if dynptr.frame == 0 || start > end {
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
    if dynptr.frame == 0 { int(Errno::EINVAL) } else { 0 }
}
