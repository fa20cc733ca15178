//! The state of a run that handlers work on.

use std::mem::MaybeUninit;

use paceline_frame::Frame;

use super::handlers;
use super::op::Op;
use crate::host::{Host, MAX_FRAMES, STACK_FRAME};

/// Where a called function goes back to, and the registers it keeps for its caller.
#[derive(Clone, Copy)]
struct Caller {
    next: *const Op,
    callee_saved: [u64; 4],
}

/// What the handlers share. They reach it by its address, which never escapes into what a program can see.
#[repr(C)]
pub(super) struct Machine {
    /// `r0` to `r10`.
    pub(super) registers: [u64; 11],
    pub(super) host: *mut Host,
    /// The packet's frame, which is the context.
    pub(super) frame: *mut Frame,
    /// Functions that wait for the running one to return.
    depth: usize,
    /// Whether programs that are tail called run in a machine of their own although they could take over this one.
    pub(super) keeps: bool,
    callers: [MaybeUninit<Caller>; MAX_FRAMES - 1],
}

impl Machine {
    /// A machine for the start of a program over the packet that the host runs.
    pub(super) fn new(context: u64, host: &mut Host) -> Self {
        let mut registers = [0; 11];
        registers[1] = context;
        registers[10] = host.stack_top() - (host.depth * STACK_FRAME) as u64;
        Self {
            registers,
            host,
            frame: context as *mut Frame,
            depth: 0,
            keeps: false,
            callers: [const { MaybeUninit::uninit() }; _],
        }
    }

    /// Functions that wait for the running one to return.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Enters a function that will go back to `next`.
    ///
    /// # Safety
    /// Fewer than eight functions may be active, as the verifier makes sure.
    #[inline]
    pub(super) unsafe fn enter(&mut self, next: *const Op) {
        debug_assert!(self.depth < self.callers.len());
        let [.., r6, r7, r8, r9, _] = self.registers;
        // SAFETY: the caller vouches for the depth.
        let caller = unsafe { self.callers.get_unchecked_mut(self.depth) };
        caller.write(Caller { next, callee_saved: [r6, r7, r8, r9] });
        self.depth += 1;
        self.registers[10] -= STACK_FRAME as u64;
    }

    /// Leaves the running function; gives where to go on.
    #[inline]
    pub(super) fn leave(&mut self) -> *const Op {
        let Some(depth) = self.depth.checked_sub(1) else { return handlers::end() };
        self.depth = depth;
        // SAFETY: `enter` wrote it when it counted the depth up.
        let Caller { next, callee_saved } = unsafe { self.callers.get_unchecked(depth).assume_init_read() };
        self.registers[6..10].copy_from_slice(&callee_saved);
        self.registers[10] += STACK_FRAME as u64;
        next
    }
}
