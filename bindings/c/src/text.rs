//! Texts that C gets and frees.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

use crate::c_string::c_string;
use crate::call;
use crate::status::{Failure, paceline_status};

/// The texts that were given out and not freed, by address.
static GIVEN: Mutex<BTreeMap<usize, CString>> = Mutex::new(BTreeMap::new());

/// Gives a text to C, which frees it with `paceline_string_free`.
pub(crate) fn give(text: &str) -> *mut c_char {
    let text = c_string(text);
    let address = text.as_ptr().cast_mut();
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(address.addr(), text);
    address
}

/// Frees a text that a function of this library gave to the caller to free. Null is allowed. A text that is none, or was freed and is
/// nobody's again, is `PACELINE_STATUS_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_string_free(string: *mut c_char) -> paceline_status {
    call::plain_status(|| {
        if string.is_null() {
            return Ok(());
        }
        let taken = GIVEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&string.addr());
        taken.map(drop).ok_or_else(|| Failure::new(paceline_status::Handle, "no text of the library"))
    })
}
