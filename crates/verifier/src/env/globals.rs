//! The types of global functions (`btf_prepare_func_args`).

use paceline_btf::{Btf, Type, TypeId};
use paceline_isa::RegSet;
use paceline_spec::{FunctionInfo, ProgramKind};

use crate::error::{Cause, Check, reject};

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
#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
}

/// The parameters of a global function.
pub(super) fn parameters(
    info: Option<&FunctionInfo>,
    btf: Option<&Btf>,
    kind: ProgramKind,
) -> Check<Vec<Parameter>> {
    let (Some(info), Some(btf)) = (info, btf) else {
        return reject(Cause::GlobalFunction { name: String::new(), problem: "it has no BTF type" });
    };
    let problem = |problem| reject(Cause::GlobalFunction { name: info.name.clone(), problem });
    let Some(Type::Func { proto, .. }) = btf.get(info.btf_id) else {
        return problem("its type is not a function type");
    };
    let Some(Type::FuncProto { result, params }) = btf.get(*proto) else {
        return problem("its type is not a function type");
    };
    if params.len() > RegSet::ARGUMENTS.len() {
        return problem("it takes more than 5 arguments");
    }
    if !is_void(btf, *result) && !is_number(btf, *result) {
        return problem("its return type is not a number");
    }
    let tags = tags(btf, info.btf_id);
    let parameter = |(i, p): (usize, &paceline_btf::Param)| {
        let has_tag = |wanted| tags.contains(&(i, wanted));
        let (is_nonnull, is_context) = (has_tag("arg:nonnull"), has_tag("arg:ctx"));
        parameter(btf, kind, p.ty, is_context, is_nonnull)
    };
    let found: Result<Vec<Parameter>, &'static str> = params.iter().enumerate().map(parameter).collect();
    found.or_else(problem)
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
    let is_struct = matches!(pointee, Type::Struct(_) | Type::Forward { union: false, .. });
    if is_struct && btf.type_name(id) == "bpf_dynptr" {
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
