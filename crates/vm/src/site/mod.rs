//! Call sites: places from which many programs are called, and where a running program is replaced.
//!
//! A site has a dispatcher, as the kernel has for XDP programs: generated code that finds the program by comparing and jumps
//! straight into it, so that the call is a direct one. A new image is built beside the old one and published in one store; the old
//! one, and a program that no slot holds any more, are freed after a grace period.

mod calls;
mod choice;
mod code;
mod image;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_epoch::Stalled;
use paceline_epoch::{Domain, NoSlot, Slots};

use crate::target::Target;

pub use calls::{Caller, Calls};
pub use choice::{ByKey, ByProgram, Choice};
pub use code::DispatcherCode;
use image::{Image, Maker};

/// A call site that calls the program it is told. Whoever runs a program registers it, with [`update`](Self::update); what
/// is not registered runs as well, after a search for nothing and by an indirect jump.
///
/// ```
/// # use paceline_frame::{Burst, FrameMeta};
/// # use paceline_vm::{CallSite, Fallback, Host, Target, UpdateError};
/// # fn example(first: &Target, second: &Target) -> Result<(), UpdateError> {
/// let site = CallSite::new(Fallback::Indirect);
/// site.update(None, Some(first))?; // a port comes with its program
/// site.update(Some(first), Some(second))?; // and gets another one, while packets run
///
/// // Each worker has a caller.
/// let (mut caller, mut host, mut burst) = (site.caller(), Host::default(), Burst::default());
/// # burst.push(&[0; 60], FrameMeta::default()).expect("there is room");
/// caller.run_burst(second, &mut burst, &mut host).expect("verified programs have no fault");
/// let statistics = site.statistics();
/// assert_eq!((statistics.hits, statistics.fallbacks, statistics.updates), (1, 0, 2));
/// # Ok(())
/// # }
/// ```
pub type CallSite = Site<ByProgram>;

/// A call site that chooses the program by a number that the caller has: a port, a queue, a tenant. Nobody needs a table of
/// pointers. Packets of numbers that have no program pass, as on an interface without one.
pub type KeyedSite = Site<ByKey>;

/// How programs are called that a site has no slot for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// By an indirect jump.
    #[default]
    Indirect,
    /// By a retpoline: no indirect branch that could be predicted, some 17 ns a call.
    Retpoline,
}

/// Why a site stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The old program is not registered.
    #[error("the program to be replaced has no slot")]
    NoSlot,
    /// There is no executable memory for the dispatcher.
    #[error("{0}")]
    Memory(String),
    /// Workers that stall keep too much of what was replaced before.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl From<NoSlot> for UpdateError {
    fn from(_: NoSlot) -> Self {
        Self::NoSlot
    }
}

/// What a site counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteStatistics {
    /// Calls that came to their program by a direct jump. That of a burst is one call.
    pub hits: u64,
    /// Calls that found no slot.
    pub fallbacks: u64,
    /// New images that were published.
    pub updates: u64,
}

/// [`CallSite`] or [`KeyedSite`]. Clones are handles to the same site.
pub struct Site<C: Choice> {
    shared: Arc<Shared>,
    choice: PhantomData<C>,
}

struct Shared {
    slots: Slots<Target, Image>,
    maker: Maker,
    updates: AtomicU64,
    counts: Mutex<Registered>,
}

/// Where callers count.
#[derive(Default)]
struct Registered {
    callers: Vec<Arc<Counts>>,
    /// Of callers that are gone.
    gone: SiteStatistics,
}

/// What one caller counted, written by it alone, in cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    hits: AtomicU64,
    fallbacks: AtomicU64,
}

impl Counts {
    fn add_to(&self, sum: &mut SiteStatistics) {
        sum.hits += self.hits.load(Ordering::Relaxed);
        sum.fallbacks += self.fallbacks.load(Ordering::Relaxed);
    }
}

impl CallSite {
    /// A site without slots.
    #[must_use]
    pub fn new(fallback: Fallback) -> Self {
        Self::with_maker(Maker::by_program(fallback))
    }

    /// One user less of a program, and one more of another. Each program has one slot, whoever uses it; it goes with the last
    /// user. Workers call the program that they name all the same, before and after.
    ///
    /// # Errors
    /// [`UpdateError`]; the site is as it was.
    pub fn update(&self, old: Option<&Target>, new: Option<&Target>) -> Result<(), UpdateError> {
        admit(new)?;
        let new = new.map(|target| (target.token, target.clone()));
        let build = |targets| self.shared.maker.make(targets);
        let changed = self.shared.slots.update(old.map(|target| target.token), new, build)?;
        self.shared.updates.fetch_add(u64::from(changed), Ordering::Relaxed);
        Ok(())
    }
}

impl KeyedSite {
    /// A site without programs.
    #[must_use]
    pub fn by_key() -> Self {
        Self::with_maker(Maker::by_key())
    }

    /// Gives the packets of a number to a program, instead of the one before; or to none. Workers see it from their next
    /// burst on.
    ///
    /// # Errors
    /// [`UpdateError::Memory`] or [`UpdateError::Stalled`]; the site is as it was.
    pub fn set(&self, key: u64, target: Option<&Target>) -> Result<(), UpdateError> {
        admit(target)?;
        let build = |targets| self.shared.maker.make(targets);
        let changed = self.shared.slots.set(key, target.cloned(), build)?;
        self.shared.updates.fetch_add(u64::from(changed), Ordering::Relaxed);
        Ok(())
    }
}

impl<C: Choice> Site<C> {
    fn with_maker(maker: Maker) -> Self {
        let slots = Slots::new(maker.empty(), Domain::global().clone());
        let (updates, counts) = (AtomicU64::new(0), Mutex::default());
        let shared = Arc::new(Shared { slots, maker, updates, counts });
        Self { shared, choice: PhantomData }
    }

    /// The same site, made to search in Rust, as on machines without native code: for tests.
    #[cfg(feature = "variants")]
    #[must_use]
    pub fn without_code(self) -> Self {
        Self::with_maker(self.shared.maker.without_code())
    }

    /// Registers a worker.
    #[must_use]
    pub fn caller(&self) -> Caller<C> {
        let counts = Arc::<Counts>::default();
        lock(&self.shared.counts).callers.push(Arc::clone(&counts));
        Caller { site: self.clone(), counts }
    }

    /// What was counted so far, of all callers.
    #[must_use]
    pub fn statistics(&self) -> SiteStatistics {
        let registered = lock(&self.shared.counts);
        let mut sum = registered.gone;
        registered.callers.iter().for_each(|counts| counts.add_to(&mut sum));
        SiteStatistics { updates: self.shared.updates.load(Ordering::Relaxed), ..sum }
    }

    /// How many programs or keys have a slot.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.shared.slots.len()
    }

    /// The users of each slot, with the program's name.
    #[must_use]
    pub fn users(&self) -> Vec<(String, usize)> {
        let mut users = Vec::new();
        self.shared.slots.each(|_, target, count| users.push((target.name().to_owned(), count)));
        users
    }

    /// The dispatcher's code as it is now; `None` where it is a search in Rust, or has no slot.
    #[must_use]
    pub fn code(&self) -> Option<DispatcherCode> {
        let mut reader = Domain::global().reader();
        let pin = reader.pin();
        DispatcherCode::of(self.shared.slots.image(&pin))
    }
}

impl Shared {
    fn forget(&self, caller: &Arc<Counts>) {
        let mut registered = lock(&self.counts);
        registered.callers.retain(|counts| !Arc::ptr_eq(counts, caller));
        caller.add_to(&mut registered.gone);
    }
}

/// Whether a program may be published. Each is removed once at most, so that removals need not ask.
fn admit(new: Option<&Target>) -> Result<(), Stalled> {
    new.map_or(Ok(()), |_| Domain::global().admit())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Choice> Clone for Site<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), choice: PhantomData }
    }
}

impl<C: Choice> fmt::Debug for Site<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("slots", &self.slots()).finish_non_exhaustive()
    }
}
