//! Accesses to memory and the context.

use paceline_isa::{AtomicOp, Size};
use paceline_verifier::state::MapRef;

use super::{Generator, SPILLED, STACK, exact};
use crate::ir::entity::Value;
use crate::ir::op::{ATOMICS, Address, BinaryOp, Op};
use crate::ir::random::memory::{MAP_BYTES, MAP_COUNT, PACKET_BYTES};
use crate::ir::types::{Access, Kind, Region, Span, Type};

impl Generator<'_> {
    /// A number below a power of two, times a size.
    pub(super) fn index(&mut self, below: u64, size: Size) -> Value {
        let (value, mask) = (self.number(Type::I64), self.constant(Type::I64, below - 1));
        let index = self.compute(Op::Binary { op: BinaryOp::And, ty: Type::I64, args: [value, mask] });
        let by = self.constant(Type::I64, size.bytes() as u64);
        self.emit(Op::Binary { op: BinaryOp::Mul, ty: Type::I64, args: [index, by] })
    }

    /// A place for an access: base, offset, facts.
    pub(super) fn place(&mut self, size: Size) -> (Value, i32, Access) {
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
                (memory, self.rng.i32(0..=8 - bytes), Access::to(self.lent))
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
    pub(super) fn anywhere(&mut self, size: Size) -> (Value, i32, Access) {
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
    pub(super) fn spill(&mut self) {
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
    pub(super) fn somewhere_on_stack(&mut self, size: Size) -> (Value, i32, Access) {
        let index = self.index(4, size);
        let base = self.emit(Op::StackAddress { offset: -STACK });
        let base = self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [base, index] });
        let span = Some(Span { min: -STACK, max: -STACK + 3 * size.bytes() as i32 });
        (base, 0, Access { span, ..Access::to(Region::Stack) })
    }

    pub(super) fn load(&mut self) {
        let size = self.size();
        let signed = size != Size::Dw && self.rng.u8(..4) == 0;
        let (base, offset, access) = self.place(size);
        let op = Op::Load { size, signed, access, base, offset };
        self.compute(op);
        self.loads.push(op);
    }

    pub(super) fn store(&mut self) {
        let size = self.size();
        let ((base, offset, access), value) = (self.place(size), self.number(Type::I64));
        self.emit(Op::Store { size, access, base, offset, value });
        if self.rng.bool() {
            let op = Op::Load { size, signed: false, access, base, offset };
            self.compute(op);
            self.loads.push(op);
        }
    }

    pub(super) fn atomic(&mut self) {
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
    pub(super) fn field(&mut self) {
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
    pub(super) fn repeat(&mut self) {
        if !self.loads.is_empty() {
            let op = self.rng.usize(..self.loads.len());
            self.compute(self.loads[op]);
        }
    }

    /// Reads the packet's pointers again.
    pub(super) fn reload(&mut self) {
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

    pub(super) fn context_access(&mut self) {
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
        self.compute(Op::PacketLoad { size, context, index, offset });
    }
}
