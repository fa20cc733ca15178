//! Features of accepted programs.

use std::collections::BTreeMap;
use std::fmt;

use paceline_isa::{Callee, Imm64, Insn, Operand, Width, decode};
use paceline_spec::helper::Helper;
use paceline_spec::{Linkage, MapSpec, ProgramSpec};
use paceline_verifier::{Base, Verified};

use super::layout::Candidate;

type Counts = BTreeMap<String, u64>;

const SECTIONS: [(&str, &str); 7] = [
    ("kind", "programs of type"),
    ("shape", "programs with"),
    ("feature", "programs that were given"),
    ("helper", "programs that call"),
    ("map", "programs that use a map"),
    ("base", "accesses through"),
    ("insn", "instructions"),
];

/// Numbers of programs by feature, unless noted otherwise. Names begin with their section.
#[derive(Clone, Debug, Default)]
pub struct Variety(Counts);

fn count(counts: &mut Counts, section: &str, name: impl fmt::Display) {
    *counts.entry(format!("{section} {name}")).or_default() += 1;
}

impl Variety {
    /// Adds an accepted program.
    pub fn add(&mut self, program: &ProgramSpec, maps: &[MapSpec], verified: &Verified) {
        let counts = &mut self.0;
        *counts.entry("programs".to_owned()).or_default() += 1;
        *counts.entry("slots".to_owned()).or_default() += program.insns.len() as u64;
        count(counts, "kind", program.kind.rules().name);
        let Ok(code) = decode(&program.insns) else { return };
        // Counts programs.
        let mut seen = Counts::new();
        for (slot, insn) in code.iter() {
            count(counts, "insn", name_of(insn));
            if let Some(helper) = helper_of(insn) {
                count(&mut seen, "helper", helper.name);
            }
            if let Insn::Call(Callee::Kfunc { btf_id, .. }) = insn
                && let Some(kfunc) = program.kfunc(*btf_id)
            {
                count(&mut seen, "helper", kfunc.name);
            }
            if let Some(map) = map_of(insn).and_then(|index| maps.get(index)) {
                count(&mut seen, "map", map.kind.name());
            }
            if insn.jump_target(slot).is_some_and(|target| target <= slot as i64) {
                count(&mut seen, "shape", "loops");
            }
            if let Some(memory) = verified.fact(slot).memory {
                let varies = if memory.min_offset == memory.max_offset { "" } else { ", offset varies" };
                count(counts, "base", format_args!("{}{varies}", base_name(memory.base)));
            }
        }
        for function in program.functions.iter().skip(1) {
            let is_global = function.linkage == Linkage::Global && function.btf_id != 0;
            count(&mut seen, "shape", if is_global { "global functions" } else { "static functions" });
        }
        if program.functions.len() > 2 {
            count(&mut seen, "shape", "several functions");
        }
        if verified.functions().iter().any(|function| function.zeroed != 0) {
            count(&mut seen, "shape", "stack that is read before it is written");
        }
        seen.into_keys().for_each(|name| *counts.entry(name).or_default() += 1);
    }

    /// Adds the features that the generator recorded for an accepted program.
    pub fn add_features(&mut self, candidate: &Candidate) {
        candidate.features.iter().for_each(|feature| count(&mut self.0, "feature", feature));
    }

    /// The counts by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

impl<'a> FromIterator<(&'a str, u64)> for Variety {
    fn from_iter<T: IntoIterator<Item = (&'a str, u64)>>(counts: T) -> Self {
        Self(counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect())
    }
}

fn helper_of(insn: &Insn) -> Option<&'static Helper> {
    match insn {
        Insn::Call(Callee::Helper(id)) => Helper::from_imm(*id),
        _ => None,
    }
}

fn map_of(insn: &Insn) -> Option<usize> {
    match insn {
        Insn::LoadImm64 { value: Imm64::MapIndex(index) | Imm64::MapValueIndex { index, .. }, .. } => {
            usize::try_from(*index).ok()
        }
        _ => None,
    }
}

fn name_of(insn: &Insn) -> String {
    let bits = |width: &Width| if *width == Width::W64 { 64 } else { 32 };
    let operand = |src: &Operand| if matches!(src, Operand::Reg(_)) { "register" } else { "immediate" };
    match insn {
        Insn::Alu { width, op, .. } => format!("{op:?}{}", bits(width)),
        Insn::Neg { width, .. } => format!("Neg{}", bits(width)),
        Insn::MovSx { width, from, .. } => format!("MovSx{} from {}", bits(width), from.bytes() * 8),
        Insn::Swap { order, size, .. } => format!("{order:?}{}", size.bytes() * 8),
        Insn::Load { size, signed, .. } => {
            format!("Load{}{}", if *signed { "Sx" } else { "" }, size.bytes() * 8)
        }
        Insn::Store { size, src, .. } => format!("Store{} {}", size.bytes() * 8, operand(src)),
        Insn::Atomic { width, op, .. } => format!("Atomic{} {op:?}", bits(width)),
        Insn::LoadAcquire { .. } => "LoadAcquire".to_owned(),
        Insn::StoreRelease { .. } => "StoreRelease".to_owned(),
        Insn::LoadPacket { index: None, .. } => "LoadPacket absolute".to_owned(),
        Insn::LoadPacket { index: Some(_), .. } => "LoadPacket indirect".to_owned(),
        Insn::JumpIf { width, condition, src, .. } => {
            format!("JumpIf{} {condition:?} {}", bits(width), operand(src))
        }
        Insn::LoadImm64 { value, .. } => match value {
            Imm64::Value(_) => "LoadImm64".to_owned(),
            Imm64::MapIndex(_) => "LoadImm64 map".to_owned(),
            _ => "LoadImm64 map value".to_owned(),
        },
        Insn::Jump { .. } | Insn::JumpLong { .. } => "Jump".to_owned(),
        Insn::Call(Callee::Helper(_)) => "Call helper".to_owned(),
        Insn::Call(Callee::Kfunc { .. }) => "Call kfunc".to_owned(),
        Insn::Call(_) => "Call function".to_owned(),
        Insn::Exit => "Exit".to_owned(),
        Insn::MayGoto { .. } => "MayGoto".to_owned(),
        other => format!("{other}"),
    }
}

fn base_name(base: Base) -> &'static str {
    match base {
        Base::Context => "context",
        Base::OwnStack => "own stack",
        Base::CallerStack => "a caller's stack",
        Base::MapValue(_) => "map value",
        Base::SomeMapValue => "values of several maps",
        Base::Packet => "packet",
        Base::Memory => "memory",
        Base::Mixed => "mixed",
    }
}

impl fmt::Display for Variety {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let get = |name: &str| self.0.get(name).copied().unwrap_or_default();
        let programs = get("programs").max(1);
        writeln!(f, "{} accepted programs, {} slots on average", get("programs"), get("slots") / programs)?;
        for (section, title) in SECTIONS {
            let name_in = |name: &'_ str| name.strip_prefix(section)?.strip_prefix(' ').map(str::to_owned);
            let counts = self.0.iter().filter_map(|(name, count)| Some((name_in(name)?, *count)));
            let mut counts: Vec<(String, u64)> = counts.collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            writeln!(f, "{title}:")?;
            for (name, count) in counts {
                let share = 100.0 * count as f64 / programs as f64;
                match section {
                    "base" | "insn" => writeln!(f, "  {count:9} {name}")?,
                    _ => writeln!(f, "  {count:9} {share:5.1} % {name}")?,
                }
            }
        }
        Ok(())
    }
}
