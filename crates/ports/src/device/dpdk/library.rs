//! The functions of `libpaceline-dpdk.so`, by the declarations in `dpdk/paceline_dpdk.h`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, ptr};

use libloading::Library as Opened;

use crate::device::error::OpenError;

/// `PACELINE_DPDK_ABI`
const ABI: u32 = 1;
/// `PACELINE_DPDK_BURST`
pub(super) const BURST: usize = 64;
/// Name of the library, unless the environment variable `PACELINE_DPDK` names a file.
const NAME: &str = "libpaceline-dpdk.so";
const ERROR_LEN: usize = 256;

/// `struct paceline_dpdk_error`
#[repr(C)]
struct Error {
    text: *mut c_char,
    size: usize,
}

/// `struct paceline_dpdk_memory`
#[repr(C)]
pub(super) struct Memory {
    pub(super) start: *mut u8,
    pub(super) len: u64,
    pub(super) chunk_len: u32,
    pub(super) headroom: u32,
    pub(super) tailroom: u32,
}

/// `struct paceline_dpdk_info`
#[repr(C)]
pub(super) struct Info {
    pub(super) queues: u32,
    pub(super) ifindex: u32,
    pub(super) chunks: u32,
    driver: *const c_char,
}

/// `struct paceline_dpdk_packet`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub(super) chunk: *mut u8,
    pub(super) data: *const u8,
    pub(super) len: u32,
    reserved: u32,
    pub(super) mbuf: *mut c_void,
}

impl Packet {
    pub(super) const NONE: Self =
        Self { chunk: ptr::null_mut(), data: ptr::null(), len: 0, reserved: 0, mbuf: ptr::null_mut() };

    pub(super) fn new(chunk: *mut u8, data: *const u8, len: u32) -> Self {
        Self { chunk, data, len, ..Self::NONE }
    }
}

type RawDevice = *mut c_void;
type RawQueue = *mut c_void;

/// Function addresses in the library, which is never closed.
struct Functions {
    abi: unsafe extern "C" fn() -> u32,
    start: unsafe extern "C" fn(c_int, *mut *mut c_char, Error) -> c_int,
    open: unsafe extern "C" fn(*const c_char, u32, u32, *const Memory, *mut Info, Error) -> RawDevice,
    queue: unsafe extern "C" fn(RawDevice, *const *mut u8, Error) -> RawQueue,
    run: unsafe extern "C" fn(RawDevice, Error) -> c_int,
    receive: unsafe extern "C" fn(RawQueue, *const *mut u8, *mut u32, *mut Packet, u32) -> u32,
    read: unsafe extern "C" fn(*mut c_void, *mut u8, u32) -> u32,
    send: unsafe extern "C" fn(RawQueue, *mut Packet, u32) -> u32,
    dropped: unsafe extern "C" fn(RawDevice) -> u64,
    is_gone: unsafe extern "C" fn(RawDevice) -> c_int,
    close: unsafe extern "C" fn(RawDevice),
}

impl Functions {
    fn load(name: &OsString) -> Result<&'static Self, libloading::Error> {
        // Never closed: DPDK's threads run in it.
        // SAFETY: the library's initialization, and that of DPDK's libraries, only sets up their own data.
        let library: &Opened = Box::leak(Box::new(unsafe { Opened::new(name)? }));
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field's type is that of the function's declaration in `dpdk/paceline_dpdk.h`, whose version is checked
                // before another function is called.
                unsafe { *library.get($name)? }
            };
        }
        Ok(Box::leak(Box::new(Self {
            abi: function!(b"paceline_dpdk_abi\0"),
            start: function!(b"paceline_dpdk_start\0"),
            open: function!(b"paceline_dpdk_open\0"),
            queue: function!(b"paceline_dpdk_queue\0"),
            run: function!(b"paceline_dpdk_run\0"),
            receive: function!(b"paceline_dpdk_receive\0"),
            read: function!(b"paceline_dpdk_read\0"),
            send: function!(b"paceline_dpdk_send\0"),
            dropped: function!(b"paceline_dpdk_dropped\0"),
            is_gone: function!(b"paceline_dpdk_is_gone\0"),
            close: function!(b"paceline_dpdk_close\0"),
        })))
    }
}

/// Calls a function that writes a text for its error.
fn reported<T>(call: impl FnOnce(Error) -> Option<T>) -> Result<T, OpenError> {
    let mut text = [0_u8; ERROR_LEN];
    let result = call(Error { text: text.as_mut_ptr().cast(), size: ERROR_LEN });
    result.ok_or_else(|| {
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        OpenError::Dpdk { message: text.to_string_lossy().into_owned() }
    })
}

/// The library, with DPDK initialized: once in a process.
fn started() -> Result<&'static Functions, OpenError> {
    static STARTED: Mutex<Option<&'static Functions>> = Mutex::new(None);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(functions) = *started {
        return Ok(functions);
    }
    let name = env::var_os("PACELINE_DPDK").unwrap_or_else(|| NAME.into());
    let functions = Functions::load(&name).map_err(|error| OpenError::NoDpdk { cause: error.to_string() })?;
    // SAFETY: the function has no conditions.
    let abi = unsafe { (functions.abi)() };
    if abi != ABI {
        let name = name.to_string_lossy();
        return Err(OpenError::NoDpdk { cause: format!("{name} has interface {abi}, not {ABI}") });
    }
    let arguments = arguments();
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    let count = pointers.len() as c_int;
    // SAFETY: `count` strings, which DPDK copies as far as it keeps them.
    reported(|error| (unsafe { (functions.start)(count, pointers.as_mut_ptr(), error) } == 0).then_some(()))?;
    // DPDK keeps pointers to its arguments.
    std::mem::forget((arguments, pointers));
    *started = Some(functions);
    Ok(functions)
}

/// The arguments of DPDK's command line (`rte_eal_init`): no files, no services, one CPU, no PCI device but those that are opened;
/// then those of the environment variable `PACELINE_DPDK_ARGS`, between spaces.
fn arguments() -> Vec<CString> {
    let cpu = rustix::thread::sched_getaffinity(None)
        .ok()
        .and_then(|cpus| (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| cpus.is_set(cpu)));
    let mut arguments = vec![
        "paceline".to_owned(),
        "--no-telemetry".to_owned(),
        "--log-level=*:error".to_owned(),
        format!("--lcores=0@{}", cpu.unwrap_or(0)),
        "--allow=0000:00:00.0".to_owned(),
    ];
    let memory: &[&str] = if has_huge_pages() { &["--in-memory"] } else { &["--no-huge", "--no-shconf"] };
    arguments.extend(memory.iter().map(|&argument| argument.to_owned()));
    let more = env::var("PACELINE_DPDK_ARGS").unwrap_or_default();
    arguments.extend(more.split_whitespace().map(str::to_owned));
    arguments.into_iter().filter_map(|argument| CString::new(argument).ok()).collect()
}

/// Whether huge pages are free, of any size.
fn has_huge_pages() -> bool {
    let sizes = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let free = |path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    sizes.filter_map(|size| free(size.path().join("free_hugepages"))).any(|pages| pages > 0)
}

/// Held while a device is opened or closed, which DPDK does for one at a time.
static CHANGE: Mutex<()> = Mutex::new(());

fn change() -> MutexGuard<'static, ()> {
    CHANGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open device.
pub(super) struct Device {
    functions: &'static Functions,
    raw: RawDevice,
    pub(super) info: Info,
    pub(super) driver: String,
}

// SAFETY: DPDK's functions may be called from any thread; those of one queue are called by its owner only.
unsafe impl Send for Device {}
// SAFETY: through a shared device only statistics are read, which DPDK allows at any time.
unsafe impl Sync for Device {}

impl Device {
    /// Opens a device with at most a number of queues, each of at most `frames` frames.
    pub(super) fn open(devargs: &str, queues: u32, frames: u32, memory: &Memory) -> Result<Self, OpenError> {
        let functions = started()?;
        let devargs = CString::new(devargs)
            .map_err(|_| OpenError::Dpdk { message: "the device's name contains a zero byte".to_owned() })?;
        let _change = change();
        let mut info = Info { queues: 0, ifindex: 0, chunks: 0, driver: ptr::null() };
        let raw = reported(|error| {
            // SAFETY: the string ends with a zero byte; memory and properties are valid for the call.
            let raw =
                unsafe { (functions.open)(devargs.as_ptr(), queues, frames, memory, &raw mut info, error) };
            (!raw.is_null()).then_some(raw)
        })?;
        // SAFETY: the driver's name is a string of the driver's, which is never unloaded.
        let driver = unsafe { CStr::from_ptr(info.driver) }.to_string_lossy().into_owned();
        Ok(Self { functions, raw, info, driver })
    }

    /// Sets up the next queue with its chunks.
    pub(super) fn queue(&mut self, chunks: &[*mut u8]) -> Result<Queue, OpenError> {
        assert_eq!(chunks.len(), self.info.chunks as usize, "as many chunks as the device asked for");
        let raw = reported(|error| {
            // SAFETY: there are `info.chunks` chunks, and the device is open.
            let raw = unsafe { (self.functions.queue)(self.raw, chunks.as_ptr(), error) };
            (!raw.is_null()).then_some(raw)
        })?;
        Ok(Queue { functions: self.functions, raw })
    }

    /// Starts the device.
    pub(super) fn run(&mut self) -> Result<(), OpenError> {
        // SAFETY: the device is open, and all its queues are set up.
        reported(|error| (unsafe { (self.functions.run)(self.raw, error) } == 0).then_some(()))
    }

    /// Packets that the device dropped before they could be received.
    pub(super) fn dropped(&self) -> u64 {
        // SAFETY: the device is open.
        unsafe { (self.functions.dropped)(self.raw) }
    }

    pub(super) fn is_gone(&self) -> bool {
        // SAFETY: the device is open.
        unsafe { (self.functions.is_gone)(self.raw) != 0 }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _change = change();
        // SAFETY: the device is open, and no queue of it is in use: their owners hold the device.
        unsafe { (self.functions.close)(self.raw) };
    }
}

/// A queue of a device, for the thread that owns the value. The device must live longer.
pub(super) struct Queue {
    functions: &'static Functions,
    raw: RawQueue,
}

// SAFETY: a queue may be used by any thread, one at a time.
unsafe impl Send for Queue {}

impl Queue {
    /// Receives packets, at most one for each free chunk; returns their number, and that of the free chunks that the queue now has.
    ///
    /// # Safety
    /// The device is open. The chunks are of the device's memory, and nothing else uses them.
    pub(super) unsafe fn receive(
        &mut self,
        fresh: &[*mut u8],
        packets: &mut [Packet; BURST],
    ) -> (usize, usize) {
        let count = fresh.len().min(BURST) as u32;
        let mut used = 0;
        // SAFETY: the arrays have `count` elements; device and chunks are guaranteed by the caller.
        let received = unsafe {
            (self.functions.receive)(self.raw, fresh.as_ptr(), &raw mut used, packets.as_mut_ptr(), count)
        };
        (received as usize, used as usize)
    }

    /// Copies the packet of an mbuf, as far as it fits, releases the mbuf, and returns the packet's length.
    ///
    /// # Safety
    /// `receive` returned the mbuf, and this is called once for it.
    pub(super) unsafe fn read(&mut self, mbuf: *mut c_void, packet: &mut [u8]) -> usize {
        // SAFETY: the slice is writable; the mbuf is guaranteed by the caller.
        unsafe { (self.functions.read)(mbuf, packet.as_mut_ptr(), packet.len() as u32) as usize }
    }

    /// Sends packets; returns the number of those that the device took. `chunk` of each packet is then the chunk that the caller owns.
    ///
    /// # Safety
    /// The device is open. Data is readable, and chunks are of the device's memory, hold the data, and are used by nothing else.
    pub(super) unsafe fn send(&mut self, packets: &mut [Packet]) -> usize {
        // SAFETY: the packets are guaranteed by the caller.
        unsafe { (self.functions.send)(self.raw, packets.as_mut_ptr(), packets.len() as u32) as usize }
    }
}
