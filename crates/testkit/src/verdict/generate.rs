//! The generator: it keeps a rough idea of what registers hold, and follows it most of the time.

mod patterns;

use fastrand::Rng;
use paceline_isa::{
    AluOp, AtomicOp, Callee, Condition, Imm64, Insn, Operand, RawInsn, Reg, Size, SwapOrder, Width,
};

use super::layout::{Candidate, Step, Target};

/// What the generator thinks a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    Nothing,
    Number,
    Context,
    Packet,
    End,
    /// A value of this many bytes.
    Value(i16),
    Nullable(i16),
    Stack,
}

const CALLEE_SAVED: [Reg; 4] = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];

/// Key and value sizes of the maps that are looked up.
const MAPS: [(i32, Size, i16); 4] = [(0, Size::W, 16), (1, Size::Dw, 24), (2, Size::W, 8), (3, Size::W, 16)];

struct Generator<'a> {
    rng: &'a mut Rng,
    guesses: [Guess; 10],
    steps: Vec<Step>,
    functions: usize,
    is_main: bool,
}

/// A random program.
#[must_use]
pub fn candidate(seed: u64) -> Candidate {
    let mut rng = Rng::with_seed(seed);
    let functions = if rng.u8(..4) == 0 { rng.usize(1..3) } else { 0 };
    let most = if rng.bool() { 8 } else { 24 };
    let len = rng.usize(2..=most);
    let mut all = vec![Generator::main(&mut rng, functions).steps(len)];
    for index in 0..functions {
        let len = rng.usize(1..8);
        let deeper = if index + 1 < functions { functions } else { 0 };
        all.push(Generator::function(&mut rng, deeper).steps(len));
    }
    let mut candidate = Candidate { functions: all, mutation: None };
    if rng.u8(..8) == 0 {
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

fn interesting(rng: &mut Rng) -> i64 {
    match rng.u8(..6) {
        0 => rng.i64(-2..=2),
        1 => rng.i64(-16..=64),
        2 => 1 << rng.u32(..32),
        3 => (1 << rng.u32(..32)) - 1,
        4 => [i64::from(i32::MIN), i64::from(i32::MAX), -1, 0xffff, 0x10000, 255][rng.usize(..6)],
        _ => rng.i64(i64::from(i32::MIN)..=i64::from(i32::MAX)),
    }
}

impl<'a> Generator<'a> {
    fn main(rng: &'a mut Rng, functions: usize) -> Self {
        let mut guesses = [Guess::Nothing; 10];
        guesses[1] = Guess::Context;
        let mut this = Self { rng, guesses, steps: Vec::new(), functions, is_main: true };
        // The context survives calls in r6, and r0 is set whatever comes.
        this.emit(vec![mov(Reg::R6, Operand::Reg(Reg::R1)), mov(Reg::R0, Operand::Imm(2))]);
        (this.guesses[6], this.guesses[0]) = (Guess::Context, Guess::Number);
        if this.rng.u8(..3) != 0 {
            this.opening();
        }
        this
    }

    fn function(rng: &'a mut Rng, functions: usize) -> Self {
        let mut guesses = [Guess::Nothing; 10];
        for place in &mut guesses[1..=3] {
            *place =
                [Guess::Number, Guess::Number, Guess::Packet, Guess::Stack, Guess::Value(8), Guess::Context]
                    [rng.usize(..6)];
        }
        let mut this = Self { rng, guesses, steps: Vec::new(), functions, is_main: false };
        this.emit(vec![mov(Reg::R0, Operand::Imm(1))]);
        this.guesses[0] = Guess::Number;
        this
    }

    fn steps(mut self, len: usize) -> Vec<Step> {
        for _ in 0..len {
            self.step();
        }
        // What is never called makes a program invalid.
        let uncalled = 1..=if self.is_main { self.functions } else { 0 };
        for function in uncalled {
            let called = |step: &Step| step.calls.iter().any(|(_, callee)| *callee == function);
            if !self.steps.iter().any(called) && self.rng.u8(..20) != 0 {
                self.call_of(function);
            }
        }
        self.steps
    }

    fn emit(&mut self, insns: Vec<Insn>) {
        self.steps.push(Step::plain(insns));
    }

    fn step(&mut self) {
        match self.rng.u8(..40) {
            0..=2 => self.load_context(),
            3..=5 => self.check_packet(),
            6..=9 => self.access(),
            10..=14 => self.arithmetic(),
            15..=16 => self.bound(),
            17..=18 => self.jump(),
            19..=20 => self.look_up(),
            21 => self.null_check(),
            22..=24 => self.stack(),
            25 => self.pointer_arithmetic(),
            26 => self.helper(),
            27 => self.loop_back(),
            28 => self.call(),
            29 => self.copy(),
            30 => self.atomic(),
            32.. => self.pattern(),
            _ => self.global_value(),
        }
    }

    /// A register that probably holds such a thing; now and then any.
    fn find(&mut self, wanted: impl Fn(Guess) -> bool) -> Option<Reg> {
        if self.rng.u8(..40) == 0 {
            return Some(self.any());
        }
        let found: Vec<Reg> =
            Reg::ALL.into_iter().take(10).filter(|r| wanted(self.guesses[usize::from(r.number())])).collect();
        (!found.is_empty()).then(|| found[self.rng.usize(..found.len())])
    }

    fn any(&mut self) -> Reg {
        Reg::ALL[self.rng.usize(..10)]
    }

    /// A register to write to.
    fn place(&mut self, guess: Guess) -> Reg {
        let reg = match self.rng.u8(..60) {
            0 if self.rng.u8(..3) == 0 => Reg::R10,
            0..=24 => CALLEE_SAVED[self.rng.usize(1..4)],
            _ => Reg::ALL[self.rng.usize(0..6)],
        };
        self.learn(reg, guess);
        reg
    }

    fn learn(&mut self, reg: Reg, guess: Guess) {
        if let Some(place) = self.guesses.get_mut(usize::from(reg.number())) {
            *place = guess;
        }
    }

    fn number(&mut self) -> Reg {
        match self.find(|g| g == Guess::Number) {
            Some(reg) => reg,
            None => {
                let imm = interesting(self.rng) as i32;
                let reg = self.place(Guess::Number);
                self.emit(vec![mov(reg, Operand::Imm(imm))]);
                reg
            }
        }
    }

    fn size(&mut self) -> Size {
        [Size::B, Size::H, Size::W, Size::Dw][self.rng.usize(..4)]
    }

    fn width(&mut self) -> Width {
        if self.rng.u8(..3) == 0 { Width::W32 } else { Width::W64 }
    }

    fn condition(&mut self) -> Condition {
        use Condition as C;
        [C::Eq, C::Ne, C::Gt, C::Ge, C::Lt, C::Le, C::Set, C::SGt, C::SGe, C::SLt, C::SLe]
            [self.rng.usize(..11)]
    }

    fn forward(&mut self) -> Target {
        if self.rng.bool() { Target::End } else { Target::Over(self.rng.usize(0..4)) }
    }

    fn load_context(&mut self) {
        let Some(base) = self.find(|g| g == Guess::Context) else { return };
        let (offset, guess) = [
            (0, Guess::Packet),
            (4, Guess::End),
            (0, Guess::Packet),
            (4, Guess::End),
            (8, Guess::Packet),
            (12, Guess::Number),
            (16, Guess::Number),
        ][self.rng.usize(..7)];
        let (offset, size) = match self.rng.u8(..40) {
            0 => (offset + self.rng.i16(-4..=24), Size::W),
            1 => (offset, self.size()),
            _ => (offset, Size::W),
        };
        let dst = self.place(guess);
        self.emit(vec![Insn::Load { size, signed: false, dst, base, offset }]);
    }

    /// `x = packet; x += n; if x > end goto out`
    fn check_packet(&mut self) {
        let (Some(packet), Some(end)) = (self.find(|g| g == Guess::Packet), self.find(|g| g == Guess::End))
        else {
            return self.load_context();
        };
        let bytes = [1, 2, 4, 8, 14, 20, 34, 64][self.rng.usize(..8)] + i32::from(self.rng.u8(..40) == 0);
        let probe = self.place(Guess::Packet);
        if probe == packet || probe == end {
            return;
        }
        let condition = self.condition();
        let usual = [Condition::Gt, Condition::Ge][self.rng.usize(..2)];
        let condition = if self.rng.u8(..5) == 0 { condition } else { usual };
        let (a, b) = if self.rng.u8(..6) == 0 { (end, probe) } else { (probe, end) };
        let (width, target) = (if self.rng.u8(..60) == 0 { Width::W32 } else { Width::W64 }, self.forward());
        self.steps.push(Step {
            insns: vec![
                mov(probe, Operand::Reg(packet)),
                add(probe, Operand::Imm(bytes)),
                Insn::JumpIf { width, condition, dst: a, src: Operand::Reg(b), offset: 0 },
            ],
            targets: vec![(2, target)],
            calls: Vec::new(),
        });
    }

    /// A load or store through something.
    fn access(&mut self) {
        let is_memory = |g| matches!(g, Guess::Packet | Guess::Value(_) | Guess::Stack | Guess::Nullable(_));
        let Some(base) = self.find(is_memory) else { return self.load_context() };
        let (size, signed) = (self.size(), self.rng.u8(..6) == 0);
        let guess = self.guesses.get(usize::from(base.number())).copied().unwrap_or(Guess::Stack);
        let offset = match guess {
            Guess::Value(bytes) | Guess::Nullable(bytes) => self.rng.i16(-1..=bytes),
            Guess::Stack => -8 * self.rng.i16(0..=8),
            _ => self.rng.i16(-1..=16),
        };
        let offset = if self.rng.u8(..3) == 0 { 0 } else { offset };
        if guess == Guess::Packet
            && self.rng.u8(..8) != 0
            && let Some(end) = self.find(|g| g == Guess::End)
            && ![base, end].contains(&Reg::R2)
        {
            self.guard(base, end, Reg::R2, i32::from(offset) + size.bytes() as i32);
        }
        let insn = match self.rng.u8(..4) {
            0 => Insn::Store { size, base, offset, src: Operand::Imm(interesting(self.rng) as i32) },
            1 => {
                let src = self.number();
                Insn::Store { size, base, offset, src: Operand::Reg(src) }
            }
            _ => {
                let signed = signed && size != Size::Dw;
                Insn::Load { size, signed, dst: self.place(Guess::Number), base, offset }
            }
        };
        self.emit(vec![insn]);
    }

    fn arithmetic(&mut self) {
        use AluOp as A;
        let ops = [
            A::Add,
            A::Sub,
            A::Mul,
            A::Div,
            A::SDiv,
            A::Mod,
            A::SMod,
            A::Or,
            A::And,
            A::Xor,
            A::Lsh,
            A::Rsh,
            A::Arsh,
            A::Mov,
        ];
        let dst = self.number();
        let (width, op) = (self.width(), ops[self.rng.usize(..ops.len())]);
        let shifts = matches!(op, A::Lsh | A::Rsh | A::Arsh);
        let src = if self.rng.u8(..3) == 0 {
            Operand::Reg(self.number())
        } else if shifts && self.rng.u8(..30) != 0 {
            Operand::Imm(self.rng.i32(0..if width == Width::W64 { 64 } else { 32 }))
        } else {
            Operand::Imm(interesting(self.rng) as i32)
        };
        let insn = match self.rng.u8(..12) {
            0 => Insn::Neg { width, dst },
            1 => Insn::Swap {
                order: [SwapOrder::ToBe, SwapOrder::ToLe, SwapOrder::Always][self.rng.usize(..3)],
                size: [Size::H, Size::W, Size::Dw][self.rng.usize(..3)],
                dst,
            },
            2 => Insn::MovSx {
                width,
                from: [Size::B, Size::H, Size::W][self.rng.usize(..if width == Width::W64 { 3 } else { 2 })],
                dst,
                src: dst,
            },
            _ => Insn::Alu { width, op, dst, src },
        };
        self.emit(vec![insn]);
    }

    /// Gives a number an upper bound.
    fn bound(&mut self) {
        let reg = self.number();
        if self.rng.bool() {
            let mask = [1, 3, 7, 8, 15, 0xf8, 0xff, 0xffff][self.rng.usize(..8)];
            let insn = Insn::Alu { width: self.width(), op: AluOp::And, dst: reg, src: Operand::Imm(mask) };
            return self.emit(vec![insn]);
        }
        let (width, condition, target) = (self.width(), self.condition(), self.forward());
        let usual = [Condition::Gt, Condition::SGt, Condition::SLt, Condition::Ge][self.rng.usize(..4)];
        let condition = if self.rng.u8(..3) == 0 { condition } else { usual };
        let limit = [0, 1, 4, 7, 8, 15, 16, 100, -1, -8][self.rng.usize(..10)];
        self.jump_if(width, condition, reg, Operand::Imm(limit), target);
    }

    fn jump_if(&mut self, width: Width, condition: Condition, dst: Reg, src: Operand, target: Target) {
        let insns = vec![Insn::JumpIf { width, condition, dst, src, offset: 0 }];
        self.steps.push(Step { insns, targets: vec![(0, target)], calls: Vec::new() });
    }

    fn jump(&mut self) {
        let (width, condition, target) = (self.width(), self.condition(), self.forward());
        let is_set = |g| g != Guess::Nothing;
        let (dst, src) = match self.rng.u8(..8) {
            0 => (self.find(is_set), self.find(is_set)),
            1..=3 => (Some(self.number()), Some(self.number())),
            _ => (Some(self.number()), None),
        };
        let imm = interesting(self.rng) as i32;
        let src = src.map_or(Operand::Imm(imm), Operand::Reg);
        self.jump_if(width, condition, dst.unwrap_or(Reg::R0), src, target);
    }

    fn look_up(&mut self) {
        let (map, key, value) = MAPS[self.rng.usize(..4)];
        let at = -8 * self.rng.i16(1..=4);
        let imm = if self.rng.bool() { self.rng.i32(0..6) } else { interesting(self.rng) as i32 };
        let at_key = if key == Size::W && self.rng.bool() { at + 4 } else { at };
        let key_store = if self.rng.u8(..3) == 0 {
            let src = self.number();
            Insn::Store { size: key, base: Reg::R10, offset: at_key, src: Operand::Reg(src) }
        } else {
            Insn::Store { size: key, base: Reg::R10, offset: at_key, src: Operand::Imm(imm) }
        };
        self.emit(vec![
            key_store,
            mov(Reg::R2, Operand::Reg(Reg::R10)),
            add(Reg::R2, Operand::Imm(i32::from(at_key))),
            Insn::LoadImm64 { dst: Reg::R1, value: Imm64::MapIndex(map) },
            Insn::Call(Callee::Helper(1)),
        ]);
        self.forget();
        self.learn(Reg::R0, Guess::Nullable(value));
        let keep = CALLEE_SAVED[self.rng.usize(1..4)];
        if self.rng.bool() {
            self.emit(vec![mov(keep, Operand::Reg(Reg::R0))]);
            self.learn(keep, Guess::Nullable(value));
        }
        if self.rng.u8(..5) != 0 {
            self.null_check();
        }
    }

    fn null_check(&mut self) {
        let Some(reg) = self.find(|g| matches!(g, Guess::Nullable(_))) else { return };
        let condition = if self.rng.u8(..10) == 0 { Condition::Ne } else { Condition::Eq };
        let target = self.forward();
        self.jump_if(Width::W64, condition, reg, Operand::Imm(0), target);
        for guess in &mut self.guesses {
            if let Guess::Nullable(bytes) = *guess {
                *guess = Guess::Value(bytes);
            }
        }
    }

    /// Stores and loads on the stack, spills and fills.
    fn stack(&mut self) {
        let size = self.size();
        let offset = -8 * self.rng.i16(1..=6) + [0, 0, 0, 1, 2, 4][self.rng.usize(..6)];
        let offset = if self.rng.u8(..60) == 0 { offset - 500 } else { offset };
        // The stack wants aligned accesses.
        let offset = if self.rng.u8(..20) == 0 { offset } else { offset & -(size.bytes() as i16) };
        match self.rng.u8(..5) {
            0 => {
                let Some(reg) = self.find(|g| g != Guess::Nothing) else { return };
                let guess = self.guesses.get(usize::from(reg.number())).copied().unwrap_or(Guess::Number);
                let offset = offset & !7;
                let store = Insn::Store { size: Size::Dw, base: Reg::R10, offset, src: Operand::Reg(reg) };
                let dst = self.place(guess);
                self.emit(vec![store]);
                self.emit(vec![Insn::Load { size: Size::Dw, signed: false, dst, base: Reg::R10, offset }]);
            }
            1 => {
                let src = self.number();
                self.emit(vec![Insn::Store { size, base: Reg::R10, offset, src: Operand::Reg(src) }]);
            }
            2 => {
                let imm = if self.rng.bool() { 0 } else { interesting(self.rng) as i32 };
                self.emit(vec![Insn::Store { size, base: Reg::R10, offset, src: Operand::Imm(imm) }]);
            }
            3 => {
                let dst = self.place(Guess::Stack);
                self.emit(vec![mov(dst, Operand::Reg(Reg::R10)), add(dst, Operand::Imm(i32::from(offset)))]);
            }
            _ => {
                let dst = self.place(Guess::Number);
                let signed = size != Size::Dw && self.rng.u8(..5) == 0;
                self.emit(vec![Insn::Load { size, signed, dst, base: Reg::R10, offset }]);
            }
        }
    }

    fn pointer_arithmetic(&mut self) {
        let is_pointer = |g| matches!(g, Guess::Packet | Guess::Value(_) | Guess::Stack);
        let Some(base) = self.find(is_pointer) else { return };
        let guess = self.guesses.get(usize::from(base.number())).copied().unwrap_or(Guess::Stack);
        let src = if self.rng.u8(..4) == 0 {
            Operand::Imm(self.rng.i32(-8..16))
        } else {
            let reg = self.number();
            let mask = [1, 3, 7, 15, 0xff][self.rng.usize(..5)];
            if self.rng.u8(..4) != 0 {
                self.emit(vec![Insn::Alu {
                    width: Width::W64,
                    op: AluOp::And,
                    dst: reg,
                    src: Operand::Imm(mask),
                }]);
            }
            Operand::Reg(reg)
        };
        let dst = self.place(guess);
        let op = [AluOp::Add, AluOp::Add, AluOp::Add, AluOp::Sub][self.rng.usize(..4)];
        let width = if self.rng.u8(..60) == 0 { Width::W32 } else { Width::W64 };
        self.emit(vec![mov(dst, Operand::Reg(base)), Insn::Alu { width, op, dst, src }]);
    }

    fn helper(&mut self) {
        let context = self.find(|g| g == Guess::Context).unwrap_or(Reg::R6);
        let number = self.rng.i32(-16..=32);
        let mut insns = Vec::new();
        match self.rng.u8(..8) {
            0 => insns.push(Insn::Call(Callee::Helper(5))),
            1 => insns.push(Insn::Call(Callee::Helper(7))),
            2 => insns.push(Insn::Call(Callee::Helper(8))),
            3 => {
                insns.extend([mov(Reg::R1, Operand::Reg(context)), mov(Reg::R2, Operand::Imm(number))]);
                insns.push(Insn::Call(Callee::Helper([44, 54, 65][self.rng.usize(..3)])));
                for guess in &mut self.guesses {
                    if matches!(guess, Guess::Packet | Guess::End) && self.rng.u8(..8) != 0 {
                        *guess = Guess::Number;
                    }
                }
            }
            4..=5 => {
                // Packet bytes to or from the stack, of a size that may not be known.
                let size = self.number();
                let at = -8 * self.rng.i32(1..=4);
                insns.extend([
                    mov(Reg::R4, Operand::Reg(size)),
                    Insn::Alu { width: Width::W64, op: AluOp::And, dst: Reg::R4, src: Operand::Imm(15) },
                    mov(Reg::R1, Operand::Reg(context)),
                    mov(Reg::R2, Operand::Imm(self.rng.i32(0..20))),
                    mov(Reg::R3, Operand::Reg(Reg::R10)),
                    add(Reg::R3, Operand::Imm(at)),
                ]);
                if self.rng.u8(..4) != 0 {
                    insns.push(add(Reg::R4, Operand::Imm(1)));
                }
                insns.push(Insn::Call(Callee::Helper([189, 190][self.rng.usize(..2)])));
            }
            6 => {
                // Checksums over the stack.
                let at = -8 * self.rng.i32(1..=4);
                insns.extend([
                    mov(Reg::R1, Operand::Reg(Reg::R10)),
                    add(Reg::R1, Operand::Imm(at)),
                    mov(Reg::R2, Operand::Imm([0, 4, 8, 16, 40][self.rng.usize(..5)])),
                    mov(Reg::R3, Operand::Imm(0)),
                    mov(Reg::R4, Operand::Imm(0)),
                    mov(Reg::R5, Operand::Imm(0)),
                    Insn::Call(Callee::Helper(28)),
                ]);
            }
            _ => {
                let (map, key, _) = MAPS[self.rng.usize(..4)];
                let at = -8 * self.rng.i32(1..=3);
                insns.extend([
                    Insn::Store { size: key, base: Reg::R10, offset: at as i16, src: Operand::Imm(number) },
                    mov(Reg::R2, Operand::Reg(Reg::R10)),
                    add(Reg::R2, Operand::Imm(at)),
                    mov(Reg::R3, Operand::Reg(Reg::R10)),
                    add(Reg::R3, Operand::Imm(-32)),
                    mov(Reg::R4, Operand::Imm(0)),
                    Insn::LoadImm64 { dst: Reg::R1, value: Imm64::MapIndex(map) },
                    Insn::Call(Callee::Helper([2, 2, 3][self.rng.usize(..3)])),
                ]);
            }
        }
        self.emit(insns);
        self.forget();
    }

    /// What a call leaves.
    fn forget(&mut self) {
        for guess in &mut self.guesses[..6] {
            *guess = Guess::Nothing;
        }
        self.guesses[0] = Guess::Number;
    }

    fn loop_back(&mut self) {
        let counter = CALLEE_SAVED[self.rng.usize(1..4)];
        let start = Step::plain(vec![mov(counter, Operand::Imm(0))]);
        self.learn(counter, Guess::Number);
        self.steps.push(start);
        let body = self.rng.usize(0..4);
        let first = self.steps.len();
        for _ in 0..body {
            match self.rng.u8(..3) {
                0 => self.arithmetic(),
                1 => self.stack(),
                _ => self.access(),
            }
        }
        let limit = self.rng.i32(1..40);
        let back = self.steps.len() - first;
        let step = if self.rng.u8(..30) == 0 { 0 } else { 1 };
        let condition = [Condition::Lt, Condition::Ne, Condition::SLt][self.rng.usize(..3)];
        let width = self.width();
        self.steps.push(Step {
            insns: vec![
                add(counter, Operand::Imm(step)),
                Insn::JumpIf { width, condition, dst: counter, src: Operand::Imm(limit), offset: 0 },
            ],
            targets: vec![(1, Target::Back(back))],
            calls: Vec::new(),
        });
    }

    fn call(&mut self) {
        if self.functions == 0 {
            return self.copy();
        }
        let function = self.rng.usize(1..=self.functions);
        self.call_of(function);
    }

    fn call_of(&mut self, function: usize) {
        let mut insns = Vec::new();
        for arg in [Reg::R1, Reg::R2, Reg::R3] {
            match self.find(|g| g != Guess::Nothing) {
                Some(reg) if self.rng.u8(..4) != 0 => insns.push(mov(arg, Operand::Reg(reg))),
                _ => insns.push(mov(arg, Operand::Imm(self.rng.i32(0..20)))),
            }
        }
        insns.push(Insn::Call(Callee::Subprogram(0)));
        let calls = vec![(insns.len() - 1, function)];
        self.steps.push(Step { insns, targets: Vec::new(), calls });
        self.forget();
    }

    fn copy(&mut self) {
        let Some(src) = self.find(|g| g != Guess::Nothing) else { return };
        let guess = self.guesses.get(usize::from(src.number())).copied().unwrap_or(Guess::Stack);
        let dst = self.place(guess);
        let width = if self.rng.u8(..10) == 0 { Width::W32 } else { Width::W64 };
        self.emit(vec![Insn::Alu { width, op: AluOp::Mov, dst, src: Operand::Reg(src) }]);
    }

    fn atomic(&mut self) {
        let fetch = self.rng.bool();
        let op = [
            AtomicOp::Add { fetch },
            AtomicOp::Or { fetch },
            AtomicOp::And { fetch },
            AtomicOp::Xor { fetch },
            AtomicOp::Xchg,
            AtomicOp::CmpXchg,
        ][self.rng.usize(..6)];
        let src = self.number();
        let (base, offset) = match self.find(|g| matches!(g, Guess::Value(_))) {
            Some(base) if self.rng.bool() => (base, 4 * self.rng.i16(0..4)),
            _ => (Reg::R10, -8 * self.rng.i16(1..=4)),
        };
        let offset = if self.rng.u8(..30) == 0 { offset + 1 } else { offset };
        let width = self.width();
        self.emit(vec![Insn::Atomic { width, op, base, offset, src }]);
    }

    /// The address of a global, or of a constant.
    fn global_value(&mut self) {
        let (index, size) = [(4, 32), (3, 16)][self.rng.usize(..2)];
        let offset = self.rng.u32(0..size + 1);
        let dst = self.place(Guess::Value((size - offset.min(size)) as i16));
        self.emit(vec![Insn::LoadImm64 { dst, value: Imm64::MapValueIndex { index, offset } }]);
    }
}

fn mov(dst: Reg, src: Operand) -> Insn {
    Insn::Alu { width: Width::W64, op: AluOp::Mov, dst, src }
}

fn add(dst: Reg, src: Operand) -> Insn {
    Insn::Alu { width: Width::W64, op: AluOp::Add, dst, src }
}
