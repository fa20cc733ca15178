//! What accepted programs consist of.

use std::collections::BTreeMap;
use std::fmt;

use paceline_isa::{Callee, Imm64, Insn, Operand, Width, decode};
use paceline_spec::helper::Helper;
use paceline_spec::{Linkage, MapSpec, ProgramSpec};
use paceline_verifier::{Base, Verified};

type Counts = BTreeMap<String, u64>;

/// Counts over programs: in how many, unless it says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Variety {
    programs: u64,
    slots: u64,
    longest: usize,
    kinds: Counts,
    shapes: Counts,
    /// Instructions, by operation.
    insns: Counts,
    helpers: Counts,
    maps: Counts,
    /// Accesses, by what their base points to.
    bases: Counts,
}

fn count(counts: &mut Counts, name: impl Into<String>) {
    *counts.entry(name.into()).or_default() += 1;
}

impl Variety {
    /// Adds an accepted program.
    pub fn add(&mut self, program: &ProgramSpec, maps: &[MapSpec], verified: &Verified) {
        self.programs += 1;
        self.slots += program.insns.len() as u64;
        self.longest = self.longest.max(program.insns.len());
        count(&mut self.kinds, program.kind.rules().name);
        let Ok(code) = decode(&program.insns) else { return };
        let mut shapes = Counts::new();
        let (mut helpers, mut used) = (Counts::new(), Counts::new());
        for (slot, insn) in code.iter() {
            count(&mut self.insns, name_of(insn));
            if let Some(helper) = helper_of(insn) {
                count(&mut helpers, helper.name);
            }
            if let Some(map) = map_of(insn).and_then(|index| maps.get(index)) {
                count(&mut used, map.kind.name());
            }
            if insn.jump_target(slot).is_some_and(|target| target <= slot as i64) {
                count(&mut shapes, "loops");
            }
            if let Some(memory) = verified.fact(slot).memory {
                let varies = if memory.min_offset == memory.max_offset { "" } else { ", offset varies" };
                count(&mut self.bases, format!("{}{varies}", base_name(memory.base)));
            }
        }
        for function in program.functions.iter().skip(1) {
            let is_global = function.linkage == Linkage::Global && function.btf_id != 0;
            count(&mut shapes, if is_global { "global functions" } else { "static functions" });
        }
        if program.functions.len() > 2 {
            count(&mut shapes, "several functions");
        }
        for (from, to) in [(shapes, &mut self.shapes), (helpers, &mut self.helpers), (used, &mut self.maps)] {
            from.into_keys().for_each(|name| count(to, name));
        }
    }
}

fn helper_of(insn: &Insn) -> Option<&'static Helper> {
    match insn {
        Insn::Call(Callee::Helper(id)) => Helper::from_id(u32::try_from(*id).ok()?),
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
        Insn::Call(_) => "Call function".to_owned(),
        Insn::Exit => "Exit".to_owned(),
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
        let programs = self.programs.max(1);
        writeln!(
            f,
            "{} accepted programs, {} slots on average, {} in the longest",
            self.programs,
            self.slots / programs,
            self.longest
        )?;
        for (what, counts) in [
            ("programs of type", &self.kinds),
            ("programs with", &self.shapes),
            ("programs that call", &self.helpers),
            ("programs that use a map", &self.maps),
            ("accesses through", &self.bases),
            ("instructions", &self.insns),
        ] {
            let mut counts: Vec<_> = counts.iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            writeln!(f, "{what}:")?;
            for (name, count) in counts {
                writeln!(f, "  {count:9} {name}")?;
            }
        }
        Ok(())
    }
}
