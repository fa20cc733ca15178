//! The state of code generation for a program, and the registers.

use std::sync::Arc;

use paceline_isa::{Code, Reg};
use paceline_maps::Map;
use paceline_spec::{Counters, ProgramSpec};

use super::error::CheckedError;
use super::links::Links;
use paceline_compiler::internal::Internal;
use paceline_compiler::native::Features;
use paceline_compiler::native::machine::x64::Label;
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Assembler, Gpr};

/// The registers of `r0` to `r10`.
pub(super) const REGISTERS: [Gpr; 11] = [
    Gpr::Rax,
    Gpr::Rdi,
    Gpr::Rsi,
    Gpr::Rdx,
    Gpr::Rcx,
    Gpr::R8,
    Gpr::Rbx,
    Gpr::R13,
    Gpr::R14,
    Gpr::R15,
    FRAME,
];
/// The end of the running function's stack.
pub(super) const FRAME: Gpr = Gpr::Rbp;
/// The address of the run's state.
pub(super) const RUN: Gpr = Gpr::R12;
pub(super) const SCRATCH: Gpr = Gpr::R10;
pub(super) const SCRATCH_2: Gpr = Gpr::R11;

/// Code that all instructions share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stubs {
    pub(super) links: Links,
    pub(super) access: Label,
    pub(super) execute: Label,
    pub(super) leave: Label,
    pub(super) exhausted: Label,
    /// The common epilogue of all functions.
    pub(super) done: Label,
    /// The same after the runtime has already left the function.
    pub(super) left: Label,
    pub(super) failed: Label,
}

impl Stubs {
    pub(super) fn new(asm: &mut Assembler, links: Links) -> Self {
        let mut label = || asm.new_label();
        Self {
            links,
            access: label(),
            execute: label(),
            leave: label(),
            exhausted: label(),
            done: label(),
            left: label(),
            failed: label(),
        }
    }
}

pub(super) struct Emitter<'a> {
    pub(super) asm: Assembler,
    pub(super) code: &'a Code,
    pub(super) counters: Option<&'a Counters>,
    pub(super) maps: &'a [Arc<Map>],
    pub(super) features: Features,
    /// First slots of the functions, increasing, with their entries.
    pub(super) functions: Vec<(usize, Label)>,
    /// Labels of instructions that are jumped to, by slot.
    pub(super) targets: Vec<Option<Label>>,
    pub(super) stubs: Stubs,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        (program, code): (&'a ProgramSpec, &'a Code),
        maps: &'a [Arc<Map>],
        links: Links,
    ) -> Result<Self, CheckedError> {
        let mut asm = Assembler::new();
        let stubs = Stubs::new(&mut asm, links);
        let functions: Vec<(usize, Label)> =
            code.function_starts().into_iter().map(|start| (start, asm.new_label())).collect();
        let targets = vec![None; code.len()];
        let mut emitter = Self {
            asm,
            code,
            counters: program.counters.as_deref(),
            maps,
            features: Features::detect(),
            functions,
            targets,
            stubs,
        };
        emitter.find_targets()?;
        Ok(emitter)
    }

    /// Jumps may go to any instruction. Control may fall through into the next function.
    fn find_targets(&mut self) -> Result<(), CheckedError> {
        for (slot, insn) in self.code.iter() {
            let Some(target) = insn.jump_target(slot) else { continue };
            let found = usize::try_from(target).ok().filter(|target| self.code.get(*target).is_some());
            let Some(found) = found else { return Err(CheckedError::JumpTarget { slot, target }) };
            self.add_target(found);
        }
        for index in 0..self.functions.len() {
            self.add_target(self.functions[index].0);
        }
        Ok(())
    }

    fn add_target(&mut self, slot: usize) {
        if let Some(place @ None) = self.targets.get_mut(slot) {
            *place = Some(self.asm.new_label());
        }
    }

    /// Label of a jump's target.
    pub(super) fn target(&self, slot: usize, target: Option<i64>) -> Result<Label, CheckedError> {
        let target = target.ok_or(Internal("a jump has no target"))?;
        let label = usize::try_from(target).ok().and_then(|at| self.targets.get(at).copied().flatten());
        label.ok_or(CheckedError::JumpTarget { slot, target })
    }

    /// The entry of a function, by its first slot.
    pub(super) fn entry_of(&self, start: usize) -> Option<Label> {
        let index = self.functions.binary_search_by_key(&start, |function| function.0).ok()?;
        self.functions.get(index).map(|function| function.1)
    }

    /// Sets a register to a constant; clobbers the flags.
    pub(super) fn set(&mut self, dst: Gpr, value: u64) {
        if value == 0 {
            self.asm.alu_rr(Alu::Xor, Width::D32, dst, dst);
        } else {
            self.asm.mov_ri(dst, value);
        }
    }
}

/// The machine's register for the program's.
pub(super) const fn gpr(reg: Reg) -> Gpr {
    REGISTERS[reg as usize]
}
