//! Alternative spellings, which are parsed but never printed. In addition to the table's placeholders, `{map_id}` is a kernel's map
//! id and `{kfunc}` the name of a kernel function.

use crate::insn::AtomicOp;
use crate::insn::Width::{W32, W64};
use crate::table::Form;
use crate::table::Imm64Kind::{Code, MapFd, MapIndex, MapValueFd, MapValueIndex, Value, Variable};

/// Unambiguous spellings: those of the kernel's disassembler (`kernel/bpf/disasm.c`, used by `bpftool prog dump xlated`), and
/// llvm-objdump's for references.
pub(super) static SPELLINGS: &[(Form, &str)] = &[
    (
        Form::Atomic(W64, AtomicOp::Add { fetch: true }),
        "{rs} = atomic64_fetch_add((u64 *)({rd} {off}), {rs})",
    ),
    (Form::Atomic(W64, AtomicOp::Or { fetch: true }), "{rs} = atomic64_fetch_or((u64 *)({rd} {off}), {rs})"),
    (
        Form::Atomic(W64, AtomicOp::And { fetch: true }),
        "{rs} = atomic64_fetch_and((u64 *)({rd} {off}), {rs})",
    ),
    (
        Form::Atomic(W64, AtomicOp::Xor { fetch: true }),
        "{rs} = atomic64_fetch_xor((u64 *)({rd} {off}), {rs})",
    ),
    (Form::Atomic(W64, AtomicOp::Xchg), "{rs} = atomic64_xchg((u64 *)({rd} {off}), {rs})"),
    (Form::Atomic(W64, AtomicOp::CmpXchg), "r0 = atomic64_cmpxchg((u64 *)({rd} {off}), r0, {rs})"),
    (Form::Atomic(W32, AtomicOp::Xchg), "{rs} = atomic_xchg((u32 *)({rd} {off}), {rs})"),
    (Form::Atomic(W32, AtomicOp::CmpXchg), "r0 = atomic_cmpxchg((u32 *)({rd} {off}), r0, {rs})"),
    (Form::CallKfunc, "call {kfunc}"),
    (Form::LoadImm64(Code), "{rd} = subprog[{far}]"),
    (Form::LoadImm64(MapIndex), "{rd} = map[id:{map_id}]"),
    (Form::LoadImm64(MapValueIndex), "{rd} = map[id:{map_id}][0]{at}"),
    (Form::LoadImm64(MapFd), "ld_pseudo {rd}, 1, {imm}"),
    (Form::LoadImm64(MapValueFd), "ld_pseudo {rd}, 2, {imm}"),
    (Form::LoadImm64(Variable), "ld_pseudo {rd}, 3, {imm}"),
    (Form::LoadImm64(Code), "ld_pseudo {rd}, 4, {imm}"),
    (Form::LoadImm64(MapIndex), "ld_pseudo {rd}, 5, {imm}"),
    (Form::LoadImm64(MapValueIndex), "ld_pseudo {rd}, 6, {imm}"),
];

/// Spellings that are ambiguous without the opcode, and only parsed in listings that show it.
pub(super) static AMBIGUOUS: &[(Form, &str)] = &[
    // bpftool omits the `ll`.
    (Form::LoadImm64(Value), "{rd} = {value}"),
    // llvm-objdump prints only the number.
    (Form::CallKfunc, "call {imm}"),
];
