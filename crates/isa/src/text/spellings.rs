//! Other spellings: read, never written.
//!
//! The kernel's disassembler (`kernel/bpf/disasm.c`, behind `bpftool prog dump xlated`) has its own text for some
//! instructions, and llvm-objdump shows the bare numbers of references. Both are ambiguous without the opcode,
//! so they are read only on lines of a listing that shows it.

use crate::AtomicOp;
use crate::Width::{W32, W64};
use crate::table::Form;
use crate::table::Imm64Kind::{Code, MapFd, MapIndex, MapValueFd, MapValueIndex, Value, Variable};

/// Forms and other templates for them.
pub(super) static SPELLINGS: &[(Form, &str)] = &[
    // bpftool
    (Form::LoadImm64(Value), "{rd} = {value}"),
    (Form::LoadImm64(Code), "{rd} = subprog[{far}]"),
    (Form::LoadImm64(MapIndex), "{rd} = map[id:{map_id}]"),
    (Form::LoadImm64(MapValueIndex), "{rd} = map[id:{map_id}][0]{at}"),
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
    // llvm-objdump, where the bytes beside the text say which kind of reference it is
    (Form::LoadImm64(MapFd), "{rd} = {value} ll"),
    (Form::LoadImm64(MapValueFd), "{rd} = {value} ll"),
    (Form::LoadImm64(Variable), "{rd} = {value} ll"),
    (Form::LoadImm64(Code), "{rd} = {value} ll"),
    (Form::LoadImm64(MapIndex), "{rd} = {value} ll"),
    (Form::LoadImm64(MapValueIndex), "{rd} = {value} ll"),
    (Form::CallKfunc, "call {imm}"),
];
