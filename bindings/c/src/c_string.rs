//! Strings of C.

use std::ffi::CString;

/// A string of C; a null byte in the text becomes U+FFFD, as no string of C can have one.
pub(crate) fn c_string(text: &str) -> CString {
    let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.to_owned() };
    CString::new(text).unwrap_or_default()
}
