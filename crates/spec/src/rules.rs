//! The table of program types: all differences between them.

use paceline_frame::Verdict;

use crate::ProgramKind;
use crate::context::{Layout, SK_BUFF, TC_SK_BUFF, XDP_MD};

/// A number that programs of a type return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The number, the low 32 bits of `r0`.
    pub value: u32,
    /// Name in the UAPI header, without the prefix and in lower case.
    pub name: &'static str,
    /// Fate of the packet.
    pub verdict: Verdict,
}

/// The numbers that programs of a type return, where they are others than those of [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    /// Numbers with names.
    pub list: &'static [Action],
    /// Meaning of all other numbers.
    pub other: Verdict,
}

impl Actions {
    /// Meaning of a number.
    #[must_use]
    pub fn verdict(&self, value: u32) -> Verdict {
        let found = self.list.iter().find(|action| action.value == value);
        found.map_or(self.other, |action| action.verdict)
    }
}

/// Meaning of `r0` on exit. The kernel allows programs of all these types to return any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The number of a [`Verdict`]; others count as aborted.
    Verdict,
    /// One of other actions.
    Action(&'static Actions),
    /// Number of bytes of the packet to keep: 0 drops it, more than its length keeps all.
    BytesKept,
}

impl Meaning {
    /// The code that a packet's frame gets for a return value: the number of a verdict, or of bytes to keep.
    #[inline]
    #[must_use]
    pub fn code(self, r0: u64) -> u32 {
        match self {
            Self::Action(actions) => actions.verdict(r0 as u32) as u32,
            Self::Verdict | Self::BytesKept => r0 as u32,
        }
    }

    /// The actions, where frames do not get the number that the program returned.
    #[must_use]
    pub fn translated(self) -> Option<&'static Actions> {
        if let Self::Action(actions) = self { Some(actions) } else { None }
    }
}

/// Inputs and permissions of a program type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Name of the type, as the kernel has it after `BPF_PROG_TYPE_`, in lower case.
    pub name: &'static str,
    /// Number in `enum bpf_prog_type`.
    pub number: u32,
    /// Layout of the context in `r1`.
    pub context: &'static Layout,
    /// Whether it has the legacy packet loads (`may_access_skb` in `kernel/bpf/verifier.c`).
    pub packet_loads: bool,
    /// Whether helpers take memory in the packet (`may_access_direct_pkt_data`).
    pub packet_arguments: bool,
    /// Whether it may use spin locks (`check_map_prog_compatibility`).
    pub spin_locks: bool,
    /// Meaning of the return value.
    pub meaning: Meaning,
}

const fn action(value: u32, name: &'static str, verdict: Verdict) -> Action {
    Action { value, name, verdict }
}

/// The actions of `linux/pkt_cls.h`, by what becomes of a packet on ingress whose only classifier returns them in direct action:
/// `cls_bpf_exec_opcode` in `net/sched/cls_bpf.c`, then `tc_run` and `sch_handle_ingress` in `net/core/dev.c`. All others are
/// `TC_ACT_UNSPEC` there. `tcx_run` has the same numbers, and no 4 and 8.
static TC_ACTIONS: Actions = Actions {
    list: &[
        action(u32::MAX, "unspec", Verdict::Pass),
        action(0, "ok", Verdict::Pass),
        action(2, "shot", Verdict::Drop),
        action(4, "stolen", Verdict::Drop),
        action(7, "redirect", Verdict::Redirect),
        action(8, "trap", Verdict::Drop),
    ],
    other: Verdict::Pass,
};

static XDP_RULES: Rules = Rules {
    name: "xdp",
    number: 6,
    context: &XDP_MD,
    packet_loads: false,
    packet_arguments: true,
    spin_locks: true,
    meaning: Meaning::Verdict,
};

static SOCKET_FILTER_RULES: Rules = Rules {
    name: "socket_filter",
    number: 1,
    context: &SK_BUFF,
    packet_loads: true,
    packet_arguments: false,
    spin_locks: false,
    meaning: Meaning::BytesKept,
};

static SCHED_CLS_RULES: Rules = Rules {
    name: "sched_cls",
    number: 3,
    context: &TC_SK_BUFF,
    packet_loads: true,
    packet_arguments: true,
    spin_locks: true,
    meaning: Meaning::Action(&TC_ACTIONS),
};

impl ProgramKind {
    /// The entry of this type.
    #[must_use]
    pub fn rules(self) -> &'static Rules {
        match self {
            Self::Xdp { .. } => &XDP_RULES,
            Self::SocketFilter => &SOCKET_FILTER_RULES,
            Self::SchedCls => &SCHED_CLS_RULES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_of_classifiers_are_the_kernels() {
        let Meaning::Action(actions) = ProgramKind::SchedCls.rules().meaning else {
            panic!("they have actions")
        };
        let verdicts = (-1..10).map(|value: i32| actions.verdict(value.cast_unsigned()));
        use Verdict::{Drop, Pass, Redirect};
        let expected = [Pass, Pass, Pass, Drop, Pass, Drop, Pass, Pass, Redirect, Drop, Pass];
        assert_eq!(verdicts.collect::<Vec<_>>(), expected);
        assert_eq!(ProgramKind::SchedCls.rules().meaning.code(0xffff_ffff_0000_0002), Drop as u32);
    }

    #[test]
    fn verdicts_and_bytes_are_not_translated() {
        let xdp = ProgramKind::Xdp { attach: crate::XdpAttach::Interface, frags: false };
        for kind in [xdp, ProgramKind::SocketFilter] {
            assert_eq!(kind.rules().meaning.code(0x1_0000_0007), 7);
        }
    }
}
