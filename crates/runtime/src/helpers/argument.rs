//! Types of parameters: what one or two argument registers stand for. A value of such a type exists only where the register
//! fits the prototype, so that the functions themselves are safe.
//! Maps are in [`map_argument`](super::map_argument), memory is in [`mem`](super::mem).

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use paceline_frame::Frame;
use paceline_maps::RingBuffer;

use super::class::Class;

/// `r1` to `r5`.
pub(super) type Registers = [u64; 5];

/// Type of a parameter, valid during the call `'a`.
///
/// # Safety
/// Values made from registers of the classes in `REGISTERS` must be sound to use.
pub(super) unsafe trait Argument<'a>: Sized {
    /// The registers that the parameter takes: for each of them the classes that fit.
    const REGISTERS: &'static [&'static [Class]];

    /// The parameter from the register at an index and those after it.
    ///
    /// # Safety
    /// The registers must hold arguments of classes that fit; for keys and values of maps the first one must hold the map.
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        // SAFETY: any bits are an integer.
        unsafe impl Argument<'_> for $integer {
            const REGISTERS: &'static [&'static [Class]] = &[&[Class::NUMBER]];

            #[inline(always)]
            unsafe fn from_registers(registers: &Registers, index: usize) -> Self {
                registers[index] as Self
            }
        }
    )*};
}

integers! { u64 u32 i32 u16 u8 }

/// Declares a parameter that is the bits of a register and nothing more.
macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident: $($class:expr),+;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name(pub(super) u64);

        // SAFETY: any bits are an integer.
        unsafe impl Argument<'_> for $name {
            const REGISTERS: &'static [&'static [Class]] = &[&[$($class),+]];

            #[inline(always)]
            unsafe fn from_registers(registers: &Registers, index: usize) -> Self {
                Self(registers[index])
            }
        }
    )*};
}

bits! {
    /// A register that is not checked.
    Unchecked: Class::UNCHECKED;
    /// Address of a function of the program.
    Code: Class::FUNCTION;
    /// Address of an object's record: of a socket or a connection.
    Object: Class::OBJECT;
    /// Address in the stack, or null: passed on to a callback.
    Passed: Class::STACK_OR_NULL;
    /// Address of a buffer, or null: returned at most.
    Buffer: Class::BUFFER;
    /// The size of a buffer.
    KnownSize: Class::KNOWN_SIZE;
}

/// The context, of a function that needs nothing of the packet.
#[derive(Clone, Copy)]
pub(super) struct Context;

// SAFETY: nothing is accessed.
unsafe impl Argument<'_> for Context {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::CONTEXT]];

    unsafe fn from_registers(_: &Registers, _: usize) -> Self {
        Self
    }
}

// SAFETY: the context of a program with a packet is its frame, which nothing else refers to during the call.
unsafe impl<'a> Argument<'a> for &'a mut Frame {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::CONTEXT]];

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the register holds the context of a running program with a packet.
        unsafe { &mut *(registers[index] as *mut Frame) }
    }
}

/// Declares a parameter for a field of a map's value that is an atomic word.
macro_rules! words {
    ($($(#[$doc:meta])* $word:ty: $class:expr;)*) => {$(
        $(#[$doc])*
        // SAFETY: the field lies in a value of a map that lives through the call, at a multiple of its size, and nothing but
        // helpers and updates of elements, which are atomic as well, accesses it.
        unsafe impl<'a> Argument<'a> for &'a $word {
            const REGISTERS: &'static [&'static [Class]] = &[&[$class]];

            #[inline(always)]
            unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
                // SAFETY: the register holds the address of such a field.
                unsafe { <$word>::from_ptr(registers[index] as *mut _) }
            }
        }
    )*};
}

words! {
    /// The `bpf_spin_lock`.
    AtomicU32: Class::SPIN_LOCK;
    /// The first word of the `bpf_timer`.
    AtomicU64: Class::TIMER;
}

/// A ring buffer's record that the program has.
pub(super) struct Record(Option<NonNull<u8>>);

// SAFETY: the record lives until it is committed, and the program no longer has it afterwards.
unsafe impl Argument<'_> for Record {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::RECORD]];

    unsafe fn from_registers(registers: &Registers, index: usize) -> Self {
        Self(NonNull::new(registers[index] as *mut u8))
    }
}

impl Record {
    /// The record at an address; none at null.
    ///
    /// # Safety
    /// The program must have the record, and not have it after the call.
    pub(super) unsafe fn at(address: u64) -> Self {
        Self(NonNull::new(address as *mut u8))
    }

    /// Gives the record to the reader of the ring buffer, which skips it if it is discarded.
    pub(super) fn commit(self, discard: bool, flags: u64) {
        if let Some(record) = self.0 {
            // SAFETY: the program has the record, and its maps live as long as it runs.
            unsafe { RingBuffer::commit(record, discard, flags) };
        }
    }
}
