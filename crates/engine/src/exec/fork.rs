//! Code in forks of the process.
//!
//! The memory of an arena is a shared mapping: a fork would see its parent overwrite freed code, and may be executing it. A fork
//! therefore copies the memory of all arenas, at the same addresses, before `fork(2)` returns there. Until then the parent does not
//! overwrite code from before the fork: each fork has a word in memory that both processes share, which the child clears when its
//! copy is complete. If the child cannot copy or is killed before, or if the fork fails, the word stays set: code of that time is
//! then never freed, but later code is, and later forks hold back nothing else.

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, Weak};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::exec::error::ExecError;
use crate::exec::memory::Memory;
use crate::exec::sync::lock;

/// Number of words for forks, which fill a page of the smallest size in use: the number of forks that may copy at the same time.
const WORDS: usize = 4096 / size_of::<AtomicU64>();

/// Number of the last event: the parent increments it before a fork and after it.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// Numbers of forks without a copy, in memory shared with the forks; the word's index is the number modulo [`WORDS`]. Null if the
/// memory could not be mapped: then all forks are assumed to have no copy.
static COPYING: AtomicPtr<[AtomicU64; WORDS]> = AtomicPtr::new(std::ptr::null_mut());

/// The last fork whose word was overwritten by another fork while still set.
static OVERWRITTEN: AtomicU64 = AtomicU64::new(0);

static ARENAS: Mutex<Vec<Weak<Memory>>> = Mutex::new(Vec::new());

thread_local! {
    /// Number of the fork that this thread is performing.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Number of a period between events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

impl Generation {
    /// The current period, since the last event.
    pub(crate) fn now() -> Self {
        Self(EVENTS.load(Ordering::SeqCst))
    }

    /// Whether a fork may be executing code of this period in the memory of this process.
    pub(crate) fn is_shared(self) -> bool {
        // Fast path without events, which avoids reading all words.
        self < Self::now() && self <= Self::last_shared()
    }

    /// The last period that may be shared: code of later ones is only this process's.
    pub(crate) fn last_shared() -> Self {
        let Some(words) = words() else { return Self::now() };
        let overwritten = OVERWRITTEN.load(Ordering::SeqCst);
        Self(words.iter().map(|word| word.load(Ordering::SeqCst)).fold(overwritten, u64::max))
    }
}

fn words() -> Option<&'static [AtomicU64; WORDS]> {
    // SAFETY: null, or memory that is never unmapped.
    unsafe { COPYING.load(Ordering::SeqCst).as_ref() }
}

fn word_of(fork: u64) -> Option<&'static AtomicU64> {
    words()?.get((fork % WORDS as u64) as usize)
}

/// Maps words for the forks of this process. Async-signal-safe: no locks, no heap.
fn map_words() {
    let (len, null) = (size_of::<[AtomicU64; WORDS]>(), std::ptr::null_mut());
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at an address that the kernel chooses. It is zeroed, page-aligned, and never unmapped.
    let words = unsafe { mmap_anonymous(null, len, protection, flags) };
    COPYING.store(words.map_or(null, |words| words).cast(), Ordering::SeqCst);
}

/// Registers the memory of an arena for copying in forks.
///
/// # Errors
/// [`ExecError::Refused`] if the process lacks memory for that: forks would share the arena, and find breakpoints where their parent
/// frees code.
pub(crate) fn register(memory: &Arc<Memory>) -> Result<(), ExecError> {
    static HANDLERS: OnceLock<i32> = OnceLock::new();
    let error = HANDLERS.get_or_init(|| {
        map_words();
        // SAFETY: the functions only do what is allowed in a forked process.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_fork)) }
    });
    if *error != 0 {
        return Err(ExecError::Refused { call: "pthread_atfork", errno: Errno::from_raw_os_error(*error) });
    }
    let mut arenas = lock(&ARENAS);
    arenas.retain(|memory| memory.strong_count() > 0);
    arenas.push(Arc::downgrade(memory));
    Ok(())
}

/// Runs in the forking process, before the fork.
extern "C" fn before() {
    let own = EVENTS.fetch_add(1, Ordering::SeqCst) + 1;
    OWN.set(own);
    if let Some(word) = word_of(own) {
        OVERWRITTEN.fetch_max(word.swap(own, Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// Runs in the forking process, after the fork or its failure: code that other threads installed meanwhile counts as shared.
extern "C" fn after() {
    EVENTS.fetch_add(1, Ordering::SeqCst);
}

/// Runs in the child, whose only thread this is. Takes no lock that another thread may have held, and no heap memory.
extern "C" fn in_fork() {
    let own = OWN.get();
    let word = word_of(own);
    // The child's own forks need words of their own.
    map_words();
    let arenas = match ARENAS.try_lock() {
        Ok(arenas) => arenas,
        Err(TryLockError::Poisoned(arenas)) => arenas.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let mut all = arenas.iter().filter_map(Weak::upgrade);
    if all.all(|memory| memory.copy().is_ok())
        && let Some(word) = word
    {
        // If the word belongs to a later fork by now, the parent treats this one as a fork without a copy.
        // default: nothing is to be done then.
        let _ = word.compare_exchange(own, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}
