//! Iterators of numbers (`bpf_iter_num_new` and its like in `kernel/bpf/bpf_iter.c`). They lie on the program's stack,
//! `struct { int current; int end; }`.

use paceline_isa::Size;
use paceline_spec::kfunc::NUM_ITERATOR_BYTES;
use paceline_spec::{Errno, MAX_LOOPS};

use super::argument::{Argument, Registers};
use super::class::Class;
use super::function::{Int, Pointer};
use crate::host::Host;
use crate::memory;

/// Offset of `end` in an iterator.
const END: u64 = 4;

/// Pointer to an iterator.
pub(super) struct NumIterator<'a>(&'a u64);

// SAFETY: the iterator's bytes can be read and written during the call.
unsafe impl<'a> Argument<'a> for NumIterator<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::read_write_bytes(NUM_ITERATOR_BYTES as usize)]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl NumIterator<'_> {
    /// `current` and `end`.
    fn load(&self) -> (i32, i32) {
        // SAFETY: both lie in the iterator.
        unsafe { (memory::load(*self.0, Size::W) as i32, memory::load(*self.0 + END, Size::W) as i32) }
    }

    fn store(&self, current: i32, end: i32) {
        // SAFETY: both lie in the iterator.
        unsafe {
            memory::store(*self.0, Size::W, u64::from(current.cast_unsigned()));
            memory::store(*self.0 + END, Size::W, u64::from(end.cast_unsigned()));
        }
    }
}

/// `int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)`: an empty one on errors.
pub(super) fn new(_: &mut Host, it: NumIterator<'_>, start: i32, end: i32) -> Int {
    let result = match i64::from(end) - i64::from(start) {
        ..0 => Err(Errno::EINVAL),
        numbers if numbers > i64::from(MAX_LOOPS) => Err(Errno::E2BIG),
        _ => Ok(()),
    };
    // The first step goes to the start.
    let (current, end) = if result.is_ok() { (start.wrapping_sub(1), end) } else { (0, 0) };
    it.store(current, end);
    Int::of(result)
}

/// `int *bpf_iter_num_next(struct bpf_iter_num *it)`: the address of the number, in the iterator, or null.
pub(super) fn next(_: &mut Host, it: NumIterator<'_>) -> Pointer {
    let (current, end) = it.load();
    match current.wrapping_add(1) {
        number if number < end => {
            it.store(number, end);
            Pointer(*it.0)
        }
        _ => {
            it.store(0, 0);
            Pointer::NULL
        }
    }
}

/// `void bpf_iter_num_destroy(struct bpf_iter_num *it)`
pub(super) fn destroy(_: &mut Host, it: NumIterator<'_>) {
    it.store(0, 0);
}
