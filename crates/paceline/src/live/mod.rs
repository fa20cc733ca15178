//! Chains that change while packets run through them.
//!
//! A change is planned (`chain::Plan`), compiled and installed on an interface of a pipeline like any program. The revision is
//! attached to the chain, so that a worker that counts knows which revision it runs.

mod change;
mod member;
mod shared;
mod state;
mod status;
mod worker;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use paceline_engine::Target as SiteTarget;
use paceline_epoch::defer_drops;

pub use change::{Change, ChangeError, Link, LinkTarget, Order};
pub use member::{Member, NoMember};
pub use status::{ProgramStatus, Status};
pub use worker::ChainWorker;

use super::pipeline::Pipeline;
use crate::version::{Layout, Version};
use shared::{Shared, lock};
use state::State;
use status::Totals;

/// A chain that changes while packets run through it. Clones are handles to the same chain.
///
/// A change is planned, verified and compiled aside, and then published like any program of a [`Pipeline`]: every worker, of
/// the chain or of the pipeline, runs it from its next burst on. A burst never meets two versions. What is refused leaves
/// the chain as it was.
///
/// ```
/// use paceline::{Burst, Change, FrameMeta, Host, LiveChain, LoadOptions, Object, Order};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
/// let counter = Object::open(path)?.load(&LoadOptions::default())?;
/// let chain = LiveChain::new(vec![counter.member("first", None)?], Order::Given)?;
///
/// let mut worker = chain.worker(); // on each thread
/// let (mut burst, mut host) = (Burst::default(), Host::default());
/// burst.push(&[0; 60], FrameMeta::default())?;
/// worker.run_burst(&mut burst, &mut host)?;
///
/// let seen = chain.layout().revision;
/// let second = counter.member("second", None)?;
/// chain.change(Some(seen), vec![Change::Add { member: second, place: None }])?;
/// worker.run_burst(&mut burst, &mut host)?; // runs both
/// # assert_eq!(worker.layout().names, ["first", "second"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LiveChain {
    shared: Arc<Shared>,
}

impl LiveChain {
    /// A chain of programs, to be run by its own [workers](Self::worker).
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn new(members: Vec<Member>, order: Order) -> Result<Self, ChangeError> {
        Self::on(&Pipeline::new(), 0, members, order)
    }

    /// A chain of programs that the packets of an interface of a pipeline run through, instead of what they ran through
    /// before. Each change gives the interface the changed chain.
    ///
    /// # Errors
    /// [`ChangeError`]; the pipeline is as it was.
    pub fn on(
        pipeline: &Pipeline,
        ifindex: u32,
        members: Vec<Member>,
        order: Order,
    ) -> Result<Self, ChangeError> {
        let state = State::default().apply(vec![Change::All { members, order }])?;
        let version = Arc::new(state.build()?);
        publish(pipeline, &[ifindex], &version)?;
        let mut totals = Totals::default();
        totals.admit(&version.layout.ids);
        let (state, current, totals) = (Mutex::new(state), Mutex::new(version), Mutex::new(totals));
        let (pipeline, ifindexes) = (pipeline.clone(), Mutex::new(vec![ifindex]));
        let counts = AtomicBool::new(false);
        Ok(Self { shared: Arc::new(Shared { state, current, pipeline, ifindex, ifindexes, totals, counts }) })
    }

    /// Lets the packets of one more interface of the pipeline run through the chain. A change reaches the interfaces one after the
    /// other.
    ///
    /// # Errors
    /// [`ChangeError`]; the pipeline is as it was.
    pub fn attach(&self, ifindex: u32) -> Result<(), ChangeError> {
        let _state = lock(&self.shared.state);
        let version = Arc::clone(&lock(&self.shared.current));
        publish(&self.shared.pipeline, &[ifindex], &version)?;
        lock(&self.shared.ifindexes).push(ifindex);
        Ok(())
    }

    /// Lets the packets of an interface that was attached pass without the chain.
    ///
    /// # Errors
    /// [`ChangeError`]; the pipeline is as it was.
    pub fn detach(&self, ifindex: u32) -> Result<(), ChangeError> {
        let _state = lock(&self.shared.state);
        self.shared.pipeline.set_program(ifindex, None)?;
        lock(&self.shared.ifindexes).retain(|other| *other != ifindex);
        Ok(())
    }

    /// Makes changes, all of them or none, and gives the chain afterwards. `expected` is the revision that they are meant
    /// for.
    ///
    /// # Errors
    /// [`ChangeError`]; the chain is as it was.
    pub fn change(&self, expected: Option<u64>, changes: Vec<Change>) -> Result<Layout, ChangeError> {
        // Declared before the lock, and dropped after it: what a change of the interface's program frees may come back here.
        let _drops = defer_drops();
        let (mut next, version);
        let mut state = lock(&self.shared.state);
        (next, version) = self.prepare(&state, expected, changes)?;
        let version = Arc::new(version);
        let layout = version.layout.clone();
        lock(&self.shared.totals).admit(&layout.ids);
        let published = publish(&self.shared.pipeline, &lock(&self.shared.ifindexes), &version);
        let stays = if published.is_ok() { layout.ids.clone() } else { self.layout().ids };
        lock(&self.shared.totals).keep(&stays);
        published?;
        std::mem::swap(&mut *state, &mut next);
        let old = std::mem::replace(&mut *lock(&self.shared.current), version);
        drop(state);
        // This may be the last handle, and freeing code takes time.
        drop(old);
        Ok(layout)
    }

    /// Everything that [`change`](Self::change) does except publishing: workers do not run the result.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn preview(&self, expected: Option<u64>, changes: Vec<Change>) -> Result<Layout, ChangeError> {
        // A copy, so that a preview keeps no change waiting while it compiles.
        let state = lock(&self.shared.state).clone();
        Ok(self.prepare(&state, expected, changes)?.1.layout)
    }

    /// The state and the version after changes, with all code that workers run.
    fn prepare(
        &self,
        state: &State,
        expected: Option<u64>,
        changes: Vec<Change>,
    ) -> Result<(State, Version), ChangeError> {
        state.check(expected)?;
        let next = state.clone().apply(changes)?;
        let version = next.build()?;
        if self.shared.counts.load(Ordering::Relaxed) {
            version.chain.counts()?;
        }
        Ok((next, version))
    }

    /// The current version.
    #[must_use]
    pub fn layout(&self) -> Layout {
        lock(&self.shared.current).layout.clone()
    }

    /// The programs of the chain, as they were given.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        lock(&self.shared.state).members().cloned().collect()
    }

    /// A worker that runs the chain on one thread.
    #[must_use]
    pub fn worker(&self) -> ChainWorker {
        ChainWorker::new(Arc::clone(&self.shared))
    }

    /// The pipeline through whose call site the chain runs; its own, if it was given none.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.shared.pipeline
    }

    /// Counts of its own workers, for the programs in the chain.
    #[must_use]
    pub fn status(&self) -> Status {
        let version = Arc::clone(&lock(&self.shared.current));
        lock(&self.shared.totals).status(&version.layout)
    }
}

impl fmt::Debug for LiveChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveChain").field("layout", &self.layout()).finish_non_exhaustive()
    }
}

/// Lets the packets of interfaces run through a version. It goes along, so that workers know what they run.
fn publish(pipeline: &Pipeline, ifindexes: &[u32], version: &Arc<Version>) -> Result<(), ChangeError> {
    let target = SiteTarget::from(&version.chain).with_data(Arc::clone(version));
    ifindexes.iter().try_for_each(|&ifindex| Ok(pipeline.set_program(ifindex, Some(&target))?))
}
