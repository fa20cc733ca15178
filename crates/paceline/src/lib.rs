//! Run XDP programs in user space: load the objects that people build for the Linux kernel, run them over packets,
//! and look at what became of packets and maps. No root, no kernel, no network card.
//!
//! ```
//! use paceline::{Burst, FrameMeta, Host, LoadOptions, Object, Verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
//! let object = Object::open(path)?; // what is in the file
//! let counter = object.load(&LoadOptions::default())?; // maps made and filled
//! let program = counter.program(None)?; // verified, and bound to the maps
//!
//! let mut burst = Burst::default();
//! burst.push(&[0; 60], FrameMeta::default())?;
//! program.run_burst(&mut burst, &mut Host::default())?;
//! assert_eq!(burst.frame(0).verdict(), Verdict::Pass);
//! # Ok(())
//! # }
//! ```
//!
//! | to do | use |
//! |---|---|
//! | look into an object | [`Object`] |
//! | prove that a program is safe | [`Object::verify`], [`verifier`] for what was proven |
//! | give it the types, version and configuration of a kernel | [`Object::parse_with`], [`kernel`] |
//! | set its global variables | [`Object::set_global`] |
//! | make its maps and programs | [`Object::load`], which gives a [`Collection`]; [`Collection::prepare`] for programs that are asked for again |
//! | print why it is refused | [`VerifierError::report`] |
//! | run packets you hold | [`Program::run_burst`], [`Program::run`] (a [`Verdict`]), [`Program::run_raw`] (the value) on [`Collection::host`]; one alone: [`VerifiedProgram::test`] |
//! | run a capture | [`replay()`] |
//! | move packets from ports through programs to ports | [`Pipeline`], [`port::Port`] |
//! | take packets from network devices, and send them there | [`device`] |
//! | filter packets with tcpdump's expressions, or classic BPF | [`filter::PacketFilter::compile`], [`filter`] |
//! | call many programs from one place, replace a running one | [`CallSite`], [`KeyedSite`] |
//! | run packets one by one, each with its outcome | [`scenario`] |
//! | give programs routes, time, chance | [`Host::set_network`], [`Host::set_time`], [`Host::seed`] |
//! | count how often lines and branches ran | [`coverage`] |
//! | know why a program did what it did with a packet | [`VerifiedProgram::explain`], [`explain`] |
//! | have a packet for each side of each branch | [`generate`] |
//! | prove that a property holds for all packets | [`prove`] |
//! | make packets from text, and name their fields | [`packet`] |
//! | get events | [`Host::set_events`] for perf event arrays, [`Collection::ring_reader`] for ring buffers, which poll(2) waits for |
//! | run several programs, one after the other, and change them under traffic | [`LiveChain`], [`chain`] |
//! | run the chain that a chain file describes | [`chain::ChainSource`] |
//! | tail calls | [`Collection::install`], [`Program::install`] |
//! | see what waits for workers that stall, and bound it | [`epoch::Domain::backlog`], [`epoch::Domain::set_limit`] |
//! | see what passes make of a program | [`ir`] |
//! | have `perf` and `gdb` name native code | [`JitSymbols`] |
//! | load objects that pin maps by name | [`PinnedMaps::load`] |
//! | read and write maps with Rust types | [`Collection::typed_map`], which gives a [`TypedMap`]; [`btf_type!`] describes structures |
//! | read and write maps by their BTF types, as JSON | [`Collection::json_map`], [`mod@json`], [`btf`] |
//! | fill maps and variables from JSON files | [`contents`], [`Collection::set_elements`], [`Object::set_variables`] |
//! | read and write maps as bytes, in batches, freeze them | [`Map`] |
//!
//! # Examples
//! `cargo run -p paceline --example NAME` runs one of these, from `crates/paceline/examples/`.
//!
//! | name | shows |
//! |---|---|
//! | `run_capture` | a program over a capture, verdicts counted |
//! | `verify` | the verifier, and a refusal |
//! | `maps` | maps read and written with Rust types |
//! | `chain` | two programs compiled into one chain |
//! | `filter` | an expression of tcpdump over packets |
//! | `bursts` | bursts in a loop of your own |
//! | `events` | the records of a ring buffer |
//! | `network` | routes for `bpf_fib_lookup` |
//! | `replay` | passed and dropped packets written to captures |
//! | `update` | the program of an interface replaced under traffic |
//!
//! # Features
//! All are on by default, and each builds alone.
//!
//! | feature | gives |
//! |---|---|
//! | `analysis` | [`explain`], [`coverage`], [`generate`], [`prove`], with a SAT solver |
//! | `captures` | [`capture`], [`packet`], [`replay()`], [`filter::select()`] |
//! | `devices` | network devices of Linux as ports: [`device`] |
//! | `jit` | native code on x86-64 ([`Engine::Jit`]), [`NativeCode`], [`JitSymbols`]; without it programs run on the interpreters |
//! | `json` | [`mod@json`], [`Collection::json_map`], [`contents`], chain files ([`chain::ChainSource`]), networks from text and of this machine: [`network::parse`], [`network::of_host`] |
//! | `libpcap` | tcpdump's expressions: [`filter::Libpcap`] |
//! | `measure` | times of programs: [`measure`] |
//! | `report` | refusals and explanations as text beside the source, and as JSON: [`diagnosis`] |
//!
//! # Rust
//! The minimum supported version is 1.95, the `rust-version` of the package; a rise of it is a minor release.
#![forbid(unsafe_code)]

pub mod btf;
#[cfg(feature = "captures")]
pub mod capture;
mod causes;
pub mod chain;
#[cfg(feature = "json")]
mod chain_file;
mod chain_graph;
#[cfg(feature = "json")]
pub mod contents;
pub mod context;
#[cfg(feature = "analysis")]
pub mod coverage;
#[cfg(feature = "captures")]
mod deal;
#[cfg(feature = "devices")]
pub mod device;
#[cfg(feature = "report")]
pub mod diagnosis;
mod embed;
pub mod epoch;
#[cfg(feature = "analysis")]
pub mod explain;
pub mod filter;
#[cfg(feature = "analysis")]
pub mod generate;
pub mod helper;
pub mod ir;
pub mod isa;
#[cfg(feature = "json")]
pub mod json;
pub mod kernel;
pub mod kfunc;
mod live;
mod load;
#[cfg(feature = "measure")]
pub mod measure;
pub mod network;
#[cfg(any(feature = "analysis", feature = "captures"))]
pub mod packet;
mod pipeline;
pub mod port;
#[cfg(feature = "analysis")]
pub mod prove;
#[cfg(feature = "captures")]
mod replay;
pub mod scenario;
mod step;
pub mod text_file;
pub mod verifier;
mod version;

pub use paceline_engine::{
    Access, Arrival, ArrivalError, BurstFault, ByKey, ByProgram, CallSite, Caller, Calls, Chain, ChainCounts,
    ChainError, Choice, DEFAULT_BUDGET, Engine, EngineError, Event, EventSink, Exit, Fallback, Fault,
    FaultAddress, FaultKind, Host, InstallError, KeyedSite, LookAhead, MalformedProgram, NoSlice,
    NoSuchEngine, NoSuchLookAhead, Outcome, Program, RanAs, Site, SiteStatistics, Target, TimeSource,
    UpdateError,
};
#[cfg(feature = "jit")]
pub use paceline_engine::{
    ChainPart, CodeMap, DispatcherCode, JitSymbols, JitSymbolsError, NAMES_VARIABLE, NativeCode,
    NativeFunction, Unsupported,
};
pub use paceline_frame::{
    Burst, DeviceMetadata, Frame, FrameMeta, FrameMut, FrameRef, HEADROOM, MAX_BURST, PlaceError, PushError,
    Redirect, RedirectTarget, TAILROOM, Verdict,
};
pub use paceline_maps::{
    BatchError, BtfType, CreateError, CreateErrorKind, Elements, FieldMismatch, FillError, Limits, Map,
    MapTarget, MapValue, Mismatch, Origin, OwnedRingReader, PerCpu, Plain, Record, RingError, RingReader,
    Shape, ShapeField, TypeError, TypedMap, UpdateMode, btf_type,
};
pub use paceline_object::{
    DataPointer, GivenType, LoadError, Object as ObjectSpecs, ObjectOptions, SkippedProgram,
    section_tells_type, type_of_section,
};
pub use paceline_spec::{
    Action, Actions, Counters, ElementKind, Errno, FunctionInfo, InitialValue, InnerLength, KeyKind,
    KfuncRef, LineInfo, Linkage, MapFlags, MapKind, MapRules, MapSpec, MapUse, Meaning, MemberError, Pinning,
    Poison, ProgramKind, ProgramSpec, Rules, SkBuffMember, XdpAttach, context::SkBuff,
};

pub use causes::with_causes;
pub use embed::MapError;
pub use live::{
    ChainWorker, Change, ChangeError, Link, LinkTarget, LiveChain, Member, NoMember, Order, ProgramStatus,
    Status,
};
pub use load::{
    Collection, Difference, EntryError, FilterTextError, GlobalError, LoadOptions, MissingMap, Object,
    OpenError, PinnedMaps, ProgramError, SetupError, UnfilledEntry, VerifiedProgram, VerifierError,
};
pub use pipeline::{
    AbortPlace, ChainEdge, FollowCounts, Idle, LastBranch, Observed, Observer, Pipeline, PipelineCounts,
    Polls, PortCounts, PortErrors, Worker, WorkerError,
};
#[cfg(feature = "captures")]
pub use replay::{Outputs, ReplayError, ReplayOptions, Runner, Tally, replay, replay_on};
pub use step::{Packet, Step, Trace, TraceStep, step, trace};
pub use version::Layout;
