//! The contents of an object.

use paceline::btf::Btf;
use paceline::{LoadOptions, MapSpec, Object, SkippedProgram};
use serde_json::{Value as Json, json};

use super::missing::{self, Missing};
use super::program::ProgramSurvey;

/// The contents of an object.
pub(crate) struct Survey<'a> {
    pub(super) name: &'a str,
    pub(super) object: &'a Object,
    pub(super) programs: Vec<ProgramSurvey<'a>>,
    pub(super) missing: Vec<Missing>,
}

impl<'a> Survey<'a> {
    pub(crate) fn of(name: &'a str, object: &'a Object, options: &LoadOptions) -> Self {
        let programs: Vec<_> =
            object.programs().iter().map(|spec| ProgramSurvey::of(spec, object.maps())).collect();
        let missing = missing::find(object, &programs, options);
        Self { name, object, programs, missing }
    }

    /// Whether instructions are known by their source lines.
    pub(super) fn has_lines(&self) -> bool {
        self.object.programs().iter().any(|spec| !spec.lines.is_empty())
    }

    pub(crate) fn to_json(&self) -> Json {
        let skipped = |skipped: &SkippedProgram| json!({ "name": skipped.name, "section": skipped.section });
        let missing = |missing: &Missing| json!({ "user": missing.user, "what": missing.what, "unsupported": missing.unsupported });
        let btf = self.object.btf();
        json!({
            "object": self.name,
            "license": self.object.license(),
            "btf": btf.is_some(),
            "line_info": self.has_lines(),
            "programs": self.programs.iter().map(ProgramSurvey::to_json).collect::<Json>(),
            "maps": self.object.maps().iter().map(|spec| map_to_json(spec, btf)).collect::<Json>(),
            "skipped": self.object.skipped().iter().map(skipped).collect::<Json>(),
            "missing": self.missing.iter().map(missing).collect::<Json>(),
        })
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
