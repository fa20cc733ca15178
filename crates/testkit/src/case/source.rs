//! Programs of case files: from text to a specification.

use std::collections::BTreeSet;

use paceline_isa::{AssembleError, Callee, Code, Imm64, Insn, Names, RawInsn, assemble, encode_all};
use paceline_spec::helper::Helper;
use paceline_spec::kfunc::Kfunc;
use paceline_spec::{FunctionInfo, KfuncRef, Linkage, MapSpec, ProgramKind, ProgramSpec};

/// A program's text and where it stands in the file.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    /// Its lines with their numbers; no two have the same.
    pub(super) lines: Vec<(usize, &'a str)>,
}

/// A `#!` mark: the text after it, the file's line, and the slot of the instruction it stands behind.
pub(super) struct Mark {
    pub(super) text: String,
    pub(super) line: usize,
    /// `None` if no instruction is there.
    pub(super) slot: Option<usize>,
}

/// What the assembler asks for names.
struct CaseNames<'a>(&'a [MapSpec]);

impl Names for CaseNames<'_> {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).and_then(|helper| i32::try_from(helper.id).ok())
    }

    fn map(&self, name: &str) -> Option<i32> {
        let index = self.0.iter().position(|map| map.name == name)?;
        i32::try_from(index).ok()
    }
}

impl Source<'_> {
    /// The program; lines of errors are those of the file.
    pub(super) fn assemble(&self, kind: ProgramKind, maps: &[MapSpec]) -> Result<ProgramSpec, AssembleError> {
        // Blank lines in front make the assembler count lines as the file does.
        let mut text = String::new();
        let mut next = 1;
        for &(line, content) in &self.lines {
            text.extend(std::iter::repeat_n('\n', line.saturating_sub(next)));
            text.push_str(content);
            next = line;
        }
        let kfuncs = kfuncs(&text);
        let text = with_kfuncs(&text, &kfuncs);
        let code = assemble(&text, &CaseNames(maps))?;
        let insns: Vec<Insn> = code.iter().map(|(_, insn)| *insn).collect();
        let slots: Vec<RawInsn> = encode_all(&insns)
            .unwrap_or_else(|error| unreachable!("what was assembled can be encoded: {error}"));
        let mut spec = ProgramSpec::new(self.name, kind, slots);
        spec.functions = functions(self.name, &code);
        let reference = |kfunc: &&Kfunc| KfuncRef { name: kfunc.name.to_owned(), weak: false, btf_id: 0 };
        spec.kfuncs = kfuncs.iter().map(reference).collect();
        Ok(spec)
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

/// Slots of the instruction in a line: none, one, or two for 64-bit immediates, which clang ends in `ll`.
fn slots_of(line: &str) -> usize {
    let end = [";", "#", "//"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let mut rest = line.get(..end).unwrap_or(line).trim();
    while let Some((label, after)) = rest.split_once(':') {
        if label.contains(|c: char| c.is_whitespace() || c == '[') {
            break;
        }
        rest = after.trim();
    }
    match rest {
        "" => 0,
        insn if insn.ends_with(" ll") || insn.ends_with("]ll") => 2,
        _ => 1,
    }
}

/// The kernel functions whose names stand in a text.
fn kfuncs(text: &str) -> Vec<&'static Kfunc> {
    Kfunc::all().iter().filter(|kfunc| text.contains(&call(kfunc.name))).collect()
}

/// The text with kernel functions by their index, which is how the assembler knows them. No name starts another.
fn with_kfuncs(text: &str, kfuncs: &[&Kfunc]) -> String {
    let calls = kfuncs.iter().enumerate();
    calls.fold(text.to_owned(), |text, (index, kfunc)| {
        text.replace(&call(kfunc.name), &call(&format!("kfunc[{index}, 0]")))
    })
}

fn call(what: &str) -> String {
    format!("call {what}")
}

/// The main program and the subprograms that calls and code addresses lead to.
fn functions(name: &str, code: &Code) -> Vec<FunctionInfo> {
    let targets = code.iter().filter_map(|(slot, insn)| match insn {
        Insn::Call(Callee::Subprogram(_)) => insn.subprogram_target(slot),
        // Offsets of code addresses count from the second half, as those of calls from the next slot.
        Insn::LoadImm64 { value: Imm64::Code { offset }, .. } => Some(slot as i64 + 1 + i64::from(*offset)),
        _ => None,
    });
    let starts: BTreeSet<usize> =
        targets.filter_map(|target| usize::try_from(target).ok()).filter(|&s| s > 0).collect();
    let main = FunctionInfo { start: 0, name: name.to_owned(), linkage: Linkage::Global, btf_id: 0 };
    let subprogram =
        |start| FunctionInfo { start, name: format!("{name}_{start}"), linkage: Linkage::Static, btf_id: 0 };
    std::iter::once(main).chain(starts.into_iter().map(subprogram)).collect()
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
