//! Bindings of the used functions of libpcap, by the declarations in `pcap/pcap.h` and `pcap/bpf.h`.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};

use crate::insn::SockFilter;
use libloading::{Error, Library};

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Insn {
    code: c_ushort,
    jt: c_uchar,
    jf: c_uchar,
    k: u32,
}

impl From<SockFilter> for Insn {
    fn from(SockFilter { code, jt, jf, k }: SockFilter) -> Self {
        Self { code, jt, jf, k }
    }
}

impl From<Insn> for SockFilter {
    fn from(Insn { code, jt, jf, k }: Insn) -> Self {
        Self { code, jt, jf, k }
    }
}

/// `struct bpf_program`.
#[repr(C)]
pub(crate) struct Program {
    pub(crate) len: c_uint,
    pub(crate) insns: *mut Insn,
}

/// `pcap_t`
pub(crate) type Handle = *mut c_void;

/// `PCAP_ERRBUF_SIZE`
pub(crate) const ERROR_LEN: usize = 256;

/// Function addresses in the library, which stays open while they are in use.
pub(crate) struct Functions {
    pub(crate) open_dead: unsafe extern "C" fn(c_int, c_int) -> Handle,
    pub(crate) fopen_offline: unsafe extern "C" fn(*mut libc::FILE, *mut c_char) -> Handle,
    pub(crate) compile: unsafe extern "C" fn(Handle, *mut Program, *const c_char, c_int, u32) -> c_int,
    pub(crate) free_code: unsafe extern "C" fn(*mut Program),
    pub(crate) get_error: unsafe extern "C" fn(Handle) -> *const c_char,
    pub(crate) close: unsafe extern "C" fn(Handle),
    pub(crate) run: unsafe extern "C" fn(*const Insn, *const c_uchar, c_uint, c_uint) -> c_uint,
    pub(crate) image: unsafe extern "C" fn(*const Insn, c_int) -> *const c_char,
    pub(crate) version: unsafe extern "C" fn() -> *const c_char,
    _library: Library,
}

impl Functions {
    /// Loads the library with this file name.
    ///
    /// # Errors
    /// The error of the dynamic linker.
    pub(crate) fn load(name: &str) -> Result<Self, Error> {
        // SAFETY: libpcap's initialization only sets up its own data.
        let library = unsafe { Library::new(name)? };
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field's type is that of the function's declaration, and the library stays open while the address is
                // in use.
                unsafe { *library.get($name)? }
            };
        }
        Ok(Self {
            open_dead: function!(b"pcap_open_dead\0"),
            fopen_offline: function!(b"pcap_fopen_offline\0"),
            compile: function!(b"pcap_compile\0"),
            free_code: function!(b"pcap_freecode\0"),
            get_error: function!(b"pcap_geterr\0"),
            close: function!(b"pcap_close\0"),
            run: function!(b"bpf_filter\0"),
            image: function!(b"bpf_image\0"),
            version: function!(b"pcap_lib_version\0"),
            _library: library,
        })
    }
}
