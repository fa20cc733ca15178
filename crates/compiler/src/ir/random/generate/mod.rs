//! The generator: modules, functions, and operations on numbers.

mod access;
mod call;
mod flow;
mod number;

use fastrand::Rng;
use paceline_isa::{Reg, Size, SwapOrder, eval};

use crate::ir::arena::Key;
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, FuncId, Value};
use crate::ir::function::{Function, Module, Terminator};
use crate::ir::op::{BinaryOp, CONDITIONS, Op};
use crate::ir::types::{Access, Kind, Region, Span, Type};
use crate::ir::{kinds, stack};

/// Bytes of stack that random functions use, so that their accesses meet. Below is a word for a pointer.
const STACK: i32 = 64;
/// Offset of the word for a pointer.
const SPILLED: i32 = -STACK - 8;

/// Slots of a function other than the main one.
const SLOTS: u32 = 1000;

/// Registers of a function's parameters: memory of its caller, and a number; and those of a function that a loop calls.
const CALLED: [Reg; 2] = [Reg::R1, Reg::R3];
const CALLED_BACK: [Reg; 2] = [Reg::R2, Reg::R1];

/// A function that others call.
#[derive(Clone, Copy, Debug)]
struct Called {
    id: FuncId,
    /// Whether it is called in a loop, by a helper.
    back: bool,
    /// Whether it returns the memory that it was given, and a number otherwise.
    returns_memory: bool,
    /// Whether it is verified on its own: it does not know what memory that is, and calls say that it reads it.
    global: bool,
}

impl Called {
    fn slot(&self) -> u32 {
        self.id.index() as u32 * SLOTS
    }
}

/// The random module of a seed.
#[must_use]
pub fn module(seed: u64) -> Module {
    let mut rng = Rng::with_seed(seed);
    let mut module = Module::default();
    let count = rng.usize(..=3);
    let others: Vec<Called> = (1..=count)
        .map(|number| {
            let back = rng.u8(..3) == 0;
            let [returns_memory, global] = [(); 2].map(|()| !back && rng.u8(..3) == 0);
            Called { id: FuncId::new(number), back, returns_memory, global }
        })
        .collect();
    module.functions.push(Generator::main(&mut rng, &others));
    for (at, called) in others.iter().enumerate() {
        // Those behind it, so that none calls itself.
        module.functions.push(Generator::called(&mut rng, called, &others[at + 1..]));
    }
    module
}

struct Generator<'a> {
    rng: &'a mut Rng,
    function: Function,
    block: Block,
    /// Numbers that are defined here.
    numbers: Vec<(Value, Type)>,
    /// Loads that were made here, which are repeated.
    loads: Vec<Op>,
    /// The packet's start and end; none after the packet moved.
    packet: Option<(Value, Value)>,
    /// Whether the packet's start is in its word of the stack.
    is_spilled: bool,
    context: Option<Value>,
    /// Eight bytes on the stack of a function further out.
    memory: Option<Value>,
    /// What is known of that.
    lent: Region,
    /// Whether the function returns it.
    returns_memory: bool,
    /// Functions that it may call.
    others: &'a [Called],
    /// Steps that are left.
    steps: u32,
    slot: u32,
}

impl<'a> Generator<'a> {
    fn new(rng: &'a mut Rng, name: &str, others: &'a [Called]) -> Self {
        let mut function =
            Function { name: name.to_owned(), stack: SPILLED.unsigned_abs(), ..Function::default() };
        let block = function.add_block();
        let steps = rng.u32(5..60);
        let (numbers, loads) = (Vec::new(), Vec::new());
        Self {
            rng,
            function,
            block,
            numbers,
            loads,
            packet: None,
            is_spilled: false,
            context: None,
            memory: None,
            lent: Region::CallerStack,
            returns_memory: false,
            others,
            steps,
            slot: 0,
        }
    }

    fn param(&mut self, kind: Kind) -> Value {
        self.function.add_param(self.block, Type::I64, kind)
    }

    fn main(rng: &'a mut Rng, others: &'a [Called]) -> Function {
        let mut this = Self::new(rng, "main", others);
        this.function.arguments.push(Reg::R1);
        this.context = Some(this.param(Kind::Context));
        this.reload();
        this.body()
    }

    fn called(rng: &'a mut Rng, called: &Called, others: &'a [Called]) -> Function {
        let mut this = Self::new(rng, if called.back { "callback" } else { "callee" }, others);
        (this.function.slot, this.function.is_callback) = (called.slot(), called.back);
        this.returns_memory = called.returns_memory;
        this.lent = if called.global { Region::Memory } else { Region::CallerStack };
        let registers = if called.back { CALLED_BACK } else { CALLED };
        this.function.arguments = registers.to_vec();
        this.function.arguments.sort_by_key(|reg| reg.number());
        for reg in this.function.arguments.clone() {
            if reg == registers[0] {
                this.memory = Some(this.param(this.lent.kind()));
            } else {
                let number = this.param(Kind::Unknown);
                this.numbers.push((number, Type::I64));
            }
        }
        this.body()
    }

    /// What the function returns here.
    fn result(&mut self) -> Value {
        match self.memory.filter(|_| self.returns_memory) {
            Some(memory) => memory,
            None => self.number(Type::I64),
        }
    }

    fn body(mut self) -> Function {
        while self.steps > 0 {
            self.step();
        }
        let value = self.result();
        self.function.terminate(self.block, Terminator::Return(value), None);
        let cfg = Cfg::of(&self.function);
        kinds::infer(&mut self.function, &cfg);
        self.function.zeroed = u64::MAX;
        stack::update(&mut self.function, &cfg);
        self.function
    }

    fn emit(&mut self, op: Op) -> Value {
        self.slot += 1;
        self.function.append(self.block, op, Some(self.slot)).unwrap_or(Value::new(0))
    }

    /// Adds an operation whose result is a number.
    fn compute(&mut self, op: Op) -> Value {
        let value = self.emit(op);
        if let Some(ty) = op.result() {
            self.numbers.push((value, ty));
        }
        value
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(..of.len())]
    }

    fn ty(&mut self) -> Type {
        self.pick(&[Type::I32, Type::I64, Type::I64])
    }

    fn interesting(&mut self) -> u64 {
        match self.rng.u8(..8) {
            0 => 1 << self.rng.u8(..64),
            1 => (1_u64 << self.rng.u8(..64)).wrapping_sub(1),
            2 => self.rng.u64(..),
            3 => 0_u64.wrapping_sub(self.rng.u64(..16)),
            4 => self.pick(&[0xff, 0xffff, 0xff00, 0xffff_ffff, 32, 48, 64]),
            _ => self.rng.u64(..16),
        }
    }

    fn constant(&mut self, ty: Type, value: u64) -> Value {
        self.emit(Op::constant(ty, value))
    }

    fn number(&mut self, ty: Type) -> Value {
        let found: Vec<Value> =
            self.numbers.iter().filter(|(_, of)| *of == ty).map(|(value, _)| *value).collect();
        if found.is_empty() || self.rng.u8(..5) == 0 {
            let value = self.interesting();
            let value = self.constant(ty, value);
            self.numbers.push((value, ty));
            return value;
        }
        // The last ones are used more often, so that operations build on each other.
        let from = if self.rng.bool() { found.len().saturating_sub(3) } else { 0 };
        self.pick(&found[from..])
    }

    fn step(&mut self) {
        self.steps = self.steps.saturating_sub(1);
        match self.rng.u8(..32) {
            0..2 => self.divide_or_rotate(),
            2..8 => self.arithmetic(),
            8..11 => self.convert(),
            11..15 => self.load(),
            15..18 => self.store(),
            18 => self.atomic(),
            19..21 => self.field(),
            21..23 => self.repeat(),
            23..26 => self.branch(),
            26 if self.rng.u8(..3) == 0 => self.two_headed_loop(),
            26 => self.loop_(),
            27 => (0..3).for_each(|_| self.bounds()),
            28..30 if !self.others.is_empty() && self.rng.u8(..3) != 0 => self.call_function(),
            28..30 => self.call(),
            30 if self.rng.bool() => self.spill(),
            30 => self.context_access(),
            _ => match self.rng.u8(..4) {
                0 => self.compare_swapped(),
                1 => self.masked_join(),
                _ => self.compare(),
            },
        }
    }

    fn arithmetic(&mut self) {
        let (ty, (op, _)) = (self.ty(), self.pick(&BinaryOp::NAMES));
        let a = self.number(ty);
        let b = if self.rng.u8(..3) == 0 {
            let value = self.interesting();
            self.constant(ty, value)
        } else {
            self.number(ty)
        };
        self.compute(Op::Binary { op, ty, args: [a, b] });
    }

    fn convert(&mut self) {
        let ty = self.ty();
        let op = match self.rng.u8(..6) {
            0 => Op::Neg { ty, arg: self.number(ty) },
            1 => Op::ZeroExtend { arg: self.number(Type::I32) },
            2 => Op::Truncate { arg: self.number(Type::I64) },
            3 => Op::SignExtend { from: Size::W, ty: Type::I64, arg: self.number(Type::I32) },
            4 => Op::SignExtend { from: self.pick(&[Size::B, Size::H]), ty, arg: self.number(ty) },
            _ => {
                let size = self.pick(if ty == Type::I64 {
                    &[Size::H, Size::W, Size::Dw]
                } else {
                    &[Size::H, Size::W]
                });
                Op::Swap { size, ty, arg: self.number(ty) }
            }
        };
        self.compute(op);
    }

    fn compare(&mut self) {
        let (ty, (condition, _)) = (self.ty(), self.pick(&CONDITIONS));
        let args = [self.number(ty), self.number(ty)];
        self.compute(Op::Compare { condition, ty, args });
    }

    /// A comparison of a swapped number of few bits, so that it is often equal to another one.
    fn compare_swapped(&mut self) {
        let ty = self.ty();
        let size =
            self.pick(if ty == Type::I64 { &[Size::H, Size::W, Size::Dw] } else { &[Size::H, Size::W] });
        let few = [1, 0x100, 0x101, 0x1_0001, 0x100_0000];
        let [bits, other, both] = [(); 3].map(|()| self.pick(&few));
        let swapped = |this: &mut Self, bits: u64| {
            let number = this.number(ty);
            let bits = this.constant(ty, bits);
            let arg = this.compute(Op::Binary { op: BinaryOp::And, ty, args: [number, bits] });
            this.compute(Op::Swap { size, ty, arg })
        };
        let mut a = swapped(self, bits);
        if self.rng.bool() {
            let mask = self.interesting();
            let mask = self.constant(ty, mask);
            a = self.compute(Op::Binary { op: BinaryOp::And, ty, args: [a, mask] });
        }
        let b = match self.rng.u8(..3) {
            0 => swapped(self, both),
            1 => self.constant(ty, eval::swap(SwapOrder::Always, size, bits)),
            _ => self.constant(ty, eval::swap(SwapOrder::Always, size, other)),
        };
        let (condition, _) = self.pick(&CONDITIONS);
        self.compute(Op::Compare { condition, ty, args: [a, b] });
    }

    /// A number that is put together from parts with masks.
    fn masked_join(&mut self) {
        let ty = self.ty();
        let binary = |this: &mut Self, op, a: Value, number: u64| {
            let number = this.constant(ty, number);
            this.compute(Op::Binary { op, ty, args: [a, number] })
        };
        let masks = [0xff, 0xff, 0xfff, 0xf0];
        let [high, low] = [(); 2].map(|()| {
            let (number, mask) = (self.number(ty), self.pick(&masks));
            binary(self, BinaryOp::And, number, mask)
        });
        let (count, mask) = (self.pick(&[8, 8, 4, 12]), self.pick(&[0x1f00, 0xff00, 0xfff]));
        let high = binary(self, BinaryOp::Shl, high, count);
        let high = binary(self, BinaryOp::And, high, mask);
        let args = if self.rng.bool() { [high, low] } else { [low, high] };
        self.compute(Op::Binary { op: BinaryOp::Or, ty, args });
    }

    fn size(&mut self) -> Size {
        self.pick(&[Size::B, Size::H, Size::W, Size::Dw])
    }
}

/// An access at one offset.
fn exact(region: Region, offset: i32) -> Access {
    Access { region, span: Some(Span { min: offset, max: offset }), packet_bytes: None }
}
