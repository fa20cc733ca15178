//! Code in forks of the process.
//!
//! The memory of an arena is shared: a fork would see how its parent overwrites the code that it frees, and may be running it.
//! So a fork makes a copy of its own, of all arenas, at the same addresses, before `fork(2)` returns there. Until it has, the
//! parent overwrites no code from before the fork: each fork has a word that both share, which the child clears when it is done.
//! In a child that cannot copy, or is killed before, the word stays, as it does where the fork failed: code that there was at that
//! time is then freed no more, but code that came later is, and later forks hold back nothing else.

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, Weak};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::arena::Shared;
use crate::sync::lock;

/// Words for forks, a page of the smallest size in use: as many may be copying at the same time.
const WORDS: usize = 4096 / size_of::<AtomicU64>();

/// Number of the last event: before a fork and after it, in the parent, the number goes up by one.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// The numbers of forks that have no copy, each in the word of its remainder, in memory that the forks share. Null where there is
/// none: then all forks are taken to have no copy.
static COPYING: AtomicPtr<[AtomicU64; WORDS]> = AtomicPtr::new(std::ptr::null_mut());

/// The last fork whose word was still set when another needed it.
static OVERWRITTEN: AtomicU64 = AtomicU64::new(0);

static ARENAS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

thread_local! {
    /// Number of the fork that this thread is making.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Number of a time between events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

impl Generation {
    /// From the last event on.
    pub(crate) fn now() -> Self {
        Self(EVENTS.load(Ordering::SeqCst))
    }

    /// Whether a fork may be running the code of this time out of the memory of this process.
    pub(crate) fn is_shared(self) -> bool {
        // Without events there is no need to look at all words.
        self < Self::now() && self <= Self::last_shared()
    }

    /// The last time of which that may be so: what came later is this process's own.
    pub(crate) fn last_shared() -> Self {
        let Some(words) = words() else { return Self::now() };
        let pending = words.iter().map(|word| word.load(Ordering::SeqCst)).max();
        Self(pending.unwrap_or_default().max(OVERWRITTEN.load(Ordering::SeqCst)))
    }
}

fn words() -> Option<&'static [AtomicU64; WORDS]> {
    // SAFETY: null, or memory that stays for ever.
    unsafe { COPYING.load(Ordering::SeqCst).as_ref() }
}

fn word_of(fork: u64) -> Option<&'static AtomicU64> {
    words()?.get((fork % WORDS as u64) as usize)
}

/// Makes words for the forks of this process. Takes no lock and no memory of the heap.
fn map_words() {
    let (len, null) = (size_of::<[AtomicU64; WORDS]>(), std::ptr::null_mut());
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping somewhere. It is zero, aligned to a page, and stays for ever.
    let words = unsafe { mmap_anonymous(null, len, protection, flags) };
    COPYING.store(words.map_or(null, |words| words).cast(), Ordering::SeqCst);
}

/// Lets forks have the code of an arena.
pub(crate) fn register(arena: &Arc<Shared>) {
    static HANDLERS: OnceLock<()> = OnceLock::new();
    HANDLERS.get_or_init(|| {
        map_words();
        // SAFETY: the functions only do what may be done in a fork. It fails without memory alone: then forks share the
        // memory and find breakpoints where their parent frees code.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_fork)) };
    });
    let mut arenas = lock(&ARENAS);
    arenas.retain(|arena| arena.strong_count() > 0);
    arenas.push(Arc::downgrade(arena));
}

/// In the process that forks.
extern "C" fn before() {
    let own = EVENTS.fetch_add(1, Ordering::SeqCst) + 1;
    OWN.set(own);
    if let Some(word) = word_of(own) {
        OVERWRITTEN.fetch_max(word.swap(own, Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// In the same process, when it has forked or failed to: code that other threads installed meanwhile counts as shared.
extern "C" fn after() {
    EVENTS.fetch_add(1, Ordering::SeqCst);
}

/// In the new one, whose only thread this is. Takes no lock that another thread may have had, and no memory.
extern "C" fn in_fork() {
    let own = OWN.get();
    let word = word_of(own);
    // Forks of this process are none of the other's.
    map_words();
    let arenas = match ARENAS.try_lock() {
        Ok(arenas) => arenas,
        Err(TryLockError::Poisoned(arenas)) => arenas.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let mut all = arenas.iter().filter_map(Weak::upgrade);
    if all.all(|arena| arena.copy_memory().is_ok())
        && let Some(word) = word
    {
        // If it is that of a later fork by now, the parent takes this one for one without a copy.
        let _ = word.compare_exchange(own, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}
