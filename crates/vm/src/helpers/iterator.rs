//! Iterators of numbers (`bpf_iter_num_new` and its like in `kernel/bpf/bpf_iter.c`). They lie on the program's stack,
//! `struct { int current; int end; }`, and are reached by address as all that programs may reach.

use paceline_isa::Size;
use paceline_spec::{Errno, MAX_LOOPS};

use crate::host::Host;
use crate::memory;

/// Where `end` lies in an iterator.
const END: u64 = 4;

/// # Safety
/// The address must be that of an iterator's 8 bytes, which can be written.
unsafe fn store(iterator: u64, current: i32, end: i32) {
    // SAFETY: the caller vouches for the address.
    unsafe {
        memory::store(iterator, Size::W, u64::from(current.cast_unsigned()));
        memory::store(iterator + END, Size::W, u64::from(end.cast_unsigned()));
    }
}

/// `int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)`: an empty one on errors.
pub(super) unsafe extern "C" fn new(it: u64, start: u64, end: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    let (start, end) = (start as i32, end as i32);
    let result = match i64::from(end) - i64::from(start) {
        ..0 => Err(Errno::EINVAL),
        numbers if numbers > i64::from(MAX_LOOPS) => Err(Errno::E2BIG),
        _ => Ok(()),
    };
    // The first step goes to the start.
    let (current, end) = if result.is_ok() { (start.wrapping_sub(1), end) } else { (0, 0) };
    // SAFETY: the arguments fit the prototype.
    unsafe { store(it, current, end) };
    // An `int`: the upper half of the register is zero.
    result.map_or_else(|errno| u64::from(errno.to_return() as u32), |()| 0)
}

/// `int *bpf_iter_num_next(struct bpf_iter_num *it)`: the place of the number, in the iterator, or null.
pub(super) unsafe extern "C" fn next(it: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (current, end) =
        unsafe { (memory::load(it, Size::W) as i32, memory::load(it + END, Size::W) as i32) };
    match current.wrapping_add(1) {
        number if number < end => {
            // SAFETY: as above.
            unsafe { store(it, number, end) };
            it
        }
        _ => {
            // SAFETY: as above.
            unsafe { store(it, 0, 0) };
            0
        }
    }
}

/// `void bpf_iter_num_destroy(struct bpf_iter_num *it)`
pub(super) unsafe extern "C" fn destroy(it: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { store(it, 0, 0) };
    0
}
