//! The table of program types: all differences between them.
//!
//! A program type is a variant of `ProgramKind`, a row here, a layout, its helpers and the sections that name it. Engines and rules
//! of the verifier read the row and do not match on types. If return values are not numbers of verdicts, the row has a table of
//! actions. A helper that defers work to the end of the run makes engines call `Host::end_run` before anything else accesses the
//! packet.

use paceline_frame::Verdict;

use super::program_kind::ProgramKind;
use crate::context::{Layout, SK_BUFF, TC_SK_BUFF, XDP_MD};

/// A number that programs of a type return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The number, the low 32 bits of `r0`.
    pub value: u32,
    /// Name in the UAPI header, such as `TC_ACT_SHOT`.
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

    /// The numbers that have names in the UAPI headers; none are of bytes to keep.
    #[must_use]
    pub fn named(self) -> &'static [Action] {
        match self {
            Self::Verdict => &XDP_ACTIONS,
            Self::Action(actions) => actions.list,
            Self::BytesKept => &[],
        }
    }

    /// The name of a return value in the UAPI header, such as `TC_ACT_SHOT`.
    #[must_use]
    pub fn name(self, value: u32) -> Option<&'static str> {
        self.named().iter().find(|action| action.value == value).map(|action| action.name)
    }

    /// The return value of a name, with or without its prefix and in any case: `TC_ACT_SHOT`, `shot`.
    #[must_use]
    pub fn value(self, name: &str) -> Option<u32> {
        let is_named = |action: &&Action| {
            let short = action.name.rsplit_once("ACT_").or_else(|| action.name.split_once('_'));
            let short = short.map_or(action.name, |(_, short)| short);
            action.name.eq_ignore_ascii_case(name) || short.eq_ignore_ascii_case(name)
        };
        self.named().iter().find(is_named).map(|action| action.value)
    }

    /// A return value as a number: negative where the type's numbers are of type `int`.
    #[must_use]
    pub fn number(self, value: u32) -> i64 {
        if self.translated().is_some() { value.cast_signed().into() } else { value.into() }
    }

    /// What becomes of a packet whose frame has a code.
    #[must_use]
    pub fn verdict(self, code: u32) -> Verdict {
        match self {
            Self::BytesKept if code == 0 => Verdict::Drop,
            Self::BytesKept => Verdict::Pass,
            Self::Verdict | Self::Action(_) => Verdict::from_code(code).unwrap_or(Verdict::Aborted),
        }
    }

    /// The return value that stands for a verdict, such as that of a chain, whose programs return several; `None` if no number does.
    #[must_use]
    pub fn standing_for(self, verdict: Verdict) -> Option<u32> {
        let first = |action: &&Action| action.verdict == verdict && action.value != u32::MAX;
        self.named().iter().find(first).map(|action| action.value)
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

/// The numbers of `enum xdp_action` in `linux/bpf.h`.
static XDP_ACTIONS: [Action; 5] = [
    action(0, "XDP_ABORTED", Verdict::Aborted),
    action(1, "XDP_DROP", Verdict::Drop),
    action(2, "XDP_PASS", Verdict::Pass),
    action(3, "XDP_TX", Verdict::Tx),
    action(4, "XDP_REDIRECT", Verdict::Redirect),
];

/// The actions of `linux/pkt_cls.h`, by what becomes of a packet on ingress whose only classifier returns them in direct action:
/// `cls_bpf_exec_opcode` in `net/sched/cls_bpf.c`, then `tc_run` and `sch_handle_ingress` in `net/core/dev.c`. Those that pass and all
/// others are `TC_ACT_UNSPEC` there, but for `TC_ACT_OK`. `tcx_run` has the same numbers, and no 4 and 8.
static TC_ACTIONS: Actions = Actions {
    list: &[
        action(u32::MAX, "TC_ACT_UNSPEC", Verdict::Pass),
        action(0, "TC_ACT_OK", Verdict::Pass),
        action(1, "TC_ACT_RECLASSIFY", Verdict::Pass),
        action(2, "TC_ACT_SHOT", Verdict::Drop),
        action(3, "TC_ACT_PIPE", Verdict::Pass),
        action(4, "TC_ACT_STOLEN", Verdict::Drop),
        action(5, "TC_ACT_QUEUED", Verdict::Pass),
        action(6, "TC_ACT_REPEAT", Verdict::Pass),
        action(7, "TC_ACT_REDIRECT", Verdict::Redirect),
        action(8, "TC_ACT_TRAP", Verdict::Drop),
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
    fn return_values_have_names() {
        let (xdp, tc) = (
            ProgramKind::Xdp { attach: crate::program_kind::XdpAttach::Interface, frags: false },
            ProgramKind::SchedCls,
        );
        let (xdp, tc) = (xdp.rules().meaning, tc.rules().meaning);
        assert_eq!(
            (xdp.name(1), tc.name(2), tc.name(u32::MAX)),
            (Some("XDP_DROP"), Some("TC_ACT_SHOT"), Some("TC_ACT_UNSPEC"))
        );
        assert_eq!(
            (xdp.value("drop"), tc.value("shot"), tc.value("TC_ACT_OK"), tc.value("drop")),
            (Some(1), Some(2), Some(0), None)
        );
        let all = Verdict::ALL.map(|verdict| (xdp.standing_for(verdict), tc.standing_for(verdict)));
        assert_eq!(
            all,
            [(Some(0), None), (Some(1), Some(2)), (Some(2), Some(0)), (Some(3), None), (Some(4), Some(7))]
        );
    }

    #[test]
    fn verdicts_and_bytes_are_not_translated() {
        let xdp = ProgramKind::Xdp { attach: crate::program_kind::XdpAttach::Interface, frags: false };
        for kind in [xdp, ProgramKind::SocketFilter] {
            assert_eq!(kind.rules().meaning.code(0x1_0000_0007), 7);
        }
    }
}
