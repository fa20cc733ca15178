//! Conventions for section names.

use paceline_spec::{ProgramKind, XdpAttach};

/// Properties of a code section's programs, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramSection {
    pub(crate) kind: ProgramKind,
    /// False for names that start with `?`: the programs are optional.
    pub(crate) autoload: bool,
}

/// The meaning of a code section's name; `None` for program types that Paceline does not run.
///
/// libbpf 1 accepts `xdp`, `xdp.frags` and both with `/devmap` and `/cpumap`; earlier versions accepted any name that starts with
/// `xdp` (and `xdp_devmap/`, `xdp_cpumap/`), and `ip link` loads section `prog` by default. Socket filters are in `socket`, before
/// version 1 in any section with this prefix (`socket/NAME`, `socket_filter`). TC classifiers are in `tc`, `classifier`,
/// `tc/ingress`, `tcx/ingress`, `netkit/primary` and the like, before version 1 with any name after the slash.
pub(crate) fn program_section(name: &str) -> Option<ProgramSection> {
    let (name, autoload) = name.strip_prefix('?').map_or((name, true), |rest| (rest, false));
    if name == "prog" {
        return Some(ProgramSection { kind: xdp(XdpAttach::Interface, false), autoload });
    }
    if name.starts_with("socket") {
        return Some(ProgramSection { kind: ProgramKind::SocketFilter, autoload });
    }
    if CLASSIFIERS.iter().any(|section| is_below(name, section)) {
        return Some(ProgramSection { kind: ProgramKind::SchedCls, autoload });
    }
    let rest = name.strip_prefix("xdp")?;
    let (rest, frags) = match rest.strip_prefix(".frags") {
        Some(after) if after.is_empty() || after.starts_with('/') => (after, true),
        _ => (rest, false),
    };
    let target = rest.strip_prefix(['/', '_']).unwrap_or_default();
    let attach = match target.split('/').next() {
        Some("devmap") => XdpAttach::DevMap,
        Some("cpumap") => XdpAttach::CpuMap,
        _ => XdpAttach::Interface,
    };
    Some(ProgramSection { kind: xdp(attach, frags), autoload })
}

/// Sections of TC classifiers.
const CLASSIFIERS: &[&str] = &["tc", "tcx", "netkit", "classifier"];

/// Whether a section's name is this, or has it as its first path component.
fn is_below(name: &str, section: &str) -> bool {
    name.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Prefixes of section names that determine a program type, from libbpf's table (`section_defs`).
const TELLING: &[&str] = &[
    "action",
    "cgroup",
    "fentry",
    "fexit",
    "flow_dissector",
    "fmod_ret",
    "freplace",
    "iter",
    "kprobe",
    "kretprobe",
    "ksyscall",
    "kretsyscall",
    "lirc_mode2",
    "lsm",
    "lwt_",
    "netfilter",
    "perf_event",
    "raw_tp",
    "raw_tracepoint",
    "sk_lookup",
    "sk_msg",
    "sk_reuseport",
    "sk_skb",
    "sockops",
    "struct_ops",
    "syscall",
    "tp",
    "tp_btf",
    "tracepoint",
    "uprobe",
    "uretprobe",
    "usdt",
];

/// The program type of a section name, by libbpf's rules: `xdp`, `xdp.frags/devmap`, `tc`, `socket`. `None` for names of other
/// types.
#[must_use]
pub fn type_of_section(name: &str) -> Option<ProgramKind> {
    program_section(name).map(|section| section.kind)
}

/// Whether a code section's name determines a program type, whether or not Paceline runs it.
#[must_use]
pub fn section_tells_type(name: &str) -> bool {
    let name = name.strip_prefix('?').unwrap_or(name);
    let begins = |with: &&str| {
        let rest = name.strip_prefix(with);
        rest.is_some_and(|rest| rest.is_empty() || with.ends_with('_') || rest.starts_with(['/', '.', '_']))
    };
    program_section(name).is_some() || TELLING.iter().any(begins)
}

const fn xdp(attach: XdpAttach, frags: bool) -> ProgramKind {
    ProgramKind::Xdp { attach, frags }
}

/// Kinds of sections that become a map with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataKind {
    /// `.data` and `.data.*`
    Data,
    /// `.rodata` and `.rodata.*`
    ReadOnly,
    /// `.bss` and `.bss.*`
    Zero,
}

/// The meaning of a data section's name; `None` for sections that are not used at run time.
pub(crate) fn data_section(name: &str) -> Option<DataKind> {
    let is =
        |base: &str| name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    match () {
        () if is(".rodata") => Some(DataKind::ReadOnly),
        () if is(".data") => Some(DataKind::Data),
        () if is(".bss") => Some(DataKind::Zero),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Option<(XdpAttach, bool, bool)> {
        program_section(name).map(|s| match s.kind {
            ProgramKind::Xdp { attach, frags } => (attach, frags, s.autoload),
            other => panic!("{name} is {other:?}"),
        })
    }

    #[test]
    fn program_sections_mean_what_libbpf_says() {
        use XdpAttach::{CpuMap, DevMap, Interface};
        for name in ["xdp", "xdp/mine", "xdp_drop", "xdp1", "prog", "xdp.fragsx", "xdp_prog/devmap"] {
            assert_eq!(kind(name), Some((Interface, false, true)), "{name}");
        }
        assert_eq!(kind("xdp.frags"), Some((Interface, true, true)));
        assert_eq!(kind("xdp.frags/mine"), Some((Interface, true, true)));
        assert_eq!(kind("xdp/devmap"), Some((DevMap, false, true)));
        assert_eq!(kind("xdp_devmap/map_prog"), Some((DevMap, false, true)));
        assert_eq!(kind("xdp/cpumap/mine"), Some((CpuMap, false, true)));
        assert_eq!(kind("xdp.frags/devmap"), Some((DevMap, true, true)));
        assert_eq!(kind("xdp.frags/cpumap"), Some((CpuMap, true, true)));
        assert_eq!(kind("?xdp"), Some((Interface, false, false)));
        assert_eq!(kind("?xdp.frags/cpumap"), Some((CpuMap, true, false)));
        for name in [".text", "fentry/xdp", "prog2", "action", "", "?"] {
            assert_eq!(kind(name), None, "{name}");
        }
    }

    #[test]
    fn socket_filters_are_in_sections_that_start_so() {
        for (name, autoload) in
            [("socket", true), ("socket/mine", true), ("socket_filter", true), ("?socket", false)]
        {
            let expected = ProgramSection { kind: ProgramKind::SocketFilter, autoload };
            assert_eq!(program_section(name), Some(expected), "{name}");
        }
        for name in ["sockops", "sk_skb", "sock", "cgroup/sock"] {
            assert_eq!(program_section(name), None, "{name}");
        }
    }

    #[test]
    fn classifiers_are_in_sections_of_their_own() {
        for name in ["tc", "tc/ingress", "tcx/egress", "netkit/peer", "classifier", "classifier/mine"] {
            let expected = ProgramSection { kind: ProgramKind::SchedCls, autoload: true };
            assert_eq!(program_section(name), Some(expected), "{name}");
        }
        for name in ["tcp", "tc_cls", "classifiers", "action"] {
            assert_eq!(program_section(name), None, "{name}");
        }
    }

    #[test]
    fn some_names_tell_types_that_are_not_run() {
        for name in [
            "tc",
            "tc/egress",
            "?tc",
            "fentry/f",
            "lwt_in",
            "kprobe.multi/x",
            "cgroup/skb",
            "cgroup_skb/egress",
            "xdp",
            "tp_btf/x",
        ] {
            assert!(section_tells_type(name), "{name}");
        }
        for name in ["mine", "tcp", "prog2", "iterate", ""] {
            assert!(!section_tells_type(name), "{name}");
        }
    }

    #[test]
    fn data_sections_are_told_from_others() {
        assert_eq!(data_section(".rodata.str1.1"), Some(DataKind::ReadOnly));
        assert_eq!(data_section(".data"), Some(DataKind::Data));
        assert_eq!(data_section(".bss.mine"), Some(DataKind::Zero));
        for name in [".database", "data", "license", ".maps", ".rodatax"] {
            assert_eq!(data_section(name), None, "{name}");
        }
    }
}
