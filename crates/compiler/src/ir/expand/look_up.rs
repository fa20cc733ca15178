//! Look-ups in known maps, as operations of the form, so that passes see them and a key need not be stored. In an array the key is compared
//! with the number of entries, and the address is computed: the program's test for a missing value is that comparison. The function of
//! another map is given a short key as a number.

use paceline_isa::Condition;
use paceline_spec::helper::HelperId;
use paceline_verifier::{KeyFact, MapFact};
use smallvec::smallvec;

use super::key::{self, Stores};
use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Dominators};
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, Module, Target, Terminator};
use crate::ir::op::{Args, BinaryOp, Callee, Op};
use crate::ir::types::{CallFacts, Kind, Type};

const MAP_LOOKUP_ELEM: i32 = HelperId::MapLookupElem.imm();
const GET_SMP_PROCESSOR_ID: i32 = HelperId::GetSmpProcessorId.imm();

/// Layout of an array's values: that of index `i` on CPU `c` is at `base + c * cpu_stride + i * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLink {
    /// Address of the value of index 0 on CPU 0.
    pub base: u64,
    /// Distance between indices in bytes.
    pub stride: u64,
    /// Distance between CPUs in bytes; 0 for arrays that are not per-CPU.
    pub cpu_stride: u64,
    /// Number of indices.
    pub entries: u32,
}

impl ArrayLink {
    /// Whether code from the form computes addresses in it: its strides are immediates.
    #[must_use]
    pub fn is_addressable(&self) -> bool {
        [self.stride, self.cpu_stride].into_iter().all(|stride| i32::try_from(stride).is_ok())
    }
}

/// A map whose look-ups are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// An array.
    Array(ArrayLink),
    /// A map with a function of its own, which is given so many bytes of the key.
    Function(u8),
}

/// The maps whose look-ups are expanded, by their index.
type Tables<'t> = &'t dyn Fn(u32) -> Option<Table>;

/// The map of a call, if it is the same in all runs.
#[must_use]
pub fn known_map(fact: Option<MapFact>) -> Option<u32> {
    match fact {
        Some(MapFact::Always(map)) if !map.inner => Some(map.index),
        _ => None,
    }
}

/// Expands the look-ups of all functions. `None` if an operation has not the result that it has: a bug of this file.
pub fn look_ups(module: &mut Module, tables: Tables<'_>) -> Option<()> {
    for function in module.functions.values_mut() {
        let Some(found) = Found::in_function(function, tables) else { continue };
        let users = found.compared.map(|results| Users::of(function, &results));
        let stores = Stores::of(function);
        for block in function.layout.clone() {
            let insts = &function.block(block).insts;
            if !insts.iter().any(|inst| is_call(function, *inst)) {
                continue;
            }
            let data = function.block_mut(block);
            let insts = std::mem::take(&mut data.insts);
            data.insts.reserve(insts.len());
            expand_block(function, tables, (users.as_ref(), &stores), block, &insts)?;
        }
        function.apply_aliases();
    }
    Some(())
}

/// Puts instructions back into their block, and into those that follow its look-ups.
fn expand_block(
    function: &mut Function,
    tables: Tables<'_>,
    (users, stores): (Option<&Users>, &Stores),
    original: Block,
    mut insts: &[Inst],
) -> Option<()> {
    let mut block = original;
    while let Some((inst, rest)) = insts.split_first() {
        insts = rest;
        let found = is_call(function, *inst).then(|| look_up(function, tables, *inst)).flatten();
        let Some(look_up) = found else {
            function.block_mut(block).insts.push(*inst);
            continue;
        };
        function.calls[*inst] = CallFacts::default();
        match look_up.expand(function, (users, stores), (block, original), rest)? {
            Some(next) => block = next,
            None => break,
        }
    }
    Some(())
}

/// A look-up.
struct LookUp {
    /// Index of the map.
    map: u32,
    table: Table,
    key: Key,
    result: Value,
    slot: Option<u32>,
}

#[derive(Clone, Copy)]
enum Key {
    Known(u32),
    /// At this address, which is at an offset in the function's stack.
    Stored(Value, i32),
}

/// Whether an instruction is a call, as each look-up is.
fn is_call(function: &Function, inst: Inst) -> bool {
    matches!(function.inst(inst).op, Op::Call { .. })
}

/// The look-up in a known map that an instruction is.
fn look_up(function: &Function, tables: Tables<'_>, inst: Inst) -> Option<LookUp> {
    let data = function.inst(inst);
    let Op::Call { callee: Callee::Helper(MAP_LOOKUP_ELEM), args } = &data.op else { return None };
    let (facts, result) = (function.calls[inst], data.result?);
    let map = known_map(facts.map)?;
    let table = tables(map)?;
    if matches!(table, Table::Array(array) if !array.is_addressable()) {
        return None;
    }
    let key = match (table, facts.key, args.as_slice()) {
        (Table::Array(_), Some(KeyFact::Always(key)), _) => Key::Known(key),
        (.., &[_, key]) => Key::Stored(key, stack_offset(function, key)?),
        _ => return None,
    };
    Some(LookUp { map, table, key, result, slot: data.slot })
}

/// The offset in the stack of an address that is made of constants.
fn stack_offset(function: &Function, address: Value) -> Option<i32> {
    let (mut address, mut offset) = (address, 0_i32);
    loop {
        match *function.op_of(address)? {
            Op::StackAddress { offset: start } => return offset.checked_add(start),
            Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [base, distance] } => {
                let distance = function.as_const(distance)?.cast_signed();
                (address, offset) = (base, offset.checked_add(i32::try_from(distance).ok()?)?);
            }
            _ => return None,
        }
    }
}

impl LookUp {
    /// Appends what the look-up is to a block. Returns the block for what comes after it, which is none if the block has ended with all
    /// of that. None if an operation has no result.
    fn expand(
        self,
        function: &mut Function,
        (users, stores): (Option<&Users>, &Stores),
        (block, original): (Block, Block),
        rest: &[Inst],
    ) -> Option<Option<Block>> {
        let load = |function: &mut Function, (address, offset): (Value, i32), bytes: u8| {
            key::load(function, stores, block, (address, offset, bytes), self.slot)
        };
        let (array, key) = match (self.table, self.key) {
            (Table::Function(bytes), Key::Stored(address, offset)) => {
                let key = load(function, (address, offset), bytes)?;
                let look_up = Op::Call { callee: Callee::LookUp { map: self.map }, args: Args::new(&[key])? };
                let value = function.append(block, look_up, self.slot)?;
                function.set_kind(value, Kind::MapValue);
                function.replace(self.result, value);
                return Some(Some(block));
            }
            (Table::Function(_), Key::Known(_)) => return None,
            (Table::Array(array), Key::Known(key)) => {
                let value = match key < array.entries {
                    true => {
                        let index = Op::constant(Type::I64, key.into());
                        let index = function.append(block, index, self.slot)?;
                        self.address(function, block, &array, index)?
                    }
                    false => function.append(block, Op::constant(Type::I64, 0), self.slot)?,
                };
                function.replace(self.result, value);
                return Some(Some(block));
            }
            (Table::Array(array), Key::Stored(address, offset)) => {
                (array, load(function, (address, offset), 4)?)
            }
        };
        let number = function.append(block, Op::Truncate { arg: key }, self.slot)?;
        let entries = Op::constant(Type::I32, array.entries.into());
        let entries = function.append(block, entries, self.slot)?;
        let (found, missing) = (function.add_block(), function.add_block());
        let value = self.address(function, found, &array, key)?;
        let nothing = function.append(missing, Op::constant(Type::I64, 0), self.slot)?;
        let tested = users.and_then(|users| users.tested(function, rest, (block, original), self.result));
        let (targets, next) = match tested {
            // What is left of the block are numbers and the test.
            Some(targets) => {
                function.block_mut(block).insts.extend_from_slice(rest);
                (targets, None)
            }
            None => {
                let next = function.add_block();
                let data = function.block_mut(block);
                let (terminator, slot) = (std::mem::take(&mut data.terminator), data.slot);
                function.terminate(next, terminator, slot);
                let target = Target { block: next, args: smallvec![self.result] };
                ([target.clone(), target], Some(next))
            }
        };
        for ((from, mut target), value) in [found, missing].into_iter().zip(targets).zip([value, nothing]) {
            let args = target.args.iter_mut().filter(|arg| **arg == self.result);
            args.for_each(|arg| *arg = value);
            function.terminate(from, Terminator::Jump(target), self.slot);
        }
        let targets = [missing, found].map(Target::to);
        let branch =
            Terminator::Branch { condition: Condition::Ge, ty: Type::I32, args: [number, entries], targets };
        function.terminate(block, branch, self.slot);
        let value = match next {
            Some(next) => function.add_param(next, Type::I64, Kind::Unknown),
            None => value,
        };
        function.replace(self.result, value);
        Some(next)
    }

    /// The address of the value at an index.
    fn address(
        &self,
        function: &mut Function,
        block: Block,
        array: &ArrayLink,
        index: Value,
    ) -> Option<Value> {
        let &ArrayLink { base, stride, cpu_stride, .. } = array;
        let mut append = |op: Op| function.append(block, op, self.slot);
        let mut number = |value: u64| append(Op::constant(Type::I64, value));
        let (base, stride) = (number(base)?, number(stride)?);
        let binary = |op, a, b| Op::Binary { op, ty: Type::I64, args: [a, b] };
        let mut distance = append(binary(BinaryOp::Mul, index, stride))?;
        if cpu_stride != 0 {
            let cpu = Op::Call { callee: Callee::Helper(GET_SMP_PROCESSOR_ID), args: Args::new(&[])? };
            let (cpu, stride) = (append(cpu)?, append(Op::constant(Type::I64, cpu_stride))?);
            let lane = append(binary(BinaryOp::Mul, cpu, stride))?;
            distance = append(binary(BinaryOp::Add, distance, lane))?;
        }
        append(binary(BinaryOp::Add, distance, base))
    }
}

/// The look-ups of a function.
#[derive(Default)]
struct Found {
    /// Results of look-ups that compare a key with the number of entries, if there are such.
    compared: Option<Side<Value, bool>>,
}

impl Found {
    /// The look-ups of a function; `None` without any.
    fn in_function(function: &Function, tables: Tables<'_>) -> Option<Self> {
        let mut found = None;
        let insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
        for &inst in insts.filter(|inst| is_call(function, **inst)) {
            if let Some(look_up) = look_up(function, tables, inst) {
                let found: &mut Self = found.get_or_insert_default();
                if matches!((look_up.table, look_up.key), (Table::Array(_), Key::Stored(..))) {
                    found.compared.get_or_insert_default()[look_up.result] = true;
                }
            }
        }
        found
    }
}

/// The blocks that use the results of look-ups, before any is expanded.
struct Users {
    cfg: Cfg,
    dominators: Dominators,
    blocks: Vec<(Value, Block)>,
    /// By value: where its users begin in the sorted list.
    first: Side<Value, Option<u32>>,
}

impl Users {
    /// The users of these results.
    fn of(function: &Function, is_result: &Side<Value, bool>) -> Self {
        let mut blocks = Vec::new();
        for &block in &function.layout {
            let data = function.block(block);
            let mut note = |value: Value| blocks.extend(is_result[value].then_some((value, block)));
            data.insts.iter().for_each(|inst| function.inst(*inst).op.operands(|value, _| note(value)));
            data.terminator.operands(|value, _| note(value));
            data.terminator.targets().iter().flat_map(|target| &target.args).for_each(|arg| note(*arg));
        }
        blocks.sort_unstable();
        let mut first: Side<Value, Option<u32>> = Side::default();
        for (at, (value, _)) in (0..).zip(&blocks) {
            first[*value].get_or_insert(at);
        }
        let cfg = Cfg::of(function);
        Self { dominators: Dominators::of(&cfg), cfg, blocks, first }
    }

    /// The blocks where a result is an address, and where it is 0, if all that comes after the look-up is the test for that, and only what
    /// follows the former uses the result.
    fn tested(
        &self,
        function: &Function,
        rest: &[Inst],
        (block, original): (Block, Block),
        result: Value,
    ) -> Option<[Target; 2]> {
        let data = function.block(block);
        let Terminator::Branch { condition, ty: Type::I64, args: [a, b], targets } = &data.terminator else {
            return None;
        };
        let [found, missing] = match condition {
            Condition::Ne => targets.clone(),
            Condition::Eq => [targets[1].clone(), targets[0].clone()],
            _ => return None,
        };
        let is_number = |inst: &Inst| matches!(function.inst(*inst).op, Op::Const { .. });
        let position = self.cfg.position(found.block)?;
        let first = self.first[result].map_or(self.blocks.len(), |first| first as usize);
        let mut uses = self.blocks[first..].iter().take_while(|(value, _)| *value == result);
        let is_after = |user: Block| {
            self.cfg.position(user).is_none_or(|user| self.dominators.dominates(position, user))
        };
        let is_tested = *a == result
            && function.as_const(*b) == Some(0)
            && rest.iter().all(is_number)
            && self.cfg.single_edge(found.block).is_some()
            && uses.all(|(_, user)| *user == original || is_after(*user));
        is_tested.then_some([found, missing])
    }
}
