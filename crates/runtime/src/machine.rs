//! The state of the threaded interpreter, which lies in the host.
//!
//! Each active function has a window of words in one file: its registers, then the slots of values that have none. A call moves the window on.

use std::mem::MaybeUninit;

use paceline_spec::MAX_LOOPS;

use crate::rounds::Rounds;
use crate::stack::{MAX_FRAMES, STACK_FRAME};

/// Address of an operation, which only the interpreter knows.
pub type Continuation = *const ();

/// Registers of a window, the first of which are `r0` to `r5` where a function is entered.
pub const REGISTERS: usize = 32;
/// The register of a window that has the end of the function's stack (`r10`).
pub const FRAME_POINTER: u8 = 31;

/// Words that every machine has.
pub const LEAST_WORDS: usize = 2 * REGISTERS;

/// Return address of a called function, the register of its caller for the result, and the caller's window.
#[derive(Clone, Copy)]
struct Caller {
    next: Continuation,
    result: u8,
    window: *mut u64,
}

/// An active call of a helper that calls a function of the program.
pub struct CallingBack {
    /// First operation of the function.
    pub function: Continuation,
    /// Calls so far, and the rest.
    pub rounds: Rounds,
}

impl std::fmt::Debug for CallingBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallingBack").finish_non_exhaustive()
    }
}

/// State that the handlers share. Between runs no function is active; registers and other state that programs write before
/// they read it keep their values.
pub struct Machine {
    /// The windows.
    file: Vec<u64>,
    /// The running function's; the first one if no function is active.
    window: *mut u64,
    /// End of the stack of the first function.
    stack_top: u64,
    /// The result of a run whose handlers return to a loop.
    pub result: u64,
    /// Active functions besides the running one.
    depth: usize,
    callers: [MaybeUninit<Caller>; MAX_FRAMES - 1],
    /// Remaining iterations of the `may_goto` of each active function.
    rounds_left: [u32; MAX_FRAMES],
    /// Active calls of helpers that call back; the last one called the running function, if a helper did.
    pub calling_back: Vec<CallingBack>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

impl Machine {
    /// An idle machine, for programs whose stack ends at an address.
    pub fn new(stack_top: u64) -> Self {
        let mut file = vec![0; LEAST_WORDS];
        file[usize::from(FRAME_POINTER)] = stack_top;
        Self {
            window: file.as_mut_ptr(),
            file,
            stack_top,
            result: 0,
            depth: 0,
            callers: [const { MaybeUninit::uninit() }; MAX_FRAMES - 1],
            rounds_left: [0; MAX_FRAMES],
            calling_back: Vec::new(),
        }
    }

    /// Makes room for so many words. No function may be active.
    #[inline]
    pub fn reserve(&mut self, words: usize) {
        if self.file.len() < words {
            self.grow(words);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, words: usize) {
        self.file.resize(words, 0);
        self.window = self.file.as_mut_ptr();
    }

    /// The running function's window.
    #[inline]
    pub fn window(&self) -> *mut u64 {
        self.window
    }

    /// `r10` of the running function.
    pub fn frame_pointer(&self) -> u64 {
        self.stack_top - (self.depth * STACK_FRAME) as u64
    }

    /// Active functions besides the running one.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Enters a function that returns to `next`, with its result in a register of the caller, whose window has so many words. Returns the
    /// new window.
    ///
    /// # Safety
    /// Fewer than eight functions may be active, which the verifier proves, and the words of the program must be those of eight windows.
    #[inline]
    pub unsafe fn enter(&mut self, next: Continuation, result: u8, words: usize) -> *mut u64 {
        debug_assert!(self.depth < self.callers.len());
        // SAFETY: the depth is guaranteed by the caller.
        let caller = unsafe { self.callers.get_unchecked_mut(self.depth) };
        caller.write(Caller { next, result, window: self.window });
        self.depth += 1;
        let frame_pointer = self.frame_pointer();
        // SAFETY: the words are guaranteed by the caller.
        unsafe {
            self.window = self.window.add(words);
            *self.window.add(usize::from(FRAME_POINTER)) = frame_pointer;
        }
        self.window
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
        let may_go_on = *left > 0;
        *left = left.saturating_sub(1);
        may_go_on
    }

    fn rounds_left(&mut self) -> &mut u32 {
        // SAFETY: `enter` is called for fewer functions than there are counts.
        unsafe { self.rounds_left.get_unchecked_mut(self.depth) }
    }

    /// Leaves the running function with a result, and returns the operation after its call; `None` if no function waits: the run ends.
    #[inline]
    pub fn leave(&mut self, value: u64) -> Option<Continuation> {
        let depth = self.depth.checked_sub(1)?;
        self.depth = depth;
        // SAFETY: `enter` wrote it when it incremented the depth.
        let Caller { next, result, window } = unsafe { self.callers.get_unchecked(depth).assume_init_read() };
        self.window = window;
        // SAFETY: the register is one of the caller's window, which is in the file.
        unsafe { *window.add(usize::from(result)) = value };
        Some(next)
    }

    /// Leaves all functions at once.
    #[cold]
    pub fn stop(&mut self) {
        self.window = self.file.as_mut_ptr();
        self.depth = 0;
        self.calling_back.clear();
    }
}
