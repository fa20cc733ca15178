//! Calls.

use crate::helpers::{helper_fn, kfunc_fn};
use crate::rounds::calls_back;
use paceline_compiler::codegen::lir::Vreg;
use paceline_compiler::ir::{Callee, Value};
use paceline_spec::helper::HelperId;

use super::Draft;
use super::choose::{Choice, defined, used};
use crate::interpreter::threaded::helpers;
use crate::interpreter::threaded::kind::Kind;

impl Choice<'_, '_> {
    pub(super) fn call(&mut self, callee: Callee, args: &[Value], result: Vreg) {
        let draft = match callee {
            Callee::Helper(id) => match HelperId::from_imm(id) {
                Some(HelperId::GetSmpProcessorId) => {
                    return self.push(Draft::new(Kind::Cpu), &[defined(result)]);
                }
                _ if let Some((_, callback)) = calls_back(id) => Draft::new(Kind::CallBack(callback)),
                id => {
                    let kind = self.selector.program.kind;
                    let function = id.and_then(|id| helpers::printing(id).or_else(|| helper_fn(id, kind)));
                    self.helper(function.map(|function| function as usize))
                }
            },
            Callee::Kfunc { index, .. } => {
                let kfunc = self.selector.program.kfunc(index);
                let function = kfunc.and_then(|kfunc| kfunc_fn(kfunc.name));
                self.helper(function.map(|function| function as usize))
            }
            Callee::Function(function) => {
                let mut draft = Draft { function: Some(function), ..Draft::new(Kind::CallFunction) };
                match self.selector.module.functions.get(function) {
                    Some(callee) => {
                        let places = draft.args.iter_mut().zip(&*callee.arguments);
                        places.for_each(|(place, register)| *place = register.number());
                    }
                    None => self.selector.lacks("a function that is not in the module"),
                }
                draft
            }
            Callee::TailCall => {
                let operands: Vec<_> = args.iter().map(|arg| used(self.value(*arg))).collect();
                return self.push(Draft::new(Kind::TailCall), &operands);
            }
            Callee::Program | Callee::LookUp { .. } => {
                self.selector.lacks("a call of native code");
                Draft::new(Kind::CallHelper)
            }
        };
        let operands: Vec<_> = args.iter().map(|arg| used(self.value(*arg))).collect();
        self.push_each(draft, operands.into_iter().chain([defined(result)]));
    }

    fn helper(&mut self, function: Option<usize>) -> Draft {
        let function = function.unwrap_or_else(|| {
            self.selector.lacks("a helper");
            0
        });
        Draft::new(Kind::CallHelper).word(function as u64)
    }
}
