//! An object, looked through.

use std::collections::BTreeSet;
use std::io::{self, Write};

use paceline::btf::Btf;
use paceline::helper::Helper;
use paceline::isa::{Callee, Imm64, Insn, disassemble};
use paceline::{
    FunctionInfo, KfuncRef, Linkage, LoadOptions, MapSpec, Object, ProgramKind, ProgramSpec, SkippedProgram,
    XdpAttach,
};
use serde_json::{Value as Json, json};

use super::missing::{self, Missing};
use super::text;
use crate::common::symbols::helper;

/// What is in an object.
pub(crate) struct Survey<'a> {
    pub(super) name: &'a str,
    pub(super) object: &'a Object,
    pub(super) programs: Vec<ProgramSurvey<'a>>,
    pub(super) missing: Vec<Missing>,
}

/// What is in a program.
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

impl<'a> Survey<'a> {
    pub(crate) fn of(name: &'a str, object: &'a Object, options: &LoadOptions) -> Self {
        let programs: Vec<_> =
            object.programs.iter().map(|spec| ProgramSurvey::of(spec, &object.maps)).collect();
        let missing = missing::find(object, &programs, options);
        Self { name, object, programs, missing }
    }

    /// Whether instructions are known by their source lines.
    pub(super) fn has_lines(&self) -> bool {
        self.object.programs.iter().any(|spec| !spec.lines.is_empty())
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text::write(out, self)
    }

    pub(crate) fn to_json(&self) -> Json {
        let skipped = |skipped: &SkippedProgram| json!({ "name": skipped.name, "section": skipped.section });
        let missing = |missing: &Missing| json!({ "user": missing.user, "what": missing.what, "unsupported": missing.unsupported });
        let btf = self.object.btf.as_deref();
        json!({
            "object": self.name,
            "license": self.object.license,
            "btf": btf.is_some(),
            "line_info": self.has_lines(),
            "programs": self.programs.iter().map(ProgramSurvey::to_json).collect::<Json>(),
            "maps": self.object.maps.iter().map(|spec| map_to_json(spec, btf)).collect::<Json>(),
            "skipped": self.object.skipped.iter().map(skipped).collect::<Json>(),
            "missing": self.missing.iter().map(missing).collect::<Json>(),
        })
    }
}

impl<'a> ProgramSurvey<'a> {
    fn of(spec: &'a ProgramSpec, maps: &'a [MapSpec]) -> Self {
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

    fn to_json(&self) -> Json {
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

/// Bytes of all keys and values, each rounded up to 8 as the kernel stores them; per-CPU values once.
pub(super) fn memory(spec: &MapSpec) -> u64 {
    let rounded = |size: u32| u64::from(size).next_multiple_of(8);
    u64::from(spec.max_entries).saturating_mul(rounded(spec.key_size) + rounded(spec.value_size))
}

/// A type as C writes it, if it is known.
pub(super) fn type_name(btf: Option<&Btf>, ty: u32) -> Option<String> {
    btf.filter(|_| ty != 0).map(|btf| btf.c_name(ty))
}

fn map_to_json(spec: &MapSpec, btf: Option<&Btf>) -> Json {
    json!({
        "name": spec.name,
        "type": spec.kind.name(),
        "key_size": spec.key_size,
        "value_size": spec.value_size,
        "max_entries": spec.max_entries,
        "flags": spec.flags.0,
        "key_type": type_name(btf, spec.key_type),
        "value_type": type_name(btf, spec.value_type),
        "bytes": memory(spec),
        "frozen": spec.frozen,
        "initial_elements": spec.contents.len(),
    })
}
