//! Scenes: a subject, packets and options, derived from a seed.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use paceline::capture::{AnnotatedWriter, LinkType, Notes, WriteError};
use paceline::helper::Helper;
use paceline::isa::{Callee, Insn, decode};
use paceline::{LoadOptions, Object, ProgramKind, ProgramSpec};
use paceline_ports::queue_of;

use serde_json::{Value as Json, json};

use crate::object_runs::{fill_from_seed, packets_of, pool};

/// Nanoseconds between two packets at most, and what they are multiples of: test files have such times exactly.
const LONGEST: u64 = 16;
const UNIT_NS: u64 = 125_000_000;

/// Programs that run as one.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Arguments of commands that name it.
    pub targets: Vec<String>,
    /// Whether it is a TC classifier alone.
    pub is_classifier: bool,
    /// Whether it is an XDP program alone.
    pub is_xdp: bool,
    /// Whether a program of the objects asks for time, random numbers, routes or sockets, of which each machine has others, or is refused.
    pub asks_the_machine: bool,
}

/// Helpers and kernel functions whose results are the machine's, by parts of their names.
const OF_MACHINE: [&str; 9] =
    ["ktime", "jiffies", "prandom", "cookie", "fib", "lookup_tcp", "lookup_udp", "timer", "perf_event"];

fn asks_the_machine(program: &ProgramSpec) -> bool {
    let Ok(code) = decode(&program.insns) else { return true };
    code.iter().any(|(_, insn)| {
        let name = match *insn {
            Insn::Call(Callee::Helper(id)) => Helper::from_imm(id).map(|helper| helper.name),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => program.kfunc(btf_id).map(|kfunc| kfunc.name),
            _ => return false,
        };
        name.is_none_or(|name| OF_MACHINE.iter().any(|part| name.contains(part)))
    })
}

impl Subject {
    /// The programs of an object file; none if it cannot be read.
    #[must_use]
    pub fn of_object(path: &Path) -> Vec<Self> {
        // Test files name objects from where they are.
        let Ok(path) = path.canonicalize() else { return Vec::new() };
        let Ok(object) = Object::open(&path) else { return Vec::new() };
        // The kernel may run what is refused here.
        let is_of_both = |program| !asks_the_machine(program) && object.verify(program).is_ok();
        let asks_the_machine = !object.programs().iter().all(is_of_both);
        let subject = |kind: ProgramKind, name: &str| Self {
            asks_the_machine,
            targets: vec![format!("{}:{name}", path.display())],
            is_classifier: kind == ProgramKind::SchedCls,
            is_xdp: matches!(kind, ProgramKind::Xdp { .. }),
        };
        object.programs().iter().map(|program| subject(program.kind, &program.name)).collect()
    }

    /// Whether it is an XDP program or a chain of them.
    #[must_use]
    pub fn takes_xdp(&self) -> bool {
        self.is_xdp || !self.is_program()
    }

    /// Whether it is one program.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.targets.len() == 1
    }

    /// A chain of two XDP programs.
    #[must_use]
    pub fn chain(first: &Self, second: &Self) -> Self {
        let targets = [first.targets.as_slice(), &second.targets].concat();
        let asks_the_machine = first.asks_the_machine || second.asks_the_machine;
        Self { targets, is_classifier: false, is_xdp: false, asks_the_machine }
    }
}

/// A packet of a scene.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) time_ns: u64,
    /// Number of its interface in the capture.
    pub(super) interface: u32,
}

/// A subject, packets and options.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The subject.
    pub subject: Subject,
    /// The packets.
    pub packets: Vec<Packet>,
    /// Interface, queue and seed that are given.
    pub ingress: Option<u32>,
    /// As `ingress`.
    pub queue: Option<u16>,
    /// As `ingress`.
    pub seed: u64,
    /// Members of the context that are given.
    pub context: Vec<(&'static str, u64)>,
    /// Whether all packets are of flows that the first of two workers gets.
    pub of_one_worker: bool,
    /// Files with the elements of maps.
    pub maps: Vec<(String, PathBuf)>,
    /// The capture.
    pub capture: PathBuf,
    /// Another program of the same type, which the subject is compared with.
    pub other: Option<Subject>,
}

/// Elements for the maps of a subject, each map in a file beside the capture.
fn maps(target: &str, seed: u64, capture: &Path) -> Vec<(String, PathBuf)> {
    let path = target.rsplit_once(':').map_or(target, |(path, _)| path);
    let Ok(mut object) = Object::open(path) else { return Vec::new() };
    let before: Vec<_> = object.maps().iter().map(|spec| spec.contents.len()).collect();
    fill_from_seed(&mut object, seed);
    let filled = object.maps().iter().zip(before).filter(|(spec, before)| spec.contents.len() != *before);
    // Values of each CPU are told in another form.
    let names = filled.filter(|(spec, _)| !spec.kind.is_per_cpu()).map(|(spec, _)| spec.name.clone());
    let names: Vec<_> = names.collect();
    let Ok(collection) = object.load(&LoadOptions::default()) else { return Vec::new() };
    let file = |name: String| {
        let map = collection.json_map(&name)?;
        let elements = map.iter().ok()?.map(|(key, value)| json!({ "key": key, "value": value }));
        let path = capture.with_file_name(format!("{name}.json"));
        fs::write(&path, Json::from(elements.collect::<Vec<_>>()).to_string()).ok()?;
        Some((name, path))
    };
    names.into_iter().filter_map(file).collect()
}

const MEMBERS: [&str; 4] = ["mark", "priority", "cb[1]", "tstamp"];

impl Scene {
    /// A scene of one of the subjects, whose capture is written to a file.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn new(
        rng: &mut Rng,
        subjects: &[Subject],
        count: usize,
        capture: PathBuf,
    ) -> Result<Self, WriteError> {
        let programs: Vec<&Subject> = subjects.iter().filter(|subject| subject.is_xdp).collect();
        let subject = match (rng.u8(..4), rng.choice(&programs), rng.choice(&programs)) {
            (0, Some(first), Some(second)) if first.targets != second.targets => {
                Subject::chain(first, second)
            }
            _ => rng.choice(subjects).cloned().unwrap_or_else(|| Subject {
                targets: Vec::new(),
                is_classifier: false,
                is_xdp: true,
                asks_the_machine: false,
            }),
        };
        let of_one_worker = rng.bool();
        let (mut packets, mut time_ns, interfaces) = (Vec::new(), 0, rng.u32(1..=3));
        for input in packets_of(pool(), rng.u64(..), count) {
            if of_one_worker && queue_of(&input.data, 2) != 0 {
                continue;
            }
            time_ns += rng.u64(..LONGEST) * UNIT_NS;
            packets.push(Packet { bytes: input.data, time_ns, interface: rng.u32(..interfaces) });
        }
        let given = MEMBERS.map(|name| (name, rng.u64(..1 << 20), rng.bool()));
        let given = given.into_iter().filter(|(.., is_given)| subject.is_classifier && *is_given);
        let context = given.map(|(name, value, _)| (name, value)).collect();
        let maps = match subject.targets.as_slice() {
            [target] if rng.bool() => maps(target, rng.u64(..), &capture),
            _ => Vec::new(),
        };
        let of_type = |other: &&Subject| {
            let same = [(other.is_classifier, subject.is_classifier), (other.is_xdp, subject.is_xdp)];
            other.targets != subject.targets && same.iter().all(|(other, this)| other == this)
        };
        let others: Vec<&Subject> = subjects.iter().filter(of_type).collect();
        let other = rng.choice(&others).filter(|_| maps.is_empty() && subject.is_program());
        let scene = Self {
            other: other.map(|other| (*other).clone()),
            maps,
            subject,
            packets,
            ingress: (rng.u8(..3) == 0).then(|| rng.u32(1..6)),
            queue: (rng.u8(..3) == 0).then(|| rng.u16(..8)),
            seed: rng.u64(..1 << 40),
            context,
            of_one_worker,
            capture,
        };
        scene.write(interfaces)?;
        Ok(scene)
    }

    fn write(&self, interfaces: u32) -> Result<(), WriteError> {
        let file = File::create(&self.capture).map_err(|source| WriteError::Io { offset: 0, source })?;
        let mut writer = AnnotatedWriter::new(BufWriter::new(file), "doors")?;
        for interface in 0..interfaces {
            writer.add_interface(&format!("if{interface}"), LinkType::ETHERNET)?;
        }
        let notes = Notes { comment: "", packet_id: None, queue: None, verdict: None };
        for packet in &self.packets {
            writer.push(
                packet.interface,
                packet.time_ns,
                &packet.bytes,
                packet.bytes.len() as u32,
                &notes,
            )?;
        }
        writer.finish(0, 0)
    }

    /// The options that make the world, as all commands take them.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let mut options = vec!["--seed".to_owned(), self.seed.to_string()];
        let mut option = |name: &str, value: Option<String>| {
            options.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        option("--ingress", self.ingress.map(|ingress| ingress.to_string()));
        option("--rx-queue", self.queue.map(|queue| queue.to_string()));
        for (name, value) in &self.context {
            option("--context", Some(format!("{name}={value}")));
        }
        options.extend(self.map_options());
        options
    }

    /// The options that fill maps.
    #[must_use]
    pub fn map_options(&self) -> Vec<String> {
        let option =
            |(name, path): &(String, PathBuf)| ["--map".to_owned(), format!("{name}={}", path.display())];
        self.maps.iter().flat_map(option).collect()
    }

    /// Whether all packets come in on the first interface.
    #[must_use]
    pub fn is_of_one_interface(&self) -> bool {
        self.packets.iter().all(|packet| packet.interface == 0)
    }
}
