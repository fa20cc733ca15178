//! The state of a run: its packet, its end, and what it may touch.

use std::any::Any;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use paceline_frame::Frame;

use crate::fault::{Fault, FaultKind};
use crate::readable::Readable;
use crate::region::Regions;

/// The state of a run.
pub struct Run {
    /// Frame of the running packet; null without one. Native code without calls leaves the previous one.
    frame: *mut Frame,
    /// Tail calls of this run.
    pub tail_calls: u32,
    /// Frames of the interpreters' stack in use by the callers of the running program.
    depth: usize,
    /// Return value of the last packet's program, if frames of its type have another code.
    pub(super) returned: u32,
    /// Fault that ended the last run; only [`fail`](Self::fail) sets it.
    pub fault: Option<Box<Fault>>,
    /// Whether the last run ended with a fault, or its return value is to be translated to a verdict: one branch for both.
    pub ends_specially: bool,
    /// A panic of an embedder's callback, kept until native code, which cannot be unwound, has returned. `fault` is set meanwhile.
    panic: Option<Box<dyn Any + Send>>,
    /// Memory of the running program, for helpers with unchecked addresses; only the plain interpreter sets it.
    regions: Option<Regions>,
    /// Memory that such helpers may read on the other engines.
    pub readable: Readable,
    /// Address of the spin lock that the running program holds; 0 for none.
    pub(crate) held_lock: u64,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            frame: std::ptr::null_mut(),
            tail_calls: 0,
            depth: 0,
            returned: 0,
            fault: None,
            ends_specially: false,
            panic: None,
            regions: None,
            readable: Readable::default(),
            held_lock: 0,
        }
    }
}

impl Run {
    /// Offset in bytes of the packet's frame, for generated code.
    pub(super) const OFFSET_FRAME: usize = offset_of!(Self, frame);

    /// Begins the run of a packet.
    #[inline]
    pub(super) fn begin(&mut self, frame: *mut Frame) {
        self.frame = frame;
        self.tail_calls = 0;
    }

    /// Begins or ends a run without a packet.
    pub fn leave_packet(&mut self) {
        self.begin(std::ptr::null_mut());
    }

    /// The frame of the running packet; null or dangling without one.
    #[inline]
    pub fn frame(&self) -> *mut Frame {
        self.frame
    }

    /// Frames of the interpreters' stack in use by the callers of the running program.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Sets that number.
    ///
    /// # Safety
    /// The frames above it must be no others', and so many as the running program and those that it calls need be below it.
    #[inline]
    pub unsafe fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
    }

    /// Memory of the running program, if its accesses are checked.
    #[must_use]
    pub fn regions(&self) -> Option<&Regions> {
        self.regions.as_ref()
    }

    /// Sets the memory that helpers with unchecked addresses may use, for one call of a helper.
    ///
    /// # Safety
    /// It must be memory of the running program, which exists during the call.
    #[inline]
    pub unsafe fn set_regions(&mut self, regions: Option<Regions>) {
        self.regions = regions;
    }

    /// Address of the spin lock that the running program holds; 0 for none.
    #[must_use]
    pub fn held_lock(&self) -> u64 {
        self.held_lock
    }

    /// The return value of the last packet's program, if it is of a type whose frames have another code than that
    /// ([`Meaning::translated`](paceline_spec::Meaning::translated)), and ran over that packet alone.
    #[must_use]
    pub fn returned(&self) -> u32 {
        self.returned
    }

    /// Ends a run with a fault; returns the value of `r0`.
    #[cold]
    pub fn fail(&mut self, fault: Box<Fault>) -> u64 {
        self.fault = Some(fault);
        self.ends_specially = true;
        0
    }

    /// Takes the fault of a run that has ended, and resumes a panic. Afterwards the host has no state of the run.
    #[cold]
    pub fn take_fault(&mut self) -> Option<Box<Fault>> {
        let fault = self.fault.take();
        self.ends_specially = false;
        self.panic.take().map_or(fault, |panic| resume_unwind(panic))
    }

    /// Resumes a panic, after a run that returned its fault itself.
    #[inline]
    pub fn resume_panic(&mut self) {
        if self.panic.is_some() {
            self.take_fault();
        }
    }

    /// Calls an embedder's callback, unless one has panicked in this run. Returns whether the callback returned.
    pub(super) fn call_out(&mut self, call: impl FnOnce()) -> bool {
        if self.panic.is_some() {
            return false;
        }
        let result = catch_unwind(AssertUnwindSafe(call));
        result.map_err(|panic| self.wait_with(panic)).is_ok()
    }

    #[cold]
    fn wait_with(&mut self, panic: Box<dyn Any + Send>) {
        self.panic = Some(panic);
        if self.fault.is_none() {
            self.fail(Box::new(Fault { slot: 0, kind: FaultKind::Panicked, tail_called: None }));
        }
    }
}
