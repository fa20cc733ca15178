//! Sites: slots of programs, and the images that callers find.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_epoch::{Domain, Slots, Stalled};

use super::choice::{ByKey, ByProgram, Choice};
use super::error::{Fallback, UpdateError};
use super::image::Image;
use super::maker::Maker;
use super::statistics::{Register, SiteStatistics};
use crate::target::Target;

/// A call site that calls the program that the caller passes. Users of a program register it with [`update`](Self::update);
/// unregistered programs run as well, after a failed search and by an indirect jump.
///
/// ```
/// # use paceline_frame::{Burst, FrameMeta};
/// # use paceline_engine::{CallSite, Fallback, Host, Target, UpdateError};
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

/// A call site that selects the program by a number of the caller: a port, a queue, a tenant. Callers need no table of
/// pointers. Packets of numbers without a program pass, as on an interface without a program.
pub type KeyedSite = Site<ByKey>;

/// [`CallSite`] or [`KeyedSite`]. Clones are handles to the same site.
pub struct Site<C: Choice> {
    pub(super) shared: Arc<Shared>,
    choice: PhantomData<C>,
}

pub(super) struct Shared {
    pub(super) slots: Slots<Target, Image>,
    maker: Maker,
    updates: AtomicU64,
    pub(super) register: Register,
}

impl CallSite {
    /// A site without slots.
    #[must_use]
    pub fn new(fallback: Fallback) -> Self {
        Self::with_maker(Maker::by_program(fallback))
    }

    /// Removes a user of one program and adds one of another. Each program has one slot, which is removed with its last
    /// user. Workers can call the program before and after.
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

    /// Sets or removes the program for the packets of a number. Workers use it from their next
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
        let shared = Shared { slots, maker, updates: AtomicU64::new(0), register: Register::default() };
        let shared = Arc::new(shared);
        Self { shared, choice: PhantomData }
    }

    /// The same site, made to search in Rust, as on machines without native code: for tests.
    #[cfg(feature = "variants")]
    #[must_use]
    pub fn without_code(self) -> Self {
        Self::with_maker(self.shared.maker.without_code())
    }

    /// Counts of all callers so far.
    #[must_use]
    pub fn statistics(&self) -> SiteStatistics {
        let updates = self.shared.updates.load(Ordering::Relaxed);
        SiteStatistics { updates, ..self.shared.register.sum() }
    }

    /// Number of programs or keys with a slot.
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
}

/// Whether a program may be published. Removals need no check: each program is removed at most once.
fn admit(new: Option<&Target>) -> Result<(), Stalled> {
    new.map_or(Ok(()), |_| Domain::global().admit())
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
