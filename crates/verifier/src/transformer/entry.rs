//! Entry states.

use paceline_isa::{Reg, RegSet};

use super::registers::Transformer;
use crate::domain::state::{Frame, Lent, Pointer, State, Target, Value};
use crate::env::{Env, Parameter};
use crate::error::Refusal;
use crate::records::{Records, Root};

/// The entry state of a function that is explored on its own.
pub(crate) fn entry_state(env: &Env<'_>, records: &mut Records, root: Root) -> Result<State, Box<Refusal>> {
    let mut state = State::new(Frame::new(root.function(), 0, 0));
    match root {
        Root::Main => state.set(Reg::R1, Value::Pointer(Pointer::to(Target::Context))),
        Root::Global(function) => set_parameters(env, records, &mut state, function)?,
        Root::Timer { map, .. } => {
            let handle = Value::Pointer(Pointer::to(Target::Map(map)));
            let element = Transformer { env, slot: 0, state: &mut state, records }.element(map, handle);
            element.into_iter().for_each(|(reg, value)| state.set(reg, value));
        }
    }
    Ok(state)
}

fn set_parameters(
    env: &Env<'_>,
    records: &mut Records,
    state: &mut State,
    function: usize,
) -> Result<(), Box<Refusal>> {
    let start = env.start_of(function);
    let global = env.global(function).map_err(|problem| Refusal::at(start, problem.cause))?;
    for (number, (reg, &parameter)) in (0..).zip(RegSet::ARGUMENTS.iter().zip(&global.parameters)) {
        let value = match parameter {
            Parameter::Number => Value::unknown(),
            Parameter::Context => Value::Pointer(Pointer::to(Target::Context)),
            Parameter::Memory { size, nullable } => {
                let id = if nullable { records.new_id() } else { 0 };
                let lent = Some(Lent { parameter: number, packet_moved: false });
                let target = Target::Memory { size, writable: true, lent };
                Value::Pointer(Pointer { nullable, id, ..Pointer::to(target) })
            }
            Parameter::Dynptr => {
                let id = records.new_id();
                Value::Pointer(Pointer { id, ..Pointer::to(Target::Dynptr { parameter: number }) })
            }
        };
        state.set(reg, value);
    }
    Ok(())
}
