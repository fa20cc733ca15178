//! Why a program is refused, as data.

use std::fmt;

use paceline_btf::SpecialKind;
use paceline_isa::{DecodeError, Reg};
use paceline_spec::helper::Helper;
use paceline_spec::kfunc;
use paceline_spec::{MapKind, ObjectKind};

use crate::facts::Stats;
use crate::state::{Target, Value};

/// What is wrong with a program.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A slot is no instruction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// There are no instructions, or more than a million.
    #[error("a program has 1 to 1000000 instructions, not {slots}")]
    Length {
        /// How many slots there are.
        slots: usize,
    },
    /// A jump leaves its function.
    #[error("jump out of range, to {target}")]
    JumpOutOfRange {
        /// Where it goes.
        target: i64,
    },
    /// A jump goes into the second half of a 64-bit immediate load.
    #[error("jump into the middle of the 64-bit load before {target}")]
    JumpIntoImmediate {
        /// Where it goes.
        target: usize,
    },
    /// A call or function address has no function at its target.
    #[error("call out of range, to {target}")]
    CallOutOfRange {
        /// Where it goes.
        target: i64,
    },
    /// There are more than 256 functions.
    #[error("too many functions, at most {} are allowed", crate::cfg::MAX_FUNCTIONS)]
    TooManyFunctions,
    /// More than 64 maps are used.
    #[error("too many maps, a program uses {} at most", crate::MAX_USED_MAPS)]
    TooManyMaps,
    /// The last instruction of a function lets control run on.
    #[error("last instruction of a function is neither exit nor goto")]
    FallsOff,
    /// No path leads to an instruction.
    #[error("unreachable instruction")]
    Unreachable,
    /// A register is read that was never set, or that a call has made unusable.
    #[error("{0} is read but not set")]
    NotSet(RegName),
    /// The frame pointer is the destination.
    #[error("frame pointer is read only")]
    FramePointer,
    /// A constant divisor of zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A constant shift of the width or more, or negative.
    #[error("invalid shift by {0}")]
    Shift(i32),
    /// Arithmetic that pointers do not have.
    #[error("{0}: {1} on a pointer to {2} is not allowed")]
    PointerOperation(RegName, &'static str, Target),
    /// Arithmetic on a pointer before it was compared with null.
    #[error("{0}: arithmetic on a pointer to {1} that may be null")]
    NullableArithmetic(RegName, Target),
    /// Two pointers are added, multiplied or the like.
    #[error("{0}: {1} of two pointers is not allowed")]
    TwoPointers(RegName, &'static str),
    /// A number minus a pointer.
    #[error("{0}: a pointer is subtracted from a number")]
    PointerSubtracted(RegName),
    /// A pointer offset of 2^29 or more, known or possible.
    #[error("{0}: offset of the pointer to {1} may get out of bounds ({2})")]
    PointerOffset(RegName, Target, String),
    /// A memory access through something that is no pointer to memory.
    #[error("{0}: invalid memory access through {1}")]
    NoMemory(RegName, String),
    /// A memory access through a pointer that may be null.
    #[error("{0}: invalid memory access, the pointer to {1} may be null")]
    MayBeNull(RegName, Target),
    /// An access that may lie outside of what the pointer points to.
    #[error("{register}: invalid access to {target}, offset {offset} size {size}{}", limit_text(.limit))]
    OutOfBounds {
        /// The address register.
        register: RegName,
        /// What it points to.
        target: Target,
        /// Possible offsets, with that of the instruction.
        offset: OffsetRange,
        /// Bytes accessed.
        size: u64,
        /// Bytes that are there; `None` if nothing is known.
        limit: Option<u64>,
    },
    /// The variable part of an offset may be negative.
    #[error("{0}: offset into {1} may be negative, at least {2}")]
    NegativeOffset(RegName, Target, i64),
    /// The variable part of an offset has no useful upper bound.
    #[error("{0}: offset into {1} is not bounded")]
    UnboundedOffset(RegName, Target),
    /// An access to an object of the kernel where it has no field, of a size that the field does not have, or a write.
    #[error("invalid {} {} at offset {offset} size {size} of struct {}", .kind.name(), access_text(.write), .kind.structure())]
    Object {
        /// Its kind.
        kind: ObjectKind,
        /// Offset in bytes.
        offset: i64,
        /// Bytes accessed.
        size: u64,
        /// Whether it is a write.
        write: bool,
    },
    /// An access to the context at a place, of a size, or of a kind that it does not have.
    #[error("invalid context {} at offset {offset} size {size}", access_text(.write))]
    Context {
        /// Offset in bytes.
        offset: i64,
        /// Bytes accessed.
        size: u64,
        /// Whether it is written.
        write: bool,
    },
    /// The context pointer was changed.
    #[error("{0}: dereference of a changed context pointer, offset {1}")]
    ChangedContext(RegName, String),
    /// A stack access outside of the frame's 512 bytes.
    #[error("{register}: invalid stack {}, offset {offset} size {size}", access_text(.write))]
    StackBounds {
        /// The address register.
        register: RegName,
        /// Possible offsets.
        offset: OffsetRange,
        /// Bytes accessed.
        size: u64,
        /// Whether it is written.
        write: bool,
    },
    /// A load or store to the stack that is not aligned to its size.
    #[error("misaligned stack access, offset {offset} size {size}")]
    StackAlignment {
        /// Possible offsets.
        offset: OffsetRange,
        /// Bytes accessed.
        size: u64,
    },
    /// Part of a pointer is stored to the stack.
    #[error("{0}: a pointer is spilled to the stack with less than 8 bytes")]
    PartialSpill(RegName),
    /// Part of a spilled pointer is loaded.
    #[error("part of a pointer that was spilled to the stack is loaded")]
    PartialFill,
    /// A pointer to a callee's stack is stored to a caller's.
    #[error("{0}: a pointer to the stack is stored in a caller's frame")]
    StackPointerEscapes(RegName),
    /// A function returns a pointer to its stack.
    #[error("a pointer to the stack is returned to the caller")]
    StackPointerReturned,
    /// A write to memory that the program may only read.
    #[error("{0}: write to read-only {1}")]
    ReadOnly(RegName, Target),
    /// A read from memory that the program may only write.
    #[error("{0}: read from write-only {1}")]
    WriteOnly(RegName, Target),
    /// An atomic operation on memory that has none.
    #[error("{0}: atomic operation on {1} is not allowed")]
    Atomic(RegName, String),
    /// An atomic operation at a place that may not be a multiple of its size.
    #[error("{0}: atomic operation of {1} bytes at an address that is not aligned to them")]
    AtomicAlignment(RegName, usize),
    /// An instruction reached with different kinds of base pointer, of which one is the context.
    #[error("the same instruction is used with pointers to {0} and {1}")]
    MixedPointers(Target, Target),
    /// A call of a helper that does not exist or that Paceline does not have.
    #[error("call of unknown helper {0}")]
    UnknownHelper(i32),
    /// A call of a helper that Paceline does not have.
    #[error("helper {} is not there: it would take {}", .0, would_take(.0))]
    MissingHelper(&'static str),
    /// An instruction that the loader could not relocate is reached.
    #[error("unresolved relocation: {0}")]
    Poisoned(String),
    /// A helper that this type of program may not call.
    #[error("helper {0} is not allowed in this type of program")]
    HelperNotAllowed(&'static str),
    /// A helper for GPL programs in another.
    #[error("helper {0} may be called from programs under the GPL only")]
    GplOnly(&'static str),
    /// A kernel function, all of which are for GPL programs, in another, whether the call is reached or not.
    #[error("kernel function {0} may be called from programs under the GPL only")]
    GplKfunc(String),
    /// A helper's argument is of the wrong kind.
    #[error("{register}: {helper} wants {wanted}, not {found}")]
    Argument {
        /// The argument register.
        register: RegName,
        /// The helper's or function's name.
        helper: String,
        /// What it wants.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// A helper is called on a kind of map that it does not work on.
    #[error("helper {helper} does not work on a map of kind {kind}")]
    MapKind {
        /// Its name.
        helper: &'static str,
        /// The kind.
        kind: MapKind,
    },
    /// A helper is given packet memory that it does not take.
    #[error("{0}: {1} does not take a pointer into the packet")]
    PacketArgument(RegName, &'static str),
    /// Memory that must lie at a multiple of its size does not.
    #[error("{0}: the address is not aligned to {1} bytes")]
    ArgumentAlignment(RegName, u64),
    /// A text has no zero byte at its end.
    #[error("{0}: the text does not end within the value")]
    TextEnd(RegName),
    /// The values for a format are no whole words.
    #[error("r5: the values to print take {0} bytes, not a multiple of 8")]
    FormatArguments(u64),
    /// A format that is not understood, or prints more than there is.
    #[error("r3: invalid format, or one for more values than there are")]
    Format,
    /// A size argument that may be negative.
    #[error("{0}: size may be negative, at least {1}")]
    NegativeSize(RegName, i64),
    /// A size argument that may be zero.
    #[error("{0}: size may be zero")]
    ZeroSize(RegName),
    /// A size argument without an upper bound.
    #[error("{0}: size is not bounded, at most {1}")]
    UnboundedSize(RegName, u64),
    /// A kernel function, which user space does not have.
    #[error("kernel function {} is not there: it would take {}", .0, kfunc::would_take(.0))]
    Kfunc(String),
    /// An instruction that Paceline or this type of program does not have.
    #[error("{0} is not allowed here")]
    NotAllowed(&'static str),
    /// A 64-bit load refers to a map that is not there.
    #[error("there is no map of index {0}")]
    NoMap(i32),
    /// A direct value address in a map that has none, or outside of its value.
    #[error("no address inside the value of map {0} at offset {1}")]
    MapAddress(String, u32),
    /// Calls are nested more than 8 deep.
    #[error("the call stack is too deep: {0} frames")]
    CallDepth(usize),
    /// The frames of a chain of calls need more than 512 bytes of stack together.
    #[error("the combined stack of {frames} calls is {bytes} bytes, at most 512 are allowed")]
    StackDepth {
        /// Frames on the chain.
        frames: usize,
        /// Bytes together.
        bytes: u32,
    },
    /// A chain of calls that leads to a tail call has used too much stack before.
    #[error("tail calls are not allowed when the calls before use {0} bytes of stack")]
    TailCallStack(u32),
    /// The same state is met again.
    #[error("infinite loop")]
    InfiniteLoop,
    /// A million instructions were simulated.
    #[error("the program is too complex: {0} instructions simulated")]
    TooComplex(usize),
    /// Comparing states takes too long.
    #[error("the program is too complex: comparing its states took {0} steps")]
    TooMuchWork(usize),
    /// The states that must be kept take too much memory.
    #[error("the program is too complex: what has to be kept in mind takes {0} bytes")]
    TooMuchMemory(usize),
    /// Something acquired was not released.
    #[error("reference acquired at {slot} is not released")]
    Leak {
        /// The call that acquired it.
        slot: usize,
    },
    /// The address of a function that is not static is taken.
    #[error("the address of a function that is not static")]
    CallbackLinkage,
    /// A callback returns something else than 0 or 1.
    #[error("r0: a callback must return 0 or 1, not {0}")]
    CallbackReturn(String),
    /// What a timer calls returns something else than 0.
    #[error("r0: what a timer calls must return 0, not {0}")]
    TimerReturn(String),
    /// A timer is not where it should be, or not of the map that it is used with.
    #[error("{0}: {1}")]
    Timer(RegName, &'static str),
    /// An iterator is made where one is.
    #[error("{0}: there is an iterator here already")]
    IteratorThere(RegName),
    /// A step of an iterator where none is.
    #[error("{0}: there is no iterator here")]
    NoIterator(RegName),
    /// The bytes of an iterator are read.
    #[error("an iterator on the stack is read")]
    IteratorRead,
    /// A dynptr is wanted where none is.
    #[error("{0}: there is no dynptr here")]
    NoDynptr(RegName),
    /// The bytes of a dynptr are read.
    #[error("a dynptr on the stack is read")]
    DynptrRead,
    /// A dynptr to a record is overwritten that was not given back.
    #[error("a dynptr on the stack to a record that was not given back is overwritten")]
    RecordOverwritten,
    /// A helper would write over a dynptr.
    #[error("{0}: a dynptr on the stack would be written over")]
    DynptrWritten(RegName),
    /// A spin lock is not where it should be, or not the one that is held.
    #[error("{0}: {1}")]
    SpinLock(RegName, &'static str),
    /// Something that is not allowed while a spin lock is held.
    #[error("{what} is not allowed while the lock taken at {slot} is held")]
    LockHeld {
        /// Its kind.
        what: &'static str,
        /// The call that took the lock.
        slot: usize,
    },
    /// Loads and stores touch a field of a map value that is not for them.
    #[error("{0}: a {1} in a map value is not for loads and stores")]
    SpecialField(RegName, SpecialKind),
    /// A global function's type cannot be used, or does not fit.
    #[error("function {name}: {problem}")]
    GlobalFunction {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A global function that touches an argument after it moves the packet is given packet memory.
    #[error(
        "{register}: function {name} uses this argument after it moves the packet, so it must not lie in the packet: \
         copy the bytes to the stack before the call"
    )]
    LentPacket {
        /// The argument.
        register: RegName,
        /// The function's name.
        name: String,
    },
    /// A global function that does atomic operations on an argument is given memory that may not be aligned.
    #[error(
        "{register}: function {name} does atomic operations of {size} bytes on this argument, whose address may not be a \
         multiple of that: give it an aligned place on the stack or in a map value"
    )]
    LentAlignment {
        /// The argument.
        register: RegName,
        /// The function's name.
        name: String,
        /// Bytes of the operation.
        size: u8,
    },
    /// A global function returns something that is no number.
    #[error("r0: a global function must return a number, not {0}")]
    GlobalReturn(String),
}

fn would_take(helper: &str) -> &'static str {
    Helper::from_name(helper).map_or("an implementation", Helper::would_take)
}

impl Cause {
    /// Whether the verifier gave up: the program may well be safe.
    #[must_use]
    pub const fn is_too_complex(&self) -> bool {
        matches!(self, Self::TooComplex(_) | Self::TooMuchWork(_) | Self::TooMuchMemory(_))
    }
}

/// A register as messages write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegName(pub Reg);

impl fmt::Display for RegName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0.number())
    }
}

/// Least and greatest offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// Least.
    pub min: i64,
    /// Greatest.
    pub max: i64,
}

impl fmt::Display for OffsetRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{}..={}", self.min, self.max)
        }
    }
}

fn limit_text(limit: &Option<u64>) -> String {
    limit.map_or(String::new(), |limit| format!(", {limit} bytes are known to be there"))
}

fn access_text(write: &bool) -> &'static str {
    if *write { "write" } else { "read" }
}

/// Declares the hints, their list and their texts.
macro_rules! hints {
    ($($(#[$doc:meta])* $hint:ident => $text:literal,)*) => {
        /// The commonest mistakes, which a message can help with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Hint {
            $($(#[$doc])* $hint,)*
        }

        impl Hint {
            /// Every hint.
            pub const ALL: &[Self] = &[$(Self::$hint,)*];
        }

        impl fmt::Display for Hint {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$hint => $text,)*
                })
            }
        }
    };
}

hints! {
    /// The packet is read without a comparison with its end.
    MissingBoundsCheck => "compare the pointer plus the bytes you need with data_end first",
    /// There was a comparison, but for fewer bytes or of another pointer.
    ShortBoundsCheck => "the comparison with data_end must cover every byte of this access, and be of this pointer",
    /// The result of a look-up is used without a comparison with null.
    NullCheck => "compare the pointer with null first",
    /// A variable offset needs an upper (or lower) bound.
    BoundOffset => "bound the offset on both sides before adding it, or mask it with &",
    /// The pointer is from before a call that moved the packet.
    StalePacketPointer => "load data and data_end from the context again after the call",
    /// The slice may be a buffer that is used for something else since, or gone.
    EndedSlice => "a slice may be the buffer that was given for it: use it before the buffer gets pointers or ends",
    /// The loop needs a bound.
    BoundLoop => "give the loop a constant bound that the counter must reach",
    /// The register or variable is not set on this path.
    Initialize => "give it a value on every path that leads here",
    /// What was acquired must be released on every path.
    Release => "submit or discard it on every path",
    /// A lock must be given back.
    Unlock => "call bpf_spin_unlock before, on every path",
    /// The stack is too small for large variables.
    StackTooDeep => "keep large variables in a per-CPU array map",
    /// The helper is for other programs.
    OtherHelper => "look up which helpers this type of program has",
    /// The helper is for programs under the GPL.
    License => "declare a license that is compatible with the GPL",
    /// The largest offset that a bound lets through is one element too far.
    OffByOne => "the bound lets the first index through that is past the end: compare with >= or less",
    /// The compiler did not optimize.
    Optimize => "compile with -O2: without, compilers call helpers and functions through registers",
}

/// A branch on the path that leads to a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Slot of the jump.
    pub slot: usize,
    /// Whether it was taken.
    pub taken: bool,
}

/// Why a program is refused, where, and what was known there.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Slot of the guilty instruction.
    pub slot: usize,
    /// What is wrong.
    pub cause: Cause,
    /// What would mend it, for common mistakes.
    pub hint: Option<Hint>,
    /// What the registers hold that the instruction reads.
    pub registers: Vec<(Reg, Value)>,
    /// The call that made the guilty pointer unusable, if one did.
    pub invalidated_by: Option<usize>,
    /// The branches on the path, first to last; only the last 64.
    pub path: Vec<Branch>,
    /// Slots of the active calls, outermost first.
    pub calls: Vec<usize>,
    /// How much work the walk was up to here; nothing where the shape of the program is refused.
    pub stats: Stats,
}

impl Refusal {
    pub(crate) fn at(slot: usize, cause: Cause) -> Box<Self> {
        Box::new(Self {
            slot,
            cause,
            hint: None,
            registers: Vec::new(),
            invalidated_by: None,
            path: Vec::new(),
            stats: Stats::default(),
            calls: Vec::new(),
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}: {}", self.slot, self.cause)?;
        for (reg, value) in &self.registers {
            write!(f, "; {} is {value}", RegName(*reg))?;
        }
        if let Some(slot) = self.invalidated_by {
            write!(f, "; packet pointers are stale since the call at {slot}")?;
        }
        match self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}

/// What a rule finds wrong with an instruction; the walk adds where and how it got there.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) cause: Cause,
    pub(crate) hint: Option<Hint>,
}

impl Problem {
    pub(crate) fn with(self, hint: Hint) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Self {
        Self { cause, hint: None }
    }
}

/// The result of checking a rule.
pub(crate) type Check<T = ()> = Result<T, Box<Problem>>;

/// A rule that is broken.
pub(crate) fn reject<T>(cause: Cause) -> Check<T> {
    Err(Box::new(cause.into()))
}

/// A rule that is reject, and what would mend it.
pub(crate) fn reject_with<T>(cause: Cause, hint: Hint) -> Check<T> {
    Err(Box::new(Problem::from(cause).with(hint)))
}
