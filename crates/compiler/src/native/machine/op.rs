//! The operations that all machines have code for, before their registers are known. Comments name the operands: uses, then definitions.

use crate::ir::{BinaryOp, FuncId};
use paceline_isa::{AtomicOp, Condition, Size};
use paceline_spec::Actions;
use paceline_spec::context::AreaUse;

use crate::ir::expand::ArrayLink;
use crate::native::links::ProgArrayLink;
use crate::native::machine::operand::{Scale, Width};

/// An operation on two numbers that may be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AluOp {
    Add,
    Sub,
    Or,
    And,
    Xor,
}

impl AluOp {
    pub(crate) const fn of(op: BinaryOp) -> Option<Self> {
        Some(match op {
            BinaryOp::Add => Self::Add,
            BinaryOp::Sub => Self::Sub,
            BinaryOp::Or => Self::Or,
            BinaryOp::And => Self::And,
            BinaryOp::Xor => Self::Xor,
            _ => return None,
        })
    }
}

/// A shift or a rotation; the count is taken modulo the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShiftOp {
    Shl,
    Lshr,
    Ashr,
    Rotl,
}

/// A place in memory. If it has a base, that is the first operand of its instruction; the index is the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// At a distance from the base.
    Base(i32),
    /// At a distance from the sum of the base and a multiple of the index.
    Indexed(Scale, i32),
    /// At a distance from the end of the function's stack.
    Stack(i32),
}

impl At {
    /// Number of its operands.
    pub(crate) const fn operands(self) -> usize {
        match self {
            Self::Base(_) => 1,
            Self::Indexed(..) => 2,
            Self::Stack(_) => 0,
        }
    }
}

/// A comparison of registers, or of a register and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compare {
    pub(crate) width: Width,
    /// Whether it is one of the bits in common with 0.
    pub(crate) tests: bool,
    /// The second operand, if it is a number.
    pub(crate) imm: Option<i32>,
}

/// A comparison of a place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompareMem {
    pub(crate) size: Size,
    pub(crate) at: At,
    /// Whether it is one of the bits in common with 0.
    pub(crate) tests: bool,
    /// The second operand, if it is a number.
    pub(crate) imm: Option<i32>,
}

/// A function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// One of the runtime, at an address.
    Runtime(u64),
    /// One of the program.
    Function(FuncId),
}

/// How an entry of a program array is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// In the array of a known map.
    Array(ProgArrayLink),
    /// At this address.
    Entry(u64),
    /// By the runtime, for a map that is not known before the program runs.
    Runtime,
}

/// What is initialized for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    /// The host is told the frame.
    pub(crate) frame: bool,
    /// The number of tail calls is set to 0.
    pub(crate) tail_calls: bool,
    /// Words of the packet's own area in the host are what they are when packets arrive.
    pub(crate) area: AreaUse,
}

/// The verdict of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A known number.
    Known(u32),
    /// What the last operand is.
    Value,
    /// What the last operand stands for, by the actions of the program's type.
    Action(&'static Actions),
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Defines the arguments of the function and the host.
    Enter,
    /// Prefetches the first packets of a burst, by the first frame and the end; two definitions are for frames.
    PrefetchFirst(i32),
    /// Prefetches a packet so many frames ahead, by the frame and the end.
    Prefetch(i32),
    /// Initializes the state of a run, by the frame and the host.
    EnterPacket(Entered),
    /// Stores the verdict of a packet to its frame, and takes the redirect target from that unless the verdict is to redirect.
    StoreVerdict {
        verdict: Verdict,
        clears: bool,
    },
    /// Adds one to a counter of the chain, by the host.
    Count(i32),
    /// Goes on with the next frame, by that and the end.
    NextPacket,
    /// A number.
    Number(u64),
    /// The address of a function.
    Function(FuncId),
    /// An address in the stack.
    Stack(i32),
    /// A sum of two registers, in a third one.
    Add(Width),
    /// A sum of a register, a multiple of another one, and a number.
    Sum(Scale, i32),
    /// A sum of a register and a number.
    AddImm(Width, i32),
    /// The first operand and the second, in the first.
    Alu(AluOp, Width),
    /// The first operand and a number, in the first.
    AluImm(AluOp, Width, i32),
    /// A product, in the first operand.
    Mul(Width),
    /// A product of a register and a number.
    MulImm(Width, i32),
    /// The negative number, in the operand.
    Neg(Width),
    /// The first operand shifted by the second.
    Shift(ShiftOp, Width),
    /// The operand shifted by a number.
    ShiftImm(ShiftOp, Width, u8),
    /// The high half of a product.
    MulHigh(Width),
    /// The first operand divided by the second; the quotient, or the remainder.
    Divide {
        width: Width,
        signed: bool,
        remainder: bool,
    },
    /// The operand divided by a number that is neither 0 nor, if it is signed, -1.
    DivideBy {
        width: Width,
        signed: bool,
        remainder: bool,
        number: u64,
    },
    /// The low bits of the operand.
    ZeroExtend(Size),
    /// The low bits of the operand with their sign.
    SignExtend(Width, Size),
    /// The low bytes in reverse order, in the operand.
    Swap(Size),
    /// The two low bytes in reverse order, in the operand, which has zeros above.
    SwapHalf,
    /// 1 if a condition holds.
    Set(Condition, Compare),
    Load {
        size: Size,
        signed: bool,
        at: At,
    },
    /// A load that no later access overtakes, where others may.
    LoadAcquire(Size, At),
    /// The last operand is stored, and overtakes no earlier access, where others may.
    StoreRelease(Size, At),
    /// The last operand is stored.
    Store(Size, At),
    StoreImm(Size, At, i32),
    /// An operation on a place with the last operand.
    Update(AluOp, Size, At),
    /// The same with a number.
    UpdateImm(AluOp, Size, At, i32),
    /// The last operand is stored if it is below a number.
    StoreBelow(Size, At, u64),
    /// An atomic operation with the last operand that has no result.
    Atomic(AluOp, Width, At),
    /// The same with a number.
    AtomicImm(AluOp, Width, At, i32),
    /// An atomic operation with the operand behind the place, whose old value is in it: additions and exchanges.
    Fetch(AtomicOp, Width, At),
    /// `or`, `and` and `xor` with the operand behind the place; the old value is in its register. Where that is a certain one, the
    /// operand is also in there.
    FetchLoop(AluOp, Width, At),
    /// Compares with the second operand behind the place, and stores the first if that is there; the result is the old value.
    CompareExchange(Width, At),
    /// The packet's length, by its frame.
    PacketLen,
    /// A legacy packet load by the frame, and an index if there is one; the second definition is for the packet's length.
    PacketLoad {
        size: Size,
        indexed: bool,
        offset: i32,
    },
    /// A call with its arguments in their registers.
    Call(Called),
    /// Tells the host what a helper may read at any address: memory of the maps in this table of so many entries, and the stack.
    TellReadable(u64, i32),
    /// The value of an array at the index that is stored at a place; after that the host, if values are by CPU.
    LookUp(ArrayLink, At),
    /// Runs another program in place of this one, if there is one.
    TailCall(Token),
    /// Runs another program. The result is the low half of its result, or [`NO_PROGRAM`](crate::ir::Callee::NO_PROGRAM).
    RunProgram(Token),
    Jump,
    /// A jump into a loop. If that comes next, its first instruction is aligned where that pays.
    EnterLoop,
    Branch(Condition, Compare),
    /// A branch by a place in memory, and the last operand if it is no number.
    BranchMem(Condition, CompareMem),
    MayGoto,
    /// Returns the operand, which is in the register for that.
    Return,
}

/// Operations that are emitted alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Values without operands, and what has no code.
    Known,
    Arithmetic,
    /// Those of the loop over a burst.
    Burst,
    Memory,
    /// Ordered and atomic accesses.
    Atomic,
    Control,
}

impl Op {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Enter | Self::Number(_) | Self::Function(_) | Self::Stack(_) => Kind::Known,
            Self::Add(..)
            | Self::AddImm(..)
            | Self::Sum(..)
            | Self::Alu(..)
            | Self::AluImm(..)
            | Self::Mul(..)
            | Self::MulImm(..)
            | Self::Neg(..)
            | Self::Shift(..)
            | Self::ShiftImm(..)
            | Self::MulHigh(..)
            | Self::Divide { .. }
            | Self::DivideBy { .. }
            | Self::ZeroExtend(..)
            | Self::SignExtend(..)
            | Self::Swap(..)
            | Self::SwapHalf
            | Self::Set(..) => Kind::Arithmetic,
            Self::PrefetchFirst(_)
            | Self::Prefetch(_)
            | Self::EnterPacket(_)
            | Self::StoreVerdict { .. }
            | Self::Count(_)
            | Self::NextPacket => Kind::Burst,
            Self::Load { .. }
            | Self::Store(..)
            | Self::StoreImm(..)
            | Self::Update(..)
            | Self::UpdateImm(..)
            | Self::StoreBelow(..)
            | Self::PacketLen
            | Self::PacketLoad { .. }
            | Self::LookUp(..)
            | Self::TellReadable(..) => Kind::Memory,
            Self::LoadAcquire(..)
            | Self::StoreRelease(..)
            | Self::Atomic(..)
            | Self::AtomicImm(..)
            | Self::Fetch(..)
            | Self::FetchLoop(..)
            | Self::CompareExchange(..) => Kind::Atomic,
            Self::Call(_)
            | Self::TailCall(_)
            | Self::RunProgram(_)
            | Self::Jump
            | Self::EnterLoop
            | Self::Branch(..)
            | Self::BranchMem(..)
            | Self::MayGoto
            | Self::Return => Kind::Control,
        }
    }
}

/// The right rotation that is one to the left.
pub(crate) const fn right(width: Width, count: u8) -> u8 {
    let bits: u8 = match width {
        Width::D32 => 32,
        Width::Q64 => 64,
    };
    bits.wrapping_sub(count) & (bits - 1)
}
