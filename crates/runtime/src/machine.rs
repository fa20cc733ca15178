//! The state of the threaded interpreter, which lies in the host: handlers of operations reach both through one pointer.

use std::mem::MaybeUninit;

use paceline_spec::MAX_LOOPS;

use crate::rounds::Rounds;
use crate::stack::{MAX_FRAMES, STACK_FRAME};

/// Address of an operation, which only the interpreter knows.
pub type Continuation = *const ();

/// A register that programs do not have: it keeps the base of a load that overwrites it, until the next one or where ways
/// meet.
pub const SHADOW: u8 = 11;

/// Where a called function goes back to, and the registers it keeps for its caller.
#[derive(Clone, Copy)]
struct Caller {
    next: Continuation,
    callee_saved: [u64; 4],
}

/// A call of a helper that is going on while the function runs which it calls.
pub struct CallingBack {
    /// First operation of the function.
    pub function: Continuation,
    /// Calls so far, and the rest.
    pub rounds: Rounds,
}

/// What the handlers share, beside the rest of the host. Between runs no function is active; registers and what else no
/// program reads before it writes it are left as they were.
pub struct Machine {
    /// `r0` to `r10`, and [`SHADOW`].
    pub registers: [u64; 12],
    /// Functions that wait for the running one to return.
    depth: usize,
    /// Whether programs that are tail called run in a machine of their own although they could take over this one.
    pub keeps: bool,
    callers: [MaybeUninit<Caller>; MAX_FRAMES - 1],
    /// How often `may_goto` of each active function still go on, where it has any.
    rounds_left: [u32; MAX_FRAMES],
    /// The last one is going on in the running function's caller, if a helper called it.
    pub calling_back: Vec<CallingBack>,
}

impl Machine {
    /// A machine in which nothing runs, for programs whose stack ends at an address.
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

    /// Functions that wait for the running one to return.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Enters a function that will go back to `next`.
    ///
    /// # Safety
    /// Fewer than eight functions may be active, as the verifier makes sure.
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

    /// Lets the running function's `may_goto` go on as often as they may.
    #[inline]
    pub fn allow_rounds(&mut self) {
        *self.rounds_left() = MAX_LOOPS;
    }

    /// Whether a `may_goto` of the running function goes on, as it then does once less.
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
        // SAFETY: `enter` wrote it when it counted the depth up.
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
