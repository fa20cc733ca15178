//! Kernel functions (kfuncs): name and prototype of those that Paceline knows.
//!
//! A kfunc has no number: programs call it by name, and the kernel finds it by its BTF. Like the table of helpers this
//! one is read by the assembler of text cases, the loader, the verifier and the engines. Prototypes and flags follow the
//! definitions (`__bpf_kfunc`) and registrations (`BTF_ID_FLAGS`) in `kernel/bpf/`.

use crate::ProgramKind;

/// What a kernel function takes in one of `r1` to `r5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KfuncArg {
    /// A number; other than helpers, kernel functions take no pointer for one.
    Number,
    /// Pointer to an iterator of numbers on the stack (`struct bpf_iter_num`), [`NUM_ITERATOR_BYTES`] at a multiple of 8.
    NumIterator,
}

/// What a kernel function returns in `r0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KfuncReturn {
    /// Nothing: `r0` is not set afterwards.
    Nothing,
    /// A number.
    Number,
    /// Pointer to so many bytes that may be read as long as the iterator is there, or null (`KF_RET_NULL`).
    ElementOrNull(u32),
}

/// What a kernel function does with the iterator in its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IteratorStep {
    /// Makes it, where none is; it must be destroyed (`KF_ITER_NEW`).
    New,
    /// Gives the next element, or null from the end on (`KF_ITER_NEXT`).
    Next,
    /// Ends it (`KF_ITER_DESTROY`).
    Destroy,
}

/// Size of a `struct bpf_iter_num`.
pub const NUM_ITERATOR_BYTES: u32 = 8;

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kfunc {
    /// Name, such as `bpf_iter_num_new`.
    pub name: &'static str,
    /// Arguments in order, at most five.
    pub args: &'static [KfuncArg],
    /// Result.
    pub returns: KfuncReturn,
    /// What it does with an iterator, if it is a function of one.
    pub iterator: Option<IteratorStep>,
}

static KFUNCS: &[Kfunc] = &[
    Kfunc {
        name: "bpf_iter_num_new",
        args: &[KfuncArg::NumIterator, KfuncArg::Number, KfuncArg::Number],
        returns: KfuncReturn::Number,
        iterator: Some(IteratorStep::New),
    },
    Kfunc {
        name: "bpf_iter_num_next",
        args: &[KfuncArg::NumIterator],
        returns: KfuncReturn::ElementOrNull(4),
        iterator: Some(IteratorStep::Next),
    },
    Kfunc {
        name: "bpf_iter_num_destroy",
        args: &[KfuncArg::NumIterator],
        returns: KfuncReturn::Nothing,
        iterator: Some(IteratorStep::Destroy),
    },
];

impl Kfunc {
    /// The kernel function of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        KFUNCS.iter().find(|kfunc| kfunc.name == name)
    }

    /// Whether programs of a type may call it. Those of iterators are for every type.
    #[must_use]
    pub fn is_for(&self, kind: ProgramKind) -> bool {
        match kind {
            ProgramKind::Xdp { .. } | ProgramKind::SocketFilter => self.iterator.is_some(),
        }
    }

    /// All kernel functions.
    #[must_use]
    pub fn all() -> &'static [Self] {
        KFUNCS
    }
}
