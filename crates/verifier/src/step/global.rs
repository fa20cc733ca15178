//! Global functions: verified once, for all arguments that their BTF types allow.

use std::rc::Rc;

use paceline_btf::{Btf, Type, TypeId};
use paceline_isa::Reg;
use paceline_spec::ProgramKind;

use super::ARGUMENTS;
use super::helper::wrong_argument;
use super::memory::{Access, Span, check_context_pointer};
use crate::domain::state::{Dynptr, DynptrMemory, Frame, Lent, Pointer, State, Target, Value};
use crate::error::{Cause, Check, Hint, Refusal, RegName, reject, reject_with};
use crate::lend::{self, Loan, Needs};
use crate::walk::{Root, Walk};

/// Type of a global function's argument (`btf_prepare_func_args`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// A number.
    Number,
    /// The context.
    Context,
    /// Memory of a size in bytes, or null unless tagged `arg:nonnull`.
    Memory { size: u32, nullable: bool },
    /// A dynptr, which the function may use but not destroy.
    Dynptr,
}

/// Facts about a global function from its BTF type.
#[derive(Debug)]
pub(crate) struct Global {
    name: String,
    parameters: Vec<Parameter>,
}

/// The entry state of a function that is verified on its own.
pub(crate) fn entry_state(walk: &mut Walk<'_>, root: Root) -> Result<State, Box<Refusal>> {
    let mut frame = Frame::new(root.function(), 0, 0);
    match root {
        Root::Main => frame.set(Reg::R1, Value::Pointer(Pointer::to(Target::Context))),
        Root::Global(function) => set_parameters(walk, &mut frame, function)?,
        Root::Timer { map, .. } => {
            walk.set_element(&mut frame, map, Value::Pointer(Pointer::to(Target::Map(map))))
        }
    }
    Ok(State::new(frame))
}

fn set_parameters(walk: &mut Walk<'_>, frame: &mut Frame, function: usize) -> Result<(), Box<Refusal>> {
    let start = walk.flow.functions.get(function).map_or(0, |f| f.start);
    let global = walk.global(function).map_err(|problem| Refusal::at(start, problem.cause))?;
    for (number, (reg, &parameter)) in (0..).zip(ARGUMENTS.into_iter().zip(&global.parameters)) {
        let value = match parameter {
            Parameter::Number => Value::unknown(),
            Parameter::Context => Value::Pointer(Pointer::to(Target::Context)),
            Parameter::Memory { size, nullable } => {
                let id = if nullable { walk.new_id() } else { 0 };
                let lent = Some(Lent { parameter: number, packet_moved: false });
                let target = Target::Memory { size, writable: true, lent };
                Value::Pointer(Pointer { nullable, id, ..Pointer::to(target) })
            }
            Parameter::Dynptr => {
                let id = walk.new_id();
                Value::Pointer(Pointer { id, ..Pointer::to(Target::Dynptr { parameter: number }) })
            }
        };
        frame.set(reg, value);
    }
    Ok(())
}

/// Checks that all calls of global functions meet the callees' requirements.
pub(crate) fn check_loans(walk: &mut Walk<'_>) -> Result<(), Box<Refusal>> {
    let mut loans = std::mem::take(&mut walk.loans);
    loans.check(|function| walk.function_name(function))
}

impl Walk<'_> {
    /// A global function; its type is resolved once.
    fn global(&mut self, function: usize) -> Check<Rc<Global>> {
        if let Some(global) = self.globals.get(&function) {
            return Ok(Rc::clone(global));
        }
        let global =
            Rc::new(Global { name: self.function_name(function), parameters: self.parameters(function)? });
        self.globals.insert(function, Rc::clone(&global));
        Ok(global)
    }

    /// The parameters of a global function.
    fn parameters(&self, function: usize) -> Check<Vec<Parameter>> {
        let start = self.flow.functions.get(function).map_or(0, |f| f.start);
        let info = self.program.functions.iter().find(|f| f.start == start);
        let (Some(info), Some(btf)) = (info, self.btf) else {
            return reject(Cause::GlobalFunction { name: String::new(), problem: "it has no BTF type" });
        };
        let problem = |problem| reject(Cause::GlobalFunction { name: info.name.clone(), problem });
        let Some(Type::Func { proto, .. }) = btf.get(info.btf_id) else {
            return problem("its type is not a function type");
        };
        let Some(Type::FuncProto { result, params }) = btf.get(*proto) else {
            return problem("its type is not a function type");
        };
        if params.len() > ARGUMENTS.len() {
            return problem("it takes more than 5 arguments");
        }
        if !is_void(btf, *result) && !is_number(btf, *result) {
            return problem("its return type is not a number");
        }
        let tags = tags(btf, info.btf_id);
        let parameter = |(i, p): (usize, &paceline_btf::Param)| {
            let has_tag = |wanted| tags.contains(&(i, wanted));
            let (is_nonnull, is_context) = (has_tag("arg:nonnull"), has_tag("arg:ctx"));
            parameter(btf, self.program.kind, p.ty, is_context, is_nonnull)
        };
        let found: Result<Vec<Parameter>, &'static str> = params.iter().enumerate().map(parameter).collect();
        found.or_else(problem)
    }

    pub(super) fn call_global(&mut self, function: usize) -> Check {
        let global = self.global(function)?;
        for (number, (reg, &parameter)) in (0..).zip(ARGUMENTS.into_iter().zip(&global.parameters)) {
            self.check_parameter((function, number), &global.name, reg, parameter)?;
        }
        self.add_root(Root::Global(function));
        if self.flow.functions.get(function).is_some_and(|f| f.moves_packet) {
            self.forget_packet();
        }
        self.forget_caller_saved();
        self.return_number();
        Ok(())
    }

    /// Records the memory argument of a call; the callee's requirements are known only after the whole walk.
    fn note_loan(&mut self, parameter: lend::Parameter, register: Reg, pointer: &Pointer) {
        let span = Span { register, pointer: *pointer, offset: 0, size: 1, access: Access::Read };
        let in_packet = pointer.is_packet();
        let alignment = [8, 4, 2].into_iter().find(|&size| !in_packet && span.is_multiple_of(size.into()));
        let from = match pointer.target {
            Target::Memory { lent: Some(lent), .. } => Some((self.root.function(), lent.parameter)),
            _ => None,
        };
        self.loans
            .lend(parameter, Loan { slot: self.slot, alignment: alignment.unwrap_or(1), in_packet, from });
    }

    /// Adds a requirement to a memory argument of the running function.
    pub(super) fn need_of_lent(&mut self, lent: Lent, needs: Needs) {
        self.loans.need((self.root.function(), lent.parameter), needs);
    }

    /// Memory is accessed: if the packet was moved since the call, the memory must not lie in the packet.
    pub(super) fn touch_lent(&mut self, lent: Option<Lent>) {
        if let Some(lent) = lent.filter(|lent| lent.packet_moved) {
            self.need_of_lent(lent, Needs::TO_STAY);
        }
    }

    /// The packet may have moved, and memory arguments may lie in it.
    pub(super) fn note_packet_moved(&mut self) {
        let is_lent = |value: &Value| {
            let target = value.pointer().map(|p| p.target);
            matches!(target, Some(Target::Memory { lent: Some(_), .. } | Target::Slice { lent: Some(_), .. }))
        };
        self.state.update(is_lent, |value| {
            let Value::Pointer(Pointer { target, .. }) = value else { return };
            if let Target::Memory { lent: Some(lent), .. } | Target::Slice { lent: Some(lent), .. } = target {
                lent.packet_moved = true;
            }
        });
    }

    fn function_name(&self, function: usize) -> String {
        let start = self.flow.functions.get(function).map_or(0, |f| f.start);
        let info = self.program.functions.iter().find(|f| f.start == start);
        info.map_or_else(|| format!("function at {start}"), |info| info.name.clone())
    }

    /// Records the memory of a dynptr argument.
    fn note_lent_dynptr(&mut self, parameter: lend::Parameter, dynptr: &Dynptr) {
        let from = match dynptr.memory {
            DynptrMemory::Lent(parameter) => Some((self.root.function(), parameter)),
            _ => None,
        };
        let in_packet = dynptr.memory == DynptrMemory::Packet;
        self.loans.lend(parameter, Loan { slot: self.slot, alignment: 1, in_packet, from });
    }

    /// Checks an argument against a parameter: function index and number.
    fn check_parameter(
        &mut self,
        place: lend::Parameter,
        name: &str,
        reg: Reg,
        parameter: Parameter,
    ) -> Check {
        let value = self.read(reg)?;
        match (parameter, value) {
            (Parameter::Number, Value::Scalar(_)) => Ok(()),
            (Parameter::Number, other) => wrong_argument(name, reg, "a number", &other),
            (Parameter::Context, Value::Pointer(p)) if p.target == Target::Context => {
                check_context_pointer(reg, &p)
            }
            (Parameter::Context, other) => wrong_argument(name, reg, "the context", &other),
            (Parameter::Memory { nullable, .. }, value) if value.is_null() => {
                self.mark_precise(&value);
                if nullable {
                    return Ok(());
                }
                wrong_argument(name, reg, "a pointer that is not null", &value)
            }
            (Parameter::Memory { size, nullable }, Value::Pointer(pointer)) => {
                if pointer.nullable && !nullable {
                    return reject_with(Cause::MayBeNull(RegName(reg), pointer.target), Hint::NullCheck);
                }
                // The function checks for null itself.
                self.check_lent(name, reg, &Pointer { nullable: false, ..pointer }, u64::from(size))?;
                self.note_loan(place, reg, &pointer);
                Ok(())
            }
            (Parameter::Memory { .. }, other) => wrong_argument(name, reg, "a pointer to memory", &other),
            (Parameter::Dynptr, value) => {
                let dynptr = self.check_dynptr(name, reg, &value)?;
                self.note_lent_dynptr(place, &dynptr);
                Ok(())
            }
        }
    }

    /// A memory argument of a global function, which must be readable and writable.
    fn check_lent(&mut self, name: &str, register: Reg, pointer: &Pointer, size: u64) -> Check {
        for access in [Access::Read, Access::Write] {
            let span = Span { register, pointer: *pointer, offset: 0, size, access };
            match pointer.target {
                Target::Stack { frame } => {
                    let frame = usize::from(frame);
                    self.check_stack(&span, frame)?;
                    let range = span.offsets();
                    let reach = (range.max - range.min).unsigned_abs() + size;
                    self.note_read(frame, range.min, reach)?;
                    if access == Access::Write {
                        self.overwrite_stack(&span, frame)?;
                    }
                }
                Target::MapValue(_) | Target::Packet { .. } | Target::Memory { .. } => {
                    self.check_span(&span)?
                }
                _ => return wrong_argument(name, register, "a pointer to memory", &Value::Pointer(*pointer)),
            }
        }
        Ok(())
    }
}

fn parameter(
    btf: &Btf,
    kind: ProgramKind,
    ty: TypeId,
    is_context: bool,
    is_nonnull: bool,
) -> Result<Parameter, &'static str> {
    let (_, resolved) = btf.resolve(ty).map_err(|_| "an argument has no type")?;
    let Type::Ptr(pointee) = resolved else {
        return if is_number(btf, ty) {
            Ok(Parameter::Number)
        } else {
            Err("an argument is neither a number nor a pointer")
        };
    };
    if is_context {
        return Ok(Parameter::Context);
    }
    let (id, pointee) = btf.resolve(*pointee).map_err(|_| "an argument has no type")?;
    // `btf_is_dynptr_ptr`
    let is_structure = matches!(pointee, Type::Struct(_) | Type::Forward { union: false, .. });
    if is_structure && btf.type_name(id) == "bpf_dynptr" {
        return if is_nonnull { Err("a dynptr has a tag") } else { Ok(Parameter::Dynptr) };
    }
    if matches!(pointee, Type::Struct(_)) && btf.type_name(id) == kind.context().name {
        return Ok(Parameter::Context);
    }
    let size = btf.size_of(id).ok().and_then(|size| u32::try_from(size).ok());
    let size = size.ok_or("an argument points to something of unknown size")?;
    Ok(Parameter::Memory { size, nullable: !is_nonnull })
}

fn is_void(btf: &Btf, ty: TypeId) -> bool {
    matches!(btf.resolve(ty), Ok((_, Type::Void)))
}

fn is_number(btf: &Btf, ty: TypeId) -> bool {
    matches!(btf.resolve(ty), Ok((_, Type::Int(_) | Type::Enum(_))))
}

/// The tags of a function's arguments, each with the argument's number.
fn tags(btf: &Btf, function: TypeId) -> Vec<(usize, &'static str)> {
    let tag = |t: &Type| match t {
        Type::DeclTag { name, ty, component } if *ty == function => {
            let known = ["arg:nonnull", "arg:ctx"].into_iter().find(|known| btf.is_named(*name, known))?;
            Some((usize::try_from(*component).ok()?, known))
        }
        _ => None,
    };
    let mut tags: Vec<_> = btf.types().filter_map(|(_, t)| tag(t)).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}
