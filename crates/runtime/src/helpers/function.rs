//! From functions with typed parameters to the C functions that engines call ([`HelperFn`]).
//!
//! The tables name a function per row. The macro that makes a table makes the C function as well, which takes the argument registers
//! apart by the types of the parameters. A function whose parameters or result differ from the prototype in the row does not compile.

use paceline_spec::Errno;
use paceline_spec::helper::HelperId;
use paceline_spec::kfunc::Kfunc;

use super::argument::{Argument, Registers};
use super::class::{Class, ResultClass, Signature};
use crate::host::Host;

/// A helper as engines call it: `r1` to `r5` in, `r0` out.
///
/// # Safety
/// The arguments must fit the helper's prototype: the plain interpreter checks them on every call, other engines rely on the
/// verifier.
pub type HelperFn = unsafe extern "C" fn(u64, u64, u64, u64, u64, &mut Host) -> u64;

/// Type of a function's result.
pub(super) trait Returned {
    const CLASS: ResultClass;

    /// The value of `r0`.
    fn into_register(self) -> u64;
}

impl Returned for () {
    const CLASS: ResultClass = ResultClass::Nothing;

    fn into_register(self) -> u64 {
        0
    }
}

impl Returned for u64 {
    const CLASS: ResultClass = ResultClass::Number;

    fn into_register(self) -> u64 {
        self
    }
}

/// A number, or an error as a negative number of 64 bits.
impl Returned for Result<u64, Errno> {
    const CLASS: ResultClass = ResultClass::Number;

    fn into_register(self) -> u64 {
        self.unwrap_or_else(Errno::to_return)
    }
}

/// Zero, or an error as a negative number of 64 bits.
impl Returned for Result<(), Errno> {
    const CLASS: ResultClass = ResultClass::Number;

    fn into_register(self) -> u64 {
        self.map_or_else(Errno::to_return, |()| 0)
    }
}

/// An `int`: zero or a number, or an error as a negative number of 32 bits. The upper half of the register is zero.
pub(super) struct Int(pub(super) Result<u32, Errno>);

impl Int {
    /// Zero, or an error.
    pub(super) fn of(result: Result<(), Errno>) -> Self {
        Self(result.map(|()| 0))
    }
}

impl Returned for Int {
    const CLASS: ResultClass = ResultClass::Number;

    fn into_register(self) -> u64 {
        u64::from(self.0.unwrap_or_else(|errno| errno.to_return() as u32))
    }
}

/// An address; 0 for null.
pub(super) struct Pointer(pub(super) u64);

impl Pointer {
    pub(super) const NULL: Self = Self(0);
}

impl Returned for Pointer {
    const CLASS: ResultClass = ResultClass::Pointer;

    fn into_register(self) -> u64 {
        self.0
    }
}

/// A function of the host and typed parameters, `S` as `fn(A, B) -> R`.
pub(super) trait Function<'a, S> {
    const SIGNATURE: Signature;

    /// # Safety
    /// The registers must hold arguments of classes that fit the signature.
    unsafe fn call(&self, registers: &'a Registers, host: &mut Host) -> u64;
}

macro_rules! functions_of {
    ($(($($parameter:ident)*))*) => {$(
        impl<'a, F, R, $($parameter),*> Function<'a, fn($($parameter),*) -> R> for F
        where
            F: Fn(&mut Host $(, $parameter)*) -> R,
            R: Returned,
            $($parameter: Argument<'a>,)*
        {
            const SIGNATURE: Signature =
                Signature { parameters: &[$($parameter::REGISTERS),*], returns: R::CLASS };

            #[inline(always)]
            #[allow(non_snake_case, unused_variables, unused_mut, unused_assignments)]
            unsafe fn call(&self, registers: &'a Registers, host: &mut Host) -> u64 {
                let mut register = 0;
                $(
                    // SAFETY: the registers are guaranteed by the caller, and each parameter takes as many as it says.
                    let $parameter = unsafe { $parameter::from_registers(registers, register) };
                    register += $parameter::REGISTERS.len();
                )*
                self(host $(, $parameter)*).into_register()
            }
        }
    )*};
}

functions_of! { () (A) (A B) (A B C) (A B C D) (A B C D E) }

/// The signature of a function, which the compiler infers.
pub(super) const fn signature<'a, S, F: Function<'a, S>>(_: &F) -> Signature {
    F::SIGNATURE
}

/// Whether a function has the prototype in a helper's row.
pub(super) const fn fits_helper(signature: Signature, id: HelperId) -> bool {
    let Some(prototype) = id.row().prototype else { return false };
    let mut classes = [Class::NUMBER; 5];
    let mut index = 0;
    while index < prototype.args.len() {
        classes[index] = Class::of_arg(prototype.args[index]);
        index += 1;
    }
    signature.fits(classes.split_at(index).0, ResultClass::of_return(prototype.returns))
}

/// Whether a function has the prototype in a kernel function's row.
pub(super) const fn fits_kfunc(signature: Signature, name: &str) -> bool {
    let Some(kfunc) = Kfunc::from_any_name(name) else { return false };
    let mut classes = [Class::NUMBER; 5];
    let mut index = 0;
    while index < kfunc.args.len() {
        classes[index] = Class::of_kfunc_arg(kfunc.args[index]);
        index += 1;
    }
    signature.fits(classes.split_at(index).0, ResultClass::of_kfunc_return(kfunc.returns))
}

/// The C function of a function whose signature was compared with a row: `$fits` of the signature and `$row`.
macro_rules! entry {
    ($function:expr, $fits:ident, $row:expr) => {{
        const _: () = assert!(
            $crate::helpers::function::$fits($crate::helpers::function::signature(&$function), $row),
            concat!("the parameters of ", stringify!($function), " differ from the prototype in the row"),
        );

        unsafe extern "C" fn entry(
            r1: u64,
            r2: u64,
            r3: u64,
            r4: u64,
            r5: u64,
            host: &mut $crate::host::Host,
        ) -> u64 {
            // SAFETY: the caller's arguments fit the prototype, which the signature was compared with.
            unsafe { $crate::helpers::function::Function::call(&$function, &[r1, r2, r3, r4, r5], host) }
        }

        entry as $crate::helpers::function::HelperFn
    }};
}

/// A table of helpers: a `const fn` from ids to C functions.
macro_rules! helper_table {
    ($(#[$doc:meta])* $visibility:vis fn $name:ident; $($id:ident => $function:expr,)*) => {
        $(#[$doc])*
        $visibility const fn $name(id: paceline_spec::helper::HelperId) -> Option<$crate::helpers::function::HelperFn> {
            use paceline_spec::helper::HelperId;
            Some(match id {
                $(HelperId::$id => $crate::helpers::function::entry!($function, fits_helper, HelperId::$id),)*
                _ => return None,
            })
        }
    };
}

/// A table of kernel functions: a function from names to C functions.
macro_rules! kfunc_table {
    ($(#[$doc:meta])* $visibility:vis fn $name:ident; $($kfunc:literal => $function:expr,)*) => {
        $(#[$doc])*
        $visibility fn $name(name: &str) -> Option<$crate::helpers::function::HelperFn> {
            Some(match name {
                $($kfunc => $crate::helpers::function::entry!($function, fits_kfunc, $kfunc),)*
                _ => return None,
            })
        }
    };
}

pub(super) use {entry, helper_table, kfunc_table};
