//! Promotion: parts of the stack that are only loaded and stored as a whole, at constant offsets, become values.

use std::collections::BTreeMap;

use paceline_isa::Size;
use paceline_spec::helper::{Arg, Helper};
use paceline_spec::kfunc::DYNPTR_BYTES;

use super::stack_bytes::StackBytes;
use crate::arena::{Key, Side};
use crate::cfg::Cfg;
use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use crate::kinds;
use crate::op::{BinaryOp, Callee, Op};
use crate::ssa::Variables;
use crate::types::{STACK_BYTES, Type};

/// A part of the stack: its first byte from the stack's end, and its size.
type Part = (i32, Size);

pub(super) fn run(function: &mut Function) {
    // Memory at printed addresses may be any of the stack.
    if function.prints {
        return;
    }
    let cfg = Cfg::of(function);
    let parts = parts(function, &cfg);
    if parts.is_empty() {
        return;
    }
    let variables = Variables::new(function, parts.len());
    let mut promotion = Promotion { function, cfg: &cfg, parts, variables, zero: None };
    for &block in cfg.order() {
        promotion.block(block);
    }
    promotion.finish();
    kinds::infer(function, &cfg);
}

/// The parts that can be promoted, by their numbers.
fn parts(function: &Function, cfg: &Cfg) -> BTreeMap<Part, usize> {
    let mut used = Used {
        function,
        derived: derived(function, cfg),
        parts: BTreeMap::new(),
        memory: StackBytes::of_words(function.shared),
    };
    for &block in cfg.order() {
        function.block(block).insts.iter().for_each(|inst| used.inst(*inst));
        let targets = function.block(block).terminator.targets();
        // Addresses that blocks are given are followed; those that the function returns are of use to nobody.
        debug_assert!(
            targets.iter().flat_map(|target| &target.args).all(|arg| function.get_value(*arg).is_some())
        );
    }
    let bytes = |(offset, size): &Part| StackBytes::range(*offset, offset + size.bytes() as i32);
    let all: Vec<Part> = used.parts.keys().copied().collect();
    let alone = |part: &Part| {
        !bytes(part).intersects(used.memory)
            && all.iter().all(|other| other == part || !bytes(part).intersects(bytes(other)))
    };
    all.iter().filter(|part| alone(part)).zip(0..).map(|(part, number)| (*part, number)).collect()
}

/// Values that are addresses in the stack at offsets that are not constant.
fn derived(function: &Function, cfg: &Cfg) -> Side<Value, bool> {
    let mut derived: Side<Value, bool> = Side::default();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &block in cfg.order() {
            for &inst in &function.block(block).insts {
                let data = function.inst(inst);
                let Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, args, .. } = data.op else { continue };
                let made = args.iter().any(|arg| derived[*arg] || offset_of(function, *arg).is_some());
                if let Some(result) = data.result.filter(|result| made && !derived[*result]) {
                    (derived[result], changed) = (true, true);
                }
            }
            for target in function.block(block).terminator.targets() {
                for (&arg, &param) in target.args.iter().zip(&function.block(target.block).params) {
                    if (derived[arg] || offset_of(function, arg).is_some()) && !derived[param] {
                        (derived[param], changed) = (true, true);
                    }
                }
            }
        }
    }
    derived
}

/// The offset of a constant address in the stack.
fn offset_of(function: &Function, value: Value) -> Option<i32> {
    match function.op_of(value) {
        Some(Op::StackAddress { offset }) => Some(*offset),
        _ => None,
    }
}

/// The part that a load or store accesses.
fn part_of(function: &Function, op: &Op) -> Option<Part> {
    match *op {
        Op::Load { base, offset, size, .. } | Op::Store { base, offset, size, .. } => {
            let start = offset_of(function, base)?.checked_add(offset)?;
            let inside = start >= -STACK_BYTES && start + size.bytes() as i32 <= 0;
            inside.then_some((start, size))
        }
        _ => None,
    }
}

/// Uses of the stack.
struct Used<'a> {
    function: &'a Function,
    derived: Side<Value, bool>,
    parts: BTreeMap<Part, ()>,
    /// Bytes that must stay memory.
    memory: StackBytes,
}

impl Used<'_> {
    fn keep(&mut self, bytes: StackBytes) {
        self.memory = self.memory.union(bytes);
    }

    fn is_address(&self, value: Value) -> bool {
        self.derived[value] || offset_of(self.function, value).is_some()
    }

    fn inst(&mut self, inst: Inst) {
        let op = self.function.inst(inst).op;
        match op {
            Op::Call { callee, args } => self.call(inst, callee, args.as_slice()),
            // These give numbers; sums are followed.
            Op::Binary { .. } | Op::Compare { .. } | Op::Truncate { .. } => {}
            Op::Neg { .. } | Op::SignExtend { .. } | Op::ZeroExtend { .. } | Op::Swap { .. } => {}
            _ => {
                self.access(&op);
                // A stored address may be used by whoever loads it.
                if let Op::Store { value, .. }
                | Op::StoreRelease { value, .. }
                | Op::Atomic { value, .. }
                | Op::ContextStore { value, .. } = op
                    && self.is_address(value)
                {
                    self.keep(StackBytes::ALL);
                }
            }
        }
    }

    fn access(&mut self, op: &Op) {
        if let Some(part) = part_of(self.function, op) {
            self.parts.insert(part, ());
            return;
        }
        let Some((base, offset, size, access)) = op.access() else { return };
        let bytes = match offset_of(self.function, base) {
            Some(start) => {
                let start = start.saturating_add(offset);
                Some((start, start.saturating_add(size.bytes() as i32)))
            }
            None => access.stack_bytes(size),
        };
        if let Some((start, end)) = bytes {
            self.keep(StackBytes::range(start, end));
        }
    }

    /// Bytes that a call may access: what it reads is a fact, what a helper writes follows from its prototype.
    fn call(&mut self, inst: Inst, callee: Callee, args: &[Value]) {
        if let Some(read) = self.function.calls[inst].stack_read {
            self.keep(StackBytes::range(read.start.into(), read.end.into()));
        }
        let prototype = match callee {
            Callee::Helper(id) => Helper::from_imm(id).and_then(|helper| helper.prototype),
            _ => None,
        };
        for (at, &arg) in args.iter().enumerate() {
            if !self.is_address(arg) {
                continue;
            }
            let written = match prototype.and_then(|prototype| prototype.args.get(at)) {
                Some(
                    Arg::MapKey
                    | Arg::MapValue
                    | Arg::ReadMem
                    | Arg::ReadMemOrNull
                    | Arg::ReadBytes(_)
                    | Arg::Text,
                ) => Some(0),
                Some(Arg::WriteBytes(size) | Arg::ReadWriteBytes(size)) => Some(*size),
                Some(Arg::Dynptr | Arg::NewValueDynptr | Arg::NewRecordDynptr | Arg::ReleasedDynptr) => {
                    Some(DYNPTR_BYTES)
                }
                Some(Arg::WriteMem | Arg::WriteMemOrNull | Arg::ReadWriteMem) => {
                    args.get(at + 1).and_then(|size| self.function.as_const(*size)?.try_into().ok())
                }
                _ => None,
            };
            let bytes = match (offset_of(self.function, arg), written) {
                (_, Some(0)) => StackBytes::default(),
                (Some(start), Some(size)) => StackBytes::range(start, start.saturating_add_unsigned(size)),
                _ => StackBytes::ALL,
            };
            self.keep(bytes);
        }
    }
}

struct Promotion<'a> {
    function: &'a mut Function,
    cfg: &'a Cfg,
    parts: BTreeMap<Part, usize>,
    variables: Variables,
    /// The value of parts on entry.
    zero: Option<Value>,
}

/// The zero that the stack is on entry.
fn zero(function: &mut Function, place: &mut Option<Value>) -> Value {
    *place.get_or_insert_with(|| {
        let inst = function.create(Op::constant(Type::I64, 0), None);
        if let Some(entry) = function.entry() {
            function.block_mut(entry).insts.insert(0, inst);
        }
        function.inst(inst).result.unwrap_or(Value::new(0))
    })
}

impl Promotion<'_> {
    fn block(&mut self, block: Block) {
        let insts = std::mem::take(&mut self.function.block_mut(block).insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = *self.function.inst(inst);
            let variable = part_of(self.function, &data.op).and_then(|part| self.parts.get(&part).copied());
            match (variable, data.op) {
                (Some(variable), Op::Store { value, .. }) => self.variables.write(block, variable, value),
                (Some(variable), Op::Load { size, signed, .. }) => {
                    let place = &mut self.zero;
                    let mut initial = |function: &mut Function, _| zero(function, place);
                    let value = self.variables.read(self.function, self.cfg, block, variable, &mut initial);
                    let value = self.extend(value, size, signed, data.slot, &mut out);
                    if let Some(result) = data.result {
                        self.function.replace(result, value);
                    }
                }
                _ => out.push(inst),
            }
        }
        // The zero of the entry may have been put there meanwhile.
        self.function.block_mut(block).insts.extend(out);
    }

    /// What a load of a stored value gives.
    fn extend(
        &mut self,
        value: Value,
        size: Size,
        signed: bool,
        slot: Option<u32>,
        out: &mut Vec<Inst>,
    ) -> Value {
        let mut emit = |op| {
            let inst = self.function.create(op, slot);
            out.push(inst);
            self.function.inst(inst).result.unwrap_or(value)
        };
        match (size, signed) {
            (Size::Dw, _) => value,
            (Size::W, false) => {
                let arg = emit(Op::Truncate { arg: value });
                emit(Op::ZeroExtend { arg })
            }
            (Size::W, true) => {
                let arg = emit(Op::Truncate { arg: value });
                emit(Op::SignExtend { from: size, ty: Type::I64, arg })
            }
            (_, true) => emit(Op::SignExtend { from: size, ty: Type::I64, arg: value }),
            (_, false) => {
                let mask = emit(Op::constant(Type::I64, paceline_isa::eval::zero_extend(size, u64::MAX)));
                emit(Op::Binary { op: BinaryOp::And, ty: Type::I64, args: [value, mask] })
            }
        }
    }

    fn finish(self) {
        let Self { function, cfg, variables, zero: mut place, .. } = self;
        // Values that were stored may be loads that were replaced.
        variables.finish(function, cfg, &mut |function, _| zero(function, &mut place));
        function.apply_aliases();
    }
}
