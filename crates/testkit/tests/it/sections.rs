//! Section names give the program types that libbpf gives them.
//!
//! Asks `libbpf_prog_type_by_name` of the installed libbpf about names that are put together from all parts such names have.
#![allow(unsafe_code, reason = "calls of libbpf")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::{mem, ptr};

use libloading::Library;
use paceline::{section_tells_type, type_of_section};
use paceline_spec::{ProgramKind, XdpAttach};

const LIBRARY: &str = "libbpf.so.1";

/// `enum bpf_prog_type` and `enum bpf_attach_type` of `linux/bpf.h`, as libbpf writes them.
const SOCKET_FILTER: c_int = 1;
const SCHED_CLS: c_int = 3;
const XDP: c_int = 6;
const XDP_DEVMAP: c_int = 33;
const XDP_CPUMAP: c_int = 35;

const STEMS: &[&str] = &[
    "xdp",
    "xdp.frags",
    "xdp_",
    "xdp1",
    "xdp.f",
    "xdp.fragsx",
    "prog",
    "socket",
    "socket_filter",
    "sockets",
    "tc",
    "tcx",
    "tcx/ingress",
    "tcx/egress",
    "tc_",
    "tc1",
    "classifier",
    "classifiers",
    "action",
    "netkit",
    "netkit/primary",
    "netkit/peer",
    "kprobe",
    "kretprobe",
    "uprobe",
    "kprobe.multi",
    "ksyscall",
    "usdt",
    "tp",
    "tracepoint",
    "raw_tp",
    "raw_tracepoint",
    "raw_tracepoint.w",
    "tp_btf",
    "fentry",
    "fentry.s",
    "fexit",
    "fmod_ret",
    "freplace",
    "lsm",
    "lsm.s",
    "lsm_cgroup",
    "iter",
    "iter.s",
    "syscall",
    "perf_event",
    "lwt_in",
    "lwt_out",
    "lwt_xmit",
    "lwt_seg6local",
    "cgroup/skb",
    "cgroup_skb/ingress",
    "cgroup/dev",
    "cgroup/bind4",
    "sockops",
    "sk_skb",
    "sk_skb/stream_parser",
    "sk_msg",
    "sk_lookup",
    "sk_reuseport",
    "sk_reuseport/migrate",
    "flow_dissector",
    "lirc_mode2",
    "struct_ops",
    "struct_ops+",
    ".text",
    "license",
    "maps",
    "mine",
    "",
];
const ENDINGS: &[&str] = &[
    "",
    "/",
    "/ingress",
    "/egress",
    "/mine",
    "/devmap",
    "/cpumap",
    "/devmap/mine",
    "/cpumap/mine",
    "_devmap",
    "_cpumap/mine",
    ".frags",
    "x",
];

const ANY_XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

/// Names that no libbpf 1 knows, and others' loaders load: what they begin with, and the type.
const WIDER: &[(&str, &str, ProgramKind)] = &[
    ("prog", "the default of `ip link set xdp`", ANY_XDP),
    ("xdp", "before version 1, libbpf accepted any name with this prefix", ANY_XDP),
    ("socket", "before version 1, libbpf accepted any name with this prefix", ProgramKind::SocketFilter),
    ("tc/", "before version 1, libbpf accepted any name below `tc/`", ProgramKind::SchedCls),
    ("classifier/", "before version 1, libbpf accepted any name below `classifier/`", ProgramKind::SchedCls),
    ("tcx", "libbpf knows it since 1.3", ProgramKind::SchedCls),
    ("netkit", "libbpf knows it since 1.4", ProgramKind::SchedCls),
];

/// `int libbpf_prog_type_by_name(const char *, enum bpf_prog_type *, enum bpf_attach_type *)`
type ByName = unsafe extern "C" fn(*const c_char, *mut c_int, *mut c_int) -> c_int;
/// `libbpf_print_fn_t libbpf_set_print(libbpf_print_fn_t)`
type SetPrint = unsafe extern "C" fn(*const c_void) -> *const c_void;

struct Libbpf {
    by_name: ByName,
    _library: Library,
}

impl Libbpf {
    fn open() -> Result<Self, libloading::Error> {
        // SAFETY: libbpf's initialization only sets up its own data.
        let library = unsafe { Library::new(LIBRARY)? };
        // SAFETY: the types are those of the declarations in `bpf/libbpf.h`, and the library stays open.
        let (by_name, set_print) = unsafe {
            (
                *library.get::<ByName>(b"libbpf_prog_type_by_name\0")?,
                *library.get::<SetPrint>(b"libbpf_set_print\0")?,
            )
        };
        // SAFETY: null turns messages off.
        unsafe { set_print(ptr::null()) };
        Ok(Self { by_name, _library: library })
    }

    /// Program type and attach type of a section name.
    fn kind(&self, name: &str) -> Option<(c_int, c_int)> {
        let name = CString::new(name).ok()?;
        let (mut kind, mut attach) = (0, 0);
        // SAFETY: the name ends with zero, and both results are written to variables of their type.
        let error = unsafe { (self.by_name)(name.as_ptr(), &raw mut kind, &raw mut attach) };
        (error == 0).then_some((kind, attach))
    }
}

/// The type that Paceline has for a type of libbpf's.
fn expected((kind, attach): (c_int, c_int), frags: bool) -> Option<ProgramKind> {
    let attach = match attach {
        XDP_DEVMAP => XdpAttach::DevMap,
        XDP_CPUMAP => XdpAttach::CpuMap,
        _ => XdpAttach::Interface,
    };
    match kind {
        XDP => Some(ProgramKind::Xdp { attach, frags }),
        SOCKET_FILTER => Some(ProgramKind::SocketFilter),
        SCHED_CLS => Some(ProgramKind::SchedCls),
        _ => None,
    }
}

#[test]
fn section_names_mean_what_libbpf_says() {
    let libbpf = match Libbpf::open() {
        Ok(libbpf) => libbpf,
        Err(error) => return paceline_testkit::skip("section_names_mean_what_libbpf_says", &error),
    };
    let mut known = 0;
    let mut wider = vec![0; WIDER.len()];
    for name in STEMS.iter().flat_map(|stem| ENDINGS.iter().map(move |ending| format!("{stem}{ending}"))) {
        let ours = type_of_section(&name);
        if let Some(theirs) = libbpf.kind(&name) {
            known += 1;
            assert_eq!(ours, expected(theirs, name.starts_with("xdp.frags")), "`{name}`");
            assert!(section_tells_type(&name), "`{name}` tells a type");
        } else if let Some(kind) = ours {
            let index = WIDER.iter().position(|(begin, _, ty)| {
                name.starts_with(begin) && mem::discriminant(ty) == mem::discriminant(&kind)
            });
            wider[index.unwrap_or_else(|| panic!("libbpf knows no `{name}`, here it is {kind:?}"))] += 1;
        }
    }
    assert!(known > 100, "libbpf knows {known} names only");
    for ((begin, reason, _), count) in WIDER.iter().zip(wider) {
        assert!(count > 0, "no name begins with `{begin}` ({reason})");
    }
}
