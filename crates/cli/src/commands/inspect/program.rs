//! The contents of a program.

use std::collections::BTreeSet;

use paceline::diagnosis::helper;
use paceline::helper::Helper;
use paceline::isa::{Callee, Imm64, Insn, disassemble};
use paceline::{FunctionInfo, KfuncRef, Linkage, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use serde_json::{Value as Json, json};

/// The contents of a program.
pub(super) struct ProgramSurvey<'a> {
    pub(super) spec: &'a ProgramSpec,
    /// Instructions; those of two slots count once.
    pub(super) insns: usize,
    pub(super) helpers: Vec<&'static Helper>,
    /// Helper numbers that no helper has and no relocation left.
    pub(super) unknown_helpers: Vec<i32>,
    pub(super) kfuncs: Vec<&'a KfuncRef>,
    pub(super) maps: Vec<&'a MapSpec>,
}

impl<'a> ProgramSurvey<'a> {
    pub(super) fn of(spec: &'a ProgramSpec, maps: &'a [MapSpec]) -> Self {
        let insns: Vec<Insn> =
            disassemble(&spec.insns).into_iter().filter_map(|line| line.insn.ok()).collect();
        let (mut helpers, mut kfuncs, mut used) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for insn in &insns {
            match *insn {
                Insn::Call(Callee::Helper(id)) => drop(helpers.insert(id)),
                Insn::Call(Callee::Kfunc { btf_id, .. }) => drop(kfuncs.insert(btf_id)),
                Insn::LoadImm64 {
                    value: Imm64::MapIndex(i) | Imm64::MapValueIndex { index: i, .. }, ..
                } => {
                    used.insert(i);
                }
                _ => {}
            }
        }
        let index = |i: i32| usize::try_from(i).ok();
        let unknown = |id: &i32| helper(*id).is_none() && *id != paceline::Poison::HELPER;
        Self {
            spec,
            insns: insns.len(),
            unknown_helpers: helpers.iter().copied().filter(unknown).collect(),
            helpers: helpers.into_iter().filter_map(helper).collect(),
            kfuncs: kfuncs.into_iter().filter_map(|i| spec.kfuncs.get(index(i)?)).collect(),
            maps: used.into_iter().filter_map(|i| maps.get(index(i)?)).collect(),
        }
    }

    /// Its functions with their lengths in slots.
    pub(super) fn functions(&self) -> impl Iterator<Item = (&'a FunctionInfo, usize)> {
        let (functions, end) = (&self.spec.functions, self.spec.insns.len());
        let ends = functions.iter().skip(1).map(|f| f.start).chain([end]);
        functions.iter().zip(ends).map(|(f, end)| (f, end.saturating_sub(f.start)))
    }

    pub(super) fn to_json(&self) -> Json {
        let (attach, frags) = match self.spec.kind {
            ProgramKind::Xdp { attach, frags } => (Some(attach_name(attach)), Some(frags)),
            _ => (None, None),
        };
        let function = |(f, slots): (&FunctionInfo, usize)| json!({ "name": f.name, "slots": slots, "static": f.linkage == Linkage::Static });
        let kfunc = |kfunc: &&KfuncRef| json!({ "name": kfunc.name, "weak": kfunc.weak });
        json!({
            "name": self.spec.name,
            "section": self.spec.section,
            "type": self.spec.kind.rules().name,
            "attach": attach,
            "frags": frags,
            "autoload": self.spec.autoload,
            "instructions": self.insns,
            "slots": self.spec.insns.len(),
            "functions": self.functions().map(function).collect::<Json>(),
            "helpers": self.helpers.iter().map(|helper| helper.name).collect::<Json>(),
            "unknown_helpers": self.unknown_helpers,
            "kfuncs": self.kfuncs.iter().map(kfunc).collect::<Json>(),
            "maps": self.maps.iter().map(|spec| spec.name.as_str()).collect::<Json>(),
            "not_relocated": self.spec.poisoned.len(),
        })
    }
}

pub(super) const fn attach_name(attach: XdpAttach) -> &'static str {
    match attach {
        XdpAttach::Interface => "interface",
        XdpAttach::DevMap => "devmap",
        XdpAttach::CpuMap => "cpumap",
    }
}
