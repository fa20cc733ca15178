//! Selection: from operations of the form to those of the interpreter.

use paceline_compiler::codegen::lir::{Function as Lir, Operand, Place, Reg, RegSet, Role, Vreg};
use paceline_compiler::codegen::low::same;
use paceline_compiler::ir::arena::Key;
use paceline_compiler::ir::uses::Uses;
use paceline_compiler::ir::{Address, BinaryOp, Block, Function, Inst, Op, Type, Value};
use paceline_isa::{Condition, Size};

use super::{Draft, Selector, version};
use crate::interpreter::threaded::kind::{Kind, Source};
use paceline_frame::Frame;

/// The selection of a block's instructions.
pub(super) struct Choice<'c, 'a> {
    pub(super) selector: &'c mut Selector<'a>,
    pub(super) function: &'c Function,
    out: &'c mut Lir<Draft>,
}

pub(super) fn vreg(value: Value) -> Vreg {
    Vreg(value.index() as u32)
}

pub(super) fn used(vreg: Vreg) -> Operand {
    Operand { vreg, role: Role::Use, place: Place::Any }
}

pub(super) fn defined(vreg: Vreg) -> Operand {
    Operand { vreg, role: Role::Def, place: Place::Any }
}

impl<'c, 'a> Choice<'c, 'a> {
    pub(super) fn new(
        selector: &'c mut Selector<'a>,
        function: &'c Function,
        out: &'c mut Lir<Draft>,
    ) -> Self {
        Self { selector, function, out }
    }

    /// The instructions of a block but its end.
    pub(super) fn block(&mut self, uses: &Uses, block: Block) {
        let data = self.function.block(block);
        if Some(block) == self.function.entry() {
            self.enter(&data.params);
        }
        let current = &mut self.selector.current;
        if let (Some(moves), Some(cfg)) = (&current.moves, &current.cfg) {
            match cfg.position(block) {
                Some(position) => [current.moved] = moves.before(position),
                None => self.selector.lacks("a block that is not in the graph"),
            }
        }
        for &inst in &data.insts {
            let data = self.function.inst(inst);
            if data.op.stays() || data.result.is_some_and(|result| uses.count(result) > 0) {
                self.inst(inst);
            }
            if self.selector.current.moves.is_some() && data.op.moves_packet() {
                self.selector.current.moved = version(inst);
            }
        }
    }

    fn enter(&mut self, params: &[Value]) {
        let operand = |(param, register): (&Value, &paceline_isa::Reg)| Operand {
            place: Place::Fixed(Reg(register.number())),
            ..defined(vreg(*param))
        };
        let operands: Vec<_> = params.iter().zip(&self.function.arguments).map(operand).collect();
        self.push(Draft { kind: None, ..Draft::new(Kind::Move) }, &operands);
    }

    fn inst(&mut self, inst: Inst) {
        let data = *self.function.inst(inst);
        // default: operations without a result are pushed without one.
        let value = data.result.unwrap_or(Value::new(0));
        let result = vreg(value);
        let draft = |kind| Draft { value: Some(value), ..Draft::new(kind) };
        match data.op {
            Op::Const { value: number, .. } => {
                let draft = match i32::try_from(number.cast_signed()) {
                    Ok(imm) => draft(Kind::Number).imm(imm),
                    Err(_) => draft(Kind::Word).word(number),
                };
                self.push(draft, &[defined(result)]);
            }
            Op::Address(address) => {
                let draft = match address {
                    Address::Function(function) => {
                        Draft { function: Some(function), ..draft(Kind::Function) }
                    }
                    Address::Map(_) | Address::MapValue { .. } => {
                        draft(Kind::Word).word(self.address(address))
                    }
                };
                self.push(draft, &[defined(result)]);
            }
            Op::StackAddress { offset } => {
                let kind = Kind::Binary { ty: Type::I64, op: BinaryOp::Add, src: Source::Imm };
                self.push(Draft { in_stack: true, ..draft(kind).imm(offset) }, &[defined(result)]);
            }
            Op::Binary { op, ty, args } => self.binary(op, ty, args, value),
            Op::Neg { ty, arg } => self.unary(draft(Kind::Neg(ty.width())), arg, result),
            Op::SignExtend { from, ty, arg } => {
                self.unary(draft(Kind::SignExtend { width: ty.width(), from }), arg, result);
            }
            Op::ZeroExtend { arg } => {
                if same(self.function, value) == value {
                    self.unary(draft(Kind::Clear), arg, result);
                }
            }
            // It is its operand.
            Op::Truncate { .. } => {}
            Op::Swap { size, arg, .. } => self.unary(draft(Kind::Reverse(size)), arg, result),
            Op::Compare { condition, ty, args } => {
                let (condition, src, imm, args) = self.compared(condition, ty, args);
                let draft = draft(Kind::Compare { width: ty.width(), condition, src }).imm(imm);
                let operands = args.into_iter().flatten().map(used).chain([defined(result)]);
                self.push_each(draft, operands);
            }
            Op::Load { .. }
            | Op::Store { .. }
            | Op::Atomic { .. }
            | Op::LoadAcquire { .. }
            | Op::StoreRelease { .. }
            | Op::PacketLoad { .. } => self.memory(&data.op, value),
            Op::ContextLoad { size, signed, offset, .. } => {
                self.selector.current.loaded[value] = self.selector.current.moved;
                self.load_context(size, signed, offset, value);
            }
            Op::ContextStore { size, offset, value, .. } => self.store_context(size, offset, value),
            Op::Run(_) => self.selector.lacks("an operation of a chain"),
            Op::Call { callee, ref args } => self.call(callee, args.as_slice(), result),
        }
    }

    fn address(&mut self, address: Address) -> u64 {
        let (index, offset) = match address {
            Address::Map(map) => (map, None),
            Address::MapValue { map, offset } => (map, Some(offset)),
            Address::Function(_) => return 0,
        };
        let map = self.selector.maps.get(index as usize);
        let found = map.and_then(|map| match offset {
            None => Some(std::sync::Arc::as_ptr(map) as u64),
            Some(offset) => map.for_programs().direct_value(offset).ok().map(|value| value.as_ptr() as u64),
        });
        found.unwrap_or_else(|| {
            self.selector.lacks("a map");
            0
        })
    }

    fn binary(&mut self, op: BinaryOp, ty: Type, args: [Value; 2], value: Value) {
        let [mut a, mut b] = args;
        if op.is_commutative() && self.immediate(ty, a).is_some() {
            (a, b) = (b, a);
        }
        let result = vreg(value);
        let draft = |kind| Draft { value: Some(value), ..Draft::new(kind) };
        if op == BinaryOp::Add && ty == Type::I64 && self.sum(a, b, value) {
            return;
        }
        let a = self.value(a);
        match self.immediate(ty, b) {
            Some(imm) => {
                let kind = Kind::Binary { ty, op, src: Source::Imm };
                self.push(draft(kind).imm(imm), &[used(a), defined(result)]);
            }
            None => {
                let b = self.value(b);
                let kind = Kind::Binary { ty, op, src: Source::Reg };
                self.push(draft(kind), &[used(a), used(b), defined(result)]);
            }
        }
    }

    /// A sum that is the address of an element, or one in the packet. Returns whether it is one.
    fn sum(&mut self, a: Value, b: Value, value: Value) -> bool {
        let draft = |kind| Draft { value: Some(value), ..Draft::new(kind) };
        let result = vreg(value);
        if let Some(word) = self.function.as_const(b) {
            if let Some(distance) = self.packet_offset(value) {
                self.push(draft(Kind::Address).imm(distance), &[defined(result)]);
                return true;
            }
            let scaled = match self.function.op_of(a) {
                Some(&Op::Binary { op: BinaryOp::Mul, ty: Type::I64, args: [index, by] }) => {
                    self.immediate(Type::I64, by).map(|by| (index, by))
                }
                Some(&Op::Binary { op: BinaryOp::Shl, ty: Type::I64, args: [index, by] }) => {
                    let by = self.immediate(Type::I64, by).filter(|by| (0..31).contains(by));
                    by.map(|by| (index, 1 << by))
                }
                _ => None,
            };
            // Other sums with numbers of 32 bits need no second part.
            let Some((index, by)) = scaled.filter(|_| i32::try_from(word.cast_signed()).is_err()) else {
                return false;
            };
            let index = self.value(index);
            self.push(draft(Kind::Element).imm(by).word(word), &[used(index), defined(result)]);
            return true;
        }
        let (distance, index) = match (self.packet_offset(a), self.packet_offset(b)) {
            (Some(distance), None) => (distance, b),
            (None, Some(distance)) => (distance, a),
            _ => return false,
        };
        let index = self.value(index);
        self.push(draft(Kind::AddressSum).imm(distance), &[used(index), defined(result)]);
        true
    }

    pub(super) fn unary(&mut self, draft: Draft, arg: Value, result: Vreg) {
        let arg = self.value(arg);
        self.push(draft, &[used(arg), defined(result)]);
    }

    pub(super) fn push(&mut self, draft: Draft, operands: &[Operand]) {
        self.out.push(draft, operands, RegSet::default(), None);
    }

    pub(super) fn push_each(&mut self, draft: Draft, operands: impl Iterator<Item = Operand>) {
        self.out.push_each(draft, operands, RegSet::default(), None);
    }

    pub(super) fn fresh(&mut self) -> Vreg {
        self.out.add_vreg()
    }

    /// A register that has a value.
    pub(super) fn value(&mut self, value: Value) -> Vreg {
        let value = same(self.function, value);
        self.selector.current.asked[value] += 1;
        vreg(value)
    }

    /// The number that a value is, as the immediate of an operation on a type.
    pub(super) fn immediate(&self, ty: Type, value: Value) -> Option<i32> {
        let number = self.function.as_const(same(self.function, value))?;
        match ty {
            Type::I32 => Some(number as u32 as i32),
            Type::I64 => i32::try_from(number.cast_signed()).ok(),
        }
    }

    /// Condition, source of the second operand, immediate, and the operands that are in registers.
    pub(super) fn compared(
        &mut self,
        condition: Condition,
        ty: Type,
        [mut a, mut b]: [Value; 2],
    ) -> (Condition, Source, i32, [Option<Vreg>; 2]) {
        let mut condition = condition;
        if self.immediate(ty, a).is_some() && self.immediate(ty, b).is_none() {
            (condition, a, b) = (condition.exchanged(), b, a);
        }
        let a = self.value(a);
        match self.immediate(ty, b) {
            Some(imm) => (condition, Source::Imm, imm, [Some(a), None]),
            None => (condition, Source::Reg, 0, [Some(a), Some(self.value(b))]),
        }
    }

    /// The distance of a value from the packet's start, which is where it was when the value was computed.
    pub(super) fn packet_offset(&self, value: Value) -> Option<i32> {
        let (mut value, mut distance) = (value, 0_i32);
        while let Some(&Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [base, number] }) =
            self.function.op_of(value)
        {
            distance = distance.checked_add(self.immediate(Type::I64, number)?)?;
            value = base;
        }
        self.is_current(value, Frame::OFFSET_DATA).then_some(distance)
    }

    /// Whether a value is a member of the frame that is the same now.
    pub(super) fn is_current(&self, value: Value, member: usize) -> bool {
        let current = &self.selector.current;
        match self.function.op_of(value) {
            Some(&Op::ContextLoad { size, offset, .. }) => {
                self.is_member(size, offset, member)
                    && (current.moves.is_none() || current.loaded[value] == current.moved)
            }
            _ => false,
        }
    }

    fn is_member(&self, size: Size, offset: i32, member: usize) -> bool {
        use paceline_spec::context::Place;
        let field = self.field(size, offset, false);
        field.is_some_and(
            |field| matches!(field.place, Place::Frame { offset, .. } if usize::from(offset) == member),
        )
    }
}
