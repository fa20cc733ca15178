//! libpcap, opened where it is installed: nothing is linked with it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use paceline_load::classic::SockFilter;

/// `DLT_EN10MB`.
pub const LINK_ETHERNET: c_int = 1;

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Insn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// `struct bpf_program`.
#[repr(C)]
struct Program {
    len: c_uint,
    insns: *mut Insn,
}

type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
type Compile = unsafe extern "C" fn(*mut c_void, *mut Program, *const c_char, c_int, u32) -> c_int;
type FreeCode = unsafe extern "C" fn(*mut Program);
type GetError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Close = unsafe extern "C" fn(*mut c_void);
type Run = unsafe extern "C" fn(*const Insn, *const u8, c_uint, c_uint) -> c_uint;
type Image = unsafe extern "C" fn(*const Insn, c_int) -> *const c_char;

/// The functions of libpcap that are used.
pub struct Libpcap {
    open_dead: OpenDead,
    compile: Compile,
    free_code: FreeCode,
    get_error: GetError,
    close: Close,
    run: Run,
    image: Image,
}

/// libpcap is not there, or lacks a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(String);

/// Serializes what is not safe in several threads: libpcap's parser before 1.8, the buffer of its listings.
static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn convert(insns: &[SockFilter]) -> Vec<Insn> {
    insns.iter().map(|&SockFilter { code, jt, jf, k }| Insn { code, jt, jf, k }).collect()
}

impl Libpcap {
    /// Opens it by the names it has on Debian and elsewhere.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn open() -> Result<Self, Missing> {
        let names = [c"libpcap.so.0.8", c"libpcap.so.1", c"libpcap.so"];
        // SAFETY: names are strings; the library stays open for good.
        let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let handle = names.iter().map(|name| open(name)).find(|handle| !handle.is_null());
        let handle = handle.ok_or_else(|| Missing("libpcap is not installed".to_owned()))?;
        let symbol = |name: &CStr| {
            // SAFETY: the handle is open and the name a string.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if symbol.is_null() { Err(Missing(format!("libpcap has no {name:?}"))) } else { Ok(symbol) }
        };
        macro_rules! function {
            ($name:literal as $ty:ty) => {
                // SAFETY: the type is that of the function's declaration in `pcap.h`.
                unsafe { std::mem::transmute::<*mut c_void, $ty>(symbol($name)?) }
            };
        }
        Ok(Self {
            open_dead: function!(c"pcap_open_dead" as OpenDead),
            compile: function!(c"pcap_compile" as Compile),
            free_code: function!(c"pcap_freecode" as FreeCode),
            get_error: function!(c"pcap_geterr" as GetError),
            close: function!(c"pcap_close" as Close),
            run: function!(c"bpf_filter" as Run),
            image: function!(c"bpf_image" as Image),
        })
    }

    /// Compiles an expression for packets of a link type, optimized.
    ///
    /// # Errors
    /// What libpcap says.
    pub fn compile(&self, link: c_int, expression: &str) -> Result<Vec<SockFilter>, String> {
        const SNAPLEN: c_int = 262_144;
        const NETMASK_UNKNOWN: u32 = 0xffff_ffff;
        let text = CString::new(expression).map_err(|error| error.to_string())?;
        let _lock = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the handle is checked, lives until it is closed, and the program is freed once if it was made.
        unsafe {
            let handle = (self.open_dead)(link, SNAPLEN);
            if handle.is_null() {
                return Err("no memory".to_owned());
            }
            let mut program = Program { len: 0, insns: std::ptr::null_mut() };
            let result = if (self.compile)(handle, &mut program, text.as_ptr(), 1, NETMASK_UNKNOWN) == 0 {
                let insns = std::slice::from_raw_parts(program.insns, program.len as usize);
                let insns = insns.iter().map(|i| SockFilter { code: i.code, jt: i.jt, jf: i.jf, k: i.k });
                let insns = insns.collect();
                (self.free_code)(&mut program);
                Ok(insns)
            } else {
                Err(CStr::from_ptr((self.get_error)(handle)).to_string_lossy().into_owned())
            };
            (self.close)(handle);
            result
        }
    }

    /// What `bpf_filter` returns. The program must have passed the checker, for libpcap checks nothing here.
    #[must_use]
    pub fn run(&self, filter: &paceline_load::classic::Filter, packet: &[u8], wire_len: u32) -> u32 {
        let insns = convert(filter.insns());
        let len = packet.len() as c_uint;
        // SAFETY: a checked program ends within itself and uses scratch memory within its bounds; the packet has so
        // many bytes.
        unsafe { (self.run)(insns.as_ptr(), packet.as_ptr(), wire_len, len) }
    }

    /// A line of `tcpdump -d`.
    #[must_use]
    pub fn image(&self, insn: SockFilter, index: usize) -> String {
        let insn = convert(&[insn]);
        let _lock = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the instruction lives; the buffer is libpcap's and nobody else uses it under the lock.
        let text = unsafe { CStr::from_ptr((self.image)(insn.as_ptr(), index as c_int)) };
        text.to_string_lossy().into_owned()
    }
}
