//! The operations.
//!
//! As text: `const.i64 -1`; addresses `map_address 0`, `value_address 2+8`, `function_address 1`, `stack_address -8`; arithmetic
//! `add` to `ashr`, `neg`, and of passes only `rotl` and `umulhi`, each `.i32` or `.i64`; `zext`, `trunc`, `sext8.i32`,
//! `swap16.i32`; `compare.ult.i64 v1, v2`; `load.u16 packet v1+12 in 12..12 of 34`, where `s16` extends the sign; `store.u32 stack
//! v1-8, v2`; `atomic.fetch_add.i64`, `load_acquire.u32`, `store_release.u32`; `context_load.u32 v0+0`, `context_store.u32 v0+8,
//! v1`; `packet_load.u16 v0, v1+14`; `call bpf_ktime_get_ns()`, `call kfunc 0(v1)`, `call function 1(v1)`, in native code `call
//! look_up 3(v1)` by a key's number; `tail_call(v0, v1, v2)`; in a chain `run_program(v0, v1, v2)`, `begin 1`, `count 5`, `finish`,
//! `fault`; ends of blocks `jump`, `branch.ugt.i64 v1, v2, block1, block2(v3)`, `may_goto`, `return v1`, `stop`.

mod call;
mod number;
mod run;

use paceline_isa::{AtomicOp, Condition, Size, Width};

pub use self::call::{Address, Args, Callee};
pub use self::number::{ATOMICS, BinaryOp, CONDITIONS};
pub use self::run::RunOp;
use crate::ir::entity::Value;
use crate::ir::types::{Access, Type};

/// An operation. Operands that are not said to be `i32` or of the operation's type are `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A number.
    Const {
        /// Type of the result.
        ty: Type,
        /// The number, cut to the type.
        value: u64,
    },
    /// An address.
    Address(Address),
    /// The address of a byte of the running function's stack, which is zero on entry.
    StackAddress {
        /// Offset in bytes from its end (`r10`).
        offset: i32,
    },
    /// Arithmetic with two operands.
    Binary {
        /// Operation.
        op: BinaryOp,
        /// Type of the operands and the result.
        ty: Type,
        /// Operands.
        args: [Value; 2],
    },
    /// The negative number.
    Neg {
        /// Type of the operand and the result.
        ty: Type,
        /// Operand.
        arg: Value,
    },
    /// The low bytes of the operand with their sign extended. The operand is `i32` if these are four bytes, and of the result's type
    /// otherwise.
    SignExtend {
        /// One, two or four bytes; four only for an `i64`.
        from: Size,
        /// Type of the result.
        ty: Type,
        /// Operand.
        arg: Value,
    },
    /// An `i32` as an `i64` with zeros above.
    ZeroExtend {
        /// Operand.
        arg: Value,
    },
    /// The low half of an `i64` as an `i32`.
    Truncate {
        /// Operand.
        arg: Value,
    },
    /// The low bytes of the operand in reverse order, with zeros above.
    Swap {
        /// Two, four or eight bytes; eight only for an `i64`.
        size: Size,
        /// Type of the operand and the result.
        ty: Type,
        /// Operand.
        arg: Value,
    },
    /// 1 if the condition holds and 0 otherwise, as an `i32`.
    Compare {
        /// Condition.
        condition: Condition,
        /// Type of the operands.
        ty: Type,
        /// Operands.
        args: [Value; 2],
    },
    /// A load from `base + offset`, extended to an `i64`.
    Load {
        /// Size of the access.
        size: Size,
        /// Whether the sign is extended.
        signed: bool,
        /// What is known of it.
        access: Access,
        /// Address.
        base: Value,
        /// Offset in bytes.
        offset: i32,
    },
    /// A store of the low bytes of a value at `base + offset`.
    Store {
        /// Size of the access.
        size: Size,
        /// What is known of it.
        access: Access,
        /// Address.
        base: Value,
        /// Offset in bytes.
        offset: i32,
        /// The value.
        value: Value,
    },
    /// An atomic operation on the memory at `base + offset`, in one total order with all others. The old value, as an `i64` with
    /// zeros above, is the result if the operation [fetches](AtomicOp::fetches) it.
    Atomic {
        /// Operation.
        op: AtomicOp,
        /// Width of the memory.
        width: Width,
        /// What is known of it.
        access: Access,
        /// Address.
        base: Value,
        /// Offset in bytes.
        offset: i32,
        /// Operand.
        value: Value,
        /// The value that the memory is compared with: of [`AtomicOp::CmpXchg`] only.
        expected: Option<Value>,
    },
    /// A load that no later access overtakes, zero-extended.
    LoadAcquire {
        /// Size of the access.
        size: Size,
        /// What is known of it.
        access: Access,
        /// Address.
        base: Value,
        /// Offset in bytes.
        offset: i32,
    },
    /// A store that overtakes no earlier access.
    StoreRelease {
        /// Size of the access.
        size: Size,
        /// What is known of it.
        access: Access,
        /// Address.
        base: Value,
        /// Offset in bytes.
        offset: i32,
        /// The value.
        value: Value,
    },
    /// A field of the context, or a part of one. A field of 32 bits that stands for a pointer gives all of the pointer.
    ContextLoad {
        /// Size of the access.
        size: Size,
        /// Whether the sign is extended.
        signed: bool,
        /// The context.
        context: Value,
        /// Offset in bytes from the context's start; in a chain of several structures of context from that of the first one, see
        /// [`CONTEXT_BYTES`](crate::ir::CONTEXT_BYTES).
        offset: i32,
    },
    /// Writes a field of the context, or a part of one.
    ContextStore {
        /// Size of the access.
        size: Size,
        /// The context.
        context: Value,
        /// As for a load.
        offset: i32,
        /// The value.
        value: Value,
    },
    /// A legacy packet load: the number in network order at `index + offset` of the packet, or -1 if that is outside of it. Of the
    /// index the low 32 bits count, as a signed number.
    PacketLoad {
        /// One, two or four bytes.
        size: Size,
        /// The context.
        context: Value,
        /// Index.
        index: Option<Value>,
        /// Offset in bytes.
        offset: i32,
    },
    /// An operation on the state of a run.
    Run(RunOp),
    /// A call.
    Call {
        /// What is called.
        callee: Callee,
        /// Arguments.
        args: Args,
    },
}

impl Op {
    /// A number.
    #[must_use]
    pub const fn constant(ty: Type, value: u64) -> Self {
        Self::Const { ty, value: ty.cut(value) }
    }

    /// Type of the result; `None` if it has none.
    #[must_use]
    pub const fn result(&self) -> Option<Type> {
        match self {
            Self::Const { ty, .. }
            | Self::Binary { ty, .. }
            | Self::Neg { ty, .. }
            | Self::SignExtend { ty, .. }
            | Self::Swap { ty, .. } => Some(*ty),
            Self::Truncate { .. } | Self::Compare { .. } => Some(Type::I32),
            Self::Address(_)
            | Self::StackAddress { .. }
            | Self::ZeroExtend { .. }
            | Self::Load { .. }
            | Self::LoadAcquire { .. }
            | Self::ContextLoad { .. }
            | Self::PacketLoad { .. } => Some(Type::I64),
            Self::Atomic { op, .. } if op.fetches() => Some(Type::I64),
            Self::Run(RunOp::Fault) => Some(Type::I64),
            Self::Run(RunOp::Begin { .. } | RunOp::Count { .. } | RunOp::Finish) => None,
            Self::Call { callee: Callee::TailCall, .. } => None,
            Self::Call { .. } => Some(Type::I64),
            Self::Store { .. }
            | Self::Atomic { .. }
            | Self::StoreRelease { .. }
            | Self::ContextStore { .. } => None,
        }
    }

    /// Calls `visit` with each operand and its type, in order.
    pub fn operands(&self, mut visit: impl FnMut(Value, Type)) {
        match *self {
            Self::Const { .. } | Self::Address(_) | Self::StackAddress { .. } | Self::Run(_) => {}
            Self::Binary { ty, args, .. } | Self::Compare { ty, args, .. } => {
                args.into_iter().for_each(|arg| visit(arg, ty));
            }
            Self::Neg { ty, arg } | Self::Swap { ty, arg, .. } => visit(arg, ty),
            Self::SignExtend { from: Size::W, arg, .. } | Self::ZeroExtend { arg } => visit(arg, Type::I32),
            Self::SignExtend { ty, arg, .. } => visit(arg, ty),
            Self::Truncate { arg } => visit(arg, Type::I64),
            Self::Load { base, .. } | Self::LoadAcquire { base, .. } => visit(base, Type::I64),
            Self::ContextLoad { context, .. } => visit(context, Type::I64),
            Self::Store { base, value, .. } | Self::StoreRelease { base, value, .. } => {
                visit(base, Type::I64);
                visit(value, Type::I64);
            }
            Self::ContextStore { context, value, .. } => {
                visit(context, Type::I64);
                visit(value, Type::I64);
            }
            Self::Atomic { base, value, expected, .. } => {
                visit(base, Type::I64);
                visit(value, Type::I64);
                expected.into_iter().for_each(|expected| visit(expected, Type::I64));
            }
            Self::PacketLoad { context, index, .. } => {
                visit(context, Type::I64);
                index.into_iter().for_each(|index| visit(index, Type::I64));
            }
            Self::Call { ref args, .. } => args.as_slice().iter().for_each(|arg| visit(*arg, Type::I64)),
        }
    }

    /// The operation with each operand replaced.
    #[must_use]
    pub fn map_operands(mut self, change: impl FnMut(Value) -> Value) -> Self {
        self.change_operands(change);
        self
    }

    /// Replaces each operand.
    pub fn change_operands(&mut self, mut change: impl FnMut(Value) -> Value) {
        match self {
            Self::Const { .. } | Self::Address(_) | Self::StackAddress { .. } | Self::Run(_) => {}
            Self::Binary { args: [a, b], .. } | Self::Compare { args: [a, b], .. } => {
                (*a, *b) = (change(*a), change(*b));
            }
            Self::Neg { arg, .. }
            | Self::Swap { arg, .. }
            | Self::SignExtend { arg, .. }
            | Self::ZeroExtend { arg }
            | Self::Truncate { arg } => *arg = change(*arg),
            Self::Load { base, .. } | Self::LoadAcquire { base, .. } => *base = change(*base),
            Self::ContextLoad { context, .. } => *context = change(*context),
            Self::Store { base, value, .. } | Self::StoreRelease { base, value, .. } => {
                (*base, *value) = (change(*base), change(*value));
            }
            Self::ContextStore { context, value, .. } => {
                (*context, *value) = (change(*context), change(*value));
            }
            Self::Atomic { base, value, expected, .. } => {
                (*base, *value) = (change(*base), change(*value));
                *expected = expected.map(change);
            }
            Self::PacketLoad { context, index, .. } => {
                *context = change(*context);
                *index = index.map(change);
            }
            Self::Call { args, .. } => *args = args.map(&mut change),
        }
    }

    /// Address, offset, size and facts of an access to memory.
    #[must_use]
    pub fn access(&self) -> Option<(Value, i32, Size, Access)> {
        match *self {
            Self::Load { base, offset, size, access, .. }
            | Self::Store { base, offset, size, access, .. }
            | Self::LoadAcquire { base, offset, size, access }
            | Self::StoreRelease { base, offset, size, access, .. } => Some((base, offset, size, access)),
            Self::Atomic { base, offset, width, access, .. } => {
                let size = if width == Width::W32 { Size::W } else { Size::Dw };
                Some((base, offset, size, access))
            }
            _ => None,
        }
    }

    /// The facts of an access to memory, to be changed.
    pub(crate) fn access_mut(&mut self) -> Option<&mut Access> {
        match self {
            Self::Load { access, .. }
            | Self::Store { access, .. }
            | Self::LoadAcquire { access, .. }
            | Self::StoreRelease { access, .. }
            | Self::Atomic { access, .. } => Some(access),
            _ => None,
        }
    }
}
