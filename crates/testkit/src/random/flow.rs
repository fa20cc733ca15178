//! Steps of control flow: branches and loops.

use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::edges::interesting;
use super::generator::Generator;
use super::insns::{add, alu, load, mov};
use super::layout::{Step, Target};
use super::model::{Kind, Part};

impl Generator<'_> {
    /// Any step.
    pub(super) fn step(&mut self) {
        match self.rng.u8(..80) {
            0..=9 => self.arithmetic(),
            10..=19 => self.access(),
            20..=24 => self.stack(),
            25..=29 => self.look_up(),
            30..=31 => self.global_value(),
            32..=34 => self.pointer_arithmetic(),
            35..=38 => self.helper(),
            39..=42 => self.conditional(),
            43..=44 => self.leave(),
            45..=46 => self.repeat(),
            47..=48 => self.call(),
            49..=51 => self.atomic(),
            52 => self.acquire_release(),
            53 => self.copy(),
            54 => self.narrow_spill(),
            55 => self.variable_stack_access(),
            56 => self.variable_value_access(),
            57 => self.tail_call(),
            58..=61 => self.reload(),
            62..=63 => self.compare_loads(),
            64..=66 => self.dynptr(),
            67 => self.inner_look_up(),
            68 => self.known_look_up(),
            69 if self.in_loop || self.rng.bool() => self.perhaps_written(),
            70..=71 => self.access_to(|kind| matches!(kind, Kind::Bytes { .. })),
            _ => self.special(),
        }
    }

    /// Steps that only one program type has.
    fn special(&mut self) {
        if self.is_filter() { self.filter_step() } else { self.packet_step() }
    }

    /// A condition on an existing value.
    pub(super) fn question(&mut self) -> (Width, Condition, Reg, Operand) {
        let (width, condition) = (self.width(), self.condition());
        let dst = self.number();
        let src = match self.rng.u8(..8) {
            0..=2 => Operand::Reg(self.number()),
            _ => Operand::Imm(interesting(self.rng) as i32),
        };
        (width, condition, dst, src)
    }

    /// Whether the budget allows another branch; otherwise the step becomes arithmetic.
    fn affords_branch(&mut self) -> bool {
        if self.branches == 0 {
            self.arithmetic();
            return false;
        }
        self.branches -= 1;
        true
    }

    /// `if`, with or without `else`.
    fn conditional(&mut self) {
        if !self.affords_branch() {
            return;
        }
        let (width, condition, dst, src) = self.question();
        let (runs_if_taken, with_else) = (self.one_in(4), self.one_in(3));
        let count = self.rng.usize(1..4);
        self.branch(width, condition, dst, src, runs_if_taken, |this| this.some_steps(count));
        // After a jump back no branch can be left.
        let falls_through = |step: &Step| step.insns.last().is_none_or(Insn::falls_through);
        if with_else
            && let Some(last) = self.steps.len().checked_sub(1)
            && self.steps.last().is_some_and(falls_through)
        {
            self.add_else(last);
        }
    }

    fn some_steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Jumps out of the branch just made, over steps that are reachable only from outside of it. These steps do not depend
    /// on the model's state: they initialize what they use.
    fn add_else(&mut self, last: usize) {
        let count = self.rng.usize(1..3);
        let goto = Step {
            insns: vec![Insn::Jump { offset: 0 }],
            targets: vec![(0, Target::Over(0))],
            calls: Vec::new(),
        };
        // Jumps to the end of the branch continue at the step after this one.
        self.steps.push(goto);
        let at = last + 1;
        self.stretch(at);
        let before = self.model.clone();
        for _ in 0..count {
            self.arithmetic();
        }
        self.model.meet(&before);
        self.aim(at);
    }

    /// Redirects jumps to a step to the step after it.
    fn stretch(&mut self, at: usize) {
        for (index, step) in self.steps.iter_mut().enumerate().take(at) {
            for (_, target) in &mut step.targets {
                if let Target::Over(count) = target
                    && index + 1 + *count == at
                {
                    *count += 1;
                }
            }
        }
    }

    /// Redirects the jump of a step to the next step.
    pub(super) fn aim(&mut self, at: usize) {
        let over = self.steps.len() - at - 1;
        if let Some((_, target)) = self.steps.get_mut(at).and_then(|step| step.targets.last_mut()) {
            *target = Target::Over(over);
        }
    }

    /// Steps that run if a condition holds, or if it does not hold.
    pub(super) fn branch(
        &mut self,
        width: Width,
        condition: Condition,
        dst: Reg,
        src: Operand,
        runs_if_taken: bool,
        body: impl FnOnce(&mut Self),
    ) {
        let mut at = self.steps.len();
        if runs_if_taken {
            self.jump_if(width, condition, dst, src, Target::Over(1));
            let goto = vec![Insn::Jump { offset: 0 }];
            self.steps.push(Step { insns: goto, targets: vec![(0, Target::Over(0))], calls: Vec::new() });
            at += 1;
        } else {
            self.jump_if(width, condition, dst, src, Target::Over(0));
        }
        let before = self.model.clone();
        body(self);
        let locked = self.model.locked;
        self.model.meet(&before);
        self.model.locked = locked;
        self.aim(at);
    }

    /// Ends the function early on a condition.
    fn leave(&mut self) {
        if self.holding || !self.affords_branch() {
            return;
        }
        let (width, condition, dst, src) = self.question();
        self.leave_if(width, condition, dst, src);
    }

    /// A loop of a random form.
    fn repeat(&mut self) {
        if self.in_loop || self.branches < 2 {
            return self.arithmetic();
        }
        let Some(counter) = self.saved_place(&[]) else { return self.arithmetic() };
        let branches = self.branches;
        self.branches = 1;
        self.in_loop = true;
        let locked = self.model.locked;
        match self.rng.u8(..12) {
            0..=2 => self.count_up(counter),
            3 => self.count_down(counter),
            4 => self.shift_out(counter),
            5 if !self.is_filter() && !self.holding => self.walk_packet(counter),
            6..=8 if !self.holding => self.iterate(),
            9..=10 => self.may_go_on(counter),
            _ => self.test_first(counter),
        }
        self.in_loop = false;
        self.branches = branches - 2;
        self.model.locked = locked;
    }

    pub(super) fn may_goto(&mut self) {
        let insns = vec![Insn::MayGoto { offset: 0 }];
        self.steps.push(Step { insns, targets: vec![(0, Target::Over(0))], calls: Vec::new() });
    }

    /// Jumps back to the start of a step.
    pub(super) fn jump_back(&mut self, first: usize) {
        let back = self.steps.len() - first;
        let insns = vec![Insn::Jump { offset: 0 }];
        self.steps.push(Step { insns, targets: vec![(0, Target::Back(back))], calls: Vec::new() });
    }

    /// The body of a loop. Returns the index of its first step.
    fn body(&mut self, counter: Reg) -> usize {
        self.model.lock(counter);
        self.model.enter_loop();
        self.model.set(counter, Kind::Number { max: 255 });
        let start = self.model.clone();
        let first = self.steps.len();
        self.round();
        self.model.meet(&start);
        first
    }

    /// The steps of one iteration of a loop.
    pub(super) fn round(&mut self) {
        let count = self.rng.usize(1..4);
        // Joins in a loop need several iterations until the verifier's state is a fixed point.
        if self.one_in(6) {
            self.perhaps_written();
        }
        self.some_steps(count);
    }

    /// Jumps back to the first step of a loop on a condition, after the instructions `insns`.
    fn close(
        &mut self,
        mut insns: Vec<Insn>,
        first: usize,
        condition: Condition,
        counter: Reg,
        src: Operand,
    ) {
        let width = self.width();
        let at = insns.len();
        insns.push(Insn::JumpIf { width, condition, dst: counter, src, offset: 0 });
        let back = self.steps.len() - first;
        self.steps.push(Step { insns, targets: vec![(at, Target::Back(back))], calls: Vec::new() });
        self.model.set(counter, Kind::NUMBER);
    }

    /// `n = 0; do { ... } while (++n < limit)`
    fn count_up(&mut self, counter: Reg) {
        let (start, step) = (self.pick([0, 0, 1, -3]), self.pick([1, 1, 1, 2, 5]));
        let rounds = self.rng.i32(1..=12);
        self.set_number(counter, start);
        let first = self.body(counter);
        let step = if self.slips() { 0 } else { step };
        let condition = self.pick([Condition::SLt, Condition::Ne, Condition::SLe]);
        self.close(
            vec![add(counter, step)],
            first,
            condition,
            counter,
            Operand::Imm(start + rounds * step.max(1)),
        );
    }

    /// `n = start; do { ... } while (--n != 0)`
    fn count_down(&mut self, counter: Reg) {
        let start = self.rng.i32(1..=12);
        self.set_number(counter, start);
        let first = self.body(counter);
        let (condition, limit) =
            self.pick([(Condition::Ne, 0), (Condition::SGt, 0), (Condition::SGt, -1), (Condition::Gt, 0)]);
        self.close(vec![add(counter, -1)], first, condition, counter, Operand::Imm(limit));
    }

    /// `n = 1 << k; do { ... } while (n >>= 1)`
    fn shift_out(&mut self, counter: Reg) {
        let start = 1 << self.rng.u32(1..10);
        self.set_number(counter, start);
        let first = self.body(counter);
        let shift = alu(Width::W64, AluOp::Rsh, counter, Operand::Imm(1));
        self.close(vec![shift], first, Condition::Ne, counter, Operand::Imm(0));
    }

    /// `n = 0; while (n < limit) { ...; n++ }`, where the limit may be a number of which only the maximum is known.
    fn test_first(&mut self, counter: Reg) {
        let limit = match self.saved_place(&[counter]) {
            Some(limit) if self.rng.bool() => {
                let number = self.number_but(&[limit, counter]);
                self.emit(vec![
                    mov(limit, Operand::Reg(number)),
                    alu(Width::W64, AluOp::And, limit, Operand::Imm(7)),
                ]);
                self.model.set(limit, Kind::Number { max: 7 });
                self.model.lock(limit);
                Operand::Reg(limit)
            }
            _ => Operand::Imm(self.rng.i32(0..12)),
        };
        self.set_number(counter, 0);
        self.model.lock(counter);
        let before = self.model.clone();
        let test = self.steps.len();
        self.jump_if(Width::W64, Condition::Ge, counter, limit, Target::Over(0));
        self.body(counter);
        let back = self.steps.len() - test;
        let insns = vec![add(counter, 1), Insn::Jump { offset: 0 }];
        self.steps.push(Step { insns, targets: vec![(1, Target::Back(back))], calls: Vec::new() });
        self.model.meet(&before);
        self.model.set(counter, Kind::NUMBER);
        self.aim(test);
    }

    /// `n = 0; do { if (p + 1 > end) break; sum += *p++ } while (++n < limit)`
    fn walk_packet(&mut self, counter: Reg) {
        let is_start = |kind| matches!(kind, Kind::Packet { at: 0.., from: Part::Data | Part::Inside, .. });
        let (Some(packet), Some(end)) = (self.find(is_start), self.find(|kind| kind == Kind::End)) else {
            return self.test_first(counter);
        };
        let Some(place) = self.saved_place(&[counter, packet, end]) else { return self.test_first(counter) };
        let [probe, sum, byte] = [Reg::R1, Reg::R0, Reg::R2];
        if [packet, end].iter().any(|reg| [probe, sum, byte, counter].contains(reg)) {
            return self.test_first(counter);
        }
        let (size, limit) = (self.pick([Size::B, Size::H, Size::W]), self.rng.i32(1..=16));
        let stride = size.bytes() as i32;
        self.emit(vec![
            mov(place, Operand::Reg(packet)),
            mov(counter, Operand::Imm(0)),
            mov(sum, Operand::Imm(0)),
        ]);
        let first = self.steps.len();
        self.emit(vec![mov(probe, Operand::Reg(place)), add(probe, stride)]);
        self.jump_if(Width::W64, Condition::Gt, probe, Operand::Reg(end), Target::Over(2));
        self.emit(vec![
            load(size, byte, place, 0),
            alu(Width::W64, AluOp::Add, sum, Operand::Reg(byte)),
            add(place, stride),
        ]);
        self.model.call(Kind::NUMBER);
        self.model.set(place, Kind::Unset);
        self.close(vec![add(counter, 1)], first, Condition::SLt, counter, Operand::Imm(limit));
    }
}
