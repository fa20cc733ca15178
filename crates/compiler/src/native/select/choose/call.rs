//! Calls: of helpers, kernel functions and functions of the program, and tail calls.

use crate::codegen::lir::{Operand, Place, Vreg};
use crate::ir::expand::known_map;
use crate::ir::{Callee, Inst, Value};
use paceline_spec::helper::{Helper, HelperId};

use super::choice::{Choice, defined, defined_in, fixed, used};
use crate::internal::Internal;
use crate::native::machine::op::{Called, Op, Token};
use crate::native::machine::target::Target;
use crate::native::unsupported::Unsupported;

const MAP_LOOKUP_ELEM: i32 = HelperId::MapLookupElem.imm();
const GET_SMP_PROCESSOR_ID: i32 = HelperId::GetSmpProcessorId.imm();
const GET_NUMA_NODE_ID: i32 = HelperId::GetNumaNodeId.imm();

/// Whether the result of a call is a number of the host, or a known one, without a call.
pub(crate) const fn is_loaded(callee: Callee) -> bool {
    matches!(callee, Callee::Helper(GET_SMP_PROCESSOR_ID | GET_NUMA_NODE_ID))
}

impl<A: Target> Choice<'_, '_, A> {
    pub(super) fn call(
        &mut self,
        inst: Inst,
        callee: Callee,
        args: &[Value],
        result: Vreg,
    ) -> Result<(), Internal> {
        let (slot, links) = (self.slot()?, self.generator.links);
        let (link, given): (_, &[_]) = match callee {
            Callee::Helper(id) => {
                if self.inlined(inst, id, args, result)? {
                    return Ok(());
                }
                let helper = Helper::from_imm(id);
                let kind = self.generator.program(slot)?.kind;
                if helper.is_some_and(Helper::prints) {
                    let (maps, count) = self.generator.readable(slot)?;
                    self.push(Op::TellReadable(maps, count), &[used(self.host()?)]);
                }
                (helper.and_then(|helper| (links.helper)(helper, kind)), &A::ARGUMENTS)
            }
            Callee::Kfunc { index, .. } => {
                let found = usize::try_from(index).ok();
                (found.and_then(|index| links.kfuncs.get(index).copied().flatten()), &A::ARGUMENTS)
            }
            Callee::Function(function) => {
                let module = self.generator.module;
                let called =
                    module.functions.get(function).ok_or(Internal("a called function is missing"))?;
                let registers =
                    called.arguments.iter().map(|reg| A::argument(*reg)).collect::<Result<Vec<_>, _>>()?;
                return self.call_with(Called::Function(function), &registers, args, result);
            }
            Callee::LookUp { map } => return self.look_up_number(map, args, result),
            Callee::TailCall | Callee::Program => {
                return Err(Internal("a tail call is selected as another call"));
            }
        };
        let link = link.ok_or_else(|| self.generator.unsupported(Unsupported::Function { slot }))?;
        self.call_with(Called::Runtime(link.address), given, args, result)
    }

    fn call_with(
        &mut self,
        called: Called,
        registers: &[crate::codegen::lir::Reg],
        args: &[Value],
        result: Vreg,
    ) -> Result<(), Internal> {
        if args.len() > registers.len() {
            return Err(Internal("a call has more arguments than registers"));
        }
        let mut operands: Vec<Operand> = Vec::with_capacity(args.len() + 2);
        for (arg, reg) in args.iter().zip(registers) {
            operands.push(fixed(self.value(*arg)?, *reg));
        }
        operands.push(fixed(self.host()?, A::HOST));
        self.call_of(called, operands, result);
        Ok(())
    }

    /// A call whose arguments are in their registers.
    pub(super) fn call_of(&mut self, called: Called, mut operands: Vec<Operand>, result: Vreg) {
        operands.push(defined_in(result, Place::Fixed(A::RESULT)));
        self.generator.current.needs.calls = true;
        self.push_clobbering(Op::Call(called), &operands, A::CALLER_SAVED);
    }

    /// A helper that is no call. Returns whether it is one.
    fn inlined(&mut self, inst: Inst, id: i32, args: &[Value], result: Vreg) -> Result<bool, Internal> {
        match (id, args) {
            (MAP_LOOKUP_ELEM, [_, key]) => return self.look_up(inst, *key, result),
            (GET_SMP_PROCESSOR_ID, _) => self.load_cpu(result)?,
            (GET_NUMA_NODE_ID, _) => self.push(Op::Number(0), &[defined(result)]),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A tail call: a call with a result if the function goes on after the other program.
    pub(super) fn tail_call(
        &mut self,
        inst: Inst,
        args: &[Value],
        result: Option<Vreg>,
    ) -> Result<(), Internal> {
        let &[context, map, index] = args else {
            return Err(Internal("a tail call has not three arguments"));
        };
        let number = self.function.as_const(index).map(|number| number as u32);
        let token = match known_map(self.function.calls[inst].map) {
            Some(index) => {
                let array = self.generator.map(index)?.programs;
                let array = array.ok_or_else(|| self.generator.unsupported(Unsupported::Map { index }))?;
                match number {
                    Some(number) if number < array.entries => {
                        Token::Entry(array.base + u64::from(number) * array.stride)
                    }
                    _ => Token::Array(array),
                }
            }
            None => Token::Runtime,
        };
        let mut operands = vec![fixed(self.value(context)?, A::ARGUMENTS[0]), fixed(self.host()?, A::HOST)];
        if !matches!(token, Token::Entry(_)) {
            operands.push(fixed(self.value(index)?, A::ARGUMENTS[2]));
        }
        if token == Token::Runtime {
            operands.push(fixed(self.value(map)?, A::ARGUMENTS[1]));
            self.generator.current.needs.calls = true;
        }
        let op = match result {
            Some(result) => {
                operands.push(defined_in(result, Place::Fixed(A::RESULT)));
                self.generator.current.needs.calls = true;
                Op::RunProgram(token)
            }
            None => Op::TailCall(token),
        };
        self.push_clobbering(op, &operands, A::CALLER_SAVED);
        Ok(())
    }
}
