//! The checker: whether a function is well formed.

use thiserror::Error;

use crate::arena::Side;
use crate::cfg::{Cfg, Dominators};
use crate::entity::{Block, FuncId, Inst, Value};
use crate::function::{Def, Function, Module, Terminator};
use crate::op::{Address, Callee, Op};
use crate::types::Type;

/// A rule that a function breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
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
    /// The entry has another number of parameters than the function has arguments, or they are no `i64`.
    #[error("the first block's parameters are not those of the function")]
    Arguments,
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
    /// A function that the module does not have, or with other parameters.
    #[error("{0} is not in the module, or has other parameters")]
    Callee(FuncId),
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
    let mut checker = Checker { id, function, block: None, places: Side::default() };
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

    fn operation(&self, inst: Inst) -> Result<(), CheckError> {
        let data = self.function.inst(inst);
        let result = data.result.map(|result| self.ty(result));
        let valid = is_valid(&data.op) && result == data.op.result().map(Some);
        self.demand(valid, || CheckCause::Operation(data.op))
    }

    fn uses(&mut self) -> Result<(), CheckError> {
        let cfg = Cfg::of(self.function);
        let tree = Dominators::of(&cfg);
        // Blocks that are not reached have no dominators, and never run.
        for &block in cfg.order() {
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
        if defined == block {
            return from <= at;
        }
        let (a, b) = (cfg.position(defined), cfg.position(block));
        a.zip(b).is_some_and(|(a, b)| tree.dominates(a, b))
    }
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
        Op::Call { callee: Callee::TailCall, args } => args.as_slice().len() == 3,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use paceline_isa::Size;

    use super::*;
    use crate::arena::Key;
    use crate::text::parse_unchecked;

    fn cause(body: &str) -> CheckCause {
        let module = parse_unchecked(&format!("function 0 \"f\" (r1) {{\n{body}\n}}")).expect("text");
        check(&module).expect_err("wrong").cause
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
    fn a_block_without_an_end_and_a_value_defined_twice() {
        let mut module =
            crate::text::parse("function 0 \"f\" (r1) {\nblock0(v0: i64):\nv1 = neg.i64 v0\nreturn v1\n}")
                .expect("text");
        let function = module.functions.values_mut().next().expect("one");
        let entry = function.entry().expect("one");
        let insts = function.block(entry).insts.clone();
        function.block_mut(entry).insts.extend(insts);
        assert_eq!(check(&module).expect_err("wrong").cause, CheckCause::Definition(Value::new(1)));
        let function = module.functions.values_mut().next().expect("one");
        function.block_mut(entry).insts.pop();
        function.block_mut(entry).terminator = Terminator::Unset;
        assert_eq!(check(&module).expect_err("wrong").cause, CheckCause::NoTerminator);
    }
}
