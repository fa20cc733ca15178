//! Calls: of helpers, kernel functions and functions of the program, and tail calls.

use crate::codegen::lir::{Operand, Place, Vreg};
use crate::ir::expand::known_map;
use crate::ir::{Callee, Inst, Value};
use paceline_spec::helper::{Helper, HelperId};

use super::{Choice, defined, defined_in, fixed, used};
use crate::native::select::lack::Lack;
use crate::native::select::op::{Called, Op, Token};
use crate::native::select::target::Target;

const MAP_LOOKUP_ELEM: i32 = HelperId::MapLookupElem.imm();
const GET_SMP_PROCESSOR_ID: i32 = HelperId::GetSmpProcessorId.imm();
const GET_NUMA_NODE_ID: i32 = HelperId::GetNumaNodeId.imm();

/// Whether the result of a call is a number of the host, or a known one, without a call.
pub(in crate::native::select) const fn is_loaded(callee: Callee) -> bool {
    matches!(callee, Callee::Helper(GET_SMP_PROCESSOR_ID | GET_NUMA_NODE_ID))
}

impl<A: Target> Choice<'_, '_, A> {
    pub(super) fn call(&mut self, inst: Inst, callee: Callee, args: &[Value], result: Vreg) {
        let slot = self.origin.unwrap_or_default();
        let links = self.generator.links;
        let (called, given): (_, &[_]) = match callee {
            Callee::Helper(id) => {
                if self.inlined(inst, id, args, result) {
                    return;
                }
                let helper = Helper::from_imm(id);
                let kind = self.generator.program(slot).map(|program| program.kind);
                let found = helper.zip(kind).and_then(|(helper, kind)| (links.helper)(helper, kind));
                if helper.is_some_and(Helper::prints) {
                    let (maps, count) = self.generator.readable(slot);
                    self.push(Op::TellReadable(maps, count), &[used(self.host())]);
                }
                (found.map(|helper| Called::Runtime(helper.address)), &A::ARGUMENTS)
            }
            Callee::Kfunc { index, .. } => {
                let found = usize::try_from(index).ok();
                let found = found.and_then(|index| links.kfuncs.get(index).copied().flatten());
                (found.map(|kfunc| Called::Runtime(kfunc.address)), &A::ARGUMENTS)
            }
            Callee::Function(function) => {
                let module = self.generator.module;
                let arguments = module.functions.get(function).map(|function| &*function.arguments);
                let registers: Vec<_> =
                    arguments.unwrap_or_default().iter().map(|reg| A::argument(*reg)).collect();
                return self.call_with(Called::Function(function), &registers, args, result);
            }
            Callee::LookUp { map } => return self.look_up_number(map, args, result),
            // It has an operation of its own.
            Callee::TailCall | Callee::Program => (None, &[]),
        };
        let Some(called) = called else {
            self.generator.lacks(Lack::Function { slot });
            return self.push(Op::Number(0), &[defined(result)]);
        };
        self.call_with(called, given, args, result);
    }

    fn call_with(
        &mut self,
        called: Called,
        registers: &[crate::codegen::lir::Reg],
        args: &[Value],
        result: Vreg,
    ) {
        let mut operands: Vec<Operand> = Vec::with_capacity(args.len() + 2);
        for (arg, reg) in args.iter().zip(registers) {
            operands.push(fixed(self.value(*arg), *reg));
        }
        operands.push(fixed(self.host(), A::HOST));
        self.call_of(called, operands, result);
    }

    /// A call whose arguments are in their registers.
    pub(super) fn call_of(&mut self, called: Called, mut operands: Vec<Operand>, result: Vreg) {
        operands.push(defined_in(result, Place::Fixed(A::RESULT)));
        self.generator.current.needs.calls = true;
        self.push_clobbering(Op::Call(called), &operands, A::CALLER_SAVED);
    }

    /// A helper that is no call. Returns whether it is one.
    fn inlined(&mut self, inst: Inst, id: i32, args: &[Value], result: Vreg) -> bool {
        match (id, args) {
            (MAP_LOOKUP_ELEM, [_, key]) => self.look_up(inst, *key, result),
            (GET_SMP_PROCESSOR_ID, _) => {
                self.load_cpu(result);
                true
            }
            (GET_NUMA_NODE_ID, _) => {
                self.push(Op::Number(0), &[defined(result)]);
                true
            }
            _ => false,
        }
    }

    /// A tail call: a call with a result if the function goes on after the other program.
    pub(super) fn tail_call(&mut self, inst: Inst, args: &[Value], result: Option<Vreg>) {
        let &[context, map, index] = args else {
            return self.generator.internal("a tail call has not three arguments");
        };
        let number = self.function.as_const(index).map(|number| number as u32);
        let token = match known_map(self.function.calls[inst].map) {
            Some(index) => {
                let array = self.generator.map(index).and_then(|map| map.programs);
                match (array, number) {
                    (Some(array), Some(number)) if number < array.entries => {
                        Token::Entry(array.base + u64::from(number) * array.stride)
                    }
                    (Some(array), _) => Token::Array(array),
                    (None, _) => return self.generator.lacks(Lack::Map { index }),
                }
            }
            None => Token::Runtime,
        };
        let mut operands = vec![fixed(self.value(context), A::ARGUMENTS[0]), fixed(self.host(), A::HOST)];
        if !matches!(token, Token::Entry(_)) {
            operands.push(fixed(self.value(index), A::ARGUMENTS[2]));
        }
        if token == Token::Runtime {
            operands.push(fixed(self.value(map), A::ARGUMENTS[1]));
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
    }
}
