//! Versions of the library and of its interface, and what this machine has.

use std::ffi::{CStr, c_char};

use crate::call;
use crate::handles;
use crate::kinds;

/// Version of the interface: the number in the soname, libpaceline.so.1. Programs that were compiled for one version run with every
/// library of that version that is as new or newer.
pub const PACELINE_ABI_VERSION: u32 = 1;

/// Version of the interface of the library that runs; compare it with PACELINE_ABI_VERSION of the header if the library was opened by
/// dlopen.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_abi_version() -> u32 {
    PACELINE_ABI_VERSION
}

/// Version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn paceline_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Whether this machine has an engine, one of enum paceline_engine: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_engine_is_available(engine: u32) -> i32 {
    call::plain(0, || kinds::engine(engine).map(|_| 1))
}

/// Number of handles that were given out and not freed, of all kinds, to find those that a program forgets.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_live_handles() -> usize {
    handles::live()
}
