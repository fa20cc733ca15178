//! Calls of the library from Rust: arguments from references, results with their errors.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::ptr;

use paceline_c::*;

use crate::library::c;

/// An error as the library told it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: paceline_status,
    pub(crate) message: String,
    pub(crate) program: Option<String>,
    pub(crate) slot: u64,
    pub(crate) index: u64,
}

/// Bytes as a parameter; the library uses them during the call only.
pub(crate) fn bytes(bytes: &[u8]) -> Bytes {
    // SAFETY: the bytes live during the call, for which the value is made.
    unsafe { Bytes::new(bytes.as_ptr()) }
}

pub(crate) fn no_bytes() -> Bytes {
    // SAFETY: null is allowed.
    unsafe { Bytes::new(ptr::null()) }
}

pub(crate) fn text(text: &CStr) -> Text {
    // SAFETY: as for bytes.
    unsafe { Text::new(text.as_ptr()) }
}

pub(crate) fn no_text() -> Text {
    // SAFETY: null is allowed.
    unsafe { Text::new(ptr::null()) }
}

pub(crate) fn list<T>(list: &[T]) -> List<T> {
    // SAFETY: as for bytes.
    unsafe { List::new(list.as_ptr()) }
}

pub(crate) fn room(room: &mut [u8]) -> Room {
    // SAFETY: the room lives during the call, and nothing else uses it.
    unsafe { Room::new(room.as_mut_ptr()) }
}

pub(crate) fn given<T>(structure: &T) -> Given<T> {
    // SAFETY: as for bytes.
    unsafe { Given::new(structure) }
}

pub(crate) fn all<T>(structures: &[T]) -> Given<T> {
    // SAFETY: as for bytes.
    unsafe { Given::new(structures.as_ptr()) }
}

pub(crate) fn nothing<T>() -> Given<T> {
    // SAFETY: null is allowed.
    unsafe { Given::new(ptr::null()) }
}

pub(crate) fn filled<T>(structure: &mut T) -> Filled<T> {
    // SAFETY: as for room.
    unsafe { Filled::new(structure) }
}

pub(crate) fn out<T>(place: &mut T) -> Out<T> {
    // SAFETY: as for room.
    unsafe { Out::new(place) }
}

pub(crate) fn unwanted<T>() -> Out<T> {
    // SAFETY: null is allowed.
    unsafe { Out::new(ptr::null_mut()) }
}

/// A structure of which everything is zero but its size, as in C.
pub(crate) fn zeroed<T: Growing>() -> T {
    // SAFETY: structures of C whose first member is the size; zero is a value of every one.
    unsafe {
        let mut value = MaybeUninit::<T>::zeroed();
        value.as_mut_ptr().cast::<usize>().write(size_of::<T>());
        value.assume_init()
    }
}

/// A call that gives a status.
pub(crate) fn status(call: impl FnOnce(Out<*mut paceline_error>) -> paceline_status) -> Result<(), Told> {
    let mut error = ptr::null_mut();
    match call(out(&mut error)) {
        paceline_status::Ok => {
            assert!(error.is_null(), "a call that succeeds gives no error");
            Ok(())
        }
        status => Err(read(status, error)),
    }
}

/// A call that gives a handle.
pub(crate) fn handle<O>(call: impl FnOnce(Out<*mut paceline_error>) -> *mut O) -> Result<*mut O, Told> {
    let mut error = ptr::null_mut();
    let handle = call(out(&mut error));
    if handle.is_null() { Err(read(paceline_status::NotFound, error)) } else { Ok(handle) }
}

/// Reads and frees an error.
fn read(status: paceline_status, error: *mut paceline_error) -> Told {
    if error.is_null() {
        return Told { status, message: String::new(), program: None, slot: u64::MAX, index: u64::MAX };
    }
    let mut details: paceline_error_details = zeroed();
    assert_eq!(c::paceline_error_read(error, filled(&mut details)), paceline_status::Ok);
    let told = Told {
        status: details.status,
        message: string(details.message).unwrap_or_default(),
        program: string(details.program),
        slot: details.slot,
        index: details.index,
    };
    assert_eq!(c::paceline_error_free(error), paceline_status::Ok);
    told
}

/// A text of the library, which lives now; `None` for null.
pub(crate) fn string(text: *const c_char) -> Option<String> {
    // SAFETY: the library's texts end with a null byte and live as long as their handle.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text).expect("names have no null byte")
}

/// A program of an object of the examples, with its collection, which is freed.
pub(crate) fn example(object: &str, program: &str) -> *mut paceline_program {
    let collection = collection(object);
    let program = c_string(program);
    let program =
        handle(|error| c::paceline_collection_program(collection, text(&program), error)).expect("it loads");
    assert_eq!(c::paceline_collection_free(collection), paceline_status::Ok);
    program
}

/// The collection of an object of the examples.
pub(crate) fn collection(object: &str) -> *mut paceline_collection {
    let path = c_string(&format!("{}/../../examples/{object}", env!("CARGO_MANIFEST_DIR")));
    let object = handle(|error| c::paceline_object_open(text(&path), nothing(), error)).expect("it opens");
    let options = paceline_load_options { cpus: 2, ..zeroed() };
    let collection =
        handle(|error| c::paceline_object_load(object, given(&options), error)).expect("it loads");
    assert_eq!(c::paceline_object_free(object), paceline_status::Ok);
    collection
}

/// A packet of these bytes.
pub(crate) fn packet(data: &[u8]) -> paceline_packet {
    paceline_packet { data: bytes(data), length: data.len(), ..zeroed() }
}
