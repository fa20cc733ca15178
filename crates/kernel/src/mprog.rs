//! Several programs on one hook, in relative order (`kernel/bpf/mprog.c`): a network interface's ingress hook (tcx).

use std::os::fd::{AsFd, OwnedFd};

use paceline_spec::Errno;

use crate::error::KernelError;
use crate::sys;

/// `BPF_PROG_TYPE_SCHED_CLS`
const CLASSIFIER: u32 = 3;
/// `BPF_TCX_INGRESS`
const INGRESS: u32 = 46;

const F_REPLACE: u32 = 1 << 2;
const F_BEFORE: u32 = 1 << 3;
const F_AFTER: u32 = 1 << 4;

/// A program for this hook that does nothing.
pub struct Classifier {
    fd: OwnedFd,
    id: u32,
}

impl std::fmt::Debug for Classifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classifier").finish_non_exhaustive()
    }
}

impl Classifier {
    /// Loads one.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn load() -> Result<Self, KernelError> {
        // r0 = 0; exit
        let insns = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
        let load = sys::ProgLoad {
            prog_type: CLASSIFIER,
            expected_attach_type: 0,
            prog_flags: 0,
            insns: &insns,
            license: c"GPL",
            name: [0; 16],
            fd_array: &[],
            btf: None,
            func_info: &[],
            log_level: 0,
        };
        let failed = |errno| KernelError::new("load classifier", errno);
        let fd = sys::prog_load(&load, &mut []).map_err(failed)?;
        let id = sys::prog_info(fd.as_fd()).map_err(failed)?.id;
        Ok(Self { fd, id })
    }

    /// The kernel's id of the program.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    fn raw(&self) -> u32 {
        sys::raw(self.fd.as_fd())
    }
}

/// Where a program is attached among others.
#[derive(Debug, Clone, Copy)]
pub enum Beside<'a> {
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// Right before one.
    Before(&'a Classifier),
    /// Right after one.
    After(&'a Classifier),
}

/// The ingress hook of an interface of the calling thread's network namespace.
#[derive(Clone, Copy, Debug)]
pub struct Ingress {
    /// The interface's index.
    pub ifindex: u32,
}

impl Ingress {
    /// Attaches a program. An expected revision of 0 means any.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn attach(&self, program: &Classifier, place: Beside<'_>, expected: u64) -> Result<(), Errno> {
        let (flags, relative) = match place {
            Beside::First => (F_BEFORE, 0),
            Beside::Last => (0, 0),
            Beside::Before(other) => (F_BEFORE, other.raw()),
            Beside::After(other) => (F_AFTER, other.raw()),
        };
        sys::prog_attach(sys::Attach { flags, relative, ..self.request(program, expected) })
    }

    /// Replaces a program by another.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn replace(&self, old: &Classifier, new: &Classifier, expected: u64) -> Result<(), Errno> {
        let replaced = old.raw();
        sys::prog_attach(sys::Attach { flags: F_REPLACE, replaced, ..self.request(new, expected) })
    }

    /// Detaches a program.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn detach(&self, program: &Classifier, expected: u64) -> Result<(), Errno> {
        sys::prog_detach(self.request(program, expected))
    }

    /// The ids of the programs, in order, and the revision.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn query(&self) -> Result<(Vec<u32>, u64), Errno> {
        sys::prog_query(self.ifindex, INGRESS)
    }

    fn request(&self, program: &Classifier, expected_revision: u64) -> sys::Attach {
        let (ifindex, program) = (self.ifindex, program.raw());
        sys::Attach { ifindex, program, attach_type: INGRESS, expected_revision, ..sys::Attach::default() }
    }
}
