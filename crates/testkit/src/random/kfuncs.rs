//! The kernel functions that random programs call, the same list for all programs.

use paceline_isa::{Callee, Insn, Operand, Reg};
use paceline_spec::KfuncRef;

use super::insns::{add, mov};

/// A function, by its index in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kfunc {
    IteratorNew,
    IteratorNext,
    IteratorDestroy,
    DynptrFromXdp,
    DynptrSlice,
    DynptrSliceRdwr,
    DynptrSize,
    DynptrAdjust,
}

const NAMES: [&str; 8] = [
    "bpf_iter_num_new",
    "bpf_iter_num_next",
    "bpf_iter_num_destroy",
    "bpf_dynptr_from_xdp",
    "bpf_dynptr_slice",
    "bpf_dynptr_slice_rdwr",
    "bpf_dynptr_size",
    "bpf_dynptr_adjust",
];

/// The functions by index. Their types are not used.
pub(super) fn kfuncs() -> Vec<KfuncRef> {
    let named = |name: &str| KfuncRef { name: name.to_owned(), weak: false, btf_id: 0, converted: false };
    NAMES.into_iter().map(named).collect()
}

pub(super) fn call(kfunc: Kfunc) -> Insn {
    Insn::Call(Callee::Kfunc { btf_id: kfunc as i32, module: 0 })
}

/// The address of a stack offset.
pub(super) fn stack_address(reg: Reg, offset: i16) -> [Insn; 2] {
    [mov(reg, Operand::Reg(Reg::R10)), add(reg, i32::from(offset))]
}
