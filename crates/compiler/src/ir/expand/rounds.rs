//! `bpf_loop` with a known callback, as a loop that calls it: passes see its body, and the helper's calls through a pointer go.

use paceline_isa::{Condition, Reg};
use paceline_spec::{Errno, MAX_LOOPS};
use paceline_verifier::CallbackFact;
use smallvec::smallvec;

use crate::ir::arena::{Key, Side};
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, FuncId, Inst, Value};
use crate::ir::function::{Function, Module, Target, Terminator};
use crate::ir::op::{Address, Args, BinaryOp, Callee, Op};
use crate::ir::types::{CallFacts, Kind, Type};
use crate::ir::uses::Uses;

/// Number of the helper.
const LOOP: i32 = 181;

/// Expands the calls of all functions. In a program with tail calls, a callback may fault in one, which only the helper looks at.
/// `None` if an operation has no result.
pub fn loops(module: &mut Module) -> Option<()> {
    let calls = |called: Callee| module.any(|op| matches!(op, Op::Call { callee, .. } if *callee == called));
    if !calls(Callee::Helper(LOOP)) || calls(Callee::TailCall) {
        return Some(());
    }
    let callbacks: Vec<(u32, FuncId, Vec<Reg>)> = module
        .functions
        .iter()
        .map(|(id, function)| (function.slot, id, function.arguments.clone()))
        .filter(|(.., arguments)| arguments.iter().all(|register| [Reg::R1, Reg::R2].contains(register)))
        .collect();
    let mut any = false;
    for function in module.functions.values_mut() {
        let mut changed = false;
        let mut blocks = function.layout.clone();
        while let Some(block) = blocks.pop() {
            let mut insts = function.block(block).insts.iter().enumerate();
            let found = insts.find_map(|(at, inst)| Some((at, Rounds::of(function, *inst, &callbacks)?)));
            if let Some((at, rounds)) = found {
                let rest = rounds.expand(function, block, at)?;
                blocks.push(rest);
                changed = true;
            }
        }
        if changed {
            function.apply_aliases();
            remove_addresses(function);
            any = true;
        }
    }
    if any {
        forget_callbacks(module);
    }
    Some(())
}

/// Functions whose address nobody takes any more are called by no helper.
fn forget_callbacks(module: &mut Module) {
    let mut taken: Side<FuncId, bool> = Side::sized(module.functions.len());
    for (_, function) in module.functions.iter() {
        for inst in function.layout.iter().flat_map(|block| &function.block(*block).insts) {
            if let Op::Address(Address::Function(id)) = function.inst(*inst).op {
                taken[id] = true;
            }
        }
    }
    for (number, function) in module.functions.values_mut().enumerate() {
        function.is_callback &= taken[FuncId::new(number)];
    }
}

/// A call of the helper.
struct Rounds {
    count: Value,
    context: Value,
    flags: Value,
    callback: FuncId,
    /// The registers that the callback takes.
    arguments: Vec<Reg>,
    result: Value,
    facts: CallFacts,
    slot: Option<u32>,
}

impl Rounds {
    fn of(function: &Function, inst: Inst, callbacks: &[(u32, FuncId, Vec<Reg>)]) -> Option<Self> {
        let data = function.inst(inst);
        let Op::Call { callee: Callee::Helper(LOOP), args } = &data.op else { return None };
        let &[count, _, context, flags] = args.as_slice() else { return None };
        let facts = function.calls[inst];
        let Some(CallbackFact::Always(start)) = facts.callback else { return None };
        let (_, callback, arguments) = callbacks.iter().find(|(slot, ..)| *slot == start)?;
        let (callback, arguments) = (*callback, arguments.clone());
        let facts = CallFacts { stack_read: facts.stack_read, ..CallFacts::default() };
        Some(Self {
            count,
            context,
            flags,
            callback,
            arguments,
            result: data.result?,
            facts,
            slot: data.slot,
        })
    }

    /// Puts the loop in the place of an instruction of a block. Returns the block behind it, which has the rest.
    fn expand(self, function: &mut Function, block: Block, at: usize) -> Option<Block> {
        let slot = self.slot;
        let [bounded, head, body, rest] = [(); 4].map(|()| function.add_block());
        // The block ends where the helper checks its flags.
        let data = function.block_mut(block);
        let after = data.insts.split_off(at + 1);
        data.insts.pop();
        let (terminator, end) = (std::mem::take(&mut data.terminator), data.slot.take());
        function.block_mut(rest).insts = after;
        function.terminate(rest, terminator, end);
        let result = function.add_param(rest, Type::I64, Kind::Unknown);
        let number =
            |function: &mut Function, block, ty, value| function.append(block, Op::constant(ty, value), slot);
        let branch = |condition, ty, args, targets| Terminator::Branch { condition, ty, args, targets };
        let ends = |value| Target { block: rest, args: smallvec![value] };

        let invalid = number(function, block, Type::I64, Errno::EINVAL.to_return())?;
        let zero = number(function, block, Type::I64, 0)?;
        let targets = [ends(invalid), Target::to(bounded)];
        function.terminate(block, branch(Condition::Ne, Type::I64, [self.flags, zero], targets), slot);

        let count = function.append(bounded, Op::Truncate { arg: self.count }, slot)?;
        let most = number(function, bounded, Type::I32, MAX_LOOPS.into())?;
        let too_many = number(function, bounded, Type::I64, Errno::E2BIG.to_return())?;
        let first = number(function, bounded, Type::I32, 0)?;
        let targets = [ends(too_many), Target { block: head, args: smallvec![first] }];
        function.terminate(bounded, branch(Condition::Gt, Type::I32, [count, most], targets), slot);

        let round = function.add_param(head, Type::I32, Kind::Unknown);
        let index = function.append(head, Op::ZeroExtend { arg: round }, slot)?;
        let targets = [Target::to(body), ends(index)];
        function.terminate(head, branch(Condition::Lt, Type::I32, [round, count], targets), slot);

        let of_register = |register: &Reg| if *register == Reg::R1 { index } else { self.context };
        let args: Vec<Value> = self.arguments.iter().map(of_register).collect();
        let call = Op::Call { callee: Callee::Function(self.callback), args: Args::new(&args)? };
        let call = function.create(call, slot);
        function.block_mut(body).insts.push(call);
        function.calls[call] = self.facts;
        let stops = function.inst(call).result?;
        let one = number(function, body, Type::I32, 1)?;
        let next = Op::Binary { op: BinaryOp::Add, ty: Type::I32, args: [round, one] };
        let next = function.append(body, next, slot)?;
        let rounds = function.append(body, Op::ZeroExtend { arg: next }, slot)?;
        let zero = number(function, body, Type::I64, 0)?;
        let targets = [Target { block: head, args: smallvec![next] }, ends(rounds)];
        function.terminate(body, branch(Condition::Eq, Type::I64, [stops, zero], targets), slot);
        function.replace(self.result, result);
        Some(rest)
    }
}

/// Removes addresses of functions that nobody uses, so that a function is not kept for them.
fn remove_addresses(function: &mut Function) {
    let uses = Uses::of(function, &Cfg::of(function));
    for block in function.layout.clone() {
        let insts = std::mem::take(&mut function.block_mut(block).insts);
        let is_used = |inst: &Inst| {
            let data = function.inst(*inst);
            let is_address = matches!(data.op, Op::Address(Address::Function(_)));
            !is_address || data.result.is_some_and(|result| uses.count(result) > 0)
        };
        let kept = insts.into_iter().filter(is_used).collect();
        function.block_mut(block).insts = kept;
    }
}
