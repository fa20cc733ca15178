//! Functions of programs that timers call: without a packet, when no program runs.
//!
//! Engines know such a function by an address. In compiled code the address lies in the program's [`CallbackCode`], which is found by the
//! address and keeps the code; the plain interpreter has callbacks of its own.
//!
//! A `CallbackCode` is kept alive by the timer. It records how many CPUs its maps allow, because a callback bypasses the check at
//! the program's entry.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_epoch::Domain;
use paceline_frame::{Burst, FrameMeta};
use paceline_maps::{DueTimer, Map};

use crate::fault::{Fault, FaultKind};
use crate::host::Host;
use crate::per_cpu::PerCpuMaps;
use crate::rounds::words;
use crate::time::Clock;

/// Code in which functions are entered by their addresses.
pub trait CompiledFunctions: Send + Sync {
    /// The addresses of the code.
    fn range(&self) -> Range<u64>;

    /// Calls the function at an address, with `r1` to `r5`; a fault is in the host.
    ///
    /// # Safety
    /// A function of a verified program must start at the address, which takes such arguments; the maps must be those of its program,
    /// and the host must run a packet.
    unsafe fn call(&self, address: u64, arguments: [u64; 5], maps: &[Arc<Map>], host: &mut Host);
}

/// Compiled code with functions that timers may call, and the maps that the code uses.
pub struct CallbackCode {
    range: Range<u64>,
    code: Box<dyn CompiledFunctions>,
    /// Callbacks are entered past the check at the entry of their program.
    per_cpu: PerCpuMaps,
    maps: Vec<Arc<Map>>,
}

impl std::fmt::Debug for CallbackCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallbackCode").finish_non_exhaustive()
    }
}

fn callback_code() -> MutexGuard<'static, BTreeMap<u64, Weak<CallbackCode>>> {
    static CALLBACK_CODE: Mutex<BTreeMap<u64, Weak<CallbackCode>>> = Mutex::new(BTreeMap::new());
    CALLBACK_CODE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallbackCode {
    /// Makes the functions of compiled code known, with the per-CPU maps and all maps of their program, until the value is dropped.
    #[must_use]
    pub fn new(
        code: impl CompiledFunctions + 'static,
        per_cpu: PerCpuMaps,
        maps: Vec<Arc<Map>>,
    ) -> Arc<Self> {
        let code = Arc::new(Self { range: code.range(), code: Box::new(code), per_cpu, maps });
        callback_code().insert(code.range.start, Arc::downgrade(&code));
        code
    }

    /// The code that an address lies in.
    #[must_use]
    pub fn of(address: u64) -> Option<Arc<Self>> {
        let code = callback_code().range(..=address).next_back()?.1.upgrade()?;
        code.range.contains(&address).then_some(code)
    }
}

impl Drop for CallbackCode {
    fn drop(&mut self) {
        // No other code lies at the address while this one exists.
        callback_code().remove(&self.range.start);
    }
}

/// A function that a timer calls.
pub trait TimerCallback: Send + Sync {
    /// Calls the function for a timer that is due, with its arguments; the key that the second one points to lies in `key`.
    ///
    /// # Errors
    /// The function made an invalid access, which those of verified programs never do.
    fn call(
        &self,
        due: &DueTimer,
        arguments: [u64; 5],
        key: Range<u64>,
        host: &mut Host,
    ) -> Result<(), Box<Fault>>;
}

/// A function in compiled code, by its address.
pub(crate) struct CompiledCallback {
    pub(crate) code: Arc<CallbackCode>,
    pub(crate) address: u64,
}

impl TimerCallback for CompiledCallback {
    fn call(
        &self,
        _: &DueTimer,
        arguments: [u64; 5],
        _: Range<u64>,
        host: &mut Host,
    ) -> Result<(), Box<Fault>> {
        let Self { code, address } = self;
        host.admit(&code.per_cpu)?;
        // SAFETY: the verifier has shown that the function takes what timers pass, and the host runs an empty packet.
        unsafe { code.code.call(*address, arguments, &code.maps, host) };
        host.run.fault.take().map_or(Ok(()), Err)
    }
}

/// A timer's callback. A worker may still run the function when the timer is dropped.
struct Kept(Option<Box<dyn TimerCallback>>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            Domain::global().retire(callback);
        }
    }
}

/// A callback, for a timer to keep.
pub(crate) fn keep(callback: impl TimerCallback + 'static) -> Arc<dyn Any + Send + Sync> {
    Arc::new(Kept(Some(Box::new(callback))))
}

/// A burst with a packet of length 0.
fn empty_packet() -> Result<Box<Burst>, Box<Fault>> {
    let mut burst = Box::new(Burst::new(1));
    let kind = FaultKind::Internal("no room for an empty packet");
    burst.push(&[], FrameMeta::default()).map_err(|_| Fault { slot: 0, kind, tail_called: None })?;
    Ok(burst)
}

impl Host {
    /// Calls the functions of all timers that are due which programs started on this host (`bpf_timer_start`); to be called
    /// between bursts. Those that they start are left to the next call. Says how many were called.
    ///
    /// With [time from packets](crate::time::TimeSource::Packets) the time is that of the last packet that the host was
    /// [told of](Self::arrive).
    ///
    /// # Errors
    /// A function did what it may not, which those of verified programs never do. Timers that are due besides stay so.
    #[inline]
    pub fn fire_timers(&mut self) -> Result<u64, Box<Fault>> {
        // Most workers have none, and need not know the time.
        if self.timers.queue.first() == u64::MAX { Ok(0) } else { self.fire_due() }
    }

    /// Timers that programs started on this host and that are not due yet.
    #[must_use]
    pub fn running_timers(&self) -> usize {
        self.timers.queue.len()
    }

    #[cold]
    fn fire_due(&mut self) -> Result<u64, Box<Fault>> {
        let mut no_packet = match self.timers.no_packet.take() {
            Some(burst) => burst,
            None => empty_packet()?,
        };
        // SAFETY: the frame stays in its place while functions run.
        let frame = unsafe { no_packet.descriptors_mut() }.as_mut_ptr();
        // SAFETY: nothing else uses the frame, and the run ends below.
        unsafe { self.begin(frame, None) };
        let (now, started) = (self.now(Clock::Monotonic), self.timers.queue.started());
        let mut fired = 0;
        let result = loop {
            // The element of a timer must not go while its function runs.
            // SAFETY: callbacks do not pin.
            let one = unsafe {
                self.pinned(|host| {
                    let due = host.timers.queue.take_due(now, started)?;
                    Some(host.fire(&due))
                })
            };
            match one {
                None => break Ok(fired),
                Some(Ok(())) => fired += 1,
                Some(Err(fault)) => break Err(fault),
            }
        };
        self.run.leave_packet();
        self.timers.no_packet = Some(no_packet);
        self.run.resume_panic();
        result
    }

    fn fire(&mut self, due: &DueTimer) -> Result<(), Box<Fault>> {
        let Some(Kept(Some(callback))) = due.callback().downcast_ref() else { return Ok(()) };
        let key = words(&due.key);
        let start = key.as_ptr().expose_provenance() as u64;
        let arguments = [Arc::as_ptr(&due.map) as u64, start, due.value as u64, 0, 0];
        self.timers.firing = Arc::as_ptr(&due.timer) as usize;
        let result = callback.call(due, arguments, start..start + due.key.len() as u64, self);
        self.timers.firing = 0;
        result
    }
}
