//! Classes of arguments and results: what the rows of helpers and kernel functions have in common with the parameters of the
//! functions here, so that the two can be compared at compile time.

use paceline_spec::helper::{Arg, Return};
use paceline_spec::kfunc::{KfuncArg, KfuncReturn, NUM_ITERATOR_BYTES};

/// Kind of value in an argument register.
#[derive(Clone, Copy)]
pub(super) struct Class {
    kind: Kind,
    /// For memory of a fixed size: its bytes. For a size: the bytes that exist whatever the size is.
    bytes: u32,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    Number,
    Unchecked,
    Context,
    Map,
    MapKey,
    MapValue,
    NextValue,
    ReadMem,
    WriteMem,
    ReadWriteMem,
    Size,
    ReadBytes,
    WriteBytes,
    ReadWriteBytes,
    /// Of which only the dynptr is read.
    Dynptr,
    /// In which the dynptr may be replaced.
    DynptrSlot,
    ReleasedDynptr,
    Text,
    SpinLock,
    Timer,
    Record,
    Object,
    Function,
    StackOrNull,
    Buffer,
    KnownSize,
}

impl Class {
    pub(super) const NUMBER: Self = Self::of(Kind::Number);
    pub(super) const UNCHECKED: Self = Self::of(Kind::Unchecked);
    pub(super) const CONTEXT: Self = Self::of(Kind::Context);
    pub(super) const MAP: Self = Self::of(Kind::Map);
    pub(super) const MAP_KEY: Self = Self::of(Kind::MapKey);
    pub(super) const MAP_VALUE: Self = Self::of(Kind::MapValue);
    pub(super) const NEXT_VALUE: Self = Self::of(Kind::NextValue);
    pub(super) const READ_MEM: Self = Self::of(Kind::ReadMem);
    pub(super) const WRITE_MEM: Self = Self::of(Kind::WriteMem);
    pub(super) const READ_WRITE_MEM: Self = Self::of(Kind::ReadWriteMem);
    pub(super) const SIZE: Self = Self::of(Kind::Size);
    pub(super) const DYNPTR: Self = Self::of(Kind::Dynptr);
    pub(super) const DYNPTR_SLOT: Self = Self::of(Kind::DynptrSlot);
    pub(super) const RELEASED_DYNPTR: Self = Self::of(Kind::ReleasedDynptr);
    pub(super) const TEXT: Self = Self::of(Kind::Text);
    pub(super) const SPIN_LOCK: Self = Self::of(Kind::SpinLock);
    pub(super) const TIMER: Self = Self::of(Kind::Timer);
    pub(super) const RECORD: Self = Self::of(Kind::Record);
    pub(super) const OBJECT: Self = Self::of(Kind::Object);
    pub(super) const FUNCTION: Self = Self::of(Kind::Function);
    pub(super) const STACK_OR_NULL: Self = Self::of(Kind::StackOrNull);
    pub(super) const BUFFER: Self = Self::of(Kind::Buffer);
    pub(super) const KNOWN_SIZE: Self = Self::of(Kind::KnownSize);

    const fn of(kind: Kind) -> Self {
        Self { kind, bytes: 0 }
    }

    pub(super) const fn read_bytes(bytes: usize) -> Self {
        Self { kind: Kind::ReadBytes, bytes: bytes as u32 }
    }

    pub(super) const fn write_bytes(bytes: usize) -> Self {
        Self { kind: Kind::WriteBytes, bytes: bytes as u32 }
    }

    pub(super) const fn read_write_bytes(bytes: usize) -> Self {
        Self { kind: Kind::ReadWriteBytes, bytes: bytes as u32 }
    }

    /// The size of memory of which so many bytes exist in any case.
    pub(super) const fn size_of_at_least(bytes: usize) -> Self {
        Self { kind: Kind::Size, bytes: bytes as u32 }
    }

    const fn is(self, other: Self) -> bool {
        self.kind as u8 == other.kind as u8 && self.bytes == other.bytes
    }

    pub(super) const fn of_arg(arg: Arg) -> Self {
        match arg {
            Arg::Scalar | Arg::RecordSize => Self::NUMBER,
            Arg::Unchecked => Self::UNCHECKED,
            Arg::Context => Self::CONTEXT,
            Arg::Map => Self::MAP,
            Arg::MapKey => Self::MAP_KEY,
            Arg::MapValue => Self::MAP_VALUE,
            Arg::NextValue => Self::NEXT_VALUE,
            Arg::ReadMem | Arg::ReadMemOrNull => Self::READ_MEM,
            Arg::WriteMem | Arg::WriteMemOrNull => Self::WRITE_MEM,
            Arg::ReadWriteMem => Self::READ_WRITE_MEM,
            Arg::Size | Arg::SizeOrZero => Self::SIZE,
            Arg::ReadBytes(bytes) => Self::read_bytes(bytes as usize),
            Arg::WriteBytes(bytes) => Self::write_bytes(bytes as usize),
            Arg::ReadWriteBytes(bytes) => Self::read_write_bytes(bytes as usize),
            Arg::Dynptr => Self::DYNPTR,
            Arg::NewValueDynptr | Arg::NewRecordDynptr => Self::DYNPTR_SLOT,
            Arg::ReleasedDynptr => Self::RELEASED_DYNPTR,
            Arg::Text => Self::TEXT,
            Arg::SpinLock | Arg::HeldSpinLock => Self::SPIN_LOCK,
            Arg::Timer => Self::TIMER,
            Arg::Record => Self::RECORD,
            Arg::Socket | Arg::ReleasedSocket => Self::OBJECT,
            Arg::Function => Self::FUNCTION,
            Arg::StackOrNull => Self::STACK_OR_NULL,
        }
    }

    pub(super) const fn of_kfunc_arg(arg: KfuncArg) -> Self {
        match arg {
            KfuncArg::Number => Self::NUMBER,
            KfuncArg::NumIterator => Self::read_write_bytes(NUM_ITERATOR_BYTES as usize),
            KfuncArg::Context => Self::CONTEXT,
            KfuncArg::NewDynptr | KfuncArg::Dynptr => Self::DYNPTR_SLOT,
            KfuncArg::BufferOrNull => Self::BUFFER,
            KfuncArg::KnownSize => Self::KNOWN_SIZE,
            KfuncArg::Out(bytes) => Self::write_bytes(bytes as usize),
            KfuncArg::Memory => Self::READ_WRITE_MEM,
            KfuncArg::Size { least } => Self::size_of_at_least(least as usize),
            KfuncArg::Object(_) | KfuncArg::Released(_) => Self::OBJECT,
        }
    }
}

/// Kind of value in `r0` afterwards.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum ResultClass {
    /// Not set.
    Nothing,
    Number,
    /// An address, or null.
    Pointer,
}

impl ResultClass {
    pub(super) const fn of_return(returns: Return) -> Self {
        match returns {
            Return::Nothing => Self::Nothing,
            Return::Scalar => Self::Number,
            Return::MapValueOrNull
            | Return::RecordOrNull
            | Return::DynptrMemoryOrNull
            | Return::SocketOrNull
            | Return::SockCommonOrNull => Self::Pointer,
        }
    }

    pub(super) const fn of_kfunc_return(returns: KfuncReturn) -> Self {
        match returns {
            KfuncReturn::Nothing => Self::Nothing,
            KfuncReturn::Number => Self::Number,
            KfuncReturn::ElementOrNull(_)
            | KfuncReturn::SliceOrNull { .. }
            | KfuncReturn::Object(_)
            | KfuncReturn::ObjectOrNull(_) => Self::Pointer,
        }
    }
}

/// Parameters and result of a function: for each parameter and each of its registers the classes that fit.
#[derive(Clone, Copy)]
pub(super) struct Signature {
    pub(super) parameters: &'static [&'static [&'static [Class]]],
    pub(super) returns: ResultClass,
}

impl Signature {
    /// Whether the function takes arguments of these classes, all of them, and returns such a result.
    pub(super) const fn fits(&self, arguments: &[Class], returns: ResultClass) -> bool {
        let (mut parameter, mut register) = (0, 0);
        while parameter < self.parameters.len() {
            let registers = self.parameters[parameter];
            let mut index = 0;
            while index < registers.len() {
                if register == arguments.len() || !is_among(arguments[register], registers[index]) {
                    return false;
                }
                (register, index) = (register + 1, index + 1);
            }
            parameter += 1;
        }
        register == arguments.len() && self.returns as u8 == returns as u8 && has_map_first(arguments)
    }
}

const fn is_among(class: Class, classes: &[Class]) -> bool {
    let mut index = 0;
    while index < classes.len() {
        if class.is(classes[index]) {
            return true;
        }
        index += 1;
    }
    false
}

/// Whether the map of keys and values is the first argument, where their parameters look for it.
const fn has_map_first(arguments: &[Class]) -> bool {
    let mut index = 0;
    while index < arguments.len() {
        if is_among(arguments[index], &[Class::MAP_KEY, Class::MAP_VALUE, Class::NEXT_VALUE]) {
            return arguments[0].is(Class::MAP);
        }
        index += 1;
    }
    true
}
