//! A program as the threaded interpreter runs it.

use std::sync::Arc;

use crate::host::Host;
use crate::machine::Machine;
use crate::stack::STACK_FRAME;

use crate::interpreter::op::Op;

/// A program as operations, which hold the addresses of its maps.
#[derive(Clone)]
pub struct Operations {
    pub(super) ops: Arc<[Op]>,
    /// The codes of their handlers.
    #[cfg(any(test, feature = "variants"))]
    pub(super) codes: Arc<[u16]>,
    /// Words of the windows of all functions that may be active.
    pub(super) words: usize,
}

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operations").finish_non_exhaustive()
    }
}

impl Operations {
    #[cfg_attr(
        not(any(test, feature = "variants")),
        expect(unused_variables, reason = "others need no codes")
    )]
    pub(super) fn new(ops: &[Op], codes: &[u16], words: usize) -> Self {
        Self {
            ops: ops.into(),
            #[cfg(any(test, feature = "variants"))]
            codes: codes.into(),
            words,
        }
    }

    /// Prepares an idle machine; returns where the program starts, and its window, which has all of the words that the program needs.
    #[inline]
    pub(super) fn begin(&self, machine: &mut Machine, context: u64) -> (*const Op, *mut u64) {
        machine.reserve(self.words);
        // SAFETY: there are so many words now.
        unsafe { self.begin_small(machine, context) }
    }

    /// The same if every machine has so many words.
    ///
    /// # Safety
    /// The machine must have the words that the program needs.
    #[inline]
    pub(super) unsafe fn begin_small(&self, machine: &mut Machine, context: u64) -> (*const Op, *mut u64) {
        let window = machine.window();
        // SAFETY: the window has the registers of a function.
        unsafe { *window.add(1) = context };
        (self.ops.as_ptr(), window)
    }
}

/// Runs a program while the machine, and the frames of the stack that are in use, wait for it.
pub(super) fn in_fresh_machine(host: &mut Host, run: impl FnOnce(&mut Host) -> u64) -> u64 {
    let top = host.stack.top() - (host.run.depth() * STACK_FRAME) as u64;
    let waiting = std::mem::replace(&mut host.machine, Machine::new(top));
    let r0 = run(host);
    host.machine = waiting;
    r0
}
