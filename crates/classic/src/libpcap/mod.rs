//! libpcap, loaded at run time if installed: the compiler of tcpdump's filter expressions, and a reference interpreter of classic
//! BPF.
//!
//! Programs are not linked with libpcap, so that they start without it, and report its absence only if an expression is used.
//!
//! An expression is compiled with a handle of a capture file that consists of its header alone, so that libpcap's rules for files
//! apply.

mod abi;

use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::check::Filter;
use super::insn::SockFilter;

use abi::{Functions, Insn};

/// File names of the library: that of Debian and its derivatives, that of other systems, and those of development packages.
const NAMES: [&str; 4] = ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so", "libpcap.dylib"];

/// A loaded libpcap.
pub struct Libpcap {
    functions: Functions,
}

impl std::fmt::Debug for Libpcap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Libpcap").finish_non_exhaustive()
    }
}

/// libpcap is not installed, or incompatible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("libpcap, which compiles filter expressions, cannot be loaded: {0}")]
pub struct Missing(String);

/// Target of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// `LINKTYPE_` number of the packets, as in captures: 1 for Ethernet.
    pub link_type: u32,
    /// Return value of the program for a match: the maximum number of bytes to keep.
    pub snaplen: u32,
    /// Whether libpcap's optimizer runs, as in tcpdump without `-O`. Its code may match other packets than the expression, and for an
    /// expression of a thousand hosts it takes minutes.
    pub optimize: bool,
    /// Source of the packets, which affects some rules of libpcap.
    pub packets: Packets,
}

/// Source of a filter's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// An interface of this machine with an unknown netmask: `ip broadcast` is refused, and `inbound` and the like depend on the
    /// kernel.
    Live,
    /// A capture, as in tcpdump: link-layer headers have its byte order, the netmask is 0, and conditions that captures cannot
    /// answer are refused.
    Capture {
        /// Byte order of the capturing machine.
        big_endian: bool,
    },
}

/// Maximum number of bytes of a packet that libpcap keeps (`MAXIMUM_SNAPLEN` in its `pcap-int.h`).
pub const MAX_SNAPLEN: u32 = 262_144;

impl Default for Target {
    /// Ethernet, complete packets of an interface, not optimized by libpcap.
    fn default() -> Self {
        Self { link_type: 1, snaplen: MAX_SNAPLEN, optimize: false, packets: Packets::Live }
    }
}

impl Target {
    /// `PCAP_NETMASK_UNKNOWN`, or tcpdump's value for captures.
    fn netmask(self) -> u32 {
        match self.packets {
            Packets::Live => u32::MAX,
            Packets::Capture { .. } => 0,
        }
    }

    /// The header of a pcap file with these packets: version 2.4, in microseconds.
    fn capture_header(self, big_endian: bool) -> [u8; 24] {
        const MAGIC: u32 = 0xa1b2_c3d4;
        let version = if big_endian { 0x0002_0004 } else { 0x0004_0002 };
        let mut header = [0; 24];
        for (field, value) in
            header.chunks_exact_mut(4).zip([MAGIC, version, 0, 0, self.snaplen, self.link_type])
        {
            field.copy_from_slice(&if big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        }
        header
    }
}

/// libpcap's error for an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// libpcap's message.
    pub message: String,
}

/// Held during calls that are not thread-safe: the parser of libpcap before 1.8, and the static buffer of its listings.
static LOCK: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Libpcap {
    /// Loads libpcap by its known file names.
    ///
    /// # Errors
    /// [`Missing`], with the error of the dynamic linker.
    pub fn open() -> Result<Self, Missing> {
        let mut first = None;
        for name in NAMES {
            match Functions::load(name) {
                Ok(functions) => return Ok(Self { functions }),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(Missing(first.map(|error| error.to_string()).unwrap_or_default()))
    }

    /// libpcap's version string, such as `libpcap version 1.10.3 (with TPACKET_V3)`.
    #[must_use]
    pub fn version(&self) -> String {
        // SAFETY: has no arguments and returns a string that is never freed.
        unsafe { text((self.functions.version)()) }
    }

    /// Compiles an expression of tcpdump (`man pcap-filter`).
    ///
    /// Names of hosts, networks and services are resolved by the system's configuration.
    ///
    /// # Errors
    /// libpcap's error.
    pub fn compile(&self, expression: &str, target: Target) -> Result<Vec<SockFilter>, CompileError> {
        let failed = |message: &str| CompileError { message: message.to_owned() };
        let source = CString::new(expression).map_err(|_| failed("the expression has a zero byte"))?;
        let Functions { compile, free_code, get_error, close, .. } = self.functions;
        let optimize = i32::from(target.optimize);
        let _lock = lock();
        let mut header = [0; 24];
        // SAFETY: the header lives until the handle is closed. That happens once, after the last use of the handle and of its error
        // message; the program is read while its instructions are allocated, and they are freed once.
        unsafe {
            let handle = self.open_handle(target, &mut header)?;
            let mut program = abi::Program { len: 0, insns: std::ptr::null_mut() };
            let result = if compile(handle, &mut program, source.as_ptr(), optimize, target.netmask()) == 0 {
                let insns =
                    (0..program.len as usize).map(|index| (*program.insns.add(index)).into()).collect();
                free_code(&mut program);
                Ok(insns)
            } else {
                Err(CompileError { message: text(get_error(handle)) })
            };
            close(handle);
            result
        }
    }

    /// Opens a libpcap handle for such packets, to be closed by the caller. For a capture, it is the handle of a file that contains
    /// only the `header`, so that libpcap itself interprets it.
    ///
    /// # Safety
    /// The header must not move until the handle is closed.
    unsafe fn open_handle(&self, target: Target, header: &mut [u8; 24]) -> Result<abi::Handle, CompileError> {
        let failed = |message: &str| CompileError { message: message.to_owned() };
        let Functions { open_dead, fopen_offline, .. } = self.functions;
        let Packets::Capture { big_endian } = target.packets else {
            let snaplen = target.snaplen.min(MAX_SNAPLEN).cast_signed();
            // SAFETY: takes numbers only.
            let handle = unsafe { open_dead(dlt(target.link_type), snaplen) };
            return if handle.is_null() { Err(failed("out of memory")) } else { Ok(handle) };
        };
        *header = target.capture_header(big_endian);
        let mut error = [0; abi::ERROR_LEN];
        // SAFETY: the stream reads the header, which the caller keeps alive, and is closed with the handle, or here without one.
        // The message fits the buffer and is null-terminated.
        unsafe {
            let stream = libc::fmemopen(header.as_mut_ptr().cast(), header.len(), c"rb".as_ptr());
            if stream.is_null() {
                return Err(failed("out of memory"));
            }
            let handle = fopen_offline(stream, error.as_mut_ptr());
            if handle.is_null() {
                libc::fclose(stream);
                return Err(CompileError { message: text(error.as_ptr()) });
            }
            Ok(handle)
        }
    }

    /// The result of `bpf_filter` for a packet whose wire length is `wire_len`. A filter with a loop may not terminate, see
    /// [`Purpose::UserSpace`](crate::Purpose::UserSpace).
    #[must_use]
    pub fn run(&self, filter: &Filter, packet: &[u8], wire_len: u32) -> u32 {
        self.prepare(filter).run(packet, wire_len)
    }

    /// Converts a filter to the form that `bpf_filter` takes, to run it on many packets.
    #[must_use]
    pub fn prepare(&self, filter: &Filter) -> Prepared<'_> {
        Prepared { libpcap: self, insns: filter.insns().iter().copied().map(Insn::from).collect() }
    }

    /// An instruction in the format of `tcpdump -d`.
    #[must_use]
    pub fn image(&self, insn: SockFilter, index: u32) -> String {
        let insn = Insn::from(insn);
        let _lock = lock();
        // SAFETY: the instruction lives during the call, and the lock protects the static buffer that it returns.
        unsafe { text((self.functions.image)(&raw const insn, index.cast_signed())) }
    }
}

/// A filter for libpcap's interpreter.
pub struct Prepared<'a> {
    libpcap: &'a Libpcap,
    insns: Vec<Insn>,
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl Prepared<'_> {
    /// The result of `bpf_filter` for a packet whose wire length is `wire_len`, see [`Libpcap::run`].
    #[must_use]
    pub fn run(&self, packet: &[u8], wire_len: u32) -> u32 {
        let len = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        // SAFETY: a `Filter` passed the checker, so execution stays within its instructions and scratch memory; the packet has at
        // least `len` bytes.
        unsafe { (self.libpcap.functions.run)(self.insns.as_ptr(), packet.as_ptr(), wire_len, len) }
    }
}

/// The `DLT_` number on Linux for a `LINKTYPE_` number, of which a few differ (libpcap's `pcap-common.c`).
fn dlt(link_type: u32) -> i32 {
    match link_type {
        100 => 11,
        101 => 12,
        102 => 15,
        103 => 16,
        106 => 19,
        same => same.cast_signed(),
    }
}

/// # Safety
/// `string` is null, or a string that lives during the call.
unsafe fn text(string: *const std::ffi::c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}
