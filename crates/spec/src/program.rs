//! Programs before they are loaded.

use std::sync::Arc;

use paceline_isa::RawInsn;

use crate::kfunc::Kfunc;
use crate::program_kind::ProgramKind;
use crate::variable::Variable;

/// Whether a subprogram may be called from other objects, and is so verified on its own by its BTF type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// Inlined by the verifier at each call.
    Static,
    /// Verified once, on its own.
    Global,
}

/// A function inside a program: the main program at slot 0, then its subprograms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Slot of its first instruction.
    pub start: usize,
    /// Name in the object.
    pub name: String,
    /// Linkage.
    pub linkage: Linkage,
    /// BTF type id of the function, 0 when there is none.
    pub btf_id: u32,
}

/// The source line from which the instructions from `slot` on were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineInfo {
    /// First slot that the line covers; it covers up to the next entry.
    pub slot: usize,
    /// File name as the compiler saw it.
    pub file: Arc<str>,
    /// Text of the line.
    pub text: Arc<str>,
    /// Line number from 1.
    pub line: u32,
    /// Column from 1, 0 when unknown.
    pub column: u32,
}

/// Numbers that engines count for a program beside its instructions: 64 bits each, in the only value of an array map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Index of the map.
    pub map: usize,
    /// Whether several threads may run programs of the map: additions are atomic then.
    pub atomic: bool,
    /// By slot: the offset in the value of the number that counts how often the instruction starts.
    pub starts: Vec<Option<u32>>,
    /// By slot: the offset of the number that counts how often control goes on from the instruction to the next one.
    pub falls: Vec<Option<u32>>,
}

impl Counters {
    /// Offset of the counter of an instruction's starts.
    #[must_use]
    pub fn start(&self, slot: usize) -> Option<u32> {
        self.starts.get(slot).copied().flatten()
    }

    /// Offset of the counter of the way from an instruction to the next one.
    #[must_use]
    pub fn fall(&self, slot: usize) -> Option<u32> {
        self.falls.get(slot).copied().flatten()
    }
}

/// A kernel function (`__ksym`) that a program calls by name: the object knows no number for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KfuncRef {
    /// Name, such as `bpf_xdp_metadata_rx_hash`.
    pub name: String,
    /// Whether the program can do without it (`__weak`).
    pub weak: bool,
    /// BTF type id of its `FUNC` in the object, 0 when unknown.
    pub btf_id: u32,
    /// Whether it is one of [`Kfunc::converted`], which only converted classic filters call, instead of [`Kfunc::all`].
    pub converted: bool,
}

impl KfuncRef {
    /// The function, where Paceline has it.
    #[must_use]
    pub fn kfunc(&self) -> Option<&'static Kfunc> {
        if self.converted {
            Kfunc::converted().iter().find(|kfunc| kfunc.name == self.name)
        } else {
            Kfunc::from_name(&self.name)
        }
    }
}

/// An instruction that could not be relocated and was replaced by a call of a helper that does not exist, as by libbpf: the
/// program is valid if the instruction is unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    /// Slot of the replaced instruction.
    pub slot: usize,
    /// Cause, as text for the user.
    pub reason: Arc<str>,
}

impl Poison {
    /// The helper number that the replaced instruction calls (`0xbad2310` in libbpf's `relo_core.c`).
    pub const HELPER: i32 = 195_896_080;
}

/// A program as loaded: its instructions with everything resolved but maps, which it names by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// Name of its function.
    pub name: String,
    /// ELF section it came from; empty for programs that came from elsewhere.
    pub section: String,
    /// Type.
    pub kind: ProgramKind,
    /// Slots of the main program and of the subprograms it reaches, in that order. Maps are
    /// [`Imm64::MapIndex`](paceline_isa::Imm64::MapIndex) and
    /// [`Imm64::MapValueIndex`](paceline_isa::Imm64::MapValueIndex), indices into the object's maps.
    pub insns: Vec<RawInsn>,
    /// The functions in `insns`, by rising `start`; the first starts at 0.
    pub functions: Vec<FunctionInfo>,
    /// Source lines by rising `slot`; empty without BTF.
    pub lines: Vec<LineInfo>,
    /// Local variables in registers, by rising first slot; empty unless they are asked for, and without DWARF.
    pub variables: Vec<Variable>,
    /// The object's license string.
    pub license: String,
    /// Kernel functions it calls. A call with `src` 2 ([`Callee::Kfunc`](paceline_isa::Callee::Kfunc)) has the index
    /// in this list where the kernel has the BTF id.
    pub kfuncs: Vec<KfuncRef>,
    /// Instructions that could not be relocated, by rising `slot`.
    pub poisoned: Vec<Poison>,
    /// Whether it is loaded by default; false for sections that start with `?`.
    pub autoload: bool,
    /// What engines count while the program runs.
    pub counters: Option<Arc<Counters>>,
}

impl ProgramSpec {
    /// A program that came from elsewhere than an object: one function of that name, no source lines.
    #[must_use]
    pub fn new(name: &str, kind: ProgramKind, insns: Vec<RawInsn>) -> Self {
        let main = FunctionInfo { start: 0, name: name.to_owned(), linkage: Linkage::Global, btf_id: 0 };
        Self {
            name: name.to_owned(),
            section: String::new(),
            kind,
            insns,
            functions: vec![main],
            lines: Vec::new(),
            variables: Vec::new(),
            license: String::new(),
            kfuncs: Vec::new(),
            poisoned: Vec::new(),
            autoload: true,
            counters: None,
        }
    }

    /// The kernel function of a call with this index, where Paceline knows it.
    #[must_use]
    pub fn kfunc(&self, index: i32) -> Option<&'static Kfunc> {
        usize::try_from(index).ok().and_then(|index| self.kfuncs.get(index))?.kfunc()
    }

    /// The cause for which the instruction of a slot was replaced, if it was.
    #[must_use]
    pub fn poison_at(&self, slot: usize) -> Option<&Poison> {
        self.poisoned.binary_search_by_key(&slot, |p| p.slot).ok().and_then(|i| self.poisoned.get(i))
    }

    /// The source line of a slot.
    #[must_use]
    pub fn line_of(&self, slot: usize) -> Option<&LineInfo> {
        let next = self.lines.partition_point(|line| line.slot <= slot);
        next.checked_sub(1).and_then(|i| self.lines.get(i))
    }

    /// The local variables that a register holds before the instruction of a slot.
    pub fn variables_at(&self, slot: usize, register: u8) -> impl Iterator<Item = &Variable> {
        let before = self.variables.partition_point(|variable| variable.slots.start <= slot);
        let held = move |variable: &&Variable| variable.slots.end > slot && variable.register == register;
        self.variables.iter().take(before).filter(held)
    }

    /// The function that a slot belongs to.
    #[must_use]
    pub fn function_of(&self, slot: usize) -> Option<&FunctionInfo> {
        let next = self.functions.partition_point(|function| function.start <= slot);
        next.checked_sub(1).and_then(|i| self.functions.get(i))
    }
}
