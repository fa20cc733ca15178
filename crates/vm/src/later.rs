//! Functions of programs that timers call: without a packet, when no program runs.
//!
//! Engines know such a function by an address. In code that is compiled that lies in the program's [`CallbackCode`], which is found by it
//! and keeps the code; the machine that checks every access takes the function's slot, and the image.

use std::any::Any;
use std::collections::BTreeMap;
use std::mem::transmute;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_epoch::Domain;
use paceline_exec::CodeBlock;
use paceline_frame::{Burst, FrameMeta};
use paceline_isa::{Callee, Code, Insn};
use paceline_maps::{DueTimer, Map, TimerQueue};
use paceline_spec::helper::Helper;

use crate::fault::Fault;
use crate::helpers::{HelperFn, words};
use crate::host::Host;
use crate::image::{Image, least_cpus};
use crate::plain;
use crate::program::pinned;
use crate::readable::Readable;
use crate::threaded::{self, Operations};
use crate::time::Clock;

/// Code with functions that timers may call, and the maps that it uses.
pub(crate) struct CallbackCode {
    range: Range<u64>,
    code: CallbackForm,
    /// As of [`Image::cpus`]: functions are entered past the check at the entry of their program.
    cpus: usize,
    maps: Vec<Arc<Map>>,
}

/// In which form it is.
pub(crate) enum CallbackForm {
    /// Native code.
    Native(Arc<CodeBlock>),
    /// Operations of the threaded interpreter.
    Threaded(Operations),
}

fn callback_code() -> MutexGuard<'static, BTreeMap<u64, Weak<CallbackCode>>> {
    static CALLBACK_CODE: Mutex<BTreeMap<u64, Weak<CallbackCode>>> = Mutex::new(BTreeMap::new());
    CALLBACK_CODE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallbackCode {
    /// The home of the functions of programs that are compiled together, if timers may call any.
    pub(crate) fn new<'a>(
        programs: impl IntoIterator<Item = (&'a Code, &'a [Arc<Map>])>,
        code: impl FnOnce() -> CallbackForm,
    ) -> Option<Arc<Self>> {
        let calls_later = |(_, insn): (usize, &Insn)| {
            matches!(insn, Insn::Call(Callee::Helper(Helper::TIMER_SET_CALLBACK)))
        };
        let (mut is_called, mut cpus, mut all_maps) = (false, usize::MAX, Vec::new());
        for (program, maps) in programs {
            is_called |= program.iter().any(calls_later);
            cpus = cpus.min(least_cpus(program, maps));
            all_maps.extend_from_slice(maps);
        }
        is_called.then(|| {
            let code = code();
            let range = match &code {
                CallbackForm::Native(block) => {
                    let start = block.address() as u64;
                    start..start + block.len() as u64
                }
                CallbackForm::Threaded(operations) => operations.range(),
            };
            let home = Arc::new(Self { range, code, cpus, maps: all_maps });
            callback_code().insert(home.range.start, Arc::downgrade(&home));
            home
        })
    }

    /// The home that an address lies in.
    pub(crate) fn of(address: u64) -> Option<Arc<Self>> {
        let home = callback_code().range(..=address).next_back()?.1.upgrade()?;
        home.range.contains(&address).then_some(home)
    }
}

impl Drop for CallbackCode {
    fn drop(&mut self) {
        // Its place is taken as long as its code lies there.
        callback_code().remove(&self.range.start);
    }
}

/// A function that a timer calls.
pub(crate) enum Later {
    /// In a home, at an address.
    Compiled(Arc<CallbackCode>, u64),
    /// On the machine that checks every access, from a slot on.
    Checked(Arc<Image>, usize),
}

/// A timer's function, kept by it. A worker may still run it when it goes.
struct Kept(Option<Later>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(later) = self.0.take() {
            Domain::global().retire(later);
        }
    }
}

impl Later {
    /// For a timer to keep.
    pub(crate) fn into_callback(self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(Kept(Some(self)))
    }

    /// Calls it for a timer that is due.
    fn call(&self, due: &DueTimer, host: &mut Host) -> Result<(), Box<Fault>> {
        let key = words(&due.key);
        let start = key.as_ptr().expose_provenance() as u64;
        let arguments = [Arc::as_ptr(&due.map) as u64, start, due.value as u64, 0, 0];
        let [r1, r2, r3, r4, r5] = arguments;
        match self {
            Self::Checked(image, _) if !image.admits(host) => {}
            Self::Checked(image, slot) => {
                return plain::run_function(
                    image,
                    *slot,
                    arguments,
                    start..start + due.key.len() as u64,
                    Arc::clone(&due.map),
                    host,
                );
            }
            Self::Compiled(home, _) if host.cpu() >= home.cpus => {
                host.lacks_cpu();
            }
            Self::Compiled(home, address) => match home.code {
                // SAFETY: the address is that of a function which takes what a helper takes, in code that the home keeps; the
                // arguments are what the verifier said they are.
                CallbackForm::Native(_) => unsafe {
                    transmute::<usize, HelperFn>(*address as usize)(r1, r2, r3, r4, r5, host);
                },
                CallbackForm::Threaded(_) => {
                    host.readable = Readable::of(&home.maps);
                    // SAFETY: it is an operation at which a function starts, otherwise as above.
                    unsafe { threaded::run_function(*address, arguments, host) };
                }
            },
        }
        host.fault.take().map_or(Ok(()), Err)
    }
}

/// What a worker has to fire, and what it is firing.
pub(crate) struct Timers {
    pub(crate) queue: Arc<TimerQueue>,
    /// Address of the timer whose function runs; 0 for none.
    pub(crate) firing: usize,
    /// The packet of length 0 that functions run over, which need none.
    no_packet: Option<Box<Burst>>,
}

impl Default for Timers {
    fn default() -> Self {
        Self { queue: TimerQueue::new(), firing: 0, no_packet: None }
    }
}

impl Host {
    /// Calls the functions of all timers that are due which programs started on this host (`bpf_timer_start`); to be called
    /// between bursts. Those that they start are left to the next call. Says how many were called.
    ///
    /// With [time from packets](crate::TimeSource::Packets) the time is that of the last packet that the host was
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
        let mut no_packet = self.timers.no_packet.take().unwrap_or_else(|| {
            let mut burst = Box::new(Burst::new(1));
            // There is room for it.
            let _ = burst.push(&[], FrameMeta::default());
            burst
        });
        // SAFETY: the frame stays in its place while functions run.
        let frame = unsafe { no_packet.descriptors_mut() }.as_mut_ptr();
        self.begin(frame as u64, None);
        let (now, started) = (self.now(Clock::Monotonic), self.timers.queue.started());
        let mut fired = 0;
        let result = loop {
            // What a timer is in must not go while its function runs.
            let one = pinned(self, |host| {
                let due = host.timers.queue.take_due(now, started)?;
                Some(host.fire(&due))
            });
            match one {
                None => break Ok(fired),
                Some(Ok(())) => fired += 1,
                Some(Err(fault)) => break Err(fault),
            }
        };
        self.frame = std::ptr::null_mut();
        self.timers.no_packet = Some(no_packet);
        self.resume_panic();
        result
    }

    fn fire(&mut self, due: &DueTimer) -> Result<(), Box<Fault>> {
        let Some(Kept(Some(later))) = due.callback().downcast_ref() else { return Ok(()) };
        self.timers.firing = Arc::as_ptr(&due.timer) as usize;
        let result = later.call(due, self);
        self.timers.firing = 0;
        result
    }
}
