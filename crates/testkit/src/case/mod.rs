//! Text cases: what they say, before any engine looks at them. `tests/cases/README.md` has the format.

mod chain;
mod classic;
mod data;
mod directive;
mod error;
mod expand;
mod layer;
mod map;
mod parse;
mod source;
mod types;
mod write;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline_btf::Btf;
use paceline_classic::SockFilter;
use paceline_frame::Verdict;
use paceline_network::Network;
use paceline_spec::{InitialValue, MapSpec, ProgramKind, ProgramSpec, XdpAttach};

use crate::Contents;

pub use chain::CaseChain;
pub use data::parse_data;
pub use error::{DataError, ExpandError, FileError, ParseError, Problem};
pub use write::{CaseRun, write_case, write_cases};

/// What `r1` is on entry.
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
    /// The type of its programs; those over memory pass for XDP programs.
    fn program_kind(self) -> ProgramKind {
        match self {
            Self::SocketFilter => ProgramKind::SocketFilter,
            Self::SchedCls => ProgramKind::SchedCls,
            Self::Xdp | Self::Raw => ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false },
        }
    }
}

/// The network that programs of a case see.
#[derive(Clone, Debug)]
pub struct CaseNetwork {
    /// The lines.
    pub text: String,
    /// Their text.
    pub network: Arc<Network>,
}

/// One case of a file.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name in the file.
    pub name: String,
    /// Line of its `case:`.
    pub line: usize,
    /// What the program works on.
    pub kind: CaseKind,
    /// The classic program that `programs` was converted from.
    pub classic: Option<Classic>,
    /// The machines that it is for, if not all.
    pub byte_order: Option<ByteOrder>,
    /// What is special about an engine.
    pub notes: Vec<Note>,
    /// The network that its programs see, as the lines of the case give it.
    pub network: Option<CaseNetwork>,
    /// The types of all functions of its programs, and of keys and values where the case gives them.
    pub btf: Btf,
    /// Its maps, with initial contents.
    pub maps: Vec<MapSpec>,
    /// Its programs; the first is run.
    pub programs: Vec<ProgramSpec>,
    /// What runs of them after what; without, the first runs alone.
    pub chain: Option<CaseChain>,
    /// Other descriptions of the same graph.
    pub also: Vec<CaseChain>,
    /// Runs of the first program, one after the other on the same maps; none if only the verifier is asked.
    pub runs: Vec<Run>,
    /// Contents of maps after the last run: index of the map, and what it holds.
    pub after: Vec<(usize, Contents)>,
    /// What the verifier says.
    pub verifier: Verifier,
}

/// The order of a number's bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant one first.
    Little,
    /// The most significant one first.
    Big,
}

impl ByteOrder {
    /// This machine's.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

/// A classic program of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classic {
    /// Its instructions.
    pub insns: Vec<SockFilter>,
    /// Why it was not converted, and the guilty instruction; then the case has no program.
    pub refusal: Option<(Option<usize>, String)>,
}

impl Case {
    /// All that the case says, without its name and its place in the file: equal for cases that test the same.
    #[must_use]
    pub fn canonical(&self) -> String {
        let network = self.network.as_ref().map(|network| &network.text);
        let mut case = Self { name: String::new(), line: 0, network: None, ..self.clone() };
        case.runs.iter_mut().for_each(|run| run.line = 0);
        format!("{case:?} {network:?} {:?}", case.btf.to_bytes())
    }

    /// Whether a run is expected to end in an error, so that no verifier may accept the program.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        self.runs.iter().any(|run| run.expect.error.is_some())
    }
}

/// What is special about an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the engine.
    pub engine: String,
    /// What about it.
    pub kind: NoteKind,
    /// Why.
    pub reason: String,
}

/// How an engine is special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// It cannot run the case.
    Skip,
    /// It comes to another outcome.
    Differs,
    /// Kernels before this version cannot run the case.
    Since(u32, u32),
}

/// One run of the program and what is expected of it.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Line of its `packet:` or `memory:`; that of the case if it has none.
    pub line: usize,
    /// The packet or memory.
    pub data: Vec<u8>,
    /// Metadata before the packet.
    pub meta: Vec<u8>,
    /// Where the packet comes from and goes to.
    pub context: Context,
    /// What user space does to the maps before it.
    pub changes: Vec<Change>,
    /// Milliseconds that pass after these, in which timers fire that are due.
    pub wait_ms: u64,
    /// What is expected.
    pub expect: Expect,
}

/// An element of a map that user space sets or removes between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Index of the map.
    pub map: usize,
    /// Key of the element.
    pub key: Vec<u8>,
    /// What it becomes; `None` removes it.
    pub value: Option<InitialValue>,
}

/// The scalar fields of `xdp_md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Interface the packet came in on.
    pub ingress_ifindex: u32,
    /// Queue of that interface.
    pub rx_queue_index: u32,
    /// Interface a device map's program sends it out on.
    pub egress_ifindex: u32,
}

impl Default for Context {
    fn default() -> Self {
        // The kernel's test run takes its packets from the loopback device.
        Self { ingress_ifindex: 1, rx_queue_index: 0, egress_ifindex: 0 }
    }
}

/// What a run is expected to leave; what is `None` is only compared between engines.
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
    /// Where a redirected packet goes: `interface N`, or a map's name and the key in it. The kernel does not tell.
    pub redirect: Option<String>,
    /// Fields of the `sk_buff` that are not 0, as `mark 1 cb0 2`, or `none`.
    pub skb: Option<String>,
    /// The programs of a chain that run, in order.
    pub path: Option<Vec<String>>,
    /// Text in the error that stops the run.
    pub error: Option<String>,
}

/// What the verifier is expected to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verifier {
    /// Accepts all programs.
    Accepts,
    /// Refuses one.
    Refuses {
        /// Text in its message; empty if any will do.
        text: String,
        /// The program and slot that are guilty, if the case says.
        place: Option<(usize, usize)>,
    },
}

/// Finds all `.case` files below a directory, in order of their paths.
///
/// # Errors
/// The first directory that cannot be read.
pub fn find_files(root: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    Ok(paths)
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let failed = |error| FileError::Read { path: directory.to_owned(), error };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "case") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Reads the cases of a file, each of which says in a comment line directly above it what it is for.
///
/// # Errors
/// It cannot be read or is no case file.
pub fn read_file(path: &Path) -> Result<Vec<Case>, FileError> {
    let text = read(path)?;
    let cases = expand::check_purposes(&text).and_then(|()| parse(&text, path.parent()));
    cases.map_err(|error| FileError::Parse { path: path.to_owned(), error })
}

/// The text of a file in which snippets, preludes and tables are expanded.
///
/// # Errors
/// It cannot be read, or not be expanded.
pub fn expand_file(path: &Path) -> Result<String, FileError> {
    let text = read(path)?;
    let expanded = expand::expand(&text, path.parent());
    let expanded = expanded.map_err(|error| FileError::Parse { path: path.to_owned(), error })?;
    Ok(expanded.text().to_owned())
}

fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|error| FileError::Read { path: path.to_owned(), error })
}

/// The cases of a text that includes no file, and need not say what they are for: machines write such texts.
///
/// # Errors
/// The first line that is wrong.
pub fn parse_file(text: &str) -> Result<Vec<Case>, ParseError> {
    parse(text, None)
}

/// The cases of a text that includes files by their paths from a directory.
fn parse(text: &str, directory: Option<&Path>) -> Result<Vec<Case>, ParseError> {
    let expanded = expand::expand(text, directory)?;
    let mut cases = parse::parse_expanded(expanded.text()).map_err(|error| expanded.place(error))?;
    for case in &mut cases {
        case.line = expanded.line(case.line);
        case.runs.iter_mut().for_each(|run| run.line = expanded.line(run.line));
    }
    Ok(cases)
}
