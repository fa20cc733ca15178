//! Compilation of a program.

use crate::codegen::Room;
use crate::ir::Source;

use super::chain::in_loop;
use super::code::{Code, generator};
use super::form::{form, passes};
use super::uses::{ProgramUse, cpus};
use crate::native::compiled::Compiled;
use crate::native::error::CompileError;
use crate::native::links::Links;
use crate::native::machine::emit::Emit;
use crate::native::settings::Settings;

/// Compiles a program for a machine.
pub(crate) fn compile<A: Emit>(
    source: &Source<'_>,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    let (module, graphs) = form(source, links, &passes(settings.opt_level))?;
    let program = ProgramUse::of(&module, source);
    // A tail call is a jump in a run of its own, and a call in a loop.
    let looped = match program.tail_calls {
        true => Some(in_loop(&module, &program, settings.opt_level)?),
        false => None,
    };
    let parts = vec![program.entered(0, source.program().kind, links)];
    let generator = generator::<A>(&module, links, settings, parts)?;
    let (checked, prefetch) = (settings.verify_allocation, settings.prefetch);
    let code = Code { generator, room: Room::default(), pieces: Vec::new(), checked, prefetch };
    code.all(&program, &graphs, looped.as_ref(), cpus(source, links), source)
}
