//! Functions of error handles.

use std::ffi::c_char;

use crate::call;
use crate::opaque::paceline_error;
use crate::raw::Filled;
use crate::status::paceline_status;
use crate::told::{ERRORS, paceline_error_details};

/// Frees an error. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_error_free(error: *mut paceline_error) -> paceline_status {
    call::plain_status(|| ERRORS.free(error))
}

/// The message of an error: one line, which lives as long as the handle. An empty text if it is no error.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_error_message(error: *const paceline_error) -> *const c_char {
    call::plain(c"".as_ptr(), || Ok(ERRORS.get(error)?.message.as_ptr()))
}

/// How the call ended that gave the error.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_error_status(error: *const paceline_error) -> paceline_status {
    call::plain(paceline_status::Handle, || Ok(ERRORS.get(error)?.status()))
}

/// All that is known of an error.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_error_read(
    error: *const paceline_error,
    details: Filled<paceline_error_details>,
) -> paceline_status {
    call::plain_status(|| details.write(ERRORS.get(error)?.details()))
}
