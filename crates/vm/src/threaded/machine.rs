//! The state of a run that handlers work on.

use std::mem::MaybeUninit;

use paceline_spec::MAX_LOOPS;

use super::handlers;
use super::op::Op;
use crate::helpers::Rounds;
use crate::host::{MAX_FRAMES, STACK_FRAME};

/// A register that programs do not have: it keeps the base of a load that overwrites it, until the next one or where ways
/// meet.
pub(super) const SHADOW: u8 = 11;

/// Where a called function goes back to, and the registers it keeps for its caller.
#[derive(Clone, Copy)]
struct Caller {
    next: *const Op,
    callee_saved: [u64; 4],
}

/// A call of a helper that is going on while the function runs which it calls.
pub(super) struct CallingBack {
    pub(super) function: *const Op,
    pub(super) rounds: Rounds,
}

/// What the handlers share, beside the rest of the host. Between runs no function is active; registers and what else no
/// program reads before it writes it are left as they were.
pub(crate) struct Machine {
    /// `r0` to `r10`, and [`SHADOW`].
    pub(super) registers: [u64; 12],
    /// Functions that wait for the running one to return.
    depth: usize,
    /// Whether programs that are tail called run in a machine of their own although they could take over this one.
    pub(super) keeps: bool,
    callers: [MaybeUninit<Caller>; MAX_FRAMES - 1],
    /// How often `may_goto` of each active function still go on, where it has any.
    rounds_left: [u32; MAX_FRAMES],
    /// The last one is going on in the running function's caller, if a helper called it.
    pub(super) calling_back: Vec<CallingBack>,
}

impl Machine {
    /// A machine in which nothing runs, for programs whose stack ends at an address.
    pub(crate) fn new(stack_top: u64) -> Self {
        let mut registers = [0; 12];
        registers[10] = stack_top;
        Self {
            registers,
            depth: 0,
            keeps: false,
            callers: [const { MaybeUninit::uninit() }; _],
            rounds_left: [0; _],
            calling_back: Vec::new(),
        }
    }

    /// `r10` of the running function.
    pub(super) fn frame_pointer(&self) -> u64 {
        self.registers[10]
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
        let [.., r6, r7, r8, r9, _, _] = self.registers;
        // SAFETY: the caller vouches for the depth.
        let caller = unsafe { self.callers.get_unchecked_mut(self.depth) };
        caller.write(Caller { next, callee_saved: [r6, r7, r8, r9] });
        self.depth += 1;
        self.registers[10] -= STACK_FRAME as u64;
    }

    /// Lets the running function's `may_goto` go on as often as they may.
    #[inline]
    pub(super) fn allow_rounds(&mut self) {
        *self.rounds_left() = MAX_LOOPS;
    }

    /// Whether a `may_goto` of the running function goes on, as it then does once less.
    #[inline]
    pub(super) fn may_go_on(&mut self) -> bool {
        let left = self.rounds_left();
        let less = left.checked_sub(1);
        *left = less.unwrap_or(0);
        less.is_some()
    }

    fn rounds_left(&mut self) -> &mut u32 {
        // SAFETY: `enter` is called for fewer functions than there are counts.
        unsafe { self.rounds_left.get_unchecked_mut(self.depth) }
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

    /// Leaves all functions at once.
    #[cold]
    pub(super) fn stop(&mut self) {
        self.registers[10] += (self.depth * STACK_FRAME) as u64;
        self.depth = 0;
        self.calling_back.clear();
    }
}
