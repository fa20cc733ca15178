//! Names in the place of numbers.

use std::collections::BTreeSet;

use crate::load::Object;
use paceline_btf::{Btf, Type};
use paceline_isa::text::Line;
use paceline_isa::{Callee, Imm64, Insn, disassemble};
use paceline_spec::helper::Helper;
use paceline_spec::{MapSpec, ProgramSpec};

/// The names of helpers, functions, maps and variables that a program's instructions refer to by number.
pub struct Symbols<'a> {
    spec: &'a ProgramSpec,
    maps: &'a [MapSpec],
    btf: Option<&'a Btf>,
    /// Slots that jumps lead to.
    targets: BTreeSet<usize>,
}

impl std::fmt::Debug for Symbols<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}

impl<'a> Symbols<'a> {
    /// Those of a program of an object.
    #[must_use]
    pub fn new(object: &'a Object, spec: &'a ProgramSpec) -> Self {
        let lines = disassemble(&spec.insns);
        let target = |line: &Line| usize::try_from(line.insn.as_ref().ok()?.jump_target(line.slot)?).ok();
        Self {
            spec,
            maps: object.maps(),
            btf: object.btf(),
            targets: lines.iter().filter_map(target).collect(),
        }
    }

    /// The label of a slot that jumps lead to.
    #[must_use]
    pub fn label(&self, slot: usize) -> Option<String> {
        self.targets.contains(&slot).then(|| label(slot))
    }

    /// The text of an instruction. The assembler reads it back, if it has the names.
    #[must_use]
    pub fn text(&self, line: &Line) -> String {
        match &line.insn {
            Ok(insn) => self.with_names(line.slot, insn).unwrap_or_else(|| insn.to_string()),
            Err(error) => format!("<{error}>"),
        }
    }

    /// A remark on an instruction: why it is not relocated, or the variable that it refers to.
    #[must_use]
    pub fn remark(&self, line: &Line) -> Option<String> {
        if let Some(poison) = self.spec.poison_at(line.slot) {
            return Some(format!("not relocated: {}", poison.reason));
        }
        match line.insn.ok()? {
            Insn::LoadImm64 { value: Imm64::MapValueIndex { index, offset }, .. } => {
                self.variable(self.map(index)?, offset)
            }
            _ => None,
        }
    }

    fn with_names(&self, slot: usize, insn: &Insn) -> Option<String> {
        match *insn {
            Insn::Call(Callee::Helper(id)) => Some(format!("call {}", helper(id)?.name)),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => {
                let kfunc = self.spec.kfuncs.get(usize::try_from(btf_id).ok()?)?;
                Some(format!("call {}", kfunc.name))
            }
            Insn::Call(Callee::Subprogram(_)) => Some(format!("call {}", self.function(slot, insn)?)),
            Insn::LoadImm64 { dst, value: Imm64::Code { .. } } => {
                Some(format!("{dst} = subprog[{}] ll", self.function(slot, insn)?))
            }
            Insn::LoadImm64 { dst, value: Imm64::MapIndex(index) } => {
                Some(format!("{dst} = map[{}] ll", self.map(index)?.name))
            }
            Insn::LoadImm64 { dst, value: Imm64::MapValueIndex { index, offset } } => {
                Some(format!("{dst} = map_value[{}] + {offset} ll", self.map(index)?.name))
            }
            _ => {
                // In the text of a jump its distance is the last word.
                let target = usize::try_from(insn.jump_target(slot)?).ok()?;
                let text = insn.to_string();
                let (jump, _distance) = text.rsplit_once(' ')?;
                Some(format!("{jump} {}", label(target)))
            }
        }
    }

    fn function(&self, slot: usize, insn: &Insn) -> Option<&'a str> {
        let target = usize::try_from(insn.subprogram_target(slot)?).ok()?;
        self.spec.functions.iter().find(|f| f.start == target).map(|f| f.name.as_str())
    }

    fn map(&self, index: i32) -> Option<&'a MapSpec> {
        self.maps.get(usize::try_from(index).ok()?)
    }

    /// The global variable at an offset of a data section: `&name`, with the rest of the way into it.
    fn variable(&self, map: &MapSpec, offset: u32) -> Option<String> {
        let btf = self.btf?;
        let Type::DataSection(section) = btf.get(map.value_type)? else { return None };
        let within = |offset: u32, start: u32, size: u32| offset >= start && offset - start < size;
        let var = section.vars.iter().find(|var| within(offset, var.offset, var.size))?;
        let name = btf.type_name(var.ty);
        Some(match offset - var.offset {
            0 => format!("&{name}"),
            more => format!("&{name} + {more}"),
        })
    }
}

/// The helper of a call's number.
#[must_use]
pub fn helper(id: i32) -> Option<&'static Helper> {
    Helper::from_imm(id)
}

fn label(slot: usize) -> String {
    format!("L{slot}")
}
