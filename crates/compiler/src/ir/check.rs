//! The checker: whether a function is well formed.
//!
//! It runs after each pass in debug builds. The interpreter compares each value with its kind and range and each access with its
//! region and offsets, over one of two machines: `random::Memory`, a few vectors, for random modules, and that of the plain
//! interpreter in `testkit`, so that whole programs with helpers, maps, callbacks and tail calls are compared.

use thiserror::Error;

use crate::internal::Internal;
use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Dominators};
use crate::ir::entity::{Block, FuncId, Inst, Value};
use crate::ir::function::{Def, Function, Module, Terminator};
use crate::ir::op::{Address, Callee, Op};
use crate::ir::types::{Access, CallFacts, Region, STACK_BYTES, Type};

/// A rule that a function breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
// default: the place is named if there is one.
#[error("{function}{}: {cause}", .block.map(|block| format!(", {block}")).unwrap_or_default())]
pub struct CheckError {
    /// The function.
    pub function: FuncId,
    /// The block.
    pub block: Option<Block>,
    /// The rule.
    pub cause: CheckCause,
}

/// Rules of functions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckCause {
    /// There is no entry.
    #[error("there are no blocks")]
    NoBlocks,
    /// The entry has another number of parameters than the function has arguments, they are no `i64`, or the registers do not rise
    /// from `r1` to `r5`.
    #[error("the first block's parameters are not those of the function")]
    Arguments,
    /// The function uses more stack than there is.
    #[error("{0} bytes of stack are more than {STACK_BYTES}")]
    Stack(u32),
    /// A jump to the entry.
    #[error("the first block is jumped to")]
    EntryJumpedTo,
    /// A block is in the layout twice, or a target is not in it.
    #[error("{0} is not once in the layout")]
    Layout(Block),
    /// The block has no end.
    #[error("it has no terminator")]
    NoTerminator,
    /// The arguments for a block are not its parameters.
    #[error("{0} arguments go to {2}, which has {1} parameters")]
    ArgumentCount(usize, usize, Block),
    /// An operand of another type.
    #[error("{0} is not of the type that its use needs")]
    Type(Value),
    /// A value is defined twice, or by something else than its data says.
    #[error("{0} is not defined once, by what its data says")]
    Definition(Value),
    /// A use that the definition does not dominate.
    #[error("{0} is used where it is not defined")]
    NotDominated(Value),
    /// Sizes or operands that the operation does not have.
    #[error("{0} is no valid operation")]
    Operation(Op),
    /// An instruction is in two blocks, or twice in one.
    #[error("{0} is in the function more than once")]
    Repeated(Op),
    /// Offsets that are not within the stack that the function uses, or not in order.
    #[error("{0} is not within the function's stack of {1} bytes")]
    Access(Op, u32),
    /// Facts of a call for another operation.
    #[error("{0} has facts of a call")]
    CallFacts(Op),
    /// A function that the module does not have, or with other parameters.
    #[error("{0} is not in the module, or has other parameters")]
    Callee(FuncId),
    /// A state that was met while the function was made or changed.
    #[error(transparent)]
    Internal(#[from] Internal),
}

/// Checks all functions of a module.
///
/// # Errors
/// The first rule that one breaks.
pub fn check(module: &Module) -> Result<(), CheckError> {
    module.functions.iter().try_for_each(|(id, function)| {
        check_function(id, function)?;
        check_references(module, id, function)
    })
}

/// Checks a function without the others.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_function(id: FuncId, function: &Function) -> Result<(), CheckError> {
    let (places, insts) = (Side::default(), Side::default());
    let mut checker = Checker { id, function, block: None, places, insts };
    function.fault().map_err(|what| checker.error(what.into()))?;
    checker.layout()?;
    checker.definitions()?;
    checker.uses()
}

/// Checks calls and addresses of functions.
fn check_references(module: &Module, id: FuncId, function: &Function) -> Result<(), CheckError> {
    for &block in &function.layout {
        for &inst in &function.block(block).insts {
            let (called, count) = match function.inst(inst).op {
                Op::Call { callee: Callee::Function(called), args } => (called, Some(args.as_slice().len())),
                Op::Address(Address::Function(called)) => (called, None),
                _ => continue,
            };
            let found = module.functions.get(called);
            if found.is_none_or(|found| count.is_some_and(|count| count != found.arguments.len())) {
                let cause = CheckCause::Callee(called);
                return Err(CheckError { function: id, block: Some(block), cause });
            }
        }
    }
    Ok(())
}

struct Checker<'a> {
    id: FuncId,
    function: &'a Function,
    block: Option<Block>,
    /// Where each value is defined: the block, and the position after which it is there, 0 for parameters.
    places: Side<Value, Option<(Block, usize)>>,
    /// Instructions that are in a block.
    insts: Side<Inst, bool>,
}

impl Checker<'_> {
    fn error(&self, cause: CheckCause) -> CheckError {
        CheckError { function: self.id, block: self.block, cause }
    }

    fn demand(&self, holds: bool, cause: impl FnOnce() -> CheckCause) -> Result<(), CheckError> {
        if holds { Ok(()) } else { Err(self.error(cause())) }
    }

    fn layout(&mut self) -> Result<(), CheckError> {
        let function = self.function;
        let Some(entry) = function.entry() else { return Err(self.error(CheckCause::NoBlocks)) };
        let mut seen: Side<Block, bool> = Side::default();
        for &block in &function.layout {
            let fresh = function.get_block(block).is_some() && !std::mem::replace(&mut seen[block], true);
            self.demand(fresh, || CheckCause::Layout(block))?;
        }
        self.demand(function.stack <= STACK_BYTES.unsigned_abs(), || CheckCause::Stack(function.stack))?;
        let registers = function.arguments.iter().map(|reg| reg.number());
        let rise = registers.clone().is_sorted_by(|a, b| a < b)
            && registers.clone().all(|reg| (1..=5).contains(&reg));
        self.demand(rise, || CheckCause::Arguments)?;
        let params = &function.block(entry).params;
        let types = params.iter().all(|&param| self.ty(param) == Some(Type::I64));
        self.demand(types && params.len() == function.arguments.len(), || CheckCause::Arguments)?;
        for &block in &function.layout {
            self.block = Some(block);
            let terminator = &function.block(block).terminator;
            self.demand(*terminator != Terminator::Unset, || CheckCause::NoTerminator)?;
            for target in terminator.targets() {
                self.demand(target.block != entry, || CheckCause::EntryJumpedTo)?;
                self.demand(seen[target.block], || CheckCause::Layout(target.block))?;
                let params = &function.block(target.block).params;
                self.demand(params.len() == target.args.len(), || {
                    CheckCause::ArgumentCount(target.args.len(), params.len(), target.block)
                })?;
                for (&arg, &param) in target.args.iter().zip(params) {
                    let same = self.ty(arg).is_some() && self.ty(arg) == self.ty(param);
                    self.demand(same, || CheckCause::Type(arg))?;
                }
            }
        }
        Ok(())
    }

    fn ty(&self, value: Value) -> Option<Type> {
        self.function.get_value(value).map(|data| data.ty)
    }

    fn definitions(&mut self) -> Result<(), CheckError> {
        for &block in &self.function.layout {
            self.block = Some(block);
            let data = self.function.block(block);
            for &param in &data.params {
                self.define(param, Def::Param(block), (block, 0))?;
            }
            for (position, &inst) in data.insts.iter().enumerate() {
                let data = self.function.inst(inst);
                self.operation(inst)?;
                if let Some(result) = data.result {
                    self.define(result, Def::Result(inst), (block, position + 1))?;
                }
            }
        }
        Ok(())
    }

    fn define(&mut self, value: Value, def: Def, place: (Block, usize)) -> Result<(), CheckError> {
        let expected = self.function.get_value(value).is_some_and(|data| data.def == def);
        self.demand(expected && self.places[value].is_none(), || CheckCause::Definition(value))?;
        self.places[value] = Some(place);
        Ok(())
    }

    fn operation(&mut self, inst: Inst) -> Result<(), CheckError> {
        let data = self.function.inst(inst);
        let repeated = std::mem::replace(&mut self.insts[inst], true);
        self.demand(!repeated, || CheckCause::Repeated(data.op))?;
        let has_facts = self.function.calls[inst] != CallFacts::default();
        self.demand(!has_facts || matches!(data.op, Op::Call { .. }), || CheckCause::CallFacts(data.op))?;
        let stack = self.function.stack;
        self.demand(is_within_stack(&data.op, stack), || CheckCause::Access(data.op, stack))?;
        let result = data.result.map(|result| self.ty(result));
        let valid = is_valid(&data.op) && result == data.op.result().map(Some);
        self.demand(valid, || CheckCause::Operation(data.op))
    }

    fn uses(&mut self) -> Result<(), CheckError> {
        let cfg = Cfg::of(self.function);
        let tree = Dominators::of(&cfg);
        for &block in &self.function.layout {
            self.block = Some(block);
            let data = self.function.block(block);
            let mut wrong = None;
            let mut check = |value: Value, ty: Option<Type>, position: usize| {
                let cause = if ty.is_some_and(|ty| self.ty(value) != Some(ty)) {
                    CheckCause::Type(value)
                } else if !self.is_defined(&cfg, &tree, value, (block, position)) {
                    CheckCause::NotDominated(value)
                } else {
                    return;
                };
                wrong.get_or_insert(cause);
            };
            for (position, &inst) in data.insts.iter().enumerate() {
                self.function.inst(inst).op.operands(|value, ty| check(value, Some(ty), position));
            }
            let end = data.insts.len();
            data.terminator.operands(|value, ty| check(value, Some(ty), end));
            let args = data.terminator.targets().iter().flat_map(|target| &target.args);
            args.for_each(|&arg| check(arg, None, end));
            if let Some(cause) = wrong {
                return Err(self.error(cause));
            }
        }
        Ok(())
    }

    fn is_defined(&self, cfg: &Cfg, tree: &Dominators, value: Value, (block, at): (Block, usize)) -> bool {
        let Some((defined, from)) = self.places[value] else { return false };
        // A block that is not reached has no dominators. It never runs, but what it uses is there.
        if cfg.position(block).is_none() {
            return true;
        }
        if defined == block {
            return from <= at;
        }
        let (a, b) = (cfg.position(defined), cfg.position(block));
        a.zip(b).is_some_and(|(a, b)| tree.dominates(a, b))
    }
}

/// Whether the offsets of an access to the function's stack are those of so many bytes. Addresses that are not accessed may be any.
fn is_within_stack(op: &Op, stack: u32) -> bool {
    let Some((_, _, size, Access { region, span: Some(span), .. })) = op.access() else { return true };
    let (lowest, end) = (-i64::from(stack), i64::from(span.max) + size.bytes() as i64);
    span.min <= span.max && (region != Region::Stack || (i64::from(span.min) >= lowest && end <= 0))
}

/// Whether an operation has the sizes and operands that it can have.
fn is_valid(op: &Op) -> bool {
    use paceline_isa::{AtomicOp, Size};
    match *op {
        Op::Const { ty, value } => ty.cut(value) == value,
        Op::SignExtend { from, ty, .. } => match from {
            Size::B | Size::H => true,
            Size::W => ty == Type::I64,
            Size::Dw => false,
        },
        Op::Swap { size, ty, .. } => match size {
            Size::B => false,
            Size::H | Size::W => true,
            Size::Dw => ty == Type::I64,
        },
        Op::Load { size, signed, .. } | Op::ContextLoad { size, signed, .. } => !signed || size != Size::Dw,
        Op::Atomic { op, expected, .. } => (op == AtomicOp::CmpXchg) == expected.is_some(),
        Op::PacketLoad { size, .. } => size != Size::Dw,
        Op::Call { callee: Callee::TailCall | Callee::Program, args } => args.as_slice().len() == 3,
        Op::Call { callee: Callee::LookUp { .. }, args } => args.as_slice().len() == 1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use paceline_isa::Size;

    use super::*;
    use crate::ir::arena::Key;
    use crate::ir::text::parse_unchecked;

    fn cause(body: &str) -> CheckCause {
        let module = parse_unchecked(&format!("function 0 \"f\" (r1) {{\n{body}\n}}")).expect("text");
        check(&module).expect_err("wrong").cause
    }

    #[test]
    fn a_missing_result_is_a_fault() {
        let mut function = Function::default();
        let block = function.add_block();
        let inst = function.create_with(Op::constant(Type::I64, 0), None, None);
        let result = function.result(inst);
        function.terminate(block, Terminator::Return(result), None);
        let missing = Internal("an operation has no result");
        assert_eq!(function.fault(), Err(missing));
        let found = check_function(FuncId::new(0), &function).expect_err("a fault");
        assert_eq!(found.cause, CheckCause::Internal(missing));
    }

    #[test]
    fn each_rule_is_checked() {
        let (value, block) = (Value::new, Block::new);
        for (body, expected) in [
            ("", CheckCause::NoBlocks),
            ("block0:\nv1 = const.i64 0\nreturn v1", CheckCause::Arguments),
            ("block0(v0: i64):\njump block0(v0)", CheckCause::EntryJumpedTo),
            ("block0(v0: i64):\njump block1", CheckCause::Layout(block(1))),
            (
                "block0(v0: i64):\njump block1\nblock1(v1: i64):\nreturn v1",
                CheckCause::ArgumentCount(0, 1, block(1)),
            ),
            ("block0(v0: i64):\njump block1(v0)\nblock1(v1: i32):\nreturn v0", CheckCause::Type(value(0))),
            ("block0(v0: i64):\nv1 = add.i32 v0, v0\nreturn v0", CheckCause::Type(value(0))),
            ("block0(v0: i64):\nv1 = trunc v0\nreturn v1", CheckCause::Type(value(1))),
            (
                "block0(v0: i64):\nv1 = neg.i64 v2\nv2 = neg.i64 v1\nreturn v1",
                CheckCause::NotDominated(value(2)),
            ),
            (
                "block0(v0: i64):\nbranch.eq.i64 v0, v0, block1, block2\nblock1:\nv1 = neg.i64 v0\njump block2\nblock2:\nreturn v1",
                CheckCause::NotDominated(value(1)),
            ),
            (
                "block0(v0: i64):\nv1 = swap64.i32 v0\nreturn v0",
                CheckCause::Operation(Op::Swap { size: Size::Dw, ty: Type::I32, arg: value(0) }),
            ),
            ("block0(v0: i64):\nv1 = call function 0()\nreturn v0", CheckCause::Callee(FuncId::new(0))),
            ("block0(v0: i64):\nv1 = function_address 1\nreturn v0", CheckCause::Callee(FuncId::new(1))),
        ] {
            assert_eq!(cause(body), expected, "{body}");
        }
    }

    #[test]
    fn arguments_rise_and_accesses_lie_in_the_stack() {
        let cause = |head: &str, params: &str, body: &str| {
            let text = format!("function 0 \"f\" {head} {{\nblock0({params}):\n{body}\nreturn v0\n}}");
            check(&parse_unchecked(&text).expect("text")).map_err(|error| error.cause)
        };
        let two = "v0: i64, v1: i64";
        assert_eq!(cause("(r1, r2)", two, ""), Ok(()));
        assert_eq!(cause("(r2, r1)", two, ""), Err(CheckCause::Arguments));
        assert_eq!(cause("(r1, r1)", two, ""), Err(CheckCause::Arguments));
        assert_eq!(cause("(r1) stack 520", "v0: i64", ""), Err(CheckCause::Stack(520)));
        for (span, fits) in [("-8..-4", true), ("-12..-8", false), ("-4..-3", false), ("-4..-8", false)] {
            let body = format!("v1 = load.u32 stack v0+0 in {span}");
            let wrong = matches!(cause("(r1) stack 8", "v0: i64", &body), Err(CheckCause::Access(_, 8)));
            assert_eq!(!wrong, fits, "{span}");
        }
    }

    /// A function with three operations.
    fn function() -> Module {
        let text = "function 0 \"f\" (r1) stack 8 {
            block0(v0: i64):
                v1 = neg.i64 v0
                v2 = call bpf_get_prandom_u32() reads -8..0
                store.u64 packet v0+0, v1
                jump block1
            block1:
                return v0
            }";
        crate::ir::text::parse(text).expect("valid")
    }

    /// The rule that a function breaks after a change.
    fn changed(change: impl FnOnce(&mut Function, Vec<Inst>)) -> CheckCause {
        let mut module = function();
        let function = module.functions.values_mut().next().expect("one");
        let insts = function.block(block(0)).insts.clone();
        change(function, insts);
        check(&module).expect_err("wrong").cause
    }

    fn block(number: usize) -> Block {
        Block::new(number)
    }

    #[test]
    fn each_instruction_is_in_one_place() {
        for (at, to) in [(0, 0), (2, 0), (2, 1)] {
            let cause = changed(|function, insts| function.block_mut(block(to)).insts.push(insts[at]));
            assert!(matches!(cause, CheckCause::Repeated(_)), "{cause}");
        }
        let cause = changed(|function, insts| function.insts[insts[1]].result = Some(Value::new(1)));
        assert_eq!(cause, CheckCause::Definition(Value::new(1)));
    }

    #[test]
    fn facts_of_calls_are_for_calls() {
        let cause = changed(|function, insts| function.calls[insts[0]] = function.calls[insts[1]]);
        assert!(matches!(cause, CheckCause::CallFacts(_)), "{cause}");
    }

    #[test]
    fn a_block_without_an_end() {
        let cause = changed(|function, _| function.block_mut(block(0)).terminator = Terminator::Unset);
        assert_eq!(cause, CheckCause::NoTerminator);
    }

    #[test]
    fn blocks_that_are_not_reached_use_values_that_are_there() {
        let end = Terminator::Return(Value::new(1));
        let cause = changed(|function, _| {
            function.block_mut(block(0)).insts.remove(0);
            function.block_mut(block(0)).insts.remove(1);
            function.block_mut(block(0)).terminator = Terminator::Return(Value::new(0));
            function.block_mut(block(1)).terminator = end;
        });
        assert_eq!(cause, CheckCause::NotDominated(Value::new(1)));
    }
}
