//! Types for the kernel: those of a program in the form that the kernel accepts, and the kernel's own by name.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, OnceLock, PoisonError};

use paceline_btf::{
    Btf, DataSection, Int, IntEncoding, Name, Param, SectionVar, SymbolLinkage, Type, TypeId,
};
use paceline_isa::{Callee, Insn, RawInsn, decode_at};
use paceline_spec::{Errno, KfuncRef, Linkage, ProgramSpec};

use crate::error::KernelError;

/// Name of the operation in errors about kernel functions that this kernel lacks.
pub const FIND_FUNCTION: &str = "find kernel function";

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// The types of programs as libbpf passes them to the kernel. The kernel allows no extern symbols, and requires functions
/// that are verified with their callers to be static, whatever their linkage in C (`bpf_object__collect_externs` and
/// `bpf_object__load_btf` in `libbpf.c`). The loader has already filled in sizes and offsets in sections.
pub(super) fn loadable<'a>(btf: &Btf, programs: impl IntoIterator<Item = &'a ProgramSpec>) -> Btf {
    let mut btf = btf.clone();
    for function in programs.into_iter().flat_map(|program| &program.functions) {
        if let Some(Type::Func { linkage, .. }) = btf.get_mut(function.btf_id) {
            *linkage = match function.linkage {
                Linkage::Static => SymbolLinkage::Static,
                Linkage::Global => SymbolLinkage::Global,
            };
        }
    }
    define_externs(&mut btf);
    btf
}

fn define_externs(btf: &mut Btf) {
    let symbols = btf.data_section(".ksyms").map(|(id, section)| (id, section.clone()));
    if let Some((id, section)) = symbols {
        define_symbols(btf, id, &section);
    }
    let ids: Vec<TypeId> = btf.types().map(|(id, _)| id).collect();
    let name = btf.add_name("unnamed");
    for id in ids {
        let Some(Type::Var { linkage, ty, .. } | Type::Func { linkage, proto: ty, .. }) = btf.get_mut(id)
        else {
            continue;
        };
        if *linkage != SymbolLinkage::Extern {
            continue;
        }
        *linkage = SymbolLinkage::Global;
        let proto = *ty;
        if let Some(Type::FuncProto { params, .. }) = btf.get_mut(proto) {
            name_all(params, name);
        }
    }
}

/// The kernel requires names for parameters of functions.
fn name_all(params: &mut [Param], name: Name) {
    for param in params.iter_mut().filter(|param| param.ty != 0 && param.name.is_empty()) {
        param.name = name;
    }
}

/// The kernel's symbols become a section of integers, because their types are the kernel's and a section cannot contain
/// functions.
fn define_symbols(btf: &mut Btf, id: TypeId, section: &DataSection) {
    const SIZE: u32 = 4;
    let name = btf.add_name("int");
    let int = Int { name, size: SIZE, encoding: IntEncoding::Signed, bit_offset: 0, bits: 32 };
    let int = btf.add(Type::Int(int));
    let name = btf.add_name("dummy_ksym");
    let stand_in = btf.add(Type::Var { name, ty: int, linkage: SymbolLinkage::Global });
    let place = |(offset, var): (u32, &SectionVar)| {
        let ty = match btf.get_mut(var.ty) {
            Some(Type::Var { ty, .. }) => {
                *ty = int;
                var.ty
            }
            _ => stand_in,
        };
        SectionVar { ty, offset, size: SIZE }
    };
    let vars: Box<[SectionVar]> = (0..).step_by(SIZE as usize).zip(&section.vars).map(place).collect();
    let size = SIZE.saturating_mul(u32::try_from(vars.len()).unwrap_or(u32::MAX));
    if let Some(place) = btf.get_mut(id) {
        *place = Type::DataSection(DataSection { name: section.name, size, vars });
    }
}

/// First slot and BTF type of every function; empty if a function has no type, because the kernel requires types for all or
/// none.
pub(super) fn function_types(spec: &ProgramSpec) -> Vec<(u32, TypeId)> {
    if spec.functions.iter().any(|f| f.btf_id == 0) {
        return Vec::new();
    }
    spec.functions.iter().map(|f| (u32::try_from(f.start).unwrap_or(u32::MAX), f.btf_id)).collect()
}

/// The instructions with calls of kernel functions by BTF id instead of index in `kfuncs`.
///
/// # Errors
/// The first function that this kernel lacks.
pub(super) fn with_kernel_functions(
    insns: &[RawInsn],
    kfuncs: &[KfuncRef],
) -> Result<Vec<RawInsn>, KernelError> {
    let mut insns = insns.to_vec();
    if kfuncs.is_empty() {
        return Ok(insns);
    }
    let callee = |insns: &[RawInsn], slot| match decode_at(insns, slot) {
        Ok(Insn::Call(Callee::Kfunc { btf_id, module: 0 })) => usize::try_from(btf_id).ok(),
        _ => None,
    };
    for slot in 0..insns.len() {
        let Some(kfunc) = callee(&insns, slot).and_then(|index| kfuncs.get(index)) else { continue };
        let id = kernel_function(kfunc)?;
        if let Some(insn) = insns.get_mut(slot) {
            insn.imm = id.cast_signed();
        }
    }
    Ok(insns)
}

fn kernel_function(KfuncRef { name, converted, .. }: &KfuncRef) -> Result<TypeId, KernelError> {
    // Cached, because a search of all kernel types takes longer than loading a program.
    static FOUND: Mutex<BTreeMap<String, TypeId>> = Mutex::new(BTreeMap::new());
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    // No program can call the functions of the kernel's own converter.
    let found = match (converted, known.get(name)) {
        (true, _) => None,
        (false, Some(&id)) => Some(id),
        (false, None) => vmlinux()?.find(name, |ty| matches!(ty, Type::Func { .. })),
    };
    if let Some(id) = found {
        known.insert(name.clone(), id);
    }
    let log = || format!("{name} is no function that programs call on this kernel");
    found.ok_or_else(|| KernelError { operation: FIND_FUNCTION, errno: Errno::ENOENT, log: log() })
}

/// The running kernel's types, cached.
fn vmlinux() -> Result<&'static Btf, KernelError> {
    static TYPES: OnceLock<Result<Btf, String>> = OnceLock::new();
    let read = || {
        let bytes = fs::read(VMLINUX).map_err(|error| format!("{VMLINUX}: {error}"))?;
        Btf::parse(&bytes).map_err(|error| format!("{VMLINUX}: {error}"))
    };
    TYPES.get_or_init(read).as_ref().map_err(|reason| KernelError {
        operation: "read the kernel's types",
        errno: Errno::ENOENT,
        log: reason.clone(),
    })
}
