//! Types of programs.

/// Attachment point of an XDP program in the kernel (`SEC("xdp")`, `SEC("xdp/devmap")`, `SEC("xdp/cpumap")`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XdpAttach {
    /// To an interface.
    Interface,
    /// To an entry of a device map, run on the way out.
    DevMap,
    /// To an entry of a CPU map, run on the other CPU.
    CpuMap,
}

/// Declares the type of programs and its list, so that neither has a type that the other lacks.
macro_rules! program_kinds {
    ($($(#[$kind_doc:meta])* $kind:ident
        $({ $($(#[$field_doc:meta])* $field:ident: $type:ty = $plain:expr,)* })?,)*) => {
        /// The type of a program: decides its context, its helpers and what its return value means.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProgramKind {
            $($(#[$kind_doc])* $kind $({ $($(#[$field_doc])* $field: $type,)* })?,)*
        }

        impl ProgramKind {
            /// Every type, in its plainest form: XDP programs attach to an interface and say nothing of fragments.
            pub const ALL: &[Self] = &[$(Self::$kind $({ $($field: $plain,)* })?,)*];
        }
    };
}

program_kinds! {
    /// `BPF_PROG_TYPE_XDP`.
    Xdp {
        /// Attachment point.
        attach: XdpAttach = XdpAttach::Interface,
        /// Whether the program supports packets in several buffers (`xdp.frags`).
        frags: bool = false,
    },
    /// `BPF_PROG_TYPE_SOCKET_FILTER`.
    SocketFilter,
    /// `BPF_PROG_TYPE_SCHED_CLS`: a classifier of TC, or a program of tcx.
    SchedCls,
}
