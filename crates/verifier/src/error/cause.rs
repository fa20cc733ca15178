//! Causes of refusals.

use std::fmt;
use std::panic::Location;

use paceline_btf::SpecialKind;
use paceline_isa::{DecodeError, Reg};
use paceline_spec::helper::Helper;
use paceline_spec::kfunc;
use paceline_spec::{MapKind, ObjectKind};

use crate::domain::access::OffsetRange;
use crate::domain::state::{ReferenceKind, Target};
use crate::limits::{MAX_FUNCTIONS, MAX_USED_MAPS};

/// Cause of a refusal.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A slot does not decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// No instructions, or more than a million.
    #[error("a program has 1 to 1000000 instructions, not {slots}")]
    Length {
        /// Number of slots.
        slots: usize,
    },
    /// A jump leaves its function.
    #[error("jump out of range, to {target}")]
    JumpOutOfRange {
        /// Target slot.
        target: i64,
    },
    /// A jump goes into the second half of a 64-bit immediate load.
    #[error("jump into the middle of the 64-bit load before {target}")]
    JumpIntoImmediate {
        /// Target slot.
        target: usize,
    },
    /// A call or function address has no function at its target.
    #[error("call out of range, to {target}")]
    CallOutOfRange {
        /// Target slot.
        target: i64,
    },
    /// There are more than 256 functions.
    #[error("too many functions, at most {} are allowed", MAX_FUNCTIONS)]
    TooManyFunctions,
    /// More than 64 maps are used.
    #[error("too many maps, a program uses {} at most", MAX_USED_MAPS)]
    TooManyMaps,
    /// The last instruction of a function falls through.
    #[error("last instruction of a function is neither exit nor goto")]
    FallsOff,
    /// No path leads to an instruction.
    #[error("unreachable instruction")]
    Unreachable,
    /// A register is read that was never set, or that a call has clobbered.
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
    /// An arithmetic operation that is undefined for this pointer.
    #[error("{0}: {1} on a pointer to {2} is not allowed")]
    PointerOperation(RegName, &'static str, Target),
    /// Arithmetic on a pointer before it was compared with null.
    #[error("{0}: arithmetic on a pointer to {1} that may be null")]
    NullableArithmetic(RegName, Target),
    /// Arithmetic on two pointers other than subtraction.
    #[error("{0}: {1} of two pointers is not allowed")]
    TwoPointers(RegName, &'static str),
    /// A number minus a pointer.
    #[error("{0}: a pointer is subtracted from a number")]
    PointerSubtracted(RegName),
    /// A pointer offset of 2^29 or more, known or possible.
    #[error("{0}: offset of the pointer to {1} may get out of bounds ({2})")]
    PointerOffset(RegName, Target, String),
    /// A memory access through a value that is not a pointer to memory.
    #[error("{0}: invalid memory access through {1}")]
    NoMemory(RegName, String),
    /// A memory access through a pointer that may be null.
    #[error("{0}: invalid memory access, the pointer to {1} may be null")]
    MayBeNull(RegName, Target),
    /// An access that may be out of bounds.
    #[error("{register}: invalid access to {target}, offset {offset} size {size}{}", limit_text(.target, .limit))]
    OutOfBounds {
        /// The address register.
        register: RegName,
        /// Its target.
        target: Target,
        /// Possible offsets, with that of the instruction.
        offset: OffsetRange,
        /// Bytes accessed.
        size: u64,
        /// Bytes proven accessible: bounds-checked ones of a packet, the size of other memory; `None` if unknown.
        limit: Option<u64>,
    },
    /// The variable part of an offset may be negative.
    #[error("{0}: offset into {1} may be negative, at least {2}")]
    NegativeOffset(RegName, Target, i64),
    /// The variable part of an offset has no useful upper bound.
    #[error("{0}: offset into {1} is not bounded")]
    UnboundedOffset(RegName, Target),
    /// An invalid access to a kernel object: no field at the offset, wrong size, or a write.
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
    /// An invalid context access: no field at the offset, wrong size, or a write to a read-only field.
    #[error("invalid context {} at offset {offset} size {size}", access_text(.write))]
    Context {
        /// Offset in bytes.
        offset: i64,
        /// Bytes accessed.
        size: u64,
        /// Whether it is written.
        write: bool,
    },
    /// The context pointer was modified.
    #[error("{0}: dereference of a modified context pointer, offset {1}")]
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
    /// An atomic operation on memory that does not support it.
    #[error("{0}: atomic operation on {1} is not allowed")]
    Atomic(RegName, String),
    /// An atomic operation at a possibly misaligned address.
    #[error("{0}: atomic operation of {1} bytes at an address that is not aligned to them")]
    AtomicAlignment(RegName, usize),
    /// The base of a memory access is the context on one path and another pointer on another path.
    #[error("the same instruction is used with pointers to {0} and {1}")]
    MixedPointers(Target, Target),
    /// A call of an unknown helper.
    #[error("call of unknown helper {0}")]
    UnknownHelper(i32),
    /// A call of an unsupported helper.
    #[error("helper {} is not supported: needs {}", .0, helper_needs(.0))]
    MissingHelper(&'static str),
    /// A path reaches an instruction that the loader could not relocate.
    #[error("unresolved relocation: {0}")]
    Poisoned(String),
    /// A helper that this type of program may not call.
    #[error("helper {0} is not allowed in this type of program")]
    HelperNotAllowed(&'static str),
    /// A GPL-only helper in a program without a GPL-compatible license.
    #[error("helper {0} may be called from programs under the GPL only")]
    GplOnly(&'static str),
    /// A kernel function, all of which are GPL-only, in another program, even if the call is unreachable.
    #[error("kernel function {0} may be called from programs under the GPL only")]
    GplKfunc(String),
    /// A helper's argument is of the wrong kind.
    #[error("{register}: {helper} expects {wanted}, not {found}")]
    Argument {
        /// The argument register.
        register: RegName,
        /// The helper's or function's name.
        helper: String,
        /// The expected kind.
        wanted: &'static str,
        /// Description of the actual value.
        found: String,
    },
    /// A helper does not support this kind of map.
    #[error("helper {helper} does not work on a map of kind {kind}")]
    MapKind {
        /// Its name.
        helper: &'static str,
        /// The kind.
        kind: MapKind,
    },
    /// A packet pointer as an argument of a helper that does not accept it.
    #[error("{0}: {1} does not take a pointer into the packet")]
    PacketArgument(RegName, &'static str),
    /// A possibly misaligned argument that must be aligned to its size.
    #[error("{0}: the address is not aligned to {1} bytes")]
    ArgumentAlignment(RegName, u64),
    /// A string is not zero-terminated.
    #[error("{0}: the string is not zero-terminated within the map value")]
    TextEnd(RegName),
    /// The values for a format are not a multiple of 8 bytes.
    #[error("r5: the values to print take {0} bytes, not a multiple of 8")]
    FormatArguments(u64),
    /// An invalid format string, or one with more conversions than values.
    #[error("r3: invalid format string, or more conversions than values")]
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
    /// A call of an unsupported kernel function.
    #[error("kernel function {} is not supported: needs {}", .0, kfunc::needs(.0))]
    Kfunc(String),
    /// An instruction that Paceline or this program type does not support.
    #[error("{0} is not allowed here")]
    NotAllowed(&'static str),
    /// A 64-bit load refers to a map index out of range.
    #[error("no map has index {0}")]
    NoMap(i32),
    /// A direct value address in a map that does not support it, or outside of the value.
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
    /// The call chain before a tail call uses too much stack.
    #[error("tail calls are not allowed when the calls before use {0} bytes of stack")]
    TailCallStack(u32),
    /// A path returns to an identical state.
    #[error("infinite loop")]
    InfiniteLoop,
    /// A million instructions were simulated.
    #[error("the program is too complex: {0} instructions simulated, the most allowed")]
    TooComplex(usize),
    /// Too many sides of branches wait.
    #[error(
        "the program is too complex: {0} branches wait for their other side to be explored, the most allowed"
    )]
    TooManyBranches(usize),
    /// Comparing states takes too long.
    #[error("the program is too complex: comparing its states took {0} steps")]
    TooMuchWork(usize),
    /// The kept states take too much memory.
    #[error("the program is too complex: its states take {0} bytes")]
    TooMuchMemory(usize),
    /// A reference was not released.
    #[error("reference to {kind}, acquired at {slot}, is not released")]
    Leak {
        /// What was acquired.
        kind: ReferenceKind,
        /// The call that acquired it.
        slot: usize,
    },
    /// The address of a function that is not static is taken.
    #[error("address of a function that is not static")]
    CallbackLinkage,
    /// A callback returns something else than 0 or 1.
    #[error("r0: a callback must return 0 or 1, not {0}")]
    CallbackReturn(String),
    /// A timer callback returns something else than 0.
    #[error("r0: a timer callback must return 0, not {0}")]
    TimerReturn(String),
    /// A timer argument at a wrong offset, or of another map.
    #[error("{0}: {1}")]
    Timer(RegName, &'static str),
    /// An iterator is initialized twice.
    #[error("{0}: expected an uninitialized iterator")]
    IteratorThere(RegName),
    /// An iterator is used uninitialized.
    #[error("{0}: expected an initialized iterator")]
    NoIterator(RegName),
    /// The bytes of an iterator are read.
    #[error("an iterator on the stack is read")]
    IteratorRead,
    /// A dynptr is used uninitialized.
    #[error("{0}: expected an initialized dynptr")]
    NoDynptr(RegName),
    /// The bytes of a dynptr are read.
    #[error("a dynptr on the stack is read")]
    DynptrRead,
    /// A dynptr to an unreleased record is overwritten.
    #[error("a dynptr to a record that was neither submitted nor discarded is overwritten")]
    RecordOverwritten,
    /// A helper would overwrite a dynptr.
    #[error("{0}: the helper would overwrite a dynptr on the stack")]
    DynptrWritten(RegName),
    /// A spin lock argument at a wrong offset, or not the lock that is held.
    #[error("{0}: {1}")]
    SpinLock(RegName, &'static str),
    /// An operation that is not allowed while a spin lock is held.
    #[error("{what} is not allowed while the lock taken at {slot} is held")]
    LockHeld {
        /// Its kind.
        what: &'static str,
        /// The call that took the lock.
        slot: usize,
    },
    /// A load or store accesses a special field of a map value.
    #[error("{0}: a {1} in a map value cannot be accessed by loads and stores")]
    SpecialField(RegName, SpecialKind),
    /// A global function's BTF type is not supported, or does not match the call.
    #[error("function {name}: {problem}")]
    GlobalFunction {
        /// Its name.
        name: String,
        /// Reason.
        problem: &'static str,
    },
    /// A packet pointer as an argument that the global function accesses after it moves the packet.
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
    /// Possibly misaligned memory as an argument on which the global function does atomic operations.
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
    /// A global function returns a pointer or an uninitialized value.
    #[error("r0: a global function must return a number, not {0}")]
    GlobalReturn(String),
    /// What always holds in the verifier does not: an error of Paceline, not of the program.
    #[error("internal error at {place}, please report it: it does not hold that {invariant}")]
    Internal {
        /// What should hold.
        invariant: &'static str,
        /// Where it was relied on.
        place: &'static Location<'static>,
    },
}

fn helper_needs(helper: &str) -> &'static str {
    Helper::from_name(helper).and_then(Helper::needs).unwrap_or("an implementation")
}

impl Cause {
    /// Whether a complexity limit was exceeded: the program may be safe.
    #[must_use]
    pub const fn is_too_complex(&self) -> bool {
        matches!(
            self,
            Self::TooComplex(_) | Self::TooManyBranches(_) | Self::TooMuchWork(_) | Self::TooMuchMemory(_)
        )
    }
}

/// Display form of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegName(pub Reg);

impl fmt::Display for RegName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0.number())
    }
}

fn limit_text(target: &Target, limit: &Option<u64>) -> String {
    match (target, limit) {
        (_, None) => String::new(),
        (Target::Packet { .. }, Some(0)) => ", no bytes were bounds-checked".to_owned(),
        (Target::Packet { .. }, Some(limit)) => format!(", only {limit} bytes were bounds-checked"),
        (_, Some(limit)) => format!(", its size is {limit} bytes"),
    }
}

fn access_text(write: &bool) -> &'static str {
    if *write { "write" } else { "read" }
}
