//! Promotion: parts of the stack that are only loaded and stored as a whole, at constant offsets, become values.

use std::collections::BTreeMap;

use paceline_isa::Size;
use paceline_spec::helper::{Arg, Helper};
use paceline_spec::kfunc::DYNPTR_BYTES;

use crate::internal::Internal;
use crate::ir::analyses::Analyses;
use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::{BinaryOp, Callee, Op};
use crate::ir::stack_bytes::StackBytes;
use crate::ir::types::{Kind, STACK_BYTES, Type};
use crate::ir::versions::{ENTRY, Version, Versions, met_at};
use crate::ir::{kinds, params};

/// A part of the stack: its first byte from the stack's end, and its size.
type Part = (i32, Size);

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    // Memory at printed addresses may be any of the stack.
    if function.prints {
        return;
    }
    let cfg = analyses.cfg(function);
    let mut insts = cfg.order().iter().flat_map(|block| &function.block(*block).insts);
    if !insts.any(|inst| matches!(function.inst(*inst).op, Op::StackAddress { .. })) {
        return;
    }
    let parts = parts(function, &cfg);
    if parts.is_empty() {
        return;
    }
    let mut promotion = Promotion::new(function, &cfg);
    parts.iter().for_each(|accesses| promotion.part(accesses));
    let has_pointers = promotion.has_pointers;
    promotion.finish();
    params::remove_redundant(function, &cfg);
    // Values that were stored may be loads that were replaced.
    function.apply_aliases();
    // What is made of numbers has no kind, as what was loaded had none.
    if has_pointers {
        kinds::infer(function, &cfg);
    }
    analyses.values_changed();
}

/// A load or store of a part, with the position of its block.
type PartAccess = (u32, Inst);

/// The accesses of each part that can be promoted, in the order of the blocks.
fn parts(function: &Function, cfg: &Cfg) -> Vec<Vec<PartAccess>> {
    let mut used = Used {
        function,
        derived: derived(function, cfg),
        parts: BTreeMap::new(),
        memory: StackBytes::of_words(function.shared),
        position: 0,
    };
    for (position, &block) in (0..).zip(cfg.order()) {
        used.position = position;
        function.block(block).insts.iter().for_each(|inst| used.inst(*inst));
        let targets = function.block(block).terminator.targets();
        // Addresses that blocks are given are followed; those that the function returns are of use to nobody.
        debug_assert!(
            targets.iter().flat_map(|target| &target.args).all(|arg| function.get_value(*arg).is_some())
        );
    }
    let end = |(offset, size): &Part| offset + size.bytes() as i32;
    let overlap = |a: &Part, b: &Part| a.0 < end(b) && b.0 < end(a);
    let alone = |part: &Part| {
        !StackBytes::range(part.0, end(part)).intersects(used.memory)
            && used.parts.keys().all(|other| other == part || !overlap(part, other))
    };
    used.parts.iter().filter(|(part, _)| alone(part)).map(|(_, accesses)| accesses.clone()).collect()
}

/// Values that are addresses in the stack at offsets that are not constant.
fn derived(function: &Function, cfg: &Cfg) -> Side<Value, bool> {
    let mut derived: Side<Value, bool> = Side::sized(function.value_count());
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &block in cfg.order() {
            for &inst in &function.block(block).insts {
                let data = function.inst(inst);
                let Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, args, .. } = data.op else { continue };
                let made = args.iter().any(|arg| derived[*arg] || offset_of(function, *arg).is_some());
                if let Some(result) = data.result.filter(|result| made && !derived[*result]) {
                    (derived[result], changed) = (true, cfg.has_loops());
                }
            }
            for target in function.block(block).terminator.targets() {
                for (&arg, &param) in target.args.iter().zip(&function.block(target.block).params) {
                    if (derived[arg] || offset_of(function, arg).is_some()) && !derived[param] {
                        (derived[param], changed) = (true, cfg.has_loops());
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
    /// The parts with their accesses so far.
    parts: BTreeMap<Part, Vec<PartAccess>>,
    /// Bytes that must stay memory.
    memory: StackBytes,
    /// That of the current block.
    position: u32,
}

impl Used<'_> {
    fn keep(&mut self, bytes: StackBytes) {
        self.memory = self.memory.union(bytes);
    }

    fn is_address(&self, value: Value) -> bool {
        self.derived[value] || offset_of(self.function, value).is_some()
    }

    fn inst(&mut self, inst: Inst) {
        let function = self.function;
        let op = &function.inst(inst).op;
        match op {
            Op::Call { callee, args } => self.call(inst, *callee, args.as_slice()),
            // These give numbers; sums are followed.
            Op::Binary { .. } | Op::Compare { .. } | Op::Truncate { .. } => {}
            Op::Neg { .. } | Op::SignExtend { .. } | Op::ZeroExtend { .. } | Op::Swap { .. } => {}
            _ => {
                self.access(inst, op);
                // A stored address may be used by whoever loads it.
                if let Op::Store { value, .. }
                | Op::StoreRelease { value, .. }
                | Op::Atomic { value, .. }
                | Op::ContextStore { value, .. } = op
                    && self.is_address(*value)
                {
                    self.keep(StackBytes::ALL);
                }
            }
        }
    }

    fn access(&mut self, inst: Inst, op: &Op) {
        if let Some(part) = part_of(self.function, op) {
            self.parts.entry(part).or_default().push((self.position, inst));
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

/// Promotes one part after the other, so that the memory that this takes is that of one.
struct Promotion<'a> {
    function: &'a mut Function,
    cfg: &'a Cfg,
    /// The value of parts on entry.
    zero: Option<Value>,
    /// By position of a block: the store that its last value is from, if it has one, and the parameter for the part.
    last: Vec<[Option<Version>; 1]>,
    params: Vec<Option<Value>>,
    /// Blocks with parameters that have no arguments yet.
    waiting: Vec<u32>,
    /// What stands in the place of a promoted access.
    instead: Side<Inst, Option<Vec<Inst>>>,
    /// Whether a value that was stored is a pointer.
    has_pointers: bool,
}

/// The zero that the stack is on entry.
fn zero(function: &mut Function, place: &mut Option<Value>) -> Value {
    *place.get_or_insert_with(|| {
        let inst = function.create(Op::constant(Type::I64, 0), None);
        match function.entry() {
            Some(entry) => function.block_mut(entry).insts.insert(0, inst),
            None => function.fail(Internal("a function has no block")),
        }
        function.result(inst)
    })
}

impl<'a> Promotion<'a> {
    fn new(function: &'a mut Function, cfg: &'a Cfg) -> Self {
        let count = cfg.order().len();
        let (last, params, waiting) = (vec![[None]; count], vec![None; count], Vec::new());
        let mut instead = Side::default();
        instead.reserve(function.insts.len());
        Self { function, cfg, zero: None, last, params, waiting, instead, has_pointers: false }
    }

    /// Replaces the loads of a part by the values that were stored.
    fn part(&mut self, accesses: &[PartAccess]) {
        self.last.fill([None]);
        self.params.fill(None);
        for (version, &(position, inst)) in (1..).zip(accesses) {
            if let Op::Store { .. } = self.function.inst(inst).op {
                self.last[position as usize] = [Some(version)];
            }
        }
        // The store before a load in its block, and the versions elsewhere, if a load needs them.
        let mut here = None;
        let mut versions = None;
        for (version, &(position, inst)) in (1..).zip(accesses) {
            let data = *self.function.inst(inst);
            let mut made = Vec::new();
            if let Op::Load { size, signed, .. } = data.op {
                let stored = here.filter(|(at, _)| *at == position).map(|(_, version)| version);
                let version = match stored {
                    Some(stored) => stored,
                    None => {
                        let known = match versions.take() {
                            Some(known) => Ok(known),
                            None => Versions::of(self.cfg, &self.last),
                        };
                        match known {
                            Ok(known) => versions.insert(known).before(position)[0],
                            Err(error) => return self.function.fail(error),
                        }
                    }
                };
                let value = self.value(accesses, version);
                let value = self.extend(value, size, signed, data.slot, &mut made);
                let result = self.function.result(inst);
                self.function.replace(result, value);
            } else {
                here = Some((position, version));
            }
            self.instead[inst] = Some(made);
        }
        if let Some(versions) = versions {
            self.arguments(accesses, &versions);
        }
    }

    /// The value of a version. A block where versions meet gets a parameter, which waits for its arguments.
    fn value(&mut self, accesses: &[PartAccess], version: Version) -> Value {
        if let Some(position) = met_at(version) {
            return match self.params[position as usize] {
                Some(param) => param,
                None => {
                    let param = self.function.add_param(
                        self.cfg.order()[position as usize],
                        Type::I64,
                        Kind::Unknown,
                    );
                    self.params[position as usize] = Some(param);
                    self.waiting.push(position);
                    param
                }
            };
        }
        if version == ENTRY {
            return zero(self.function, &mut self.zero);
        }
        match self.function.inst(accesses[version as usize - 1].1).op {
            Op::Store { value, .. } => {
                let value = self.function.resolve(value);
                self.has_pointers |= self.function.value(value).kind != Kind::Unknown;
                value
            }
            _ => self.function.undefined_value(Internal("a version is of no store")),
        }
    }

    /// Gives the waiting parameters their arguments.
    fn arguments(&mut self, accesses: &[PartAccess], versions: &Versions<1>) {
        let cfg = self.cfg;
        while let Some(position) = self.waiting.pop() {
            for &Edge { from, at } in cfg.edges(cfg.order()[position as usize]) {
                let Some(before) = cfg.position(from) else {
                    return self.function.fail(Internal("an edge is from a block that is not reached"));
                };
                let version = match self.last[before as usize][0] {
                    Some(written) => written,
                    None => versions.before(before)[0],
                };
                let value = self.value(accesses, version);
                self.function.block_mut(from).terminator.targets_mut()[at].args.push(value);
            }
        }
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
            self.function.result(inst)
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

    /// Takes the accesses out of their blocks.
    fn finish(mut self) {
        for &block in self.cfg.order() {
            if self.function.block(block).insts.iter().all(|inst| self.instead[*inst].is_none()) {
                continue;
            }
            let insts = std::mem::take(&mut self.function.block_mut(block).insts);
            let mut out = Vec::with_capacity(insts.len());
            for inst in insts {
                match self.instead[inst].take() {
                    Some(instead) => out.extend(instead),
                    None => out.push(inst),
                }
            }
            self.function.block_mut(block).insts = out;
        }
    }
}
