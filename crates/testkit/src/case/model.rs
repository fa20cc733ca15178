//! A test case.

use std::sync::Arc;

use paceline_btf::Btf;
use paceline_classic::SockFilter;
use paceline_frame::Verdict;
use paceline_network::Network;
use paceline_spec::{InitialValue, MapSpec, ProgramKind, ProgramSpec, XdpAttach};

use super::chain::CaseChain;
use crate::Contents;

/// Kind of `r1` on entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKind {
    /// The `xdp_md` of a packet.
    Xdp,
    /// The `__sk_buff` of a packet.
    SocketFilter,
    /// The `__sk_buff` of a packet that TC classifies.
    SchedCls,
    /// Memory, with its length in `r2`.
    Raw,
}

impl CaseKind {
    /// The program type; programs over memory are XDP programs.
    pub(super) fn program_kind(self) -> ProgramKind {
        match self {
            Self::SocketFilter => ProgramKind::SocketFilter,
            Self::SchedCls => ProgramKind::SchedCls,
            Self::Xdp | Self::Raw => ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false },
        }
    }
}

/// The network of a case.
#[derive(Clone, Debug)]
pub struct CaseNetwork {
    /// The lines of the case.
    pub text: String,
    /// The parsed network.
    pub network: Arc<Network>,
}

/// One case of a file.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name in the file.
    pub name: String,
    /// Line of its `case:`.
    pub line: usize,
    /// Kind of the memory that `r1` points to.
    pub kind: CaseKind,
    /// The classic program that `programs` was converted from.
    pub classic: Option<Classic>,
    /// Byte order of the machines that the case is for; `None` for all.
    pub byte_order: Option<ByteOrder>,
    /// Engine lines.
    pub notes: Vec<Note>,
    /// The network of the host, from the lines of the case.
    pub network: Option<CaseNetwork>,
    /// The types of all functions of its programs, and of keys and values if the case declares them.
    pub btf: Btf,
    /// Its maps, with initial contents.
    pub maps: Vec<MapSpec>,
    /// Its programs; the first is run.
    pub programs: Vec<ProgramSpec>,
    /// The chain of its programs; without one the first program runs alone.
    pub chain: Option<CaseChain>,
    /// Other descriptions of the same graph.
    pub also: Vec<CaseChain>,
    /// Runs of the first program, in order, on the same maps; none if only the verifier is tested.
    pub runs: Vec<Run>,
    /// Contents of maps after the last run: index of the map, and its elements.
    pub after: Vec<(usize, Contents)>,
    /// Expected verdict of the verifier.
    pub verifier: Verifier,
}

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Little-endian.
    Little,
    /// Big-endian.
    Big,
}

impl ByteOrder {
    /// Byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

/// A classic program of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classic {
    /// Its instructions.
    pub insns: Vec<SockFilter>,
    /// Reason and instruction of a failed conversion; the case then has no program.
    pub refusal: Option<(Option<usize>, String)>,
}

impl Case {
    /// All contents of the case, without its name and its place in the file: equal for cases that test the same.
    #[must_use]
    pub fn canonical(&self) -> String {
        let network = self.network.as_ref().map(|network| &network.text);
        let mut case = Self { name: String::new(), line: 0, network: None, ..self.clone() };
        case.runs.iter_mut().for_each(|run| run.line = 0);
        format!("{case:?} {network:?} {:?}", case.btf.to_bytes())
    }

    /// Whether a run is expected to end in an error; a verifier must refuse such a program.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        self.runs.iter().any(|run| run.expect.error.is_some())
    }
}

/// An engine line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the engine.
    pub engine: String,
    /// How the engine is treated.
    pub kind: NoteKind,
    /// Reason.
    pub reason: String,
}

/// How an engine line treats its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// The engine skips the case.
    Skip,
    /// The engine must have another outcome.
    Differs,
    /// Kernels before this version cannot run the case.
    Since(u32, u32),
}

/// One run of the program and its expectations.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Line of its `packet:` or `memory:`; that of the case if it has none.
    pub line: usize,
    /// The packet or memory.
    pub data: Vec<u8>,
    /// Metadata before the packet.
    pub meta: Vec<u8>,
    /// Interfaces and queue of the packet.
    pub context: Context,
    /// Changes to the maps by user space before the run.
    pub changes: Vec<Change>,
    /// Milliseconds that pass after these changes, in which due timers fire.
    pub wait_ms: u64,
    /// The expectations.
    pub expect: Expect,
}

/// An element of a map that user space sets or removes between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Index of the map.
    pub map: usize,
    /// Key of the element.
    pub key: Vec<u8>,
    /// New value; `None` removes the element.
    pub value: Option<InitialValue>,
}

/// The scalar fields of `xdp_md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Ingress interface.
    pub ingress_ifindex: u32,
    /// Receive queue of that interface.
    pub rx_queue_index: u32,
    /// Egress interface, for programs of device maps.
    pub egress_ifindex: u32,
}

impl Default for Context {
    fn default() -> Self {
        // The kernel's test run uses the loopback device.
        Self { ingress_ifindex: 1, rx_queue_index: 0, egress_ifindex: 0 }
    }
}

/// Expected outcome of a run; `None` members are only compared between engines.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// All of `r0`.
    pub r0: Option<u64>,
    /// The low 32 bits of `r0`.
    pub verdict: Option<Verdict>,
    /// The packet or memory.
    pub output: Option<Vec<u8>>,
    /// Metadata before the packet.
    pub output_meta: Option<Vec<u8>>,
    /// Target of a redirected packet: `interface N`, or the name of a map and the key. The kernel does not report it.
    pub redirect: Option<String>,
    /// Fields of the `sk_buff` that are not 0, as `mark 1 cb0 2`, or `none`.
    pub skb: Option<String>,
    /// The programs of a chain that run, in order.
    pub path: Option<Vec<String>>,
    /// Text in the error that stops the run.
    pub error: Option<String>,
}

/// Expected verdict of the verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verifier {
    /// Accepts all programs.
    Accepts,
    /// Refuses one.
    Refuses {
        /// Text in its message; may be empty.
        text: String,
        /// The guilty program and slot, if the case marks it.
        place: Option<(usize, usize)>,
    },
}
