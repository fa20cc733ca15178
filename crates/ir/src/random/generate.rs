//! The generator.

use fastrand::Rng;
use paceline_isa::{AtomicOp, Condition, Reg, Size};
use paceline_verifier::StackFact;
use paceline_verifier::state::MapRef;

use super::helpers;
use super::memory::{LENGTHS, MAP_BYTES, MAP_COUNT, PACKET_BYTES};
use crate::arena::Key;
use crate::cfg::Cfg;
use crate::entity::{Block, FuncId, Value};
use crate::function::{Function, Module, Target, Terminator};
use crate::kinds;
use crate::op::{ATOMICS, Address, Args, BinaryOp, CONDITIONS, Callee, Op};
use crate::stack;
use crate::types::{Access, CallFacts, Kind, Region, STACK_BYTES, Span, Type};

/// Bytes of stack that random functions use, so that their accesses meet. Below is a word for a pointer.
const STACK: i32 = 64;
/// Offset of the word for a pointer.
const SPILLED: i32 = -STACK - 8;

/// The random module of a seed.
#[must_use]
pub fn module(seed: u64) -> Module {
    let mut rng = Rng::with_seed(seed);
    let mut module = Module::default();
    let has_callee = rng.bool();
    module.functions.push(Generator::main(&mut rng, has_callee));
    if has_callee {
        module.functions.push(Generator::callee(&mut rng));
    }
    module
}

/// What is defined at a place.
struct Scope {
    numbers: usize,
    loads: Vec<Op>,
    packet: Option<(Value, Value)>,
    is_spilled: bool,
}

/// An edge to a join: its block, the position of the target, and the arguments, a number and a pointer.
type Edge = (Block, usize, (Value, Option<Value>));

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
    /// The memory that a callee was given.
    memory: Option<Value>,
    has_callee: bool,
    /// Steps that are left.
    steps: u32,
    slot: u32,
}

impl<'a> Generator<'a> {
    fn new(rng: &'a mut Rng, name: &str, arguments: Vec<Reg>, kind: Kind) -> Self {
        let mut function =
            Function { name: name.to_owned(), stack: SPILLED.unsigned_abs(), ..Function::default() };
        let block = function.add_block();
        let params: Vec<Value> =
            arguments.iter().map(|_| function.add_param(block, Type::I64, kind)).collect();
        function.arguments = arguments;
        let steps = rng.u32(5..60);
        let (numbers, loads, first) = (Vec::new(), Vec::new(), params.first().copied());
        let (context, memory) = if kind == Kind::Context { (first, None) } else { (None, first) };
        Self {
            rng,
            function,
            block,
            numbers,
            loads,
            packet: None,
            is_spilled: false,
            context,
            memory,
            has_callee: false,
            steps,
            slot: 0,
        }
    }

    fn main(rng: &'a mut Rng, has_callee: bool) -> Function {
        let mut this = Self::new(rng, "main", vec![Reg::R1], Kind::Context);
        this.has_callee = has_callee;
        this.reload();
        this.body()
    }

    fn callee(rng: &'a mut Rng) -> Function {
        let mut this = Self::new(rng, "callee", vec![Reg::R1, Reg::R3], Kind::CallerStack);
        this.function.slot = 1000;
        let entry = this.block;
        let number = this.function.block(entry).params[1];
        this.function.set_kind(number, Kind::Unknown);
        this.numbers.push((number, Type::I64));
        this.body()
    }

    fn body(mut self) -> Function {
        while self.steps > 0 {
            self.step();
        }
        let value = self.number(Type::I64);
        self.function.terminate(self.block, Terminator::Return(value), None);
        let cfg = Cfg::of(&self.function);
        kinds::infer(&mut self.function, &cfg);
        self.function.zeroed = u64::MAX;
        stack::update(&mut self.function);
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
            0..8 => self.arithmetic(),
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
            28..30 => self.call(),
            30 if self.rng.bool() => self.spill(),
            30 => self.context_access(),
            _ => self.compare(),
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

    fn size(&mut self) -> Size {
        self.pick(&[Size::B, Size::H, Size::W, Size::Dw])
    }

    /// A number below a power of two, times a size.
    fn index(&mut self, below: u64, size: Size) -> Value {
        let (value, mask) = (self.number(Type::I64), self.constant(Type::I64, below - 1));
        let index = self.compute(Op::Binary { op: BinaryOp::And, ty: Type::I64, args: [value, mask] });
        let by = self.constant(Type::I64, size.bytes() as u64);
        self.emit(Op::Binary { op: BinaryOp::Mul, ty: Type::I64, args: [index, by] })
    }

    /// A place for an access: base, offset, facts.
    fn place(&mut self, size: Size) -> (Value, i32, Access) {
        let bytes = size.bytes() as i32;
        match (self.rng.u8(..9), self.packet, self.memory) {
            (8, ..) => self.anywhere(size),
            (0..3, Some((start, _)), _) => {
                let offset = self.rng.i32(0..=PACKET_BYTES as i32 - bytes);
                let access = exact(Region::Packet, offset);
                (start, offset, Access { packet_bytes: Some(PACKET_BYTES as u16), ..access })
            }
            (0..3, None, Some(memory)) => {
                // The caller gave eight bytes.
                (memory, self.rng.i32(0..=8 - bytes), Access::to(Region::CallerStack))
            }
            (3, ..) => {
                let (map, offset) =
                    (self.rng.u32(..MAP_COUNT as u32), self.rng.i32(0..=MAP_BYTES as i32 - bytes));
                let base = self.emit(Op::Address(Address::MapValue { map, offset: 0 }));
                (base, offset, exact(Region::MapValue(MapRef { index: map, inner: false }), offset))
            }
            (4, ..) => self.somewhere_on_stack(size),
            _ => {
                let offset = -bytes * self.rng.i32(1..=STACK / bytes);
                let part = if self.rng.bool() { 0 } else { offset };
                let base = self.emit(Op::StackAddress { offset: part });
                (base, offset - part, exact(Region::Stack, offset))
            }
        }
    }

    /// A place of which less is known than where it is.
    fn anywhere(&mut self, size: Size) -> (Value, i32, Access) {
        let bytes = size.bytes() as i32;
        match (self.rng.u8(..3), self.packet) {
            (0, Some((start, _))) => {
                let region = self.pick(&[Region::Memory, Region::Mixed]);
                (start, self.rng.i32(0..=PACKET_BYTES as i32 - bytes), Access::to(region))
            }
            (1, _) => {
                let base = self.emit(Op::StackAddress { offset: -STACK });
                (base, bytes * self.rng.i32(0..STACK / bytes), Access::to(Region::Mixed))
            }
            _ => {
                let map = self.rng.u32(..MAP_COUNT as u32);
                let base = self.emit(Op::Address(Address::MapValue { map, offset: 0 }));
                let region = self.pick(&[Region::SomeMapValue, Region::Memory, Region::Mixed]);
                (base, self.rng.i32(0..=MAP_BYTES as i32 - bytes), Access::to(region))
            }
        }
    }

    /// Stores the packet's start on the stack, or loads the packet through what was stored.
    fn spill(&mut self) {
        let Some((start, _)) = self.packet else { return };
        let (base, access) = (self.emit(Op::StackAddress { offset: SPILLED }), exact(Region::Stack, SPILLED));
        if !self.is_spilled {
            self.emit(Op::Store { size: Size::Dw, access, base, offset: 0, value: start });
            self.is_spilled = true;
            return;
        }
        let base = self.emit(Op::Load { size: Size::Dw, signed: false, access, base, offset: 0 });
        let (size, offset) = (self.size(), self.rng.i32(0..=PACKET_BYTES as i32 - 8));
        let access = exact(Region::Packet, offset);
        self.compute(Op::Load { size, signed: false, access, base, offset });
    }

    /// A place on the stack at an offset that is not constant, in its lower half.
    fn somewhere_on_stack(&mut self, size: Size) -> (Value, i32, Access) {
        let index = self.index(4, size);
        let base = self.emit(Op::StackAddress { offset: -STACK });
        let base = self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [base, index] });
        let span = Some(Span { min: -STACK, max: -STACK + 3 * size.bytes() as i32 });
        (base, 0, Access { span, ..Access::to(Region::Stack) })
    }

    fn load(&mut self) {
        let size = self.size();
        let signed = size != Size::Dw && self.rng.u8(..4) == 0;
        let (base, offset, access) = self.place(size);
        let op = Op::Load { size, signed, access, base, offset };
        self.compute(op);
        self.loads.push(op);
    }

    fn store(&mut self) {
        let size = self.size();
        let ((base, offset, access), value) = (self.place(size), self.number(Type::I64));
        self.emit(Op::Store { size, access, base, offset, value });
        if self.rng.bool() {
            let op = Op::Load { size, signed: false, access, base, offset };
            self.compute(op);
            self.loads.push(op);
        }
    }

    fn atomic(&mut self) {
        let size = self.pick(&[Size::W, Size::Dw]);
        let ty = if size == Size::W { Type::I32 } else { Type::I64 };
        let (base, offset, access) = self.place(size);
        let value = self.number(Type::I64);
        match self.rng.u8(..4) {
            0 => drop(self.compute(Op::LoadAcquire { size, access, base, offset })),
            1 => drop(self.emit(Op::StoreRelease { size, access, base, offset, value })),
            _ => {
                let (op, _) = self.pick(&ATOMICS);
                let expected = (op == AtomicOp::CmpXchg).then(|| self.number(Type::I64));
                self.compute(Op::Atomic { op, width: ty.width(), access, base, offset, value, expected });
            }
        }
    }

    /// A number that is put together from bytes of the packet, in one of the two orders or in neither.
    fn field(&mut self) {
        let Some((start, _)) = self.packet else { return };
        let (ty, count) = (self.ty(), self.pick(&[2, 2, 4, 8]));
        let count = count.min(ty.bits() as i32 / 8);
        let first = self.rng.i32(0..PACKET_BYTES as i32 - 8);
        let (backward, wrong) = (self.rng.bool(), self.rng.u8(..6) == 0);
        let mut sum: Option<Value> = None;
        for at in 0..count {
            let offset = first + if backward { count - 1 - at } else { at };
            let offset = if wrong && at == 1 { offset + 1 } else { offset };
            let access = exact(Region::Packet, offset);
            let mut byte =
                self.compute(Op::Load { size: Size::B, signed: false, access, base: start, offset });
            if self.rng.u8(..24) == 0 {
                self.store();
            }
            if ty == Type::I32 {
                byte = self.emit(Op::Truncate { arg: byte });
            }
            let by = self.constant(ty, 8 * at as u64);
            let part = self.emit(Op::Binary { op: BinaryOp::Shl, ty, args: [byte, by] });
            let op = self.pick(&[BinaryOp::Or, BinaryOp::Or, BinaryOp::Add]);
            sum = Some(match sum {
                None => part,
                Some(sum) => self.compute(Op::Binary { op, ty, args: [sum, part] }),
            });
        }
        if let Some(sum) = sum {
            self.numbers.push((sum, ty));
        }
    }

    /// A load that was made before.
    fn repeat(&mut self) {
        if !self.loads.is_empty() {
            let op = self.rng.usize(..self.loads.len());
            self.compute(self.loads[op]);
        }
    }

    /// Ends the block with a branch on numbers.
    fn fork(&mut self, targets: [Target; 2]) {
        let (ty, (condition, _)) = (self.ty(), self.pick(&CONDITIONS));
        let args = [self.number(ty), self.number(ty)];
        self.slot += 1;
        self.function.terminate(
            self.block,
            Terminator::Branch { condition, ty, args, targets },
            Some(self.slot),
        );
    }

    /// Generates a few steps whose values are forgotten.
    fn inside(&mut self, block: Block) {
        self.block = block;
        for _ in 0..self.rng.u8(..6) {
            if self.steps > 0 {
                self.step();
            }
        }
    }

    fn scope(&self) -> Scope {
        let (numbers, loads) = (self.numbers.len(), self.loads.clone());
        Scope { numbers, loads, packet: self.packet, is_spilled: self.is_spilled }
    }

    /// Forgets what was defined since.
    fn restore(&mut self, scope: &Scope) {
        self.numbers.truncate(scope.numbers);
        self.loads.clone_from(&scope.loads);
        (self.packet, self.is_spilled) = (scope.packet, scope.is_spilled);
    }

    /// Arguments for a join from here: a number, and a pointer into the packet, if it has not moved.
    fn arguments(&mut self, ty: Type) -> (Value, Option<Value>) {
        let number = self.number(ty);
        let Some((start, _)) = self.packet else { return (number, None) };
        let distance = self.rng.u64(0..=8);
        let distance = self.constant(Type::I64, distance);
        let args = [start, distance];
        (number, Some(self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args })))
    }

    /// Ways that meet, each with its own arguments: through a block of their own, straight from a branch, or both from the same branch.
    fn branch(&mut self) {
        let (outside, ty, join) = (self.scope(), self.ty(), self.function.add_block());
        // Block and position of each edge, and its arguments.
        let mut edges = Vec::new();
        let mut moved = false;
        for _ in 0..self.rng.u32(1..=3) {
            let here = self.scope();
            let next = self.function.add_block();
            if self.rng.u8(..3) == 0 {
                let args = self.arguments(ty);
                self.fork([Target::to(join), Target::to(next)]);
                edges.push((self.block, 0, args));
            } else {
                let way = self.function.add_block();
                self.fork([Target::to(way), Target::to(next)]);
                self.inside(way);
                if self.rng.u8(..12) == 0 {
                    let value = self.number(Type::I64);
                    self.function.terminate(self.block, Terminator::Return(value), None);
                } else {
                    edges.push((self.block, 0, self.arguments(ty)));
                    self.function.terminate(self.block, Terminator::Jump(Target::to(join)), None);
                }
                moved |= self.packet != here.packet;
                self.restore(&here);
            }
            self.inside(next);
        }
        moved |= self.packet != outside.packet;
        let args = self.arguments(ty);
        if self.rng.u8(..4) == 0 {
            let other = self.arguments(ty);
            self.fork([Target::to(join), Target::to(join)]);
            edges.extend([(self.block, 0, args), (self.block, 1, other)]);
        } else {
            self.function.terminate(self.block, Terminator::Jump(Target::to(join)), None);
            edges.push((self.block, 0, args));
        }
        self.restore(&outside);
        self.join(join, ty, &edges, moved);
    }

    /// Goes on in a block where edges meet.
    fn join(&mut self, join: Block, ty: Type, edges: &[Edge], moved: bool) {
        self.block = join;
        let number = self.function.add_param(join, ty, Kind::Unknown);
        let has_pointers = !moved && edges.iter().all(|(.., (_, pointer))| pointer.is_some());
        let pointer = has_pointers.then(|| self.function.add_param(join, Type::I64, Kind::Unknown));
        for (block, at, (number, pointer)) in edges {
            let target = &mut self.function.block_mut(*block).terminator.targets_mut()[*at];
            target.args.push(*number);
            target.args.extend(pointer.filter(|_| has_pointers));
        }
        self.numbers.push((number, ty));
        if let Some(base) = pointer {
            let (size, offset) = (self.size(), self.rng.i32(0..=PACKET_BYTES as i32 - 16));
            let span = Some(Span { min: offset, max: offset + 8 });
            let access = Access { span, ..Access::to(Region::Packet) };
            self.compute(Op::Load { size, signed: false, access, base, offset });
        }
        if moved {
            self.reload();
        }
    }

    /// A loop that is entered at either of two blocks, bounded by a counter.
    fn two_headed_loop(&mut self) {
        let outside = self.scope();
        let [first, second, exit] = [(); 3].map(|()| self.function.add_block());
        let (ty, rounds) = (self.ty(), self.rng.u64(..6));
        let args = vec![self.constant(Type::I64, rounds), self.number(ty)];
        self.fork([first, second].map(|block| Target { block, args: args.clone() }));
        for (block, other) in [(first, second), (second, first)] {
            self.restore(&outside);
            // The packet may be moved in the loop.
            (self.packet, self.is_spilled) = (None, false);
            self.loads.clear();
            let counter = self.function.add_param(block, Type::I64, Kind::Unknown);
            let carried = self.function.add_param(block, ty, Kind::Unknown);
            self.numbers.extend([(counter, Type::I64), (carried, ty)]);
            self.inside(block);
            let [zero, one] = [0, 1].map(|number| self.constant(Type::I64, number));
            let next = self.emit(Op::Binary { op: BinaryOp::Sub, ty: Type::I64, args: [counter, one] });
            let again = Target { block: other, args: vec![next, self.number(ty)] };
            let (condition, args) = (Condition::Eq, [counter, zero]);
            let targets = [Target::to(exit), again];
            let end = Terminator::Branch { condition, ty: Type::I64, args, targets };
            self.function.terminate(self.block, end, None);
        }
        self.restore(&outside);
        self.loads.clear();
        self.block = exit;
        if self.packet.take().is_some() {
            self.reload();
        }
    }

    /// A loop that a counter or the budget of rounds bounds.
    fn loop_(&mut self) {
        let [head, body, exit] = [(); 3].map(|()| self.function.add_block());
        let ty = self.ty();
        let (zero, start) = (self.constant(Type::I64, 0), self.number(ty));
        // The packet may be moved in the loop.
        let packet = self.packet.take();
        self.is_spilled = false;
        self.function.terminate(
            self.block,
            Terminator::Jump(Target { block: head, args: vec![zero, start] }),
            None,
        );
        let counter = self.function.add_param(head, Type::I64, Kind::Unknown);
        let carried = self.function.add_param(head, ty, Kind::Unknown);
        self.block = head;
        self.numbers.extend([(counter, Type::I64), (carried, ty)]);
        let targets = [Target::to(exit), Target::to(body)];
        if self.rng.u8(..3) == 0 {
            self.function.terminate(head, Terminator::MayGoto(targets), None);
        } else {
            let limit = self.rng.u64(..5);
            let args = [counter, self.constant(Type::I64, limit)];
            let end = Terminator::Branch { condition: Condition::Ge, ty: Type::I64, args, targets };
            self.function.terminate(head, end, None);
        }
        let kept = self.numbers.len();
        let loads_before = std::mem::take(&mut self.loads);
        self.inside(body);
        let one = self.constant(Type::I64, 1);
        let next = self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [counter, one] });
        let back = Target { block: head, args: vec![next, self.number(ty)] };
        self.function.terminate(self.block, Terminator::Jump(back), None);
        self.block = exit;
        self.numbers.truncate(kept);
        self.loads = loads_before;
        (self.packet, self.is_spilled) = (None, false);
        if packet.is_some() {
            self.reload();
        }
    }

    /// A comparison of the packet's end, which may be made again later.
    fn bounds(&mut self) {
        let Some((start, end)) = self.packet else { return };
        let distance = PACKET_BYTES as u64 + self.rng.u64(..LENGTHS as u64 + 1);
        let distance = self.constant(Type::I64, distance);
        let place = self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [start, distance] });
        self.function.set_kind(place, Kind::Packet);
        let condition = self.pick(&[Condition::Gt, Condition::Ge, Condition::Lt, Condition::Le]);
        let (condition, args) = match self.rng.bool() {
            true => (condition, [place, end]),
            false => (condition.exchanged(), [end, place]),
        };
        let [taken, other] = [(); 2].map(|()| self.function.add_block());
        let end = Terminator::Branch {
            condition,
            ty: Type::I64,
            args,
            targets: [Target::to(taken), Target::to(other)],
        };
        self.function.terminate(self.block, end, None);
        // One side goes on, and the other one returns soon.
        let (leaves, goes_on) = if self.rng.bool() { (taken, other) } else { (other, taken) };
        let scope = self.scope();
        self.inside(leaves);
        let value = self.number(Type::I64);
        self.function.terminate(self.block, Terminator::Return(value), None);
        self.restore(&scope);
        self.block = goes_on;
    }

    /// Reads the packet's pointers again.
    fn reload(&mut self) {
        let Some(context) = self.context else { return };
        let mut load = |offset, kind| {
            let value = self.emit(Op::ContextLoad { size: Size::W, signed: false, context, offset });
            self.function.set_kind(value, kind);
            value
        };
        self.packet = Some((load(0, Kind::Packet), load(4, Kind::PacketEnd)));
        self.is_spilled = false;
        self.loads.clear();
    }

    fn context_access(&mut self) {
        let Some(context) = self.context else { return };
        let offset = self.pick(&[12, 16, 20]);
        if self.rng.bool() {
            let value = self.number(Type::I64);
            self.emit(Op::ContextStore { size: Size::W, context, offset, value });
        }
        let (size, signed) = (self.pick(&[Size::B, Size::H, Size::W]), self.rng.u8(..4) == 0);
        let op = Op::ContextLoad { size, signed, context, offset };
        self.compute(op);
        self.loads.push(op);
        let (index, offset) = (self.number(Type::I64), self.rng.i32(-4..80));
        let index = self.rng.bool().then_some(index);
        self.compute(Op::PacketLoad { size, index, offset });
    }

    /// Adds a call with its facts.
    fn call_with(&mut self, callee: Callee, args: &[Value], read: Option<(i32, i32)>) -> Value {
        let Some(args) = Args::new(args) else { return Value::new(0) };
        self.slot += 1;
        let inst = self.function.create(Op::Call { callee, args }, Some(self.slot));
        let stack_read = read.map(|(start, end)| StackFact { start: start as i16, end: end as i16 });
        self.function.calls[inst] = CallFacts { stack_read, ..CallFacts::default() };
        let block = self.block;
        self.function.block_mut(block).insts.push(inst);
        let result = self.function.inst(inst).result;
        // A pointer is no number, since the verifier admits no sums of pointers that may be anywhere.
        if let Some(result) = result.filter(|_| callee != Callee::Helper(helpers::LOOK_UP)) {
            self.numbers.push((result, Type::I64));
        }
        result.unwrap_or(Value::new(0))
    }

    /// Accesses a value of a map, if it was found.
    fn found(&mut self, base: Value) {
        let [found, next] = [(); 2].map(|()| self.function.add_block());
        let (condition, args) = (Condition::Ne, [base, self.constant(Type::I64, 0)]);
        let targets = [Target::to(found), Target::to(next)];
        self.function.terminate(
            self.block,
            Terminator::Branch { condition, ty: Type::I64, args, targets },
            None,
        );
        let scope = self.scope();
        self.block = found;
        let (size, value) = (self.size(), self.number(Type::I64));
        let offset = self.rng.i32(0..=MAP_BYTES as i32 - size.bytes() as i32);
        let access = exact(Region::SomeMapValue, offset);
        let loaded = self.compute(Op::Load { size, signed: false, access, base, offset });
        let value = if self.rng.bool() { value } else { loaded };
        self.emit(Op::Store { size, access, base, offset, value });
        self.function.terminate(self.block, Terminator::Jump(Target::to(next)), None);
        self.restore(&scope);
        self.block = next;
    }

    /// A word of the stack with a number in it.
    fn stored_word(&mut self) -> (Value, i32) {
        let offset = -8 * self.rng.i32(1..=STACK / 8);
        let (base, value) = (self.emit(Op::StackAddress { offset }), self.number(Type::I64));
        let access = exact(Region::Stack, offset);
        self.emit(Op::Store { size: Size::Dw, access, base, offset: 0, value });
        (base, offset)
    }

    /// A load of a word that a helper may have written.
    fn load_word(&mut self, base: Value, at: i32) {
        let access = exact(Region::Stack, at);
        self.compute(Op::Load { size: Size::Dw, signed: false, access, base, offset: 0 });
    }

    fn call(&mut self) {
        let map = self.emit(Op::Address(Address::Map(0)));
        let ((word, at), flags) = (self.stored_word(), self.number(Type::I64));
        match (self.rng.u8(..8), self.context) {
            (0, _) => drop(self.call_with(Callee::Helper(helpers::RANDOM), &[], None)),
            (1, _) => {
                let args = [map, word, word, flags];
                self.call_with(Callee::Helper(helpers::UPDATE), &args, Some((at, at + 8)));
            }
            (2, Some(context)) => {
                self.call_with(Callee::Helper(helpers::ADJUST), &[context, flags], None);
                // The old pointers are numbers.
                let old = self.packet.map(|(start, end)| [(start, Type::I64), (end, Type::I64)]);
                self.numbers.extend(old.into_iter().flatten());
                self.reload();
            }
            (3, Some(context)) => {
                let size = self.constant(Type::I64, 8);
                self.call_with(
                    Callee::Helper(helpers::FIB),
                    &[context, word, size, flags],
                    Some((at, at + 8)),
                );
                self.load_word(word, at);
            }
            (6, Some(context)) => {
                let (zero, size) = (self.constant(Type::I64, 0), self.constant(Type::I64, 8));
                self.call_with(Callee::Helper(helpers::LOAD), &[context, zero, word, size], None);
                self.load_word(word, at);
            }
            (4, Some(context)) => {
                let args = [context, map, flags];
                if let Some(args) = Args::new(&args) {
                    self.emit(Op::Call { callee: Callee::TailCall, args });
                }
                self.reload();
            }
            (5, _) if self.has_callee => {
                self.function.shared |= 1 << (-at / 8 - 1);
                // What another function reads is no read of the call.
                self.call_with(Callee::Function(FuncId::new(1)), &[word, flags], None);
                // The callee may have written there, and moved the packet as far as the form says.
                self.loads.clear();
                self.reload();
            }
            _ => {
                let args = [map, word];
                let value = self.call_with(Callee::Helper(helpers::LOOK_UP), &args, Some((at, at + 4)));
                self.found(value);
            }
        }
        debug_assert!(at >= -STACK_BYTES);
    }
}

/// An access at one offset.
fn exact(region: Region, offset: i32) -> Access {
    Access { region, span: Some(Span { min: offset, max: offset }), packet_bytes: None }
}
