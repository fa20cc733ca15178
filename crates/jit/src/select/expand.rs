//! Look-ups in arrays whose place is known, as operations of the form: the key is compared with the number of entries, and the address is
//! computed. So passes see them: a key need not be stored, and the program's test for a missing value is that comparison.

use paceline_ir::arena::Side;
use paceline_ir::cfg::{Cfg, Dominators};
use paceline_ir::{
    Access, Args, BinaryOp, Block, CallFacts, Callee, Function, Inst, Kind, Module, Op, Region, Span, Target,
    Terminator, Type, Value,
};
use paceline_isa::{Condition, Size};
use paceline_verifier::KeyFact;

use super::choose::{GET_SMP_PROCESSOR_ID, MAP_LOOKUP_ELEM};
use super::generator::known_map;
use crate::error::CompileError;
use crate::links::{ArrayLink, Links};

/// Expands the look-ups of all functions.
///
/// # Errors
/// An operation without the result that it has: a bug of this file.
pub(super) fn look_ups(module: &mut Module, links: &Links) -> Result<(), CompileError> {
    for function in module.functions.values_mut() {
        let Some(users) = Users::of(function, links) else { continue };
        for block in function.layout.clone() {
            let insts = &function.block(block).insts;
            if insts.iter().all(|inst| look_up(function, links, *inst).is_none()) {
                continue;
            }
            let insts = std::mem::take(&mut function.block_mut(block).insts);
            let expanded = expand_block(function, links, &users, block, &insts);
            expanded.ok_or(CompileError::Internal("an operation of a look-up has no result"))?;
        }
        function.apply_aliases();
    }
    Ok(())
}

/// Puts instructions back into their block, and into those that follow its look-ups.
fn expand_block(
    function: &mut Function,
    links: &Links,
    users: &Users,
    original: Block,
    mut insts: &[Inst],
) -> Option<()> {
    let mut block = original;
    while let Some((inst, rest)) = insts.split_first() {
        insts = rest;
        let Some(look_up) = look_up(function, links, *inst) else {
            function.block_mut(block).insts.push(*inst);
            continue;
        };
        function.calls[*inst] = CallFacts::default();
        match look_up.expand(function, users, (block, original), rest)? {
            Some(next) => block = next,
            None => break,
        }
    }
    Some(())
}

/// A look-up in an array.
struct LookUp {
    array: ArrayLink,
    key: Key,
    result: Value,
    slot: Option<u32>,
}

enum Key {
    Known(u32),
    /// At this address, which is at an offset in the function's stack.
    Stored(Value, i32),
}

/// The look-up in a known array that an instruction is.
fn look_up(function: &Function, links: &Links, inst: Inst) -> Option<LookUp> {
    let data = function.inst(inst);
    let Op::Call { callee: Callee::Helper(MAP_LOOKUP_ELEM), args } = &data.op else { return None };
    let (facts, result) = (function.calls[inst], data.result?);
    let map = links.maps.get(known_map(facts.map)? as usize)?;
    let array = map.array.filter(ArrayLink::is_addressable)?;
    let key = match (facts.key, args.as_slice()) {
        (Some(KeyFact::Always(key)), _) => Key::Known(key),
        (_, &[_, key]) => Key::Stored(key, stack_offset(function, key)?),
        _ => return None,
    };
    Some(LookUp { array, key, result, slot: data.slot })
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
        users: &Users,
        (block, original): (Block, Block),
        rest: &[Inst],
    ) -> Option<Option<Block>> {
        let key = match self.key {
            Key::Known(key) => {
                let value = match key < self.array.entries {
                    true => {
                        let index = Op::constant(Type::I64, key.into());
                        let index = function.append(block, index, self.slot)?;
                        self.address(function, block, index)?
                    }
                    false => function.append(block, Op::constant(Type::I64, 0), self.slot)?,
                };
                function.replace(self.result, value);
                return Some(Some(block));
            }
            Key::Stored(address, offset) => self.key(function, block, address, offset)?,
        };
        let number = function.append(block, Op::Truncate { arg: key }, self.slot)?;
        let entries = Op::constant(Type::I32, self.array.entries.into());
        let entries = function.append(block, entries, self.slot)?;
        let (found, missing) = (function.add_block(), function.add_block());
        let value = self.address(function, found, key)?;
        let nothing = function.append(missing, Op::constant(Type::I64, 0), self.slot)?;
        let tested = users.tested(function, rest, (block, original), self.result);
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
                let target = Target { block: next, args: vec![self.result] };
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

    /// The key, from the stack.
    fn key(&self, function: &mut Function, block: Block, base: Value, offset: i32) -> Option<Value> {
        let span = Some(Span { min: offset, max: offset });
        let access = Access { region: Region::Stack, span, packet_bytes: None };
        let load = Op::Load { size: Size::W, signed: false, access, base, offset: 0 };
        function.append(block, load, self.slot)
    }

    /// The address of the value at an index.
    fn address(&self, function: &mut Function, block: Block, index: Value) -> Option<Value> {
        let ArrayLink { base, stride, cpu_stride, .. } = self.array;
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

/// The blocks that use the results of look-ups, before any is expanded.
struct Users {
    cfg: Cfg,
    dominators: Dominators,
    blocks: Vec<(Value, Block)>,
    /// By value: where its users begin in the sorted list.
    first: Side<Value, Option<u32>>,
}

impl Users {
    /// The users in a function; `None` without look-ups.
    fn of(function: &Function, links: &Links) -> Option<Self> {
        let mut is_result: Side<Value, bool> = Side::sized(function.value_count());
        let mut any = false;
        for inst in function.layout.iter().flat_map(|block| &function.block(*block).insts) {
            if let Some(look_up) = look_up(function, links, *inst) {
                (is_result[look_up.result], any) = (true, true);
            }
        }
        if !any {
            return None;
        }
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
        Some(Self { dominators: Dominators::of(&cfg), cfg, blocks, first })
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
