//! The workloads.

/// The workloads as XDP programs (`workloads/workloads.bpf.c`).
pub(crate) const OBJECT: &[u8] = include_bytes!("../../workloads/workloads.o");

/// A workload of the benchmarks (`workloads/workloads.h`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// Its name in C.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Its expression for tcpdump.
    #[cfg_attr(not(feature = "libpcap"), allow(dead_code, reason = "libpcap compiles it"))]
    pub(crate) expression: Option<&'static str>,
}

impl Workload {
    /// Name of the XDP program.
    pub(super) fn program(self) -> String {
        format!("{}_program", self.name)
    }
}

pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "drop", title: "W1 drop", expression: None },
    Workload { name: "port22", title: "W2 port 22", expression: Some("port 22") },
    Workload {
        name: "port22_payload",
        title: "W3 port 22 with payload",
        expression: Some("tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)"),
    },
    Workload { name: "count", title: "W4 count protocols", expression: None },
];
