//! Kernel functions (kfuncs): name and prototype of those that Paceline knows.
//!
//! A kfunc has no number: programs call it by name, and the kernel finds it by its BTF. Like the table of helpers this
//! one is read by the assembler of text cases, the loader, the verifier and the engines. Prototypes and flags follow the
//! definitions (`__bpf_kfunc`) and registrations (`BTF_ID_FLAGS`) in `kernel/bpf/`.
//!
//! Beside them are the functions that the kernel's converter of classic filters calls, and no program can: so it is here.

use super::object::ObjectKind;
use super::program_kind::ProgramKind;
use crate::availability::IMPLEMENTATION;

/// Type of a kernel function's argument, in one of `r1` to `r5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KfuncArg {
    /// A number; other than helpers, kernel functions take no pointer for one.
    Number,
    /// Pointer to an iterator of numbers on the stack (`struct bpf_iter_num`), [`NUM_ITERATOR_BYTES`] at a multiple of 8.
    NumIterator,
    /// The program's context.
    Context,
    /// Pointer to [`DYNPTR_BYTES`] of stack at a multiple of 8 that become a dynptr (`__uninit`).
    NewDynptr,
    /// Pointer to a dynptr on the stack.
    Dynptr,
    /// Pointer to memory that may be written, or null; the next argument is its size (`__opt`).
    BufferOrNull,
    /// The size of that memory: a number that is known when the program is verified (`__szk`).
    KnownSize,
    /// Pointer to so many bytes that are written.
    Out(u32),
    /// Pointer to memory that is read and written; the next argument is its size.
    Memory,
    /// Size in bytes of the memory in the argument before, which may be 0 (`__sz`), and then null.
    Size {
        /// So many bytes of memory that is not null are touched whatever the size says.
        least: u32,
    },
    /// An object of this very kind.
    Object(ObjectKind),
    /// The same, as it was returned. The program no longer has it afterwards (`KF_RELEASE`).
    Released(ObjectKind),
}

/// Type of a kernel function's result, in `r0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KfuncReturn {
    /// Nothing: `r0` is not set afterwards.
    Nothing,
    /// A number.
    Number,
    /// Pointer to so many bytes that may be read as long as the iterator is there, or null (`KF_RET_NULL`).
    ElementOrNull(u32),
    /// Pointer to as many bytes of a dynptr as its size argument says, or null. It is worthless once the packet moves.
    SliceOrNull {
        /// Whether it may be written.
        writable: bool,
    },
    /// An object that is there as long as the program runs.
    Object(ObjectKind),
    /// An object, or null. The program must give it back (`KF_ACQUIRE`).
    ObjectOrNull(ObjectKind),
}

/// Effect of a kernel function on the iterator in its first argument.
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

/// Size of a `struct bpf_dynptr`.
pub const DYNPTR_BYTES: u32 = 16;

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kfunc {
    /// Name, such as `bpf_iter_num_new`.
    pub name: &'static str,
    /// Arguments in order, at most five.
    pub args: &'static [KfuncArg],
    /// Result.
    pub returns: KfuncReturn,
    /// Effect on an iterator, for functions of iterators.
    pub iterator: Option<IteratorStep>,
    /// The types of programs that may call it.
    pub callers: Callers,
}

/// Types of programs for which the kernel registers a function (`register_btf_kfunc_id_set`) and whose context fits its prototype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callers {
    /// All types.
    All,
    /// XDP programs.
    Xdp,
    /// TC classifiers.
    SchedCls,
    /// XDP programs and TC classifiers.
    XdpAndSchedCls,
}

/// One that is no function of an iterator.
const fn function(name: &'static str, args: &'static [KfuncArg], returns: KfuncReturn) -> Kfunc {
    Kfunc { name, args, returns, iterator: None, callers: Callers::All }
}

/// One for XDP programs.
const fn for_xdp(name: &'static str, args: &'static [KfuncArg]) -> Kfunc {
    of_xdp(name, args, KfuncReturn::Number)
}

const fn of_xdp(name: &'static str, args: &'static [KfuncArg], returns: KfuncReturn) -> Kfunc {
    Kfunc { callers: Callers::Xdp, ..function(name, args, returns) }
}

/// One of connection tracking, which XDP programs and TC classifiers share (`nf_ct_kfunc_set`).
const fn of_connections(name: &'static str, args: &'static [KfuncArg], returns: KfuncReturn) -> Kfunc {
    Kfunc { callers: Callers::XdpAndSchedCls, ..function(name, args, returns) }
}

const fn of_classifiers(name: &'static str, args: &'static [KfuncArg], returns: KfuncReturn) -> Kfunc {
    Kfunc { callers: Callers::SchedCls, ..function(name, args, returns) }
}

/// A packet's addresses and ports (`struct bpf_sock_tuple`), and options (`struct bpf_ct_opts`): where these are too short the
/// functions say so in their second word.
const TUPLE: &[KfuncArg] = &[
    KfuncArg::Context,
    KfuncArg::Memory,
    KfuncArg::Size { least: 0 },
    KfuncArg::Memory,
    KfuncArg::Size { least: 8 },
];
const NEW: &[KfuncArg] = &[KfuncArg::Object(ObjectKind::NewConnection), KfuncArg::Number];
const TRACKED: &[KfuncArg] = &[KfuncArg::Object(ObjectKind::Connection), KfuncArg::Number];

static KFUNCS: &[Kfunc] = &[
    Kfunc {
        name: "bpf_iter_num_new",
        args: &[KfuncArg::NumIterator, KfuncArg::Number, KfuncArg::Number],
        returns: KfuncReturn::Number,
        iterator: Some(IteratorStep::New),
        callers: Callers::All,
    },
    Kfunc {
        name: "bpf_iter_num_next",
        args: &[KfuncArg::NumIterator],
        returns: KfuncReturn::ElementOrNull(4),
        iterator: Some(IteratorStep::Next),
        callers: Callers::All,
    },
    Kfunc {
        name: "bpf_iter_num_destroy",
        args: &[KfuncArg::NumIterator],
        returns: KfuncReturn::Nothing,
        iterator: Some(IteratorStep::Destroy),
        callers: Callers::All,
    },
    for_xdp("bpf_dynptr_from_xdp", &[KfuncArg::Context, KfuncArg::Number, KfuncArg::NewDynptr]),
    function(
        "bpf_dynptr_slice",
        &[KfuncArg::Dynptr, KfuncArg::Number, KfuncArg::BufferOrNull, KfuncArg::KnownSize],
        KfuncReturn::SliceOrNull { writable: false },
    ),
    function(
        "bpf_dynptr_slice_rdwr",
        &[KfuncArg::Dynptr, KfuncArg::Number, KfuncArg::BufferOrNull, KfuncArg::KnownSize],
        KfuncReturn::SliceOrNull { writable: true },
    ),
    function("bpf_dynptr_size", &[KfuncArg::Dynptr], KfuncReturn::Number),
    function("bpf_dynptr_is_null", &[KfuncArg::Dynptr], KfuncReturn::Number),
    function("bpf_dynptr_is_rdonly", &[KfuncArg::Dynptr], KfuncReturn::Number),
    function(
        "bpf_dynptr_adjust",
        &[KfuncArg::Dynptr, KfuncArg::Number, KfuncArg::Number],
        KfuncReturn::Number,
    ),
    function("bpf_dynptr_clone", &[KfuncArg::Dynptr, KfuncArg::NewDynptr], KfuncReturn::Number),
    function(
        "bpf_dynptr_copy",
        &[KfuncArg::Dynptr, KfuncArg::Number, KfuncArg::Dynptr, KfuncArg::Number, KfuncArg::Number],
        KfuncReturn::Number,
    ),
    function(
        "bpf_dynptr_memset",
        &[KfuncArg::Dynptr, KfuncArg::Number, KfuncArg::Number, KfuncArg::Number],
        KfuncReturn::Number,
    ),
    of_xdp("bpf_cast_to_kern_ctx", &[KfuncArg::Context], KfuncReturn::Object(ObjectKind::XdpBuff)),
    // The kernel has these three for programs that are bound to a device; here no device has such metadata.
    for_xdp("bpf_xdp_metadata_rx_timestamp", &[KfuncArg::Context, KfuncArg::Out(8)]),
    for_xdp("bpf_xdp_metadata_rx_hash", &[KfuncArg::Context, KfuncArg::Out(4), KfuncArg::Out(4)]),
    for_xdp("bpf_xdp_metadata_rx_vlan_tag", &[KfuncArg::Context, KfuncArg::Out(2), KfuncArg::Out(2)]),
    of_xdp("bpf_xdp_ct_lookup", TUPLE, KfuncReturn::ObjectOrNull(ObjectKind::Connection)),
    of_xdp("bpf_xdp_ct_alloc", TUPLE, KfuncReturn::ObjectOrNull(ObjectKind::NewConnection)),
    of_classifiers("bpf_skb_ct_lookup", TUPLE, KfuncReturn::ObjectOrNull(ObjectKind::Connection)),
    of_classifiers("bpf_skb_ct_alloc", TUPLE, KfuncReturn::ObjectOrNull(ObjectKind::NewConnection)),
    of_connections(
        "bpf_ct_insert_entry",
        &[KfuncArg::Released(ObjectKind::NewConnection)],
        KfuncReturn::ObjectOrNull(ObjectKind::Connection),
    ),
    of_connections("bpf_ct_release", &[KfuncArg::Released(ObjectKind::Connection)], KfuncReturn::Nothing),
    of_connections("bpf_ct_set_timeout", NEW, KfuncReturn::Nothing),
    of_connections("bpf_ct_change_timeout", TRACKED, KfuncReturn::Number),
    of_connections("bpf_ct_set_status", NEW, KfuncReturn::Number),
    of_connections("bpf_ct_change_status", TRACKED, KfuncReturn::Number),
];

/// Functions of `net/core/filter.c` with the context, the accumulator and the index register.
static CONVERTED: &[Kfunc] = &[
    function("bpf_skb_get_pay_offset", &[KfuncArg::Context], KfuncReturn::Number),
    function("bpf_skb_get_nlattr", ATTRIBUTE, KfuncReturn::Number),
    function("bpf_skb_get_nlattr_nest", ATTRIBUTE, KfuncReturn::Number),
];

/// A search that can run at compile time.
const fn find(kfuncs: &'static [Kfunc], name: &str) -> Option<&'static Kfunc> {
    let mut index = 0;
    while index < kfuncs.len() {
        if is_same(kfuncs[index].name.as_bytes(), name.as_bytes()) {
            return Some(&kfuncs[index]);
        }
        index += 1;
    }
    None
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

const ATTRIBUTE: &[KfuncArg] = &[KfuncArg::Context, KfuncArg::Number, KfuncArg::Number];

impl Kfunc {
    /// The kernel function of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        KFUNCS.iter().find(|kfunc| kfunc.name == name)
    }

    /// The kernel function of a name, also if only converted classic filters call it.
    #[must_use]
    pub const fn from_any_name(name: &str) -> Option<&'static Self> {
        let found = find(KFUNCS, name);
        if found.is_some() { found } else { find(CONVERTED, name) }
    }

    /// Whether programs of a type may call it.
    #[must_use]
    pub fn is_for(&self, kind: ProgramKind) -> bool {
        match self.callers {
            Callers::All => true,
            Callers::Xdp => matches!(kind, ProgramKind::Xdp { .. }),
            Callers::SchedCls => kind == ProgramKind::SchedCls,
            Callers::XdpAndSchedCls => kind != ProgramKind::SocketFilter,
        }
    }

    /// All kernel functions that programs may call.
    #[must_use]
    pub fn all() -> &'static [Self] {
        KFUNCS
    }

    /// Kernel functions that only converted classic filters call
    /// ([`KfuncRef::converted`](crate::KfuncRef::converted)).
    #[must_use]
    pub fn converted() -> &'static [Self] {
        CONVERTED
    }
}

/// Kernel functions that XDP programs or socket filters may call and that Paceline does not have, with what Paceline lacks for them.
pub const ABSENT: &[(&str, &str)] = &[
    ("bpf_ct_set_nat_info", "kernel address translation"),
    ("bpf_xdp_flow_lookup", "kernel flow tables"),
    ("bpf_xdp_get_xfrm_state", "kernel IPsec states"),
    ("bpf_xdp_xfrm_state_release", "kernel IPsec states"),
    ("bpf_crypto_encrypt", "kernel ciphers"),
    ("bpf_crypto_decrypt", "kernel ciphers"),
    ("bpf_obj_new_impl", OBJECTS),
    ("bpf_obj_drop_impl", OBJECTS),
    ("bpf_percpu_obj_new_impl", OBJECTS),
    ("bpf_percpu_obj_drop_impl", OBJECTS),
    ("bpf_refcount_acquire_impl", OBJECTS),
    ("bpf_list_push_front_impl", OBJECTS),
    ("bpf_list_push_back_impl", OBJECTS),
    ("bpf_list_pop_front", OBJECTS),
    ("bpf_list_pop_back", OBJECTS),
    ("bpf_rbtree_add_impl", OBJECTS),
    ("bpf_rbtree_remove", OBJECTS),
    ("bpf_rbtree_first", OBJECTS),
    ("bpf_cpumask_create", OBJECTS),
    ("bpf_rcu_read_lock", IMPLEMENTATION),
    ("bpf_rcu_read_unlock", IMPLEMENTATION),
    ("bpf_preempt_disable", IMPLEMENTATION),
    ("bpf_preempt_enable", IMPLEMENTATION),
    ("bpf_rdonly_cast", "kernel types"),
    ("bpf_wq_init", "functions of a program that run later"),
    ("bpf_arena_alloc_pages", "arenas"),
    ("bpf_arena_free_pages", "arenas"),
];

/// Part that Paceline lacks for a kernel function that it does not have.
#[must_use]
pub fn needs(name: &str) -> &'static str {
    ABSENT.iter().find(|(absent, _)| *absent == name).map_or(IMPLEMENTATION, |(_, what)| what)
}

const OBJECTS: &str = "objects that a program allocates";
