//! Whole idioms of real programs, right most of the time and wrong by a little otherwise: what random steps seldom make.

use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Size, SwapOrder, Width};

use super::{Generator, Guess, add, interesting, mov};
use crate::verdict::layout::{Step, Target};

impl Generator<'_> {
    /// One of them.
    pub(super) fn pattern(&mut self) {
        match self.rng.u8(..8) {
            0..=2 => self.variable_packet_access(),
            3 => self.variable_value_access(),
            4 => self.variable_stack_access(),
            5 => self.narrow_spill(),
            6 => self.acquire_release(),
            _ => self.moved_packet(),
        }
    }

    /// Packet and end in registers that calls keep, and a first check.
    pub(super) fn opening(&mut self) {
        let (packet, end) = (Reg::R7, Reg::R8);
        let load = |dst, offset| Insn::Load { size: Size::W, signed: false, dst, base: Reg::R6, offset };
        self.emit(vec![load(packet, 0), load(end, 4)]);
        (self.guesses[7], self.guesses[8]) = (Guess::Packet, Guess::End);
        let bytes = self.rng.i32(1..=32);
        self.guard(packet, end, Reg::R2, bytes);
    }

    /// Goes on only if `bytes` from `packet` on lie before `end`, in one of the forms that compilers choose.
    pub(super) fn guard(&mut self, packet: Reg, end: Reg, probe: Reg, bytes: i32) {
        let step = |dst, src, condition, target| Step {
            insns: vec![
                mov(probe, Operand::Reg(packet)),
                add(probe, Operand::Imm(bytes)),
                Insn::JumpIf { width: Width::W64, condition, dst, src: Operand::Reg(src), offset: 0 },
            ],
            targets: vec![(2, target)],
            calls: Vec::new(),
        };
        self.learn(probe, Guess::Packet);
        let strict = self.rng.u8(..6) == 0;
        let (away, ahead) = (Target::End, Target::Over(1));
        let guard = match (self.rng.u8(..6), strict) {
            (0..=2, false) => step(probe, end, Condition::Gt, away),
            (0..=2, true) => step(probe, end, Condition::Ge, away),
            (3, false) => step(end, probe, Condition::Lt, away),
            (3, true) => step(end, probe, Condition::Le, away),
            (4, false) => step(probe, end, Condition::Le, ahead),
            (4, true) => step(probe, end, Condition::Lt, ahead),
            (_, false) => step(end, probe, Condition::Ge, ahead),
            (_, true) => step(end, probe, Condition::Gt, ahead),
        };
        let jumps_ahead = guard.targets.iter().any(|(_, target)| *target == ahead);
        self.steps.push(guard);
        if jumps_ahead {
            let leave = vec![Insn::Jump { offset: 0 }];
            self.steps.push(Step { insns: leave, targets: vec![(0, Target::End)], calls: Vec::new() });
        }
    }

    /// Makes a number small by one means or another. Gives the greatest value that is meant.
    fn bounded(&mut self, reg: Reg) -> i32 {
        let limit = [1, 3, 7, 15, 16, 31, 60, 64, 255][self.rng.usize(..9)];
        let alu = |width, op, imm| Insn::Alu { width, op, dst: reg, src: Operand::Imm(imm) };
        let mask = (limit as u32 + 1).next_power_of_two() as i32 - 1;
        let width = self.width();
        match self.rng.u8(..10) {
            0 => self.emit(vec![alu(width, AluOp::And, mask)]),
            1 => {
                self.emit(vec![alu(width, AluOp::Mod, limit + 1)]);
                return limit;
            }
            2 => {
                let bits = mask.count_ones() as i32;
                let all = if width == Width::W64 { 64 } else { 32 };
                self.emit(vec![alu(width, AluOp::Rsh, all - bits)]);
            }
            3 => {
                // The header length of IPv4: a nibble times four.
                self.emit(vec![alu(width, AluOp::And, 15), alu(width, AluOp::Lsh, 2)]);
                return 60;
            }
            4 => {
                let size = [Size::H, Size::W, Size::Dw][self.rng.usize(..3)];
                let order = [SwapOrder::ToBe, SwapOrder::Always, SwapOrder::ToLe][self.rng.usize(..3)];
                self.emit(vec![Insn::Swap { order, size, dst: reg }, alu(width, AluOp::And, mask)]);
            }
            5 => {
                // Sign-extended, then both ends looked at.
                let from = [Size::B, Size::H, Size::W][self.rng.usize(..3)];
                self.emit(vec![Insn::MovSx { width: Width::W64, from, dst: reg, src: reg }]);
                self.jump_if(width, Condition::SLt, reg, Operand::Imm(0), Target::End);
                self.jump_if(width, Condition::SGt, reg, Operand::Imm(limit), Target::End);
                return limit;
            }
            6 => {
                let multiplier = [2, 3, 4, 5][self.rng.usize(..4)];
                self.emit(vec![alu(width, AluOp::And, mask), alu(width, AluOp::Mul, multiplier)]);
                return mask * multiplier;
            }
            7 => {
                // What is learned of a copy is known of the number.
                let copy = [Reg::R0, Reg::R3, Reg::R4][self.rng.usize(..3)];
                if copy != reg {
                    let distance = if self.rng.bool() { 0 } else { self.rng.i32(-4..8) };
                    self.emit(vec![mov(copy, Operand::Reg(reg)), add(copy, Operand::Imm(distance))]);
                    self.learn(copy, Guess::Number);
                    self.jump_if(width, Condition::Gt, copy, Operand::Imm(limit), Target::End);
                }
                return limit;
            }
            8 => {
                let other = self.number();
                self.emit(vec![alu(width, AluOp::And, mask)]);
                let op = [AluOp::Or, AluOp::Xor, AluOp::And, AluOp::Div][self.rng.usize(..4)];
                self.emit(vec![
                    Insn::Alu { width, op: AluOp::And, dst: other, src: Operand::Imm(mask) },
                    Insn::Alu { width, op, dst: reg, src: Operand::Reg(other) },
                ]);
            }
            _ => {
                let condition = if self.rng.u8(..8) == 0 { Condition::SGt } else { Condition::Gt };
                self.jump_if(width, condition, reg, Operand::Imm(limit), Target::End);
                return limit;
            }
        }
        mask
    }

    /// A number that the verifier does not know, from the packet, a map or a helper.
    fn unknown(&mut self) -> Option<Reg> {
        let dst = [Reg::R3, Reg::R4, Reg::R5, Reg::R9][self.rng.usize(..4)];
        let size = self.size();
        let base = self.find(|g| matches!(g, Guess::Packet | Guess::Value(_)))?;
        if base == dst {
            return None;
        }
        let signed = size != Size::Dw && self.rng.u8(..6) == 0;
        self.emit(vec![Insn::Load { size, signed, dst, base, offset: 0 }]);
        self.learn(dst, Guess::Number);
        Some(dst)
    }

    /// `p = packet + n; if p + k > end goto out; *(p + m)`
    fn variable_packet_access(&mut self) {
        let (Some(packet), Some(end)) = (self.find(|g| g == Guess::Packet), self.find(|g| g == Guess::End))
        else {
            return self.load_context();
        };
        let Some(number) = self.unknown() else { return };
        self.bounded(number);
        let moved = [Reg::R2, Reg::R5, Reg::R9][self.rng.usize(..3)];
        let probe = [Reg::R0, Reg::R1][self.rng.usize(..2)];
        if [packet, end, number].contains(&moved) || [packet, end, number].contains(&probe) {
            return;
        }
        let sum = Insn::Alu { width: Width::W64, op: AluOp::Add, dst: moved, src: Operand::Reg(number) };
        let offset = if self.rng.bool() { 0 } else { self.rng.i32(0..20) };
        self.emit(vec![mov(moved, Operand::Reg(packet)), sum, add(moved, Operand::Imm(offset))]);
        self.learn(moved, Guess::Packet);
        let bytes = self.rng.i32(1..=16);
        self.guard(moved, end, probe, bytes);
        let size = self.size();
        let slack = if self.rng.u8(..8) == 0 { 1 } else { 0 };
        let highest = bytes - size.bytes() as i32 + slack;
        let at = if highest <= 0 { highest.max(-2) } else { self.rng.i32(0..=highest) };
        self.emit(vec![Insn::Load { size, signed: false, dst: Reg::R4, base: moved, offset: at as i16 }]);
        self.learn(Reg::R4, Guess::Number);
    }

    fn variable_value_access(&mut self) {
        let Some(base) = self.find(|g| matches!(g, Guess::Value(_))) else { return self.global_value() };
        let Some(number) = self.unknown() else { return };
        self.bounded(number);
        let moved = [Reg::R2, Reg::R5][self.rng.usize(..2)];
        if [base, number].contains(&moved) {
            return;
        }
        let op = if self.rng.u8(..8) == 0 { AluOp::Sub } else { AluOp::Add };
        let sum = Insn::Alu { width: Width::W64, op, dst: moved, src: Operand::Reg(number) };
        self.emit(vec![mov(moved, Operand::Reg(base)), sum]);
        self.learn(moved, Guess::Value(4));
        let (size, offset) = (self.size(), self.rng.i16(0..8));
        let load = Insn::Load { size, signed: false, dst: Reg::R4, base: moved, offset };
        let store = Insn::Store { size, base: moved, offset, src: Operand::Reg(number) };
        let access = if self.rng.bool() { load } else { store };
        self.emit(vec![access]);
    }

    fn variable_stack_access(&mut self) {
        let number = self.number();
        let below = [16, 24, 32, 64][self.rng.usize(..4)];
        for word in 1..=below / 8 {
            if self.rng.u8(..3) != 0 {
                let src = if self.rng.bool() { Operand::Imm(0) } else { Operand::Reg(number) };
                let offset = -8 * word as i16;
                self.emit(vec![Insn::Store { size: Size::Dw, base: Reg::R10, offset, src }]);
            }
        }
        self.bounded(number);
        let place = [Reg::R1, Reg::R2][self.rng.usize(..2)];
        if place == number {
            return;
        }
        let sum = Insn::Alu { width: Width::W64, op: AluOp::Add, dst: place, src: Operand::Reg(number) };
        self.emit(vec![mov(place, Operand::Reg(Reg::R10)), add(place, Operand::Imm(-below)), sum]);
        self.learn(place, Guess::Stack);
        let (size, src) = (self.size(), Operand::Imm(interesting(self.rng) as i32 & self.rng.i32(0..2)));
        let access = match self.rng.bool() {
            true => Insn::Load { size, signed: false, dst: Reg::R4, base: place, offset: 0 },
            false => Insn::Store { size, base: place, offset: 0, src },
        };
        let (dst, offset) = (Reg::R5, -8 * self.rng.i16(1..=below as i16 / 8));
        let after = Insn::Load { size: Size::Dw, signed: false, dst, base: Reg::R10, offset };
        self.emit(vec![access, after]);
        self.learn(Reg::R5, Guess::Number);
    }

    /// A number goes to the stack and comes back, whole or in part, and is used as an offset.
    fn narrow_spill(&mut self) {
        let Some(number) = self.unknown() else { return };
        let (store, load) = (self.size(), self.size());
        let offset = -8 * self.rng.i16(1..=4);
        self.emit(vec![Insn::Store { size: store, base: Reg::R10, offset, src: Operand::Reg(number) }]);
        self.bounded(number);
        let dst = [Reg::R1, Reg::R2][self.rng.usize(..2)];
        let at = offset + if self.rng.u8(..6) == 0 { self.rng.i16(0..4) * load.bytes() as i16 } else { 0 };
        let signed = load != Size::Dw && self.rng.u8(..5) == 0;
        self.emit(vec![Insn::Load { size: load, signed, dst, base: Reg::R10, offset: at }]);
        self.learn(dst, Guess::Number);
        let Some(base) = self.find(|g| matches!(g, Guess::Value(_))) else { return };
        if base == dst {
            return;
        }
        let sum = Insn::Alu { width: Width::W64, op: AluOp::Add, dst, src: Operand::Reg(base) };
        self.emit(vec![sum, Insn::Load { size: Size::B, signed: false, dst: Reg::R3, base: dst, offset: 0 }]);
        self.learn(dst, Guess::Value(1));
    }

    fn acquire_release(&mut self) {
        let base = self.find(|g| matches!(g, Guess::Value(_))).unwrap_or(Reg::R10);
        let size = self.size();
        let offset = if base == Reg::R10 { -8 * self.rng.i16(1..=4) } else { 0 };
        let src = self.number();
        self.emit(vec![
            Insn::StoreRelease { size, base, offset, src },
            Insn::LoadAcquire { size, dst: Reg::R4, base, offset },
        ]);
        self.learn(Reg::R4, Guess::Number);
    }

    /// The packet grows or shrinks; then its pointers are loaded anew, mostly.
    fn moved_packet(&mut self) {
        let helper = [44, 54, 65][self.rng.usize(..3)];
        let delta = self.rng.i32(-16..=16);
        self.emit(vec![
            mov(Reg::R1, Operand::Reg(Reg::R6)),
            mov(Reg::R2, Operand::Imm(delta)),
            Insn::Call(paceline_isa::Callee::Helper(helper)),
        ]);
        self.forget();
        for guess in &mut self.guesses {
            if matches!(guess, Guess::Packet | Guess::End) {
                *guess = Guess::Number;
            }
        }
        if self.rng.u8(..8) != 0 {
            self.opening();
        }
    }
}
