//! The process: forks that led to it, and the end of its interpreter, from which on threads of ours use no Python, as that would crash
//! the process.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use paceline::Host;
use pyo3::prelude::*;

/// Number of forks that led to this process. Threads of the parent, and the workers that they had, are not in the child.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Tells that this process is the child of a fork; registered with `os.register_at_fork`.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    CALLS.store(0, Ordering::SeqCst);
    Host::take_all_cpus();
}

/// Number of forks that led to this process.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Whether this process is the child of a fork, in which no native code can be made.
pub(crate) fn is_forked() -> bool {
    FORKS.load(Ordering::Relaxed) > 0
}

/// Whether the interpreter ends.
static ENDS: AtomicBool = AtomicBool::new(false);
/// Calls that use Python or wait for it, and that the end waits for.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Time between two looks at the calls.
const PATIENCE: Duration = Duration::from_millis(1);

/// A call that uses Python, while which the interpreter does not end.
pub(crate) struct Call {
    /// Forks before the process that began it: in a child the count began anew.
    forks: u64,
}

impl Call {
    /// `None` if the interpreter ends.
    pub(crate) fn begin() -> Option<Self> {
        let call = Self { forks: forks() };
        // Before the look: whoever sees no call has said before that the interpreter ends.
        CALLS.fetch_add(1, Ordering::SeqCst);
        (!ENDS.load(Ordering::SeqCst)).then_some(call)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.forks == forks() {
            CALLS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Whether the interpreter ends, so that calls have to.
pub(crate) fn ends() -> bool {
    ENDS.load(Ordering::Relaxed)
}

/// Calls Python from a thread that Python may not know; `None` once the interpreter ends.
pub(crate) fn attached<T>(run: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _call = Call::begin()?;
    Python::try_attach(run)
}

/// Waits for the calls that use Python, and lets no more begin; registered with `atexit`. A read of a file object is
/// waited for, as the interpreter waits for its own threads; Ctrl-C ends the wait.
#[pyfunction]
pub(crate) fn exiting(py: Python<'_>) -> PyResult<()> {
    ENDS.store(true, Ordering::SeqCst);
    while CALLS.load(Ordering::SeqCst) > 0 {
        py.detach(|| thread::sleep(PATIENCE));
        py.check_signals()?;
    }
    Ok(())
}
