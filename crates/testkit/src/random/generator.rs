//! The generator: choice of steps.

use std::collections::BTreeSet;

use fastrand::Rng;
use paceline_isa::{Condition, Insn, Operand, RawInsn, Reg, RegSet, Size, Width};
use paceline_spec::ProgramKind;
use paceline_spec::helper::Helper;

use super::edges::interesting;
use super::insns::mov;
use super::layout::{Candidate, Step, Target};
use super::model::{Kind, Model, Source};
use super::plan::{Plan, Purpose};

pub(super) const CALLEE_SAVED: [Reg; 4] = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
const ARGUMENTS: [Reg; 6] = [Reg::R0, Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];

/// The random program of a seed.
#[must_use]
pub fn candidate(seed: u64, purpose: Purpose) -> Candidate {
    let mut rng = Rng::with_seed(seed);
    let plan = Plan::new(&mut rng, purpose);
    // A quarter of the programs has mistakes, some of them many.
    let mistakes = match (purpose, rng.u8(..16)) {
        (Purpose::Run, _) => 0,
        (Purpose::Verdict, 0) => 12,
        (Purpose::Verdict, 1..4) => 60,
        (Purpose::Verdict, _) => 0,
    };
    let mut features = BTreeSet::new();
    let functions = (0..plan.functions.len())
        .map(|index| Generator::new(&mut rng, &plan, index, mistakes, &mut features).function())
        .collect();
    let mut candidate = Candidate { kind: plan.kind, functions, mutation: None, features };
    if purpose == Purpose::Verdict && rng.u8(..12) == 0 {
        candidate.mutation = mutation(&candidate, &mut rng);
    }
    candidate
}

/// A change of one field of one instruction.
fn mutation(candidate: &Candidate, rng: &mut Rng) -> Option<(usize, RawInsn)> {
    let raw = candidate.program()?.insns;
    let slot = rng.usize(..raw.len());
    let mut insn = *raw.get(slot)?;
    match rng.u8(..6) {
        0 => insn.dst = rng.u8(..11),
        1 => insn.src = rng.u8(..11),
        2 => insn.offset = insn.offset.wrapping_add(rng.i16(-8..=8)),
        3 => insn.imm = interesting(rng) as i32,
        4 => insn.opcode ^= 1 << rng.u8(3..8),
        _ => insn.opcode = rng.u8(..),
    }
    Some((slot, insn))
}

/// Generates one function.
pub(super) struct Generator<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) plan: &'a Plan,
    pub(super) index: usize,
    pub(super) model: Model,
    /// The model's state that holds at the function's end on all paths to it so far.
    end: Option<Model>,
    pub(super) steps: Vec<Step>,
    /// One in this many choices ignores the model; 0 for none.
    mistakes: u32,
    /// Whether the current steps are in a loop.
    pub(super) in_loop: bool,
    /// Whether a record is held, so that no step may leave the function.
    pub(super) holding: bool,
    /// Remaining branches: each doubles the paths that the verifier explores.
    pub(super) branches: u32,
    /// Functions that have calls.
    pub(super) called: Vec<usize>,
    /// Features of the program, for statistics.
    features: &'a mut BTreeSet<&'static str>,
}

impl<'a> Generator<'a> {
    pub(super) fn new(
        rng: &'a mut Rng,
        plan: &'a Plan,
        index: usize,
        mistakes: u32,
        features: &'a mut BTreeSet<&'static str>,
    ) -> Self {
        Self {
            rng,
            plan,
            index,
            model: Model::new(),
            end: None,
            steps: Vec::new(),
            mistakes,
            in_loop: false,
            holding: false,
            branches: if index == 0 { 9 } else { 4 },
            called: Vec::new(),
            features,
        }
    }

    /// Records a feature of the program for statistics.
    pub(super) fn note(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }

    pub(super) fn is_filter(&self) -> bool {
        self.plan.kind == ProgramKind::SocketFilter
    }

    pub(super) fn is_xdp(&self) -> bool {
        matches!(self.plan.kind, ProgramKind::Xdp { .. })
    }

    /// Whether results must be equal on every engine.
    pub(super) fn is_for_engines(&self) -> bool {
        self.plan.purpose == Purpose::Run
    }

    /// Whether the program may call a helper: programs for engines call only supported ones.
    pub(super) fn has_helper(&self, id: u32) -> bool {
        !self.is_for_engines() || Helper::from_imm(id.cast_signed()).is_some_and(Helper::is_supported)
    }

    /// Whether this choice ignores the model.
    pub(super) fn slips(&mut self) -> bool {
        self.mistakes != 0 && self.rng.u32(..self.mistakes) == 0
    }

    pub(super) fn one_in(&mut self, count: u32) -> bool {
        self.rng.u32(..count) == 0
    }

    pub(super) fn pick<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.rng.usize(..N)]
    }

    pub(super) fn emit(&mut self, insns: Vec<Insn>) {
        self.steps.push(Step::plain(insns));
    }

    /// A random register that holds a value of this kind.
    pub(super) fn find(&mut self, wanted: impl Fn(Kind) -> bool) -> Option<Reg> {
        if self.slips() {
            return Some(Reg::ALL[self.rng.usize(..11)]);
        }
        let found: Vec<Reg> =
            Reg::ALL.into_iter().take(10).filter(|&reg| wanted(self.model.get(reg))).collect();
        self.rng.choice(found)
    }

    /// A callee-saved one.
    pub(super) fn find_saved(&mut self, wanted: impl Fn(Kind) -> bool) -> Option<Reg> {
        let found = CALLEE_SAVED.into_iter().filter(|&reg| wanted(self.model.get(reg)));
        self.rng.choice(found.collect::<Vec<_>>())
    }

    pub(super) fn context(&mut self) -> Option<Reg> {
        self.find(|kind| kind == Kind::Context)
    }

    /// A register to overwrite other than these, seldom one with a pointer.
    pub(super) fn place_but(&mut self, not: &[Reg]) -> Reg {
        if self.slips() {
            return Reg::ALL[self.rng.usize(..11)];
        }
        let avoid: RegSet = not.iter().copied().collect::<RegSet>().union(self.model.locked);
        let free: Vec<Reg> = Reg::ALL.into_iter().take(10).filter(|reg| !avoid.contains(*reg)).collect();
        let cheap: Vec<Reg> = free.iter().copied().filter(|&reg| !self.model.get(reg).is_pointer()).collect();
        let of = if cheap.is_empty() || self.one_in(16) { free } else { cheap };
        self.rng.choice(of).unwrap_or(Reg::R0)
    }

    pub(super) fn place(&mut self) -> Reg {
        self.place_but(&[])
    }

    /// A caller-saved register for temporary values.
    pub(super) fn scratch(&mut self, not: &[Reg]) -> Reg {
        let free: Vec<Reg> = ARGUMENTS
            .into_iter()
            .filter(|reg| !not.contains(reg) && !self.model.locked.contains(*reg))
            .collect();
        let cheap: Vec<Reg> = free.iter().copied().filter(|&reg| !self.model.get(reg).is_pointer()).collect();
        let of = if cheap.is_empty() { free } else { cheap };
        self.rng.choice(of).unwrap_or(Reg::R0)
    }

    /// A callee-saved register, unless all are locked.
    pub(super) fn saved_place(&mut self, not: &[Reg]) -> Option<Reg> {
        let free: Vec<Reg> = CALLEE_SAVED
            .into_iter()
            .filter(|reg| !self.model.locked.contains(*reg) && !not.contains(reg))
            .collect();
        let cheap: Vec<Reg> = free.iter().copied().filter(|&reg| !self.model.get(reg).is_pointer()).collect();
        self.rng.choice(if cheap.is_empty() { free } else { cheap })
    }

    /// A register with a number; creates one if necessary.
    pub(super) fn number(&mut self) -> Reg {
        self.number_but(&[])
    }

    pub(super) fn number_but(&mut self, not: &[Reg]) -> Reg {
        let found: Vec<Reg> = Reg::ALL
            .into_iter()
            .take(10)
            .filter(|reg| self.model.get(*reg).is_number() && !not.contains(reg))
            .collect();
        match self.rng.choice(found) {
            Some(reg) => reg,
            None => {
                let imm = interesting(self.rng) as i32;
                let reg = self.scratch(not);
                self.set_number(reg, imm);
                reg
            }
        }
    }

    /// A register with a number that may be overwritten.
    pub(super) fn own_number(&mut self, not: &[Reg]) -> Reg {
        let locked: Vec<Reg> = self.model.locked.iter().chain(not.iter().copied()).collect();
        self.number_but(&locked)
    }

    pub(super) fn set_number(&mut self, reg: Reg, imm: i32) {
        self.emit(vec![mov(reg, Operand::Imm(imm))]);
        self.model.set(reg, Kind::Number { max: i64::from(imm) as u64 });
    }

    pub(super) fn size(&mut self) -> Size {
        self.pick([Size::B, Size::H, Size::W, Size::Dw])
    }

    pub(super) fn width(&mut self) -> Width {
        if self.one_in(3) { Width::W32 } else { Width::W64 }
    }

    pub(super) fn condition(&mut self) -> Condition {
        use Condition as C;
        self.pick([C::Eq, C::Ne, C::Gt, C::Ge, C::Lt, C::Le, C::Set, C::SGt, C::SGe, C::SLt, C::SLe])
    }

    /// Ensures that the function may exit here.
    pub(super) fn may_end(&mut self) {
        if !self.model.get(Reg::R0).is_number() && !self.slips() {
            let imm = self.rng.i32(0..5);
            self.set_number(Reg::R0, imm);
        }
    }

    /// Merges the current state into that of the function's end, for a conditional jump to it.
    pub(super) fn note_end(&mut self) {
        match &mut self.end {
            Some(end) => end.meet(&self.model),
            None => self.end = Some(self.model.clone()),
        }
    }

    /// Continues with the state of the function's end.
    pub(super) fn reach_end(&mut self) {
        self.may_end();
        self.note_end();
        if let Some(end) = self.end.take() {
            self.model = end;
        }
    }

    /// Jumps to the end on a condition.
    pub(super) fn leave_if(&mut self, width: Width, condition: Condition, dst: Reg, src: Operand) {
        self.may_end_but(&[dst, operand_register(src)]);
        self.note_end();
        self.jump_if(width, condition, dst, src, Target::End);
    }

    /// The same, without changing certain registers.
    fn may_end_but(&mut self, kept: &[Reg]) {
        if !kept.contains(&Reg::R0) {
            self.may_end();
        }
    }

    pub(super) fn jump_if(
        &mut self,
        width: Width,
        condition: Condition,
        dst: Reg,
        src: Operand,
        target: Target,
    ) {
        let insns = vec![Insn::JumpIf { width, condition, dst, src, offset: 0 }];
        self.steps.push(Step { insns, targets: vec![(0, target)], calls: Vec::new() });
    }

    /// Continues only if a pointer is not null, and updates the model.
    pub(super) fn null_check(&mut self, reg: Reg) {
        let Kind::Nullable { id, .. } = self.model.get(reg) else { return };
        if self.slips() {
            return;
        }
        if !self.in_loop && self.one_in(8) {
            self.add_null(reg);
        }
        if self.holding || reg == Reg::R0 || !self.one_in(3) {
            self.null_check_over(reg, id);
        } else {
            self.leave_if(Width::W64, Condition::Eq, reg, Operand::Imm(0));
            self.model.not_null(id);
        }
    }

    /// `if reg == 0 goto over`, followed by steps that use it.
    fn null_check_over(&mut self, reg: Reg, id: u8) {
        // A nullable pointer in r0 is moved, so that it is not overwritten before its check.
        let reg = if reg == Reg::R0 {
            let kept = self.place_but(&[Reg::R0]);
            self.emit(vec![mov(kept, Operand::Reg(reg))]);
            let kind = self.model.get(reg);
            self.model.set(kept, kind);
            kept
        } else {
            reg
        };
        let count = self.rng.usize(1..4);
        let negated = self.one_in(4);
        self.branch(
            Width::W64,
            if negated { Condition::Ne } else { Condition::Eq },
            reg,
            Operand::Imm(0),
            negated,
            |this| {
                this.model.not_null(id);
                for _ in 0..count {
                    this.access_to(|kind| matches!(kind, Kind::Bytes { .. }));
                }
                if this.one_in(2) {
                    this.step();
                }
            },
        );
    }

    /// Kind of a value in the model, for tests.
    pub(super) fn is_memory(kind: Kind) -> bool {
        matches!(kind, Kind::Bytes { .. } | Kind::Stack { .. } | Kind::Packet { .. })
    }

    pub(super) fn is_map_value(kind: Kind) -> bool {
        matches!(kind, Kind::Bytes { source: Source::Map | Source::Constant, .. })
    }
}

fn operand_register(src: Operand) -> Reg {
    match src {
        Operand::Reg(reg) => reg,
        Operand::Imm(_) => Reg::R10,
    }
}
