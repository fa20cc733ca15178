//! The JIT interface of `gdb`, also supported by `lldb` (GDB manual, "JIT Compilation Interface"): a list of in-memory symbol
//! files, found by the symbol `__jit_debug_descriptor`, and a function in which the debugger sets a breakpoint to be notified of
//! changes.
//!
//! Both symbols are weak: another JIT in the same process (such as LLVM's) defines its own, and all share one list. The interface
//! has no lock and each JIT uses its own, so a process with two JITs under a debugger must install code from one thread.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Mutex;

use crate::exec::sync::lock;

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

#[repr(C)]
struct Node {
    next: *mut Node,
    previous: *mut Node,
    file: *const u8,
    file_len: u64,
}

/// Layout of `struct jit_descriptor`; `version` is 1.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Node,
    first: *mut Node,
}

std::arch::global_asm!(
    ".pushsection .data.__jit_debug_descriptor,\"aw\"",
    ".balign 8",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor, %object",
    ".size __jit_debug_descriptor, 24",
    "__jit_debug_descriptor:",
    ".4byte 1, 0",
    ".8byte 0, 0",
    ".popsection",
    ".pushsection .text.__jit_debug_register_code,\"ax\"",
    ".balign 4",
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code, %function",
    "__jit_debug_register_code:",
    #[cfg(target_arch = "s390x")]
    "br %r14",
    #[cfg(not(target_arch = "s390x"))]
    "ret",
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".popsection",
);

unsafe extern "C" {
    static __jit_debug_descriptor: SharedDescriptor;
    fn __jit_debug_register_code();
}

#[repr(transparent)]
struct SharedDescriptor(UnsafeCell<Descriptor>);

// SAFETY: only accessed while LIST is held.
unsafe impl Sync for SharedDescriptor {}

/// Held during changes of the list.
static LIST: Mutex<()> = Mutex::new(());

/// A symbol file that is registered with the debugger until it is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    node: *mut Node,
    /// The file that the node points to.
    _file: Box<[u8]>,
}

// SAFETY: the node is owned, and only accessed while LIST is held.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

impl Entry {
    pub(super) fn new(file: Vec<u8>) -> Self {
        let file = file.into_boxed_slice();
        let _list = lock(&LIST);
        let descriptor = descriptor();
        // SAFETY: the list contains live nodes, or is null; nothing else changes it while the lock is held. The debugger reads it
        // while the process is stopped, in `notify` or at any other time, and finds it consistent.
        unsafe {
            let first = (*descriptor).first;
            let node = Node {
                next: first,
                previous: ptr::null_mut(),
                file: file.as_ptr(),
                file_len: file.len() as u64,
            };
            let node = Box::into_raw(Box::new(node));
            if let Some(first) = first.as_mut() {
                first.previous = node;
            }
            (*descriptor).first = node;
            notify(node, REGISTER);
            Self { node, _file: file }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _list = lock(&LIST);
        let descriptor = descriptor();
        // SAFETY: as in `new`. The node came from a box there, and is freed once, after it has left the list and the debugger was
        // notified.
        unsafe {
            let Node { next, previous, .. } = *self.node;
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => (*descriptor).first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            notify(self.node, UNREGISTER);
            drop(Box::from_raw(self.node));
        }
    }
}

fn descriptor() -> *mut Descriptor {
    // SAFETY: defined above, or by another JIT with the same layout.
    unsafe { &__jit_debug_descriptor }.0.get()
}

/// Calls the function in which the debugger has its breakpoint.
///
/// # Safety
/// The caller holds LIST, and the node belongs to this JIT.
unsafe fn notify(node: *mut Node, action: u32) {
    let descriptor = descriptor();
    // SAFETY: the caller holds the lock. The function does nothing.
    unsafe {
        (*descriptor).action = action;
        (*descriptor).relevant = node;
        __jit_debug_register_code();
        (*descriptor).action = 0;
        (*descriptor).relevant = ptr::null_mut();
    }
}
