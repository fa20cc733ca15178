//! The state of the threaded interpreter, which lies in the host: handlers of operations reach both through one pointer.

use std::mem::MaybeUninit;

use paceline_spec::MAX_LOOPS;

use crate::rounds::Rounds;
use crate::stack::{MAX_FRAMES, STACK_FRAME};

/// Address of an operation, which only the interpreter knows.
pub type Continuation = *const ();

/// A register that programs do not have: it keeps the base of a load that overwrites its base, until the next such load or
/// a join of control flow.
pub const SHADOW: u8 = 11;

/// Return address of a called function, and its caller's callee-saved registers.
#[derive(Clone, Copy)]
struct Caller {
    next: Continuation,
    callee_saved: [u64; 4],
}

/// An active call of a helper that calls a function of the program.
pub struct CallingBack {
    /// First operation of the function.
    pub function: Continuation,
    /// Calls so far, and the rest.
    pub rounds: Rounds,
}

/// State that the handlers share. Between runs no function is active; registers and other state that programs write before
/// they read it keep their values.
pub struct Machine {
    /// `r0` to `r10`, and [`SHADOW`].
    pub registers: [u64; 12],
    /// Active functions besides the running one.
    depth: usize,
    /// Whether tail called programs run in a machine of their own, also if they could continue in this one.
    pub keeps: bool,
    callers: [MaybeUninit<Caller>; MAX_FRAMES - 1],
    /// Remaining iterations of the `may_goto` of each active function.
    rounds_left: [u32; MAX_FRAMES],
    /// Active calls of helpers that call back; the last one called the running function, if a helper did.
    pub calling_back: Vec<CallingBack>,
}

impl Machine {
    /// An idle machine, for programs whose stack ends at an address.
    pub fn new(stack_top: u64) -> Self {
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
    pub fn frame_pointer(&self) -> u64 {
        self.registers[10]
    }

    /// Active functions besides the running one.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Enters a function that returns to `next`.
    ///
    /// # Safety
    /// Fewer than eight functions may be active, which the verifier proves.
    #[inline]
    pub unsafe fn enter(&mut self, next: Continuation) {
        debug_assert!(self.depth < self.callers.len());
        let [.., r6, r7, r8, r9, _, _] = self.registers;
        // SAFETY: the caller vouches for the depth.
        let caller = unsafe { self.callers.get_unchecked_mut(self.depth) };
        caller.write(Caller { next, callee_saved: [r6, r7, r8, r9] });
        self.depth += 1;
        self.registers[10] -= STACK_FRAME as u64;
    }

    /// Sets the iterations of the running function's `may_goto` to the maximum.
    #[inline]
    pub fn allow_rounds(&mut self) {
        *self.rounds_left() = MAX_LOOPS;
    }

    /// Whether a `may_goto` of the running function continues; uses up one iteration.
    #[inline]
    pub fn may_go_on(&mut self) -> bool {
        let left = self.rounds_left();
        let less = left.checked_sub(1);
        *left = less.unwrap_or(0);
        less.is_some()
    }

    fn rounds_left(&mut self) -> &mut u32 {
        // SAFETY: `enter` is called for fewer functions than there are counts.
        unsafe { self.rounds_left.get_unchecked_mut(self.depth) }
    }

    /// Leaves the running function, and returns the operation after its call; `None` if no function waits: the run ends.
    #[inline]
    pub fn leave(&mut self) -> Option<Continuation> {
        let depth = self.depth.checked_sub(1)?;
        self.depth = depth;
        // SAFETY: `enter` wrote it when it incremented the depth.
        let Caller { next, callee_saved } = unsafe { self.callers.get_unchecked(depth).assume_init_read() };
        self.registers[6..10].copy_from_slice(&callee_saved);
        self.registers[10] += STACK_FRAME as u64;
        Some(next)
    }

    /// Leaves all functions at once.
    #[cold]
    pub fn stop(&mut self) {
        self.registers[10] += (self.depth * STACK_FRAME) as u64;
        self.depth = 0;
        self.calling_back.clear();
    }
}
