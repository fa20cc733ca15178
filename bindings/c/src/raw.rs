//! Arguments that C passes by address: the only file that reads, writes and calls through its pointers.
//!
//! Each type here stands for a pointer parameter, or a pointer in a structure, that the header documents. Only C and unsafe code make such
//! values, and promise what the header says of each: that it is null, or that it points to as much as its type and the length
//! beside it say, for as long as the call lasts. Every `SAFETY` comment in this file rests on that promise and on nothing else.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::status::Failure;

/// Largest structure that is taken for one: sizes beyond are those of memory that was never set.
const LARGEST: usize = 4096;

/// Lets unsafe code make what C makes.
macro_rules! made_by_unsafe_code {
    ($($name:ident $(<$t:ident>)?, $pointer:ty;)*) => {$(
        impl $(<$t>)? $name $(<$t>)? {
            /// Value as C passes it.
            ///
            /// # Safety
            /// The pointer is what the header says of the parameter or member, whenever the value is used.
            #[must_use]
            pub const unsafe fn new(pointer: $pointer) -> Self {
                Self(pointer)
            }
        }
    )*};
}

made_by_unsafe_code! {
    Text, *const c_char;
    Bytes, *const u8;
    List<T>, *const T;
    Room, *mut u8;
    Out<T>, *mut T;
    Given<T>, *const T;
    Filled<T>, *mut T;
    Data, *mut c_void;
    Memory, *mut c_void;
}

/// A string of C that is read: UTF-8 and a null byte.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The text; `None` for null.
    pub(crate) fn optional(&self) -> Result<Option<&str>, Failure> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: C passes a string that ends with a null byte, and does not change it during the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(Some).map_err(|error| Failure::argument(format!("text is no UTF-8: {error}")))
    }

    /// The text, which must be there; `what` names it in the error.
    pub(crate) fn required(&self, what: &str) -> Result<&str, Failure> {
        self.optional()?.ok_or_else(|| Failure::argument(format!("{what} is null")))
    }

    /// A path, which need not be UTF-8.
    pub(crate) fn path(&self) -> Result<&Path, Failure> {
        if self.0.is_null() {
            return Err(Failure::argument("the path is null"));
        }
        // SAFETY: as above.
        let bytes = unsafe { CStr::from_ptr(self.0) }.to_bytes();
        Ok(Path::new(OsStr::from_bytes(bytes)))
    }
}

/// Bytes that are read. Their number is beside them.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bytes(*const u8);

impl Bytes {
    pub(crate) fn slice(&self, length: usize) -> Result<&[u8], Failure> {
        slice(&self.0, length)
    }

    pub(crate) fn address(self) -> usize {
        self.0.addr()
    }
}

/// Elements of a plain type that are read. Their number is beside them.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct List<T>(*const T);

impl<T: Copy> List<T> {
    pub(crate) fn slice(&self, length: usize) -> Result<&[T], Failure> {
        slice(&self.0, length)
    }
}

fn slice<T>(start: &*const T, length: usize) -> Result<&[T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() || !start.is_aligned() {
        return Err(Failure::argument(format!(
            "{length} elements are given at an address that is null or not aligned"
        )));
    }
    if length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Failure::argument(format!("{length} elements do not fit into memory")));
    }
    // SAFETY: not null, aligned, and C passes as many elements, which it does not change during the call. Its types have no
    // invalid values.
    Ok(unsafe { std::slice::from_raw_parts(*start, length) })
}

/// Room for bytes that the library writes.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Room(*mut u8);

impl Room {
    /// Checks that there is room for so many bytes.
    pub(crate) fn check(self, capacity: usize) -> Result<(), Failure> {
        if self.0.is_null() && capacity > 0 {
            Err(Failure::argument("room for bytes is null"))
        } else {
            Ok(())
        }
    }

    /// Writes bytes, for which there must be room.
    pub(crate) fn write(self, capacity: usize, bytes: &[u8]) -> Result<(), Failure> {
        self.write_at(0, capacity, bytes)
    }

    /// Writes bytes at an offset.
    pub(crate) fn write_at(self, offset: usize, capacity: usize, bytes: &[u8]) -> Result<(), Failure> {
        let end = offset.checked_add(bytes.len());
        if end.is_none_or(|end| end > capacity) {
            let message = format!("{} bytes at offset {offset} do not fit into {capacity}", bytes.len());
            return Err(Failure::new(crate::status::paceline_status::NoRoom, message));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.check(bytes.len())?;
        // SAFETY: C passes `capacity` bytes that it may write, and nothing else uses them during the call; the end was checked. Memory of the
        // library is never room of C's, so that the two do not overlap.
        unsafe { self.0.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}

/// A place for one result; null if the caller does not want it.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        !self.0.is_null()
    }

    #[inline]
    pub(crate) fn write(self, value: T) {
        if !self.0.is_null() && self.0.is_aligned() {
            // SAFETY: not null, aligned, and C passes a place that it may write.
            unsafe { self.0.write(value) };
        }
    }
}

/// A structure whose first member is its size in bytes as the caller's header has it. One of an older header is shorter, and what it
/// lacks is zero; one of a newer header may be longer, if what the library does not know is zero.
///
/// # Safety
/// The type is `repr(C)` and its first member is the size, a `usize`.
pub unsafe trait Growing: Copy {}

/// A structure that is read.
///
/// # Safety
/// Any bytes are a value of it.
pub unsafe trait Plain: Growing {}

/// Declares structures of C that are written.
macro_rules! written {
    ($($name:ident),*) => {$(
        const _: () = assert!(std::mem::offset_of!($name, size) == 0);
        // SAFETY: `repr(C)`, and the size is first, as just checked.
        unsafe impl crate::raw::Growing for $name {}
    )*};
}

/// Declares structures of C that are read: all members are numbers and pointers.
macro_rules! given {
    ($($name:ident),*) => {$(
        crate::raw::written!($name);
        // SAFETY: numbers and pointers have no invalid values.
        unsafe impl crate::raw::Plain for $name {}
    )*};
}

pub(crate) use {given, written};

/// A structure that is read, or several in a row, of which the first has the size of each.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Given<T>(*const T);

impl<T: Plain> Given<T> {
    /// The structure; `None` for null.
    pub(crate) fn optional(self) -> Result<Option<T>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.required().map(Some) }
    }

    pub(crate) fn required(self) -> Result<T, Failure> {
        self.read(0, self.size()?)
    }

    /// Calls a function for each of several.
    #[inline]
    pub(crate) fn each(
        self,
        count: usize,
        mut each: impl FnMut(usize, T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if count == 0 {
            return Ok(());
        }
        let size = self.size()?;
        (0..count).try_for_each(|index| each(index, self.read(index, size)?))
    }

    fn size(self) -> Result<usize, Failure> {
        size(self.0.cast())
    }

    #[inline]
    fn read(self, index: usize, size: usize) -> Result<T, Failure> {
        let mut value = MaybeUninit::<T>::zeroed();
        let offset = index.checked_mul(size).ok_or_else(|| Failure::argument("too many elements"))?;
        // SAFETY: C passes as many structures of this size in a row; of each, no more is read than the caller's header and ours both have.
        // The rest is zero, and any bytes are a value.
        let (value, rest) = unsafe {
            let start = self.0.cast::<u8>().add(offset);
            let known = size.min(size_of::<T>());
            value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(start, known);
            (value.assume_init(), std::slice::from_raw_parts(start.add(known), size - known))
        };
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Failure::argument(
                "a structure has members that this version of the library does not know",
            ));
        }
        Ok(value)
    }
}

/// A structure that is written, or several in a row, of which the first has the size of each. The size member stays.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Filled<T>(*mut T);

impl<T: Growing> Filled<T> {
    pub(crate) fn is_wanted(&self) -> bool {
        !self.0.is_null()
    }

    pub(crate) fn write(self, value: T) -> Result<(), Failure> {
        self.write_all(1, std::iter::once(value))
    }

    /// Writes several, at most `capacity`.
    #[inline]
    pub(crate) fn write_all(self, capacity: usize, values: impl Iterator<Item = T>) -> Result<(), Failure> {
        if capacity == 0 {
            return Ok(());
        }
        let size = size(self.0.cast_const().cast())?;
        for (index, value) in values.take(capacity).enumerate() {
            let skip = if index == 0 { size_of::<usize>() } else { 0 };
            // SAFETY: C passes `capacity` structures of this size in a row, which it may write; of each, no more is written than the caller's
            // header and ours both have. The value is as large as is read of it.
            unsafe {
                let to = self.0.cast::<u8>().add(index * size + skip);
                let from = (&raw const value).cast::<u8>().add(skip);
                to.copy_from_nonoverlapping(from, size.min(size_of::<T>()) - skip);
            }
        }
        Ok(())
    }
}

/// The size in the first member of a structure.
#[inline]
fn size(structure: *const usize) -> Result<usize, Failure> {
    if structure.is_null() || !structure.is_aligned() {
        return Err(Failure::argument("a structure is null or not aligned"));
    }
    // SAFETY: not null, aligned, and every structure of C that comes here begins with its size.
    let size = unsafe { *structure };
    if (size_of::<usize>()..=LARGEST).contains(&size) && size.is_multiple_of(size_of::<usize>()) {
        Ok(size)
    } else {
        Err(Failure::argument(format!("a structure has size {size}; set it to sizeof(struct ...)")))
    }
}

/// Data of the caller that its callback gets back.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Data(*mut c_void);

/// A callback with the caller's data.
pub(crate) struct Callback<F> {
    function: F,
    data: Data,
}

// SAFETY: a function's address has no thread, and the header says that callbacks come on the thread of the call that runs packets,
// so that the caller knows by which threads its data is used.
unsafe impl<F: Copy> Send for Callback<F> {}

/// A function of C that gets bytes: `void (*)(void *data, const uint8_t *bytes, size_t length)`.
pub type paceline_bytes_function = Option<unsafe extern "C" fn(data: Data, bytes: *const u8, length: usize)>;

impl<F: Copy> Callback<F> {
    pub(crate) fn new(function: F, data: Data) -> Self {
        Self { function, data }
    }
}

impl Callback<paceline_bytes_function> {
    pub(crate) fn call(&self, bytes: &[u8]) {
        if let Some(function) = self.function {
            // SAFETY: C passes a function of this type, which returns and does not unwind or jump out, and its own data.
            unsafe { function(self.data, bytes.as_ptr(), bytes.len()) };
        }
    }
}

impl<T> Callback<Option<unsafe extern "C" fn(Data, *const T)>> {
    pub(crate) fn call_with(&self, structure: &T) {
        if let Some(function) = self.function {
            // SAFETY: as above; the structure lives during the call.
            unsafe { function(self.data, structure) };
        }
    }
}

/// Memory of the caller that the library and programs read and write from now on.
///
/// cbindgen:transparent-typedef
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Memory(*mut c_void);

impl Memory {
    pub(crate) fn start(self) -> Option<std::ptr::NonNull<u8>> {
        std::ptr::NonNull::new(self.0.cast())
    }
}
