//! A generated program.

use fastrand::Rng;
use paceline_isa::{Imm64, Insn, Operand, Reg, Size};
use paceline_spec::{MapSpec, ProgramKind, ProgramSpec, XdpAttach};

use super::mix::Mix;
use super::state::{REGISTERS, STACK, STACK_AT, State, state_map};
use super::step::{Step, slots_of};
use crate::case::write_case;

/// A program and its initial states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Its steps.
    pub steps: Vec<Step>,
    /// Initial states.
    pub inputs: Vec<State>,
}

impl Generated {
    /// The program of a seed, with this number of initial states.
    #[must_use]
    pub fn new(seed: u64, mix: &Mix, inputs: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let len = rng.usize(1..=mix.steps.max(1));
        let steps = (0..len).map(|_| Step::random(&mut rng, mix)).collect();
        let inputs = (0..inputs).map(|_| State::random(&mut rng)).collect();
        Self { steps, inputs }
    }

    /// The program over the map that [`state_map`] describes, as map 0.
    #[must_use]
    pub fn program(&self) -> ProgramSpec {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let insns: paceline_isa::Code = self.insns().into_iter().collect();
        let slots =
            insns.encode().unwrap_or_else(|error| unreachable!("generated instructions exist: {error}"));
        let mut spec = ProgramSpec::new("generated", kind, slots);
        spec.license = "GPL".to_owned();
        spec
    }

    /// The program's maps.
    #[must_use]
    pub fn maps(&self) -> Vec<MapSpec> {
        vec![state_map()]
    }

    pub(super) fn insns(&self) -> Vec<Insn> {
        let mut insns = prologue();
        let lengths: Vec<usize> = self.steps.iter().map(|step| slots_of(&step.insns(0))).collect();
        for (index, step) in self.steps.iter().enumerate() {
            let after = lengths.get(index + 1..).unwrap_or_default();
            let skipped: usize = after.iter().take(step.skips()).sum();
            insns.extend(step.insns(skipped));
        }
        insns.extend(epilogue());
        insns
    }

    /// The program as a text case whose expectation for each input is `expected`.
    #[must_use]
    pub fn to_case(&self, name: &str, input: usize, expected: Option<&State>) -> String {
        let mut map = state_map();
        if let Some(input) = self.inputs.get(input) {
            map.contents = vec![(vec![0; 4], paceline_spec::InitialValue::Bytes(input.to_bytes()))];
        }
        let after = expected.map(State::to_bytes);
        write_case(name, &map, &self.program(), after.as_deref())
    }
}

/// Loads stack and registers from the state.
pub(super) fn prologue() -> Vec<Insn> {
    let mut insns =
        vec![Insn::LoadImm64 { dst: Reg::R9, value: Imm64::MapValueIndex { index: 0, offset: 0 } }];
    for slot in 0..STACK / 8 {
        insns.push(load(Reg::R0, Reg::R9, STACK_AT + slot * 8));
        insns.push(store(Reg::R10, slot as i16 * 8 - STACK as i16, Reg::R0));
    }
    insns.extend(REGISTERS.iter().map(|&reg| load(reg, Reg::R9, usize::from(reg.number()) * 8)));
    insns
}

/// Stores registers and stack to the state.
pub(super) fn epilogue() -> Vec<Insn> {
    let mut insns: Vec<Insn> =
        REGISTERS.iter().map(|&reg| store(Reg::R9, i16::from(reg.number()) * 8, reg)).collect();
    for slot in 0..STACK / 8 {
        let offset = slot as i16 * 8 - STACK as i16;
        insns.push(Insn::Load { size: Size::Dw, signed: false, dst: Reg::R0, base: Reg::R10, offset });
        insns.push(store(Reg::R9, (STACK_AT + slot * 8) as i16, Reg::R0));
    }
    insns.push(Insn::Alu {
        width: paceline_isa::Width::W64,
        op: paceline_isa::AluOp::Mov,
        dst: Reg::R0,
        src: Operand::Imm(2),
    });
    insns.push(Insn::Exit);
    insns
}

pub(super) fn load(dst: Reg, base: Reg, offset: usize) -> Insn {
    Insn::Load { size: Size::Dw, signed: false, dst, base, offset: offset as i16 }
}

pub(super) fn store(base: Reg, offset: i16, src: Reg) -> Insn {
    Insn::Store { size: Size::Dw, base, offset, src: Operand::Reg(src) }
}
