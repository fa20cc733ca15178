//! The vocabulary of helper prototypes: arguments and results (`struct bpf_func_proto` in `include/linux/bpf.h`).

use super::object::ObjectKind;

/// Type of a helper's argument, in one of `r1` to `r5` (`enum bpf_arg_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// Any number; pointers as well, whose value is then taken as a number.
    Scalar,
    /// Not checked: any value, also an uninitialized register.
    Unchecked,
    /// The program's context.
    Context,
    /// A map.
    Map,
    /// Pointer to a key of the map in an earlier argument.
    MapKey,
    /// Pointer to a value of the map in an earlier argument.
    MapValue,
    /// Pointer to memory for a value of the map in an earlier argument, which the helper writes; to the value that is looked
    /// for where the map is a Bloom filter.
    NextValue,
    /// Pointer to memory that is read; the next argument is its size.
    ReadMem,
    /// The same, or null: known to be null only with a size of zero, but a pointer that was not compared with null
    /// yet is taken with any size, and the helper reads nothing if it is null.
    ReadMemOrNull,
    /// Pointer to memory that is written; the next argument is its size.
    WriteMem,
    /// The same, or null, as for [`ReadMemOrNull`](Self::ReadMemOrNull).
    WriteMemOrNull,
    /// Pointer to memory that is read and written; the next argument is its size.
    ReadWriteMem,
    /// Pointer to so many bytes that are read.
    ReadBytes(u32),
    /// Pointer to so many bytes that are written, at a multiple of their number.
    WriteBytes(u32),
    /// Pointer to so many bytes that are read and written, at a multiple of their number.
    ReadWriteBytes(u32),
    /// Pointer to a dynptr on the stack.
    Dynptr,
    /// Pointer to stack that becomes a dynptr to the memory in the first argument, which must be of a map value.
    NewValueDynptr,
    /// Pointer to stack that becomes a dynptr to a new record of a ring buffer, which the program must give back.
    NewRecordDynptr,
    /// Pointer to a dynptr to a record of a ring buffer. The program no longer has it afterwards.
    ReleasedDynptr,
    /// Pointer to text in a value that nobody can change any more, which ends in a zero byte there.
    Text,
    /// Size in bytes of the memory in the argument before, at least 1.
    Size,
    /// Size in bytes of the memory in the argument before, which may be 0.
    SizeOrZero,
    /// Size in bytes of the record that is returned: a number that is known when the program is verified.
    RecordSize,
    /// Pointer to the `bpf_spin_lock` of a map value. The program has it afterwards.
    SpinLock,
    /// The same lock. The program no longer has it afterwards.
    HeldSpinLock,
    /// Pointer to the `bpf_timer` of a map value; a map in a later argument must be the value's.
    Timer,
    /// A ring buffer's record, as it was returned. The program no longer has it afterwards.
    Record,
    /// A socket, or the common part of one (`ARG_PTR_TO_BTF_ID_SOCK_COMMON`).
    Socket,
    /// The same, as it was returned. The program no longer has it afterwards.
    ReleasedSocket,
    /// A function of the program, which the helper calls ([`Helper::callback`](crate::helper::Helper::callback)), or which is called later
    /// ([`Helper::calls_later`](crate::helper::Helper::calls_later)).
    Function,
    /// Pointer to the stack, or null: what the function in the argument before is given.
    StackOrNull,
}

/// How a helper calls the function that it is given: until that returns 1, or there is no more to call it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callback {
    /// As often as the first argument says, with the number of the call, from 0, and the third argument.
    Count,
    /// For each element of the map in the first argument, with the map, the key, the value and the third argument.
    Elements,
}

/// Type of a helper's result, in `r0` (`enum bpf_return_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Return {
    /// A number.
    Scalar,
    /// Nothing: `r0` is not set afterwards.
    Nothing,
    /// Pointer to a value of the map among the arguments, or null.
    MapValueOrNull,
    /// A ring buffer's record of the size among the arguments, or null. The program must give it back.
    RecordOrNull,
    /// Pointer to as many bytes of a dynptr as an argument says, or null.
    DynptrMemoryOrNull,
    /// A socket, or null. The program must give it back.
    SocketOrNull,
    /// The common part of a socket, or null. The program must give it back.
    SockCommonOrNull,
}

impl Return {
    /// The kind of the object that is returned, which the program must give back.
    #[must_use]
    pub const fn object(self) -> Option<ObjectKind> {
        match self {
            Self::SocketOrNull => Some(ObjectKind::Socket),
            Self::SockCommonOrNull => Some(ObjectKind::SockCommon),
            _ => None,
        }
    }
}

/// Arguments and result of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// Arguments in order, at most five.
    pub args: &'static [Arg],
    /// Result.
    pub returns: Return,
    /// Whether the packet may lie elsewhere afterwards, so that pointers to it are stale.
    pub moves_packet: bool,
}
