//! Kernel error numbers, as helpers return them to programs.

use std::fmt;

/// A kernel error number, positive, as in `include/uapi/asm-generic/errno.h`; programs see it negated.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub u16);

macro_rules! errnos {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Self = Self($value);)*

            /// The symbol of the number, such as `EINVAL`, where it is one of those named here.
            #[must_use]
            pub const fn symbol(self) -> Option<&'static str> {
                match self.0 { $($value => Some(stringify!($name)),)* _ => None }
            }
        }
    };
}

errnos! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such entry.";
    E2BIG = 7, "Too big: a map is full, or an argument too long.";
    EBADF = 9, "Not a descriptor.";
    EAGAIN = 11, "Try again.";
    ENOMEM = 12, "No memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address.";
    EBUSY = 16, "Busy.";
    EEXIST = 17, "Entry exists.";
    ENODEV = 19, "No such device.";
    EINVAL = 22, "Invalid argument.";
    ENOSPC = 28, "No space left.";
    ERANGE = 34, "Out of range.";
    EDEADLK = 35, "It would wait for itself.";
    EOVERFLOW = 75, "Value too large for its field.";
    ETIME = 62, "It is over.";
    ENONET = 64, "No such network.";
    EPROTO = 71, "Not of this protocol.";
    EPROTONOSUPPORT = 93, "No such protocol.";
    ENOTSUPP = 524, "Operation not supported (kernel-internal number).";
    EAFNOSUPPORT = 97, "No such family of addresses.";
    EOPNOTSUPP = 95, "Operation not supported.";
}

impl Errno {
    /// The return value of a helper: the negated number as a 64-bit value.
    #[must_use]
    pub const fn to_return(self) -> u64 {
        (self.0 as i64).wrapping_neg() as u64
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => f.write_str(symbol),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errno {}
