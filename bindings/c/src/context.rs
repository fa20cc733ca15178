//! Fields of the sk_buff of TC classifiers, by name.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::LazyLock;

use paceline::SkBuffMember;

use crate::c_string::c_string;
use crate::call;
use crate::host::HOSTS;
use crate::opaque::paceline_host;
use crate::raw::{Out, Text};
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

/// Name of a field of the sk_buff by its index, from 0: those of `struct __sk_buff`, `cb[0]` to `cb[4]` for the words of `cb`. Null after the
/// last. The text is not freed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_context_name(index: usize) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> =
        LazyLock::new(|| SkBuffMember::ALL.iter().map(|member| c_string(member.name)).collect());
    call::plain(ptr::null(), || Ok(NAMES.get(index).map_or(ptr::null(), |name| name.as_ptr())))
}

/// Sets a field of the sk_buff that packets arrive with at TC classifiers, from now on; all are 0 at first. Fields that are computed from
/// the packet, and values that do not fit, are PACELINE_STATUS_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_set_context(
    host: *mut paceline_host,
    name: Text,
    value: u64,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut state = HOSTS.lock(host)?;
        let mut arriving = state.host.arriving();
        arriving.set(name.required("the name")?, value).map_err(Failure::argument)?;
        state.host.set_arriving(arriving);
        Ok(())
    })
}

/// A field of the sk_buff that a TC classifier left of a packet that ran alone.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_context(
    host: *mut paceline_host,
    name: Text,
    value: Out<u64>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let name = name.required("the name")?;
        let member = SkBuffMember::named(name)
            .ok_or_else(|| Failure::argument(format!("`__sk_buff` has no field `{name}`")))?;
        value.write(member.of(&HOSTS.lock(host)?.host.sk_buff()));
        Ok(())
    })
}
