//! Content of error handles.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;

use crate::c_string::c_string;
use crate::handles::Table;
use crate::opaque::paceline_error;
use crate::raw::{Out, written};
use crate::status::{Report, paceline_status};

/// Where an error handle goes; null if the caller only wants the status.
pub(crate) type ErrorOut = Out<*mut paceline_error>;

/// Content of an error handle, with its texts as strings of C.
pub(crate) struct Told {
    report: Report,
    pub(crate) message: CString,
    program: Option<CString>,
    map: Option<CString>,
    file: Option<CString>,
    source: Option<CString>,
    hint: Option<CString>,
}

pub(crate) static ERRORS: Table<Arc<Told>, paceline_error> = Table::new();

/// A number that is not known: of a slot or an index.
pub const PACELINE_UNKNOWN: u64 = u64::MAX;

/// Details of a call that failed. Texts are null where nothing is known, and live as long as the error handle.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_error_details {
    /// sizeof(struct paceline_error_details)
    pub size: usize,
    /// How the call ended.
    pub status: paceline_status,
    /// Error number of bpf(2), where the kernel has one for it; 0 otherwise.
    pub error_number: i32,
    /// One line that says what is wrong.
    pub message: *const c_char,
    /// The program.
    pub program: *const c_char,
    /// The map.
    pub map: *const c_char,
    /// The file: the object's, or the source file of a refused program, as the compiler saw it.
    pub file: *const c_char,
    /// The source line's text.
    pub source: *const c_char,
    /// How such a mistake is usually mended.
    pub hint: *const c_char,
    /// Source line from 1; 0 if not known.
    pub line: u32,
    /// Column from 1; 0 if not known.
    pub column: u32,
    /// Slot of the guilty instruction in the program, from 0; PACELINE_UNKNOWN if none is.
    pub slot: u64,
    /// Index among several packets, elements or changes, from 0; PACELINE_UNKNOWN if there is only one.
    pub index: u64,
}

written!(paceline_error_details);

/// Makes an error handle; null if there is no room for one.
pub(crate) fn give(mut report: Report) -> *mut paceline_error {
    let text = |text: Option<String>| text.map(|text| c_string(&text));
    let told = Told {
        message: c_string(&report.message),
        program: text(report.program.take()),
        map: text(report.map.take()),
        file: text(report.file.take()),
        source: text(report.source.take()),
        hint: text(report.hint.take()),
        report,
    };
    ERRORS.give(Arc::new(told)).unwrap_or(ptr::null_mut())
}

impl Told {
    pub(crate) fn status(&self) -> paceline_status {
        self.report.status.unwrap_or(paceline_status::Panic)
    }

    pub(crate) fn details(&self) -> paceline_error_details {
        let text = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let Report { error_number, place: (line, column), slot, index, .. } = self.report;
        paceline_error_details {
            size: size_of::<paceline_error_details>(),
            status: self.status(),
            error_number,
            message: self.message.as_ptr(),
            program: text(&self.program),
            map: text(&self.map),
            file: text(&self.file),
            source: text(&self.source),
            hint: text(&self.hint),
            line,
            column,
            slot: slot.unwrap_or(PACELINE_UNKNOWN),
            index: index.unwrap_or(PACELINE_UNKNOWN),
        }
    }
}
