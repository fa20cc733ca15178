//! The table of program types: all in which they differ.

use crate::ProgramKind;
use crate::availability::{EVERYWHERE, SOCKET_FILTER, XDP};
use crate::context::{Layout, SK_BUFF, XDP_MD};

/// What `r0` means when a program exits. The kernel lets programs of both types return any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// One of the XDP actions; other numbers count as aborted.
    Action,
    /// How many bytes of the packet are kept: 0 drops it, more than it has keeps all.
    BytesKept,
}

/// What a type of program is given and may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Name of the type, as the kernel has it after `BPF_PROG_TYPE_`, in lower case.
    pub name: &'static str,
    /// Its number (`enum bpf_prog_type`).
    pub number: u32,
    /// What `r1` points to.
    pub context: &'static Layout,
    /// The helpers it may call, in lists of names without `bpf_`.
    pub helpers: &'static [&'static [&'static str]],
    /// Whether it has the legacy packet loads (`may_access_skb` in `kernel/bpf/verifier.c`).
    pub packet_loads: bool,
    /// Whether helpers take memory in the packet (`may_access_direct_pkt_data`).
    pub packet_arguments: bool,
    /// What it returns.
    pub meaning: Meaning,
}

static XDP_RULES: Rules = Rules {
    name: "xdp",
    number: 6,
    context: &XDP_MD,
    helpers: &[XDP, EVERYWHERE],
    packet_loads: false,
    packet_arguments: true,
    meaning: Meaning::Action,
};

static SOCKET_FILTER_RULES: Rules = Rules {
    name: "socket_filter",
    number: 1,
    context: &SK_BUFF,
    helpers: &[SOCKET_FILTER, EVERYWHERE],
    packet_loads: true,
    packet_arguments: false,
    meaning: Meaning::BytesKept,
};

impl ProgramKind {
    /// The entry of this type.
    #[must_use]
    pub fn rules(self) -> &'static Rules {
        match self {
            Self::Xdp { .. } => &XDP_RULES,
            Self::SocketFilter => &SOCKET_FILTER_RULES,
        }
    }
}
