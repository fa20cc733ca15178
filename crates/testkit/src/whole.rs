//! Runs whole objects over whole captures, on the kernel and on all our engines, and compares them packet by packet.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline::capture::CaptureReader;
use paceline::{
    Burst, Collection, FrameRef, Host, InitialValue, Limits, LoadOptions, MapKind, MapSpec, Object,
    ProgramKind, ProgramSpec, Verdict, XdpAttach,
};

use crate::determinize::determinize;
use crate::engine::map_contents;
use crate::kernel::{self, KernelObject, Packet, Pinned};
use crate::outcome::{Finished, Return, contents_diff, run_diff};
use crate::{AnyEngine, Contents};

/// A packet of a capture.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Index of the capture in the workload.
    pub capture: usize,
    /// Its number in the capture, from 1.
    pub number: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Packets for a program.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The captures.
    pub captures: Vec<PathBuf>,
    /// Their packets, in order.
    pub packets: Vec<Captured>,
    /// Captures that cannot be read, and why.
    pub refused: Vec<(PathBuf, String)>,
    /// Number of packets omitted from captures that have more than requested.
    pub left: u64,
}

impl Workload {
    /// Reads the first `most` packets of each capture. Packets before an error in a capture are kept.
    #[must_use]
    pub fn read(paths: impl IntoIterator<Item = PathBuf>, most: u64) -> Self {
        let mut workload = Self::default();
        for path in paths {
            if let Err(reason) = workload.add(&path, most) {
                workload.refused.push((path, reason));
            }
        }
        workload
    }

    fn add(&mut self, path: &Path, most: u64) -> Result<(), String> {
        let file = File::open(path).map_err(|error| paceline::with_causes(&error))?;
        let mut reader =
            CaptureReader::new(BufReader::new(file)).map_err(|error| paceline::with_causes(&error))?;
        let capture = self.captures.len();
        self.captures.push(path.to_owned());
        let mut burst = Burst::default();
        let mut number = 0;
        loop {
            match reader.fill(&mut burst) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
            for frame in burst.iter() {
                number += 1;
                if number > most {
                    self.left += 1;
                    continue;
                }
                self.packets.push(Captured { capture, number, data: frame.packet().to_vec() });
            }
        }
    }

    fn place(&self, packet: &Captured) -> String {
        let path = self.captures.get(packet.capture).map(|path| path.display().to_string());
        format!("{} packet {}", path.unwrap_or_default(), packet.number)
    }
}

/// An element that is set before the run.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Name of the map.
    pub map: String,
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
}

/// Error of a comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A map that should be filled does not exist.
    #[error("no map {0} to fill")]
    NoMap(String),
    /// Our loader or engine refuses it.
    #[error("ours: {0}")]
    Ours(String),
    /// The kernel refuses it.
    #[error("kernel")]
    Kernel(#[from] kernel::LoadError),
    /// A test run, or a read of a map, failed.
    #[error("kernel")]
    KernelRun(#[from] kernel::KernelError),
    /// The process may not run on the first CPU, which initial contents of per-CPU maps belong to.
    #[error("this process may not run on CPU 0")]
    NotOnFirstCpu,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Packets compared.
    pub packets: u64,
    /// Packets that a test run refuses; they run on neither side.
    pub skipped: u64,
    /// Packets by verdict, in the order of [`Verdict::ALL`], then those with other return values.
    pub verdicts: [u64; 6],
    /// Packets that the program changed.
    pub changed: u64,
    /// Maps whose contents were compared.
    pub maps: Vec<String>,
    /// Maps whose elements are not bytes.
    pub opaque_maps: Vec<String>,
    /// Helpers that were replaced because their results differ between runs.
    pub replaced: Vec<&'static str>,
    /// Whether the kernel only loads the program: it has no test run for programs of device and CPU maps, and none of
    /// filters with the packets of XDP. Our engines are then compared with the plain interpreter.
    pub only_loaded: bool,
    /// Maps and programs that the kernel loaded without BTF, with the reason.
    pub untyped: Vec<String>,
    /// The differences, at most [`MOST_DIFFERENCES`].
    pub differences: Vec<String>,
}

impl Comparison {
    /// Name of the side that our engines are compared with.
    fn other(&self) -> &'static str {
        if self.only_loaded { "plain" } else { "kernel" }
    }

    fn count(&mut self, packet: &Captured, run: &Finished) {
        self.packets += 1;
        self.changed += u64::from(run.data != packet.data);
        let code = run.r0.low();
        let verdict = Verdict::from_code(code).map_or(Verdict::ALL.len(), |verdict| verdict as usize);
        self.verdicts[verdict] += 1;
    }
}

/// Maximum number of differences that are reported.
pub const MOST_DIFFERENCES: usize = 5;

/// Runs a program of an object over a workload on both sides.
///
/// # Errors
/// [`CompareError`] if a side does not load it.
pub fn compare(
    object: &Object,
    program: &str,
    fills: &[Fill],
    workload: &Workload,
) -> Result<Comparison, CompareError> {
    let pinned = kernel::pin();
    if pinned.cpu() != 0 {
        return Err(CompareError::NotOnFirstCpu);
    }
    let mut object = object.clone();
    let specs = object.specs_mut();
    for fill in fills {
        let map = specs.maps.iter_mut().find(|map| map.name == fill.map);
        let map = map.ok_or_else(|| CompareError::NoMap(fill.map.clone()))?;
        map.contents.push((fill.key.clone(), InitialValue::Bytes(fill.value.clone())));
    }
    keep_with_callees(&mut specs.programs, &specs.maps, program);
    let btf = specs.btf.as_mut().map(Arc::make_mut);
    let replaced = determinize(&mut specs.programs, &mut specs.maps, btf);
    let both = Both::new(&object, program, pinned)?;
    let untyped = both.kernel.untyped.clone();
    let only_loaded = !both.has_test_run();
    both.run(workload, Comparison { replaced, untyped, only_loaded, ..Comparison::default() })
}

/// Keeps a program, which comes first, and the programs that program arrays name.
fn keep_with_callees(programs: &mut Vec<ProgramSpec>, maps: &[MapSpec], program: &str) {
    let values = maps.iter().flat_map(|map| &map.contents).map(|(_, value)| value);
    let named: Vec<&str> = values
        .filter_map(|value| match value {
            InitialValue::Program(name) => Some(name.as_str()),
            InitialValue::Bytes(_) | InitialValue::Map(_) => None,
        })
        .collect();
    programs.retain(|spec| spec.name == program || named.contains(&spec.name.as_str()));
    programs.sort_by_key(|spec| spec.name != program);
}

/// A program on both sides.
struct Both {
    ours: Vec<Ours>,
    kernel: KernelObject,
    pinned: Pinned,
}

/// A program on one of our engines, with maps of its own.
struct Ours {
    name: &'static str,
    program: paceline::Program,
    collection: Collection,
}

impl Ours {
    fn new(object: &Object, program: &str, engine: AnyEngine) -> Result<Self, CompareError> {
        let limits = Limits { cpus: kernel::possible_cpus(), ..LoadOptions::default().limits };
        let failed = |error: &dyn std::fmt::Display| CompareError::Ours(format!("{engine}: {error}"));
        let collection = engine.collection(object, LoadOptions::default().limits(limits));
        let collection = collection.map_err(|error| failed(&error))?;
        let program = engine.program(&collection, program).map_err(|error| failed(&error))?;
        Ok(Self { name: engine.name(), program, collection })
    }
}

impl Both {
    fn new(object: &Object, program: &str, pinned: Pinned) -> Result<Self, CompareError> {
        let ours = AnyEngine::available()
            .map(|engine| Ours::new(object, program, engine))
            .collect::<Result<Vec<_>, _>>()?;
        let options = kernel::LoadOptions { btf: object.btf(), leave_out_types: true, cpu: pinned.cpu() };
        let kernel = KernelObject::load(object.maps(), object.programs(), options)?;
        Ok(Self { ours, kernel, pinned })
    }

    /// Whether the kernel can test-run the program on the packets.
    fn has_test_run(&self) -> bool {
        let kind = self.ours.first().map(|ours| ours.program.spec().kind);
        matches!(kind, Some(ProgramKind::Xdp { attach: XdpAttach::Interface, .. }))
    }

    fn run(&self, workload: &Workload, mut result: Comparison) -> Result<Comparison, CompareError> {
        let mut host = Host::new(self.pinned.cpu());
        host.set_trace(std::io::sink());
        let takes = |packet: &&Captured| kernel::check_packet(packet.data.len(), 0);
        let packets: Vec<&Captured> = workload.packets.iter().filter(takes).collect();
        result.skipped = (workload.packets.len() - packets.len()) as u64;
        let mut burst = Burst::default();
        for group in packets.chunks(paceline::MAX_BURST) {
            self.run_burst(group, &mut burst, &mut host, workload, &mut result)?;
            if result.differences.len() >= MOST_DIFFERENCES {
                return Ok(result);
            }
        }
        self.compare_maps(&mut result)?;
        Ok(result)
    }

    /// Runs a burst on the kernel, then on each engine of ours.
    fn run_burst(
        &self,
        group: &[&Captured],
        burst: &mut Burst,
        host: &mut Host,
        workload: &Workload,
        result: &mut Comparison,
    ) -> Result<(), CompareError> {
        let mut theirs = Vec::new();
        if !result.only_loaded {
            let run = group.iter().map(|packet| self.on_kernel(packet, result));
            theirs = run.collect::<Result<Vec<_>, _>>()?;
        }
        for ours in &self.ours {
            fill(burst, group);
            let engine = ours.name;
            let fault = ours.program.run_burst(burst, host).err();
            let done = fault.as_ref().map_or(group.len(), |fault| fault.index);
            let mine = (0..done).map(|index| finished(&burst.frame(index)));
            if theirs.is_empty() {
                theirs.extend(mine);
                group.iter().zip(&theirs).for_each(|(packet, run)| result.count(packet, run));
                continue;
            }
            for ((packet, theirs), mine) in group.iter().zip(&theirs).zip(mine) {
                if mine != *theirs {
                    let diff = run_diff(&Ok(mine), result.other(), &Ok(theirs.clone())).join("\n");
                    result.differences.push(format!("{}: {engine} {diff}", workload.place(packet)));
                }
            }
            if let Some(fault) = fault {
                let place = group.get(fault.index).map(|packet| workload.place(packet)).unwrap_or_default();
                result.differences.push(format!("{place}: {engine} stops: {}", fault.fault));
                // Its maps differ from the kernel's from here on, so later results cannot be compared.
                result.differences.resize(MOST_DIFFERENCES.max(result.differences.len()), String::new());
            }
        }
        Ok(())
    }

    fn on_kernel(&self, packet: &Captured, result: &mut Comparison) -> Result<Finished, CompareError> {
        let Some(program) = self.kernel.programs.first() else { unreachable!("the program comes first") };
        let run = program.test_run(&Packet::new(&packet.data))?;
        let run = Finished { data: run.data, meta: run.meta, ..Finished::new(Return::Low(run.retval)) };
        result.count(packet, &run);
        Ok(run)
    }

    /// Contents of a map on the side that our engines are compared with.
    fn reference(&self, index: usize, result: &Comparison) -> Result<Option<Contents>, CompareError> {
        let cpu = self.pinned.cpu();
        if result.only_loaded {
            let map = self.ours.first().and_then(|ours| ours.collection.maps().get(index));
            return Ok(map.and_then(|map| map_contents(map, cpu)));
        }
        match self.kernel.maps.get(index) {
            Some(map) => Ok(map.contents(cpu)?),
            None => Ok(None),
        }
    }

    fn compare_maps(&self, result: &mut Comparison) -> Result<(), CompareError> {
        let cpu = self.pinned.cpu();
        for (index, theirs) in self.kernel.maps.iter().enumerate() {
            let name = theirs.name();
            let Some(theirs) = self.reference(index, result)? else {
                result.opaque_maps.push(name.to_owned());
                continue;
            };
            result.maps.push(name.to_owned());
            for ours in &self.ours {
                let mine = ours.collection.maps().get(index).and_then(|map| map_contents(map, cpu));
                let mine = mine.unwrap_or_default();
                let diff = contents_diff(name, result.other(), &theirs, &mine);
                result.differences.extend(diff.map(|diff| format!("{}: {diff}", ours.name)));
            }
        }
        Ok(())
    }
}

/// The result that a run left in its frame.
fn finished(frame: &FrameRef<'_>) -> Finished {
    Finished {
        data: frame.packet().to_vec(),
        meta: frame.metadata().to_vec(),
        ..Finished::new(Return::Low(frame.code()))
    }
}

/// Puts packets into a burst, with the fields of the kernel's test run.
fn fill(burst: &mut Burst, packets: &[&Captured]) {
    burst.clear();
    for packet in packets {
        if burst.push(&packet.data, paceline::FrameMeta::default()).is_err() {
            unreachable!(
                "a burst holds as many packets as a group has, and longer ones than a test run takes"
            );
        }
    }
    for mut frame in burst.iter_mut() {
        frame.set_ingress(1, 0);
    }
}

/// Fills maps of addresses and ports from the packets, so that a filter finds matches: every second address of the workload,
/// and every second port, with all bits of `flags` set.
#[must_use]
pub fn fills_from_packets(object: &Object, workload: &Workload, flags: u64) -> Vec<Fill> {
    let mut fills = Vec::new();
    let fields = PacketFields::collect(workload);
    for map in object.maps() {
        let keys: Vec<&Vec<u8>> = match (map.kind, map.key_size) {
            (MapKind::Hash | MapKind::PerCpuHash, 4) => fields.ipv4.iter().collect(),
            (MapKind::Hash | MapKind::PerCpuHash, 6) => fields.mac.iter().collect(),
            (MapKind::Hash | MapKind::PerCpuHash, 16) => fields.ipv6.iter().collect(),
            (MapKind::Array | MapKind::PerCpuArray, 4) if map.max_entries == 1 << 16 => {
                fields.ports.iter().collect()
            }
            _ => continue,
        };
        let value = flags.to_ne_bytes().iter().copied().take(map.value_size as usize).collect::<Vec<u8>>();
        let most = map.max_entries as usize;
        for key in keys.into_iter().step_by(2).take(most) {
            fills.push(Fill { map: map.name.clone(), key: key.clone(), value: value.clone() });
        }
    }
    fills
}

/// Addresses of untagged packets in network order, and TCP and UDP ports over IPv4 as array indices in network order.
#[derive(Default)]
struct PacketFields {
    mac: std::collections::BTreeSet<Vec<u8>>,
    ipv4: std::collections::BTreeSet<Vec<u8>>,
    ipv6: std::collections::BTreeSet<Vec<u8>>,
    ports: std::collections::BTreeSet<Vec<u8>>,
}

impl PacketFields {
    fn collect(workload: &Workload) -> Self {
        let mut fields = Self::default();
        for packet in &workload.packets {
            fields.add(&packet.data);
        }
        fields
    }

    fn add(&mut self, data: &[u8]) {
        let field = |range: std::ops::Range<usize>| data.get(range).map(<[u8]>::to_vec);
        self.mac.extend(field(0..6));
        self.mac.extend(field(6..12));
        match data.get(12..14) {
            Some([0x08, 0x00]) => {
                self.ipv4.extend(field(26..30));
                self.ipv4.extend(field(30..34));
                for at in [34, 36] {
                    // The index is the 16 bits in the packet's byte order.
                    let port = data.get(at..at + 2).map(|b| u32::from(u16::from_ne_bytes([b[0], b[1]])));
                    self.ports.extend(port.map(|port| port.to_ne_bytes().to_vec()));
                }
            }
            Some([0x86, 0xdd]) => {
                self.ipv6.extend(field(22..38));
                self.ipv6.extend(field(38..54));
            }
            _ => {}
        }
    }
}
