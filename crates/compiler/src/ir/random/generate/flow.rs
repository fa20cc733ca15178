//! Branches, joins and loops.

use paceline_isa::Condition;
use smallvec::smallvec;

use super::Generator;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Target, Terminator};
use crate::ir::op::{BinaryOp, CONDITIONS, Op};
use crate::ir::random::memory::{LENGTHS, PACKET_BYTES};
use crate::ir::types::{Access, Kind, Region, Span, Type};

/// What is defined at a place.
pub(super) struct Scope {
    numbers: usize,
    loads: Vec<Op>,
    packet: Option<(Value, Value)>,
    is_spilled: bool,
}

/// An edge to a join: its block, the position of the target, and the arguments, a number and a pointer.
pub(super) type Edge = (Block, usize, (Value, Option<Value>));

impl Generator<'_> {
    /// Ends the block with a branch on numbers.
    pub(super) fn fork(&mut self, targets: [Target; 2]) {
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
    pub(super) fn inside(&mut self, block: Block) {
        self.block = block;
        for _ in 0..self.rng.u8(..6) {
            if self.steps > 0 {
                self.step();
            }
        }
    }

    pub(super) fn scope(&self) -> Scope {
        let (numbers, loads) = (self.numbers.len(), self.loads.clone());
        Scope { numbers, loads, packet: self.packet, is_spilled: self.is_spilled }
    }

    /// Forgets what was defined since.
    pub(super) fn restore(&mut self, scope: &Scope) {
        self.numbers.truncate(scope.numbers);
        self.loads.clone_from(&scope.loads);
        (self.packet, self.is_spilled) = (scope.packet, scope.is_spilled);
    }

    /// Arguments for a join from here: a number, and a pointer into the packet, if it has not moved.
    pub(super) fn arguments(&mut self, ty: Type) -> (Value, Option<Value>) {
        let number = self.number(ty);
        let Some((start, _)) = self.packet else { return (number, None) };
        let distance = self.rng.u64(0..=8);
        let distance = self.constant(Type::I64, distance);
        let args = [start, distance];
        (number, Some(self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args })))
    }

    /// Ways that meet, each with its own arguments: through a block of their own, straight from a branch, or both from the same branch.
    pub(super) fn branch(&mut self) {
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
                    let value = self.result();
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
    pub(super) fn join(&mut self, join: Block, ty: Type, edges: &[Edge], moved: bool) {
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
    pub(super) fn two_headed_loop(&mut self) {
        let outside = self.scope();
        let [first, second, exit] = [(); 3].map(|()| self.function.add_block());
        let (ty, rounds) = (self.ty(), self.rng.u64(..6));
        let args = smallvec![self.constant(Type::I64, rounds), self.number(ty)];
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
            let again = Target { block: other, args: smallvec![next, self.number(ty)] };
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
    pub(super) fn loop_(&mut self) {
        let [head, body, exit] = [(); 3].map(|()| self.function.add_block());
        let ty = self.ty();
        let (zero, start) = (self.constant(Type::I64, 0), self.number(ty));
        // The packet may be moved in the loop.
        let packet = self.packet.take();
        self.is_spilled = false;
        self.function.terminate(
            self.block,
            Terminator::Jump(Target { block: head, args: smallvec![zero, start] }),
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
        let back = Target { block: head, args: smallvec![next, self.number(ty)] };
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
    pub(super) fn bounds(&mut self) {
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
        let value = self.result();
        self.function.terminate(self.block, Terminator::Return(value), None);
        self.restore(&scope);
        self.block = goes_on;
    }
}
