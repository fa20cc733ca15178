//! Code in forks of the process.
//!
//! The memory of an arena is shared: a fork would see how its parent overwrites the code that it frees, and may be running it.
//! So a fork makes a copy of its own, of all arenas, at the same addresses, before `fork(2)` returns there. Until it has, the
//! parent overwrites no code from before the fork: each fork counts itself into a word that both share, and out of it when it is
//! done. One that cannot copy, or is killed before, stays counted. What code there was at that time is then freed no more,
//! nor is it where the fork failed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, Weak};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::arena::Shared;
use crate::sync::lock;

/// Forks of this process, those that failed included.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Those that have no copy, in memory that forks share; where there is none of that they all stay counted.
static COPYING: OnceLock<&'static AtomicU32> = OnceLock::new();

static ARENAS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Number of a time between two forks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

impl Generation {
    /// From the last fork on.
    pub(crate) fn now() -> Self {
        Self(FORKS.load(Ordering::SeqCst))
    }

    /// Whether a fork may still be running the code of this time out of the memory of this process.
    pub(crate) fn is_shared(self) -> bool {
        self < Self::now() && copying().load(Ordering::SeqCst) != 0
    }
}

fn copying() -> &'static AtomicU32 {
    static OWN: AtomicU32 = AtomicU32::new(0);
    COPYING.get().copied().unwrap_or(&OWN)
}

/// Lets forks have the code of an arena.
pub(crate) fn register(arena: &Arc<Shared>) {
    static HANDLERS: OnceLock<()> = OnceLock::new();
    HANDLERS.get_or_init(|| {
        let (len, null) = (size_of::<AtomicU32>(), std::ptr::null_mut());
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping somewhere.
        if let Ok(page) = unsafe { mmap_anonymous(null, len, protection, flags) } {
            // SAFETY: it is zero, aligned to a page, stays for ever, and nobody else knows it.
            COPYING.get_or_init(|| unsafe { &*page.cast::<AtomicU32>() });
        }
        // SAFETY: the functions only do what may be done in a fork. It fails without memory alone: then forks share the
        // memory and find breakpoints where their parent frees code.
        let _ = unsafe { libc::pthread_atfork(Some(before), None, Some(in_fork)) };
    });
    let mut arenas = lock(&ARENAS);
    arenas.retain(|arena| arena.strong_count() > 0);
    arenas.push(Arc::downgrade(arena));
}

/// In the process that forks.
extern "C" fn before() {
    copying().fetch_add(1, Ordering::SeqCst);
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// In the new one, whose only thread this is. Takes no lock that another thread may have had, and no memory.
extern "C" fn in_fork() {
    let arenas = match ARENAS.try_lock() {
        Ok(arenas) => arenas,
        Err(TryLockError::Poisoned(arenas)) => arenas.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let mut all = arenas.iter().filter_map(Weak::upgrade);
    if all.all(|arena| arena.copy_memory().is_ok()) {
        copying().fetch_sub(1, Ordering::SeqCst);
    }
}
