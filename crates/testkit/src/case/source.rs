//! Programs of case files: from text to `ProgramSpec`.

use std::collections::BTreeSet;

use paceline_isa::{AssembleError, Callee, Code, Imm64, Insn, Names, RawInsn, assemble, encode_all};
use paceline_spec::helper::Helper;
use paceline_spec::{FunctionInfo, KfuncRef, Linkage, MapSpec, ProgramKind, ProgramSpec};

use super::types::Types;

/// Text of a program and its position in the file.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    /// Its lines with their numbers, which are unique.
    pub(super) lines: Vec<(usize, &'a str)>,
}

/// A `#!` mark: its text, the line in the file, and the slot of the instruction before it.
pub(super) struct Mark {
    pub(super) text: String,
    pub(super) line: usize,
    /// `None` if no instruction precedes it.
    pub(super) slot: Option<usize>,
}

/// Resolver of names for the assembler.
struct CaseNames<'a> {
    maps: &'a [MapSpec],
    kfuncs: &'a [KfuncRef],
}

impl Names for CaseNames<'_> {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn kfunc(&self, name: &str) -> Option<i32> {
        let index = self.kfuncs.iter().position(|kfunc| kfunc.name == name)?;
        i32::try_from(index).ok()
    }

    fn map(&self, name: &str) -> Option<i32> {
        let index = self.maps.iter().position(|map| map.name == name)?;
        i32::try_from(index).ok()
    }
}

impl Source<'_> {
    /// The text, with leading blank lines, so that the assembler's line numbers are those of the file.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut next = 1;
        for &(line, content) in &self.lines {
            text.extend(std::iter::repeat_n('\n', line.saturating_sub(next)));
            text.push_str(content);
            next = line;
        }
        text
    }

    /// The program with the types of its functions; errors have line numbers of the file.
    pub(super) fn assemble(
        &self,
        kind: ProgramKind,
        maps: &[MapSpec],
        types: &mut Types,
    ) -> Result<ProgramSpec, AssembleError> {
        let code = assemble(&self.text(), &CaseNames { maps, kfuncs: &types.kfuncs })?;
        let insns: Vec<Insn> = code.iter().map(|(_, insn)| *insn).collect();
        let slots: Vec<RawInsn> = encode_all(&insns)
            .unwrap_or_else(|error| unreachable!("what was assembled can be encoded: {error}"));
        let mut spec = ProgramSpec::new(self.name, kind, slots);
        spec.functions = self.functions(&code, types);
        spec.kfuncs.clone_from(&types.kfuncs);
        Ok(spec)
    }

    /// The main program and the subprograms that are called or whose address is taken, named by their labels.
    fn functions(&self, code: &Code, types: &mut Types) -> Vec<FunctionInfo> {
        let labels = self.labels();
        let function = |start| {
            let label = labels.iter().find(|(_, slot)| *slot == start).map(|(label, _)| *label);
            let name = match label {
                _ if start == 0 => self.name.to_owned(),
                Some(label) if is_identifier(label) => label.to_owned(),
                _ => format!("{}_{start}", self.name),
            };
            let linkage = if start == 0 { Linkage::Global } else { Linkage::Static };
            let declared = types.functions.iter().find(|declared| declared.name == name);
            let (linkage, btf_id) = match declared {
                Some(declared) => (declared.linkage, declared.id),
                None => (linkage, types.undeclared(&name, linkage)),
            };
            FunctionInfo { start, name, linkage, btf_id }
        };
        std::iter::once(0).chain(subprograms(code)).map(function).collect()
    }

    /// Labels with their slots.
    fn labels(&self) -> Vec<(&str, usize)> {
        let mut labels = Vec::new();
        let mut slot = 0;
        for &(_, content) in &self.lines {
            let (mine, insn) = split_labels(content);
            labels.extend(mine.into_iter().map(|label| (label, slot)));
            slot += slots_of(insn);
        }
        labels
    }

    /// The marks.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut slot = 0;
        for &(line, content) in &self.lines {
            let (code, mark) = match content.split_once("#!") {
                Some((code, text)) => (code, Some(text.trim().to_owned())),
                None => (content, None),
            };
            let slots = slots_of(code);
            if let Some(text) = mark {
                marks.push(Mark { text, line, slot: (slots > 0).then_some(slot) });
            }
            slot += slots;
        }
        marks
    }
}

/// The labels of a line, and the instruction after them without its comment.
fn split_labels(line: &str) -> (Vec<&str>, &str) {
    let end = [";", "#", "//"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let mut rest = line.get(..end).unwrap_or(line).trim();
    let mut labels = Vec::new();
    while let Some((label, after)) = rest.split_once(':') {
        if label.contains(|c: char| c.is_whitespace() || c == '[') {
            break;
        }
        labels.push(label);
        rest = after.trim();
    }
    (labels, rest)
}

/// Number of slots of the instruction in a line: 0, 1, or 2 for 64-bit immediates, whose text ends in `ll`.
fn slots_of(line: &str) -> usize {
    match split_labels(line).1 {
        "" => 0,
        insn if insn.ends_with(" ll") || insn.ends_with("]ll") => 2,
        _ => 1,
    }
}

/// Whether BTF allows this name for a function.
fn is_identifier(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(is_word) && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// First slots of the subprograms that are called or whose address is taken.
fn subprograms(code: &Code) -> BTreeSet<usize> {
    let targets = code.iter().filter_map(|(slot, insn)| match insn {
        Insn::Call(Callee::Subprogram(_)) => insn.subprogram_target(slot),
        // Code addresses are relative to the second slot of their instruction, calls to the next slot.
        Insn::LoadImm64 { value: Imm64::Code { offset }, .. } => Some(slot as i64 + 1 + i64::from(*offset)),
        _ => None,
    });
    targets.filter_map(|target| usize::try_from(target).ok()).filter(|&slot| slot > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::slots_of;

    #[test]
    fn counts_slots() {
        assert_eq!(slots_of("  r0 = 1"), 1);
        assert_eq!(slots_of("out: r0 = 1 # why"), 1);
        assert_eq!(slots_of("out:"), 0);
        assert_eq!(slots_of("  # nothing"), 0);
        assert_eq!(slots_of("r1 = map[hits] ll"), 2);
        assert_eq!(slots_of("r1 = 0x1122334455667788 ll // big"), 2);
    }
}
